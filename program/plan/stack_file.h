// Stacks as their files describe them: stacks/NAME.json, each flag with its source.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "program/plan/stack.h"

namespace trivium::program {

inline constexpr const char* kStackSchema = "trivium.stack/1";

/// A stack and what its file says of it.
struct StackFile {
  StackTraits traits;
  std::string description;                     ///< one sentence: whose software it is, and which edition
  std::vector<std::string> bases;              ///< the stack that it is based on, that stack's base, and so on
  std::map<std::string, std::string> sources;  ///< flag -> source, of every flag that it or a base sets;
                                               ///< "base NAME: …" for those of a base
};

/// The stacks of `NAME.json` files of the folders, sorted by name. A name in two folders means the file in the first.
/// Errors: Failure(kInput) that names the file and the place: an unknown member, a flag without a source or out of its
/// range, an unknown base, bases that go round in a circle.
std::vector<StackFile> read_stacks(std::span<const std::filesystem::path> folders);

/// The shipped stacks and those in the user's data folder (stacks/NAME.json), read once; a shipped name goes before one
/// of the user's. Thread-safe. Errors: as read_stacks; Failure(kRuntime) where the shipped stacks are not found.
const std::vector<StackFile>& stack_files();

/// Null for an unknown name.
const StackFile* find_stack_file(std::string_view name);

}  // namespace trivium::program
