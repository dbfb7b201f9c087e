// Rules of what the code of a folder may speak of, read line by line. Comments count as code: they lead astray too.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trivium::structure {

/// Lines of the interpreters of a Program, `FILE:LINE`, that reach for the job it was lowered from.
std::vector<std::string> jobs_in_interpreters(const std::filesystem::path& root);

/// Lines outside the table of stacks, `FILE:LINE: NAME`, that compare something with a stack's name: what a stack does
/// is a trait of it. Names are read from the table.
std::vector<std::string> stacks_in_branches(const std::filesystem::path& root);

/// Files that include each other, each circle once: "a.h -> b.h -> a.h".
std::vector<std::string> include_circles(const std::filesystem::path& root);

/// Functions of more than `most` lines, signature and braces included, `FILE:LINE: LINES`. Kernels of devices, which
/// are in .cu and .cuh files, are not asked.
std::vector<std::string> long_functions(const std::filesystem::path& root, int most);

}  // namespace trivium::structure
