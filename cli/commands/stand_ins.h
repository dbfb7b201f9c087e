// Programs first on PATH that write down how they were called, and start nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trivium::cli {

/// Writes the stand-ins into `folder`/bin and the file that every bash reads first into `folder`/before.sh; records go
/// into `folder`/records.
void write_stand_ins(const std::filesystem::path& folder);

/// One call of a launcher.
struct RecordedStart {
  std::vector<std::string> prefix, words;
  std::vector<std::pair<std::string, std::string>> files;  ///< that its words name, and their contents
  std::vector<std::string> batch_header;                   ///< lines of #SBATCH
};

/// In the order of the calls.
std::vector<RecordedStart> read_records(const std::filesystem::path& folder);

/// Files that the command sources, and that are not there.
std::vector<std::string> missing_files(const std::filesystem::path& folder);

/// The starts as a script that `trivium import` reads.
std::string script_of(const std::vector<RecordedStart>& starts, const std::string& title);

}  // namespace trivium::cli
