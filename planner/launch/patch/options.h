// What a launch file sets, and what of it has to change for another plan.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/launch/launch.h"

namespace trivium::planner::launch::patch {

/// Where a setting is.
enum class Place : std::uint8_t {
  kOption,    ///< --name of the command line
  kMember,    ///< of JSON, by its path: "zero_optimization.stage"
  kKey,       ///< section.key of TOML
  kVariable,  ///< of the environment
};

struct Key {
  Place place{};
  std::string name;
  auto operator<=>(const Key&) const = default;
};

/// Settings of a file by where they are; a switch has no values. Of an option that is given twice the last counts.
using FileSettings = std::map<Key, std::vector<std::string>>;

/// Errors: those of read_script, and Failure(kInput) for JSON that is none.
FileSettings file_settings(const ImportRequest& request, Trainer trainer);

/// One setting that changes; nothing where it is absent.
struct OptionChange {
  Key key;
  std::optional<std::vector<std::string>> before, after;
  bool operator==(const OptionChange&) const = default;
};

/// The settings once these are changed.
void apply(const std::vector<OptionChange>& changes, FileSettings& settings);

/// "--tensor-model-parallel-size 8 -> 4", "add --sequence-parallel", "remove --recompute-activations".
std::string text_of(const OptionChange& change);

/// What the user's file has to change, from the files that export_plan writes for today's plan and for another one:
/// what differs between them, in the user's spelling, as far as the user's file does not have it already. `layers`: of
/// the model, `after`: the other plan. `unsettled`: fields of the plan whose settings change wherever the user's file
/// has others, as one that stayed means something else next to those that changed.
std::vector<OptionChange> option_changes(const FileSettings& own, const FileSettings& from, const FileSettings& to,
                                         std::int64_t layers, const program::Plan& after,
                                         const std::vector<std::string>& unsettled = {});

/// Whether the value decides what is trained and how, and not only what something is called.
bool is_setting(const std::vector<std::string>& values);

}  // namespace trivium::planner::launch::patch
