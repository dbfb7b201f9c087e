#include "cli/render/version.h"

#include <fmt/format.h>

#include "commit.h"

namespace trivium::cli {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

}  // namespace

std::string version() { return TRIVIUM_VERSION; }

std::string version_lines() {
  return fmt::format(
      "trivium {}\n"
      "commit     {}\n"
      "compiler   {}\n"
      "libraries  {}",
      version(), TRIVIUM_COMMIT, compiler(), TRIVIUM_LIBRARIES);
}

}  // namespace trivium::cli
