// Whether a sanitizer watches, under which searches and simulations take ten to thirty times as long.
#pragma once

namespace trivium {

#ifdef TRIVIUM_SANITIZED  // by the build, for the whole tree of tests
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Whether the sanitizer reserves terabytes of addresses, which a process of limited addresses cannot have: the address
/// and the thread sanitizer do, that of undefined behaviour does not.
#ifdef TRIVIUM_RESERVES_ADDRESSES
inline constexpr bool kReservesAddresses = true;
#else
inline constexpr bool kReservesAddresses = false;
#endif

}  // namespace trivium
