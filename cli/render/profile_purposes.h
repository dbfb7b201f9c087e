// What each shipped profile is for: which to take for one's own machine, and whose runs it was fitted to.
#pragma once

#include <string_view>

namespace trivium::cli {

/// "DGX H100; usual choice for H100"; empty for profiles that are not shipped.
std::string_view purpose_of(std::string_view profile);

}  // namespace trivium::cli
