// What spans are drawn as: kinds of work in colours that people with any colour vision can distinguish.
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
  kOther,
  kProduct,  ///< of matrices; from here on kernels of other programs, told by their names
  kAttention,
  kNorm,
  kElementwise,
  kCollective,
  kCopy
};
constexpr int kCategories = 18;
std::string_view name_of(Category category);
/// The colour of a category. Kernels of other programs reuse colours of work that never appears together with them.
int hue_of(Category category);

/// Of an op (null: the task as a whole) on its lane.
Category category_of(const program::Task& task, const program::Op* op, program::Lane lane);

/// Of a name in a trace: that this program wrote ("forward mb3 layer 2 matmul" on lane "compute"), or of a kernel, copy
/// or operator that a profiler saw; else kOther.
Category category_of(std::string_view name, std::string_view kind, std::string_view lane);

/// Whether an event of that kind, as profilers name it, is work of a device, or an operator of the host.
bool is_kernel(std::string_view kind);
bool is_host_operator(std::string_view kind);

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

/// Colours of kinds (report/palette.h), then those of errors.
Colour colour_of(int hue);
constexpr int kKindHues = 12;
constexpr int kErrorHue = kKindHues;
/// From far too short over right to far too long: P. Tol's diverging scheme "sunset" (SRON/EPS/TN/09-002, issue 3.2).
constexpr int kErrorHues = 7;
constexpr int kHues = kKindHues + kErrorHues;

/// Of the n-th kind of work that has only a name, of other programs: first those that no kernel has. n >= 0.
int hue_of_named(int n);

/// Something that spans can be: as a rule a Category.
struct CategoryInfo {
  std::string name;
  int hue = 0;
};

}  // namespace trivium::gui
