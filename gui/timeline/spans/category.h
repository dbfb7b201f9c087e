// What spans are drawn as: kinds of work with colours that people with any colour vision tell apart.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "program/ir/program.h"

namespace trivium::gui {

/// The kinds of work of a training step. Traces of other programs bring names of their own.
enum class Category : std::uint8_t {
  kForward,
  kBackward,
  kRecompute,
  kOptimizer,
  kTensor,
  kContext,
  kExpert,
  kData,
  kPipeline,
  kOffload,
  kWaiting,  ///< for a partner, in communication
  kOther
};
constexpr int kCategories = 12;
std::string_view name_of(Category category);

/// Of an op (null: the task as a whole) on its lane.
Category category_of(const program::Task& task, const program::Op* op, program::Lane lane);

/// Of a name in a trace that this program wrote ("forward mb3 layer 2 matmul" on lane "compute"), else kOther.
Category category_of(std::string_view name, std::string_view kind, std::string_view lane);

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

/// Colours of the categories, then those for other names. After P. Tol, "Colour Schemes" (SRON/EPS/TN/09-002, issue
/// 3.2): the schemes "bright", "light" and "muted", chosen for all kinds of colour vision.
Colour colour_of(int hue);
constexpr int kNamedHues = 20;  ///< of categories and other names; those of errors follow
constexpr int kErrorHue = kNamedHues;
constexpr int kErrorHues = 7;  ///< from far too short over right to far too long: a diverging scheme ("sunset")
constexpr int kHues = kNamedHues + kErrorHues;

/// Something that spans can be: as a rule a Category; its hue is its number.
struct CategoryInfo {
  std::string name;
  int hue = 0;
};

}  // namespace trivium::gui
