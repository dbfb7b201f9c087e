// Reads the source tree the way the compiler would, to hold it to its own rules: which folder includes which, and how
// long a file may be.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace trivium::structure {

/// Every C++ and CUDA file of the folders of the project and their tests, relative to `root`, sorted.
std::vector<std::filesystem::path> source_files(const std::filesystem::path& root);

/// One sentence per include that the architecture forbids, `FILE:LINE: includes HEADER: REASON`, sorted by file:
/// an arrow that runs upwards, or a CUDA, NCCL, MPI or Qt header outside the one folder that may know it. Tests may
/// include every folder, and the outside headers of the folder they test. A folder with a CMakeLists.txt that has no
/// place in the order is a sentence too, so that no new folder escapes.
std::vector<std::string> forbidden_includes(const std::filesystem::path& root);

/// One sentence per source file with more than `limit` lines, sorted by file.
std::vector<std::string> files_longer_than(const std::filesystem::path& root, std::size_t limit);

/// One sentence per line that names a pipeline schedule (`Schedule::k…`) outside of program/schedules/, the tests, and
/// the few files that own such a property: all else asks the traits of a schedule. Sorted by file.
std::vector<std::string> schedules_named(const std::filesystem::path& root);

/// Lines of Markdown wider than `limit` characters, but tables and code: "docs/reference/desktop.md:7: 120 columns".
std::vector<std::string> prose_wider_than(const std::filesystem::path& root, std::size_t limit);

}  // namespace trivium::structure
