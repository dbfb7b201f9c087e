// The text form of a cluster: "dgx-a100-80gb:128", "A:16+B:16", "gb200-nvl72:4x64".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trivium::hardware {

inline constexpr const char* kThisMachine = "this-machine";
inline constexpr int kMostClusterDevices = 1'000'000;

/// One term of the text: a profile, how many nodes of it, and how many devices of each.
struct ClusterTerm {
  std::string node;  ///< name or file
  int count = 1;
  int devices = 0;  ///< 0: all of a node
};

/// Terms in rank order. Errors: Failure(kInput) on an empty name, or a count that is not an integer from 1 to
/// kMostClusterDevices.
std::vector<ClusterTerm> parse_cluster_text(const std::string& text);

/// The text that means these terms.
std::string text_of(const std::vector<ClusterTerm>& terms);

/// Whether a name of a node or cluster means a file: it ends in .json or has a folder in it.
bool is_file(std::string_view name);

}  // namespace trivium::hardware
