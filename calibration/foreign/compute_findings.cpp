#include "calibration/foreign/compute_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "calibration/foreign/wording.h"
#include "calibration/measurements/statistics.h"

namespace trivium::calibration::foreign {
namespace {

constexpr double kSlower = 1.15, kSlowerOnCores = 1.5;  // beyond it, an op is slow for its like
constexpr double kFusedShare = 0.5;   // of the rate of plain products, which fused attention reaches at least
constexpr double kManyKernels = 1.5;  // over those of the plan's stack

/// Seconds of ops that findings have not taken yet.
class Remaining {
 public:
  Remaining(const RankTimes& rank, const RankPlan& plan, bool on_cores, bool flash)
      : rank_(rank), plan_(plan), on_cores_(on_cores), flash_(flash), pace_(pace_of(rank, plan)) {
    for (const auto& [name, op] : rank.ops) {
      if (!rank.exposed_s.contains(name)) left_[name] = op.seconds;
    }
  }

  std::vector<Finding> findings() {
    take_recomputed();
    take_attention();
    if (!on_cores_) take_small_kernels();  // operators on cores are not kernels
    take_unsplit();
    take_pace();
    take_slow_ops();
    return std::move(findings_);
  }

 private:
  double predicted(const std::string& op) const {
    const auto found = plan_.ops.find(op);
    return found == plan_.ops.end() ? 0 : found->second.seconds;
  }

  /// Takes up to `more` from an op's seconds, as far as they are there.
  double take(const std::string& op, double more) {
    const auto found = left_.find(op);
    if (found == left_.end()) return 0;
    const double taken = std::clamp(more, 0.0, found->second);
    found->second -= taken;
    return taken;
  }

  void find(std::string what, double taken, std::string remedy) {
    if (taken > 0)
      findings_.push_back({std::move(what), std::nullopt, taken, std::move(remedy), cause_,
                           cause_ == "unfused_attention" || cause_ == "recomputation" ? 0.7 : 0.5});
  }

  /// Forward ops below the backward of a checkpoint, more than the plan has of them.
  void take_recomputed() {
    double again = 0;
    for (const auto& [name, op] : rank_.ops) {
      if (op.recomputed_s <= 0) continue;
      const double forward = op.seconds - op.recomputed_s, planned = predicted(name) * pace_;
      again += take(name, std::min(op.recomputed_s, std::max(0.0, op.seconds - std::max(planned, forward))));
    }
    cause_ = "recomputation";
    find(fmt::format("activations are computed again for {}; the plan keeps them", time_text(again)), again,
         "turn activation checkpointing off, or keep what the plan keeps");
  }

  /// What the run's own products say attention could take, where it runs in one kernel.
  double fused_attention_s(const std::string& op) const {
    const auto planned = plan_.ops.find(op);
    if (planned == plan_.ops.end()) return 0;
    double flops = 0, time = 0;
    for (const auto& [name, measured] : rank_.ops) {
      if (is_product(name) && measured.flops > 0) flops += measured.flops, time += measured.seconds;
    }
    const double by_plan = planned->second.seconds * pace_;
    if (flops <= 0 || time <= 0) return by_plan;
    const double by_rate = planned->second.flops * time / flops / kFusedShare;
    return flash_ ? std::min(by_plan, by_rate) : by_rate;
  }

  void take_attention() {
    double taken = 0, all = 0;
    for (const char* name : {"attention", "attention_backward"}) {
      const auto measured = rank_.ops.find(name);
      if (measured == rank_.ops.end() || measured->second.unfused_s < 0.3 * measured->second.seconds) continue;
      all += measured->second.seconds;
      taken += take(name, measured->second.seconds - fused_attention_s(name));
    }
    cause_ = "unfused_attention";
    find(fmt::format("attention runs unfused, as products and a softmax of their own: {}, fused about {}",
                     time_text(all), time_text(all - taken)),
         taken,
         "scaled_dot_product_attention, or flash-attn" +
             std::string(flash_ ? ", as the plan says (attention flash)" : ""));
  }

  /// Norms, activations and their like as many small kernels, where the plan's stack has few.
  void take_small_kernels() {
    for (const char* name : {"norm", "norm_backward", "activation", "activation_backward", "rotary", "rotary_backward",
                             "loss", "loss_backward", "adamw"}) {
      const auto measured = rank_.ops.find(name);
      const auto planned = plan_.ops.find(name);
      if (measured == rank_.ops.end() || planned == plan_.ops.end()) continue;
      const double each = measured->second.count / planned->second.count;
      if (each < kManyKernels * std::max(1.0, planned->second.launches)) continue;
      const double taken = take(name, measured->second.seconds - planned->second.seconds * pace_);
      cause_ = "unfused_kernels";
      find(fmt::format("{} runs as {:.0f} kernels each, the plan's stack has {:.0f}: {}", name, each,
                       planned->second.launches, time_text(measured->second.seconds)),
           taken, "torch.compile, or a fused kernel of it (Transformer Engine, apex, Liger)");
    }
  }

  /// Products that every tensor rank does whole.
  void take_unsplit() {
    double taken = 0;
    std::string names;
    for (const auto& [name, op] : rank_.ops) {
      if (op.unsplit_s < 0.5 * op.seconds || op.unsplit_s <= 0) continue;
      taken += take(name, op.seconds - predicted(name) * pace_);
      if (!name.ends_with("_dgrad") && !name.ends_with("_wgrad")) names += (names.empty() ? "" : ", ") + name;
    }
    cause_ = "unsplit";
    find(fmt::format("{} runs whole on every tensor rank; the plan splits it", names), taken,
         "split it among the tensor ranks: of a head, its columns, with a loss on parts of the vocabulary");
  }

  /// All products alike: the device is not what the profile says.
  void take_pace() {
    if (on_cores_ || pace_ < kSlower) return;
    double taken = 0;
    for (const auto& [name, planned] : plan_.ops) {
      if (is_product(name)) taken += take(name, std::min(left_[name], pace_ * planned.seconds) - planned.seconds);
    }
    cause_ = "slow_device";
    find(fmt::format("products all run at {:.0f} % of the plan's rate", 100 / pace_), taken,
         "look for a low clock or power limit (nvidia-smi -q -d CLOCK,POWER,PERFORMANCE); if the device is well, "
         "trivium calibrate");
  }

  void take_slow_ops() {
    const double pace = pace_;
    for (const auto& [name, op] : rank_.ops) {
      const auto planned = plan_.ops.find(name);
      if (!left_.contains(name) || planned == plan_.ops.end() || planned->second.seconds <= 0) continue;
      if (on_cores_ && !is_product(name)) continue;
      const double expected = pace * planned->second.seconds, before = left_[name];
      const double there = is_product(name) && !on_cores_ && pace > kSlower ? planned->second.seconds : expected;
      if (op.seconds < (on_cores_ ? kSlowerOnCores : kSlower) * expected || before <= there) continue;
      const double taken = take(name, before - there);
      cause_ = "slow_op";
      find(fmt::format("{} takes {}, {:.1f} times what the plan's device takes{} ({})", name, time_text(op.seconds),
                       op.seconds / expected, on_cores_ ? ", scaled to the pace of the other products" : "",
                       shortened(op.longest)),
           taken, remedy_of(name, op, planned->second));
    }
  }

  static std::string shortened(const std::string& name) {
    constexpr std::size_t kLongest = 48;
    return name.size() <= kLongest ? name : name.substr(0, kLongest - 3) + "...";
  }

  static std::string remedy_of(const std::string& name, const MeasuredOp& op, const PlannedOp& planned) {
    if (op.count > 1.5 * planned.count && is_product(name))
      return "one product in place of several (fused qkv, gate and up together); larger micro-batches";
    if (is_product(name)) return "sizes that are multiples of 64; larger micro-batches; another version of its library";
    return "torch.compile, or a fused kernel of it";
  }

  const RankTimes& rank_;
  const RankPlan& plan_;
  bool on_cores_, flash_;
  double pace_;
  std::string cause_;  // of what is found next
  std::map<std::string, double> left_;
  std::vector<Finding> findings_;
};

}  // namespace

double pace_of(const RankTimes& rank, const RankPlan& plan) {
  std::vector<std::pair<double, double>> ratios;
  for (const auto& [name, op] : rank.ops) {
    const auto planned = plan.ops.find(name);
    if (!is_product(name) || planned == plan.ops.end() || planned->second.seconds <= 0) continue;
    ratios.emplace_back(op.seconds / planned->second.seconds, planned->second.seconds);
  }
  return ratios.empty() ? 1 : weighted_median(std::move(ratios));
}

std::vector<Finding> compute_findings(const RankTimes& rank, const RankPlan& plan, bool on_cores, bool flash) {
  return Remaining(rank, plan, on_cores, flash).findings();
}

}  // namespace trivium::calibration::foreign
