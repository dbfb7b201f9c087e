// Whole files, written atomically: a reader sees the old content or the new, never a part.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::base {

/// Content of a regular file, or of standard input where `path` is "-". Errors: Failure(kInput) when it is missing, a
/// folder, pipe or device, unreadable, or larger than `input_limit`.
std::string read_file(const std::filesystem::path& path);

/// How many bytes one input may take in memory: as a file, unpacked, and as a document. 1 GiB unless set, by
/// `--max-input`, before anything is read.
std::size_t input_limit();
void set_input_limit(std::size_t bytes);
/// "1.00 GiB; --max-input SIZE allows more", for those that refuse.
std::string input_limit_text();

/// Writes to a temporary file next to `path`, flushes it to disk and renames it over `path`; creates missing folders.
/// Errors: Failure(kRuntime); the old content then still stands.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Folder of shipped data (`models`, `hardware_profiles`, …): $TRIVIUM_DATA_DIR/NAME, else next to the installed
/// program (`../share/trivium/NAME`), else the source tree it was built from, else where it was to be installed.
/// Errors: Failure(kRuntime) when none exists.
std::filesystem::path shipped_data(std::string_view name);

/// The files of that name where modules of the program lie, best first: next to it, in `../lib` and in `../lib/trivium`
/// from there.
std::vector<std::string> module_files(std::string_view name);

/// Folder of the user's own data: $XDG_DATA_HOME/trivium, else ~/.local/share/trivium. Not created.
std::filesystem::path user_data();

}  // namespace trivium::base
