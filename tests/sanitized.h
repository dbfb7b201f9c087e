// Whether a sanitizer watches, under which searches and simulations take ten to thirty times as long.
#pragma once

namespace trivium {

#ifdef TRIVIUM_SANITIZED  // by the build, for the whole tree of tests
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace trivium
