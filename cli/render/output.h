// The files that a command reads and writes: judged together when the command line is read, not after the work.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace trivium::cli {

/// What is written: an existing file of another kind is not replaced without --force.
enum class OutputKind {
  kPlan,     ///< plan file
  kRecord,   ///< run record
  kTrace,    ///< for chrome://tracing
  kProfile,  ///< hardware profile
  kPage,     ///< HTML
  kTable,    ///< rows and groups of `validate`, or curves of `scale`
  kLaunch,   ///< another trainer's launch file
  kTokens,   ///< token file
  kWeights,  ///< safetensors
  kFolder    ///< a folder that the command adds to
};

/// Adds an option of a command that names a file to write, and --force. Names are refused that could not be written:
/// empty, a folder, inside a folder that does not exist, or without the permission.
CLI::Option* add_output(CLI::App& command, const std::string& name, std::string& file, const std::string& help,
                        OutputKind kind);

/// Why a file could not be written there; empty where it could.
std::string objection_to_output(const std::string& file);

/// Makes an option that was added otherwise one of those that `check_files` judges, without a look at the name alone.
CLI::Option* mark_output(CLI::App& command, CLI::Option* option, OutputKind kind);

/// Judges the chosen command's outputs against everything else on its command line. Every word that names a file or
/// folder that exists counts as an input, and so do the terms of a cluster (`A.json:2+B.json:1`). Errors:
/// Failure(kUsage) for an output that is an input by any name (the same file by device and number), lies inside a
/// folder that is read, or is named twice; and for one that exists and is of another kind, unless --force is there.
void check_files(const CLI::App& app);

}  // namespace trivium::cli
