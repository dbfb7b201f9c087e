// Kinds of node of the user's own, begun from the nearest known one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"

namespace trivium::gui {

/// A constant of a node as a form asks for it.
struct NodeField {
  const char* pointer;  ///< in the profile: "/device/memory"
  const char* words;    ///< "Memory of a device"
  const char* help;     ///< units, and what stands for none
};
const std::vector<NodeField>& node_fields();

/// What the profile says, as it can be typed; empty where it says nothing.
std::string field_text(const hardware::Node& node, const std::string& pointer);

/// What was typed, by pointer; fields that are left out stay as in the base. `pasted`: output of `nvidia-smi topo -m`
/// and of nccl-tests, in any order, to which links are fitted first.
struct OwnNode {
  std::string name, base, pasted;
  std::map<std::string, std::string> typed;
};

/// The node, and what was made of what was pasted, a line each. What is typed is said to be; measured all-reduces grow
/// and shrink with the link inside of the node.
struct MadeNode {
  hardware::Node node;
  std::vector<std::string> said;
};
/// Errors: Failure(kInput) that names the pointer of the field.
MadeNode make_node(const OwnNode& own);

/// Writes it as a profile of the user's, where the command line finds it by its name too. Errors: Failure(kUsage) for a
/// name that is none or that a shipped profile has, Failure(kRuntime) where it cannot be written.
void keep_node(const hardware::Node& node);

}  // namespace trivium::gui
