#include "gui/timeline/spans/category.h"

#include <algorithm>

#include "calibration/measurements/kernel_trace.h"
#include "report/palette.h"

namespace trivium::gui {
namespace {

using report::Kind;

constexpr std::array<std::string_view, kCategories> kNames{
    "forward",        "backward",      "recompute",     "optimizer",   "tensor parallel", "context",
    "expert",         "data parallel", "pipeline",      "offload",     "waiting",         "other",
    "matrix product", "attention",     "normalization", "elementwise", "collective",      "copy"};

constexpr std::array<Kind, kCategories> kKindOf{
    Kind::kForward,          Kind::kBackward,        Kind::kRecompute,  Kind::kOptimizer,
    Kind::kTensor,           Kind::kContext,         Kind::kExpert,     Kind::kData,
    Kind::kPipeline,         Kind::kOffload,         Kind::kWaiting,    Kind::kOther,
    report::kProductKind,    report::kAttentionKind, report::kNormKind, report::kElementwiseKind,
    report::kCollectiveKind, Kind::kOffload};
static_assert(report::kKinds.size() == kKindHues);

/// Kinds that no kernel has, then the others.
constexpr std::array kNamed{Kind::kPipeline, Kind::kData,     Kind::kContext,  Kind::kForward,
                            Kind::kTensor,   Kind::kBackward, Kind::kExpert,   Kind::kRecompute,
                            Kind::kOffload,  Kind::kOther,    Kind::kOptimizer};

constexpr std::array<Colour, kErrorHues> kErrors{{{0x36, 0x4B, 0x9A},
                                                  {0x6E, 0xA6, 0xCD},
                                                  {0xC2, 0xE4, 0xEF},
                                                  {0xEA, 0xEC, 0xCC},
                                                  {0xFE, 0xDA, 0x8B},
                                                  {0xF6, 0x7E, 0x4B},
                                                  {0xA5, 0x00, 0x26}}};

Category category_of_lane(std::string_view lane) {
  if (lane == "tensor") return Category::kTensor;
  if (lane == "pipeline") return Category::kPipeline;
  if (lane == "data") return Category::kData;
  if (lane == "copy") return Category::kOffload;
  if (lane == "context") return Category::kContext;
  if (lane == "expert") return Category::kExpert;
  return Category::kOther;
}

Category category_of_pass(program::Pass pass) {
  switch (pass) {
    case program::Pass::kForward:
      return Category::kForward;
    case program::Pass::kRecompute:
      return Category::kRecompute;
    case program::Pass::kBackward:
      return Category::kBackward;
    case program::Pass::kOptimizer:
      return Category::kOptimizer;
  }
  return Category::kOther;
}

Category category_of_task(program::TaskKind kind) {
  switch (kind) {
    case program::TaskKind::kForward:
      return Category::kForward;
    case program::TaskKind::kBackward:
    case program::TaskKind::kBackwardWeights:
      return Category::kBackward;
    case program::TaskKind::kSend:
    case program::TaskKind::kRecv:
    case program::TaskKind::kGatherReceived:
      return Category::kPipeline;
    case program::TaskKind::kReduceGradients:
    case program::TaskKind::kGatherParameters:
      return Category::kData;
    case program::TaskKind::kGradientNorm:
    case program::TaskKind::kNormReduce:
    case program::TaskKind::kOptimizer:
      return Category::kOptimizer;
    case program::TaskKind::kFetch:
    case program::TaskKind::kStore:
      return Category::kOffload;
  }
  return Category::kOther;
}

bool holds(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

/// Of what is no work of this program: names that say nothing are kernels only where the trace says so.
Category category_of_kernel(std::string_view name, std::string_view kind) {
  using calibration::imports::KernelClass;
  std::string small(name);
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
  if (kind.starts_with("gpu_mem") || small.starts_with("memcpy") || small.starts_with("memset")) return Category::kCopy;
  const KernelClass told = calibration::imports::class_of_kernel(small);
  if (told == KernelClass::kCollective || calibration::imports::collective_named(small)) return Category::kCollective;
  if (told == KernelClass::kAttention || holds(small, {"attention"})) return Category::kAttention;
  if (told == KernelClass::kProduct || holds(small, {"matmul"})) return Category::kProduct;
  if (told == KernelClass::kOptimizer) return Category::kOptimizer;
  if (calibration::imports::is_normalization(small)) return Category::kNorm;
  return is_kernel(kind) || is_host_operator(kind) || holds(small, {"elementwise"}) ? Category::kElementwise
                                                                                    : Category::kOther;
}

}  // namespace

std::string_view name_of(Category category) { return kNames.at(static_cast<std::size_t>(category)); }

int hue_of(Category category) { return static_cast<int>(kKindOf.at(static_cast<std::size_t>(category))); }

int hue_of_named(int n) { return static_cast<int>(kNamed[static_cast<std::size_t>(n) % kNamed.size()]); }

Colour colour_of(int hue) {
  const auto at = static_cast<std::size_t>(hue) % kHues;
  if (at >= kKindHues) return kErrors[at - kKindHues];
  const std::uint32_t rgb = report::kKinds[at];
  return {static_cast<std::uint8_t>(rgb >> 16), static_cast<std::uint8_t>(rgb >> 8), static_cast<std::uint8_t>(rgb)};
}

Category category_of(const program::Task& task, const program::Op* op, program::Lane lane) {
  if (op == nullptr) return category_of_task(task.kind);
  if (lane == program::Lane::kCopy || op->lane == program::Lane::kCopy) return Category::kOffload;
  if (!program::is_communication(op->kind)) return category_of_pass(op->pass);
  if (op->lane == program::Lane::kPipeline) return Category::kPipeline;  // transfers, and what gathers their parts
  switch (op->group) {
    case program::Group::kTensor:
    case program::Group::kKeys:
    case program::Group::kExpertTensor:
      return Category::kTensor;
    case program::Group::kData:
    case program::Group::kShard:
    case program::Group::kReplica:
    case program::Group::kExpertData:
    case program::Group::kEmbedding:
      return Category::kData;
    case program::Group::kContext:
    case program::Group::kContextHeads:
    case program::Group::kContextRing:
      return Category::kContext;
    case program::Group::kExpert:
      return Category::kExpert;
    default:
      return Category::kOptimizer;  // the gradient norm belongs to the step
  }
}

bool is_kernel(std::string_view kind) {
  return kind == "kernel" || kind == "cuda" || kind.starts_with("gpu_mem") || kind == "Kernel";
}

bool is_host_operator(std::string_view kind) { return kind == "cpu_op" || kind == "operator"; }

Category category_of(std::string_view name, std::string_view kind, std::string_view lane) {
  if (is_kernel(kind) || is_host_operator(kind)) return category_of_kernel(name, kind);
  const bool communicates = kind == "all_reduce" || kind == "reduce_scatter" || kind == "all_gather" ||
                            kind == "send" || kind == "recv" || kind == "all_to_all" || kind == "ring_shift";
  if (kind == "fetch" || kind == "store") return Category::kOffload;
  if (name.starts_with("gather received")) return Category::kPipeline;
  if (communicates && lane != "compute") return category_of_lane(lane);
  const std::string_view word = name.substr(0, name.find(' '));
  if (communicates) {  // on the compute lane of a machine whose collectives are synchronous
    if (word == "forward" || word == "backward" || word == "recompute") return Category::kTensor;
    if (word == "reduce" || word == "gather") return Category::kData;
    return Category::kOptimizer;
  }
  if (word == "forward") return Category::kForward;
  if (word == "backward") return Category::kBackward;
  if (word == "recompute") return Category::kRecompute;
  if (word == "optimizer" || name.starts_with("gradient norm") || name.starts_with("norm reduce")) {
    return Category::kOptimizer;
  }
  if (word == "send" || word == "recv") return Category::kPipeline;
  if (name.starts_with("reduce gradients") || name.starts_with("gather parameters")) return Category::kData;
  return category_of_kernel(name, kind);
}

}  // namespace trivium::gui
