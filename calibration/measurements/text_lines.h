// Logs and tables of other programs, line by line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::calibration::imports {

/// Lines without terminal escapes (ESC [ … letter) and without the marks that launchers put before each rank's output:
/// `[1,0]<stdout>:` (mpirun), `[default0]:`, `[rank12]:` (torchrun), `0: ` (srun). A carriage return ends a line as
/// well: progress bars. `is_last_whole`: whether the text ended with a line end; without one the last line may be cut.
struct TextLines {
  std::vector<std::string> lines;
  bool is_last_whole = true;
};
TextLines lines_of(std::string_view text);

/// Fields between blanks.
std::vector<std::string> words_of(std::string_view line);

/// A decimal or scientific number that is the whole of `word`; nothing for anything else ("N/A", "nan", "1.5GB").
std::optional<double> number_of(std::string_view word);

/// The number that follows `key` in `line`, up to the first character that belongs to none.
std::optional<double> number_after(std::string_view line, std::string_view key);

}  // namespace trivium::calibration::imports
