// Where profiles are kept: the shipped folder, the user's data folder, and files that the user names.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json_reader.h"

namespace trivium::hardware {

enum class ProfileKind { kNode, kDevice };

/// A profile as it was found.
struct StoredProfile {
  nlohmann::json json;
  std::string label;  ///< what messages call its file
  std::string path;   ///< the file, equal for equal files
};

/// The profile that the text `asked`, read from a profile, means: a file (ends in .json or has a folder in it; relative
/// to the file of `asked`), `this-machine` (nodes alone), a shipped name, or a name in the user's data folder
/// (profiles/NAME.json, profiles/devices/NAME.json). Errors: Failure(kInput) at `asked`.
StoredProfile stored_profile(ProfileKind kind, const base::JsonReader& asked);

/// The files on the way from a profile to the last of its bases, to see that they end.
class BaseChain {
 public:
  /// One file on. Errors: Failure(kInput) at `asked` where it is already on the way.
  BaseChain with(const StoredProfile& profile, const base::JsonReader& asked) const;

 private:
  std::vector<std::string> labels_, paths_;
};

}  // namespace trivium::hardware
