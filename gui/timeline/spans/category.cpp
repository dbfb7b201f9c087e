#include "gui/timeline/spans/category.h"

namespace trivium::gui {
namespace {

constexpr std::array<std::string_view, kCategories> kNames{"forward",         "backward", "recompute", "optimizer",
                                                           "tensor parallel", "context",  "expert",    "data parallel",
                                                           "pipeline",        "offload",  "waiting",   "other"};

constexpr std::array<Colour, kHues> kColours{{
    {0x44, 0x77, 0xAA},  // forward
    {0x22, 0x88, 0x33},  // backward
    {0xCC, 0xBB, 0x44},  // recompute
    {0xAA, 0x33, 0x77},  // optimizer
    {0xEE, 0x66, 0x77},  // tensor parallel
    {0x44, 0xBB, 0x99},  // context
    {0xAA, 0xAA, 0x00},  // expert
    {0xEE, 0x88, 0x66},  // data parallel
    {0x66, 0xCC, 0xEE},  // pipeline
    {0x88, 0x22, 0x55},  // offload
    {0xBB, 0xBB, 0xBB},  // waiting
    {0x77, 0x77, 0x77},  // other
    {0x33, 0x22, 0x88}, {0x88, 0xCC, 0xEE}, {0x11, 0x77, 0x33}, {0x99, 0x99, 0x33}, {0xDD, 0xCC, 0x77},
    {0xCC, 0x66, 0x77}, {0xAA, 0x44, 0x99}, {0xEE, 0xDD, 0x88}, {0x36, 0x4B, 0x9A},  // errors
    {0x6E, 0xA6, 0xCD}, {0xC2, 0xE4, 0xEF}, {0xEA, 0xEC, 0xCC}, {0xFE, 0xDA, 0x8B}, {0xF6, 0x7E, 0x4B},
    {0xA5, 0x00, 0x26},
}};

Category category_of_lane(std::string_view lane) {
  if (lane == "tensor") return Category::kTensor;
  if (lane == "pipeline") return Category::kPipeline;
  if (lane == "data") return Category::kData;
  if (lane == "copy") return Category::kOffload;
  if (lane == "context") return Category::kContext;
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

}  // namespace

std::string_view name_of(Category category) { return kNames.at(static_cast<std::size_t>(category)); }

Colour colour_of(int hue) { return kColours[static_cast<std::size_t>(hue) % kHues]; }

Category category_of(const program::Task& task, const program::Op* op, program::Lane lane) {
  if (op == nullptr) return category_of_task(task.kind);
  if (lane == program::Lane::kCopy || op->lane == program::Lane::kCopy) return Category::kOffload;
  if (!program::is_communication(op->kind)) return category_of_pass(op->pass);
  if (op->lane == program::Lane::kPipeline) return Category::kPipeline;  // transfers, and what gathers their parts
  switch (op->group) {
    case program::Group::kTensor:
    case program::Group::kKeys:
      return Category::kTensor;
    case program::Group::kData:
    case program::Group::kShard:
    case program::Group::kReplica:
    case program::Group::kExpertData:
    case program::Group::kEmbedding:
      return Category::kData;
    case program::Group::kContext:
      return Category::kContext;
    case program::Group::kExpert:
      return Category::kExpert;
    default:
      return Category::kOptimizer;  // the gradient norm belongs to the step
  }
}

Category category_of(std::string_view name, std::string_view kind, std::string_view lane) {
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
  if (word == "optimizer" || word == "gradient" || word == "norm") return Category::kOptimizer;
  if (word == "send" || word == "recv") return Category::kPipeline;
  return word == "reduce" || word == "gather" ? Category::kData : Category::kOther;
}

}  // namespace trivium::gui
