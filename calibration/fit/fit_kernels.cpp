// Profilers' kernels: what the device reaches in somebody else's trainer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "calibration/fit/fit_parts.h"
#include "calibration/measurements/quantities.h"
#include "calibration/measurements/statistics.h"
#include "program/lower/lower.h"
#include "simulator/cost/compute_cost.h"
#include "simulator/cost/gemm.h"

namespace trivium::calibration {
namespace {

using imports::Kernel;
using imports::KernelClass;

constexpr double kLargeCopy = 1 << 20;  // B: smaller ones are latency
constexpr std::size_t kFewLaunches = 50;

double spread_of(const std::vector<std::pair<double, double>>& values) {
  std::vector<double> plain;
  for (const auto& [value, weight] : values) plain.push_back(value);
  const double middle = median(plain);
  return middle > 0 ? (quantile(plain, 0.75) - quantile(plain, 0.25)) / middle : 0;
}

class KernelFitter {
 public:
  KernelFitter(Fit& fit, const TracedJob& traced)
      : fit_(fit),
        traced_(traced),
        trace_(traced.trace),
        from_(fmt::format("trivium calibrate: {} trace {}", trace_.tool, trace_.file)) {}

  void run() {
    fit_.report.push_back(fmt::format("{}: {} of {}, {} kernels, {} whole steps{}", trace_.file, trace_.tool,
                                      trace_.device.empty() ? "an unnamed device" : trace_.device,
                                      trace_.kernels.size(), trace_.steps, trace_.is_truncated ? "; ends early" : ""));
    fit_products();
    fit_copies();
    fit_launches();
    fit_links();
    if (traced_.job) compare_classes(*traced_.job);
  }

 private:
  void keep(const std::string& pointer, double value, const std::string& why) {
    note(fit_, {pointer, value, value, 0, 0, false, "kept from the base: " + why});
    fit_.report.push_back(fmt::format("{}: {}; kept from the base", pointer, why));
  }

  // Equal products differ by what runs concurrently: their median counts, weighted by the time spent in them.
  void fit_products() {
    constexpr const char* kPointer = "/device/gemm_efficiency";
    hardware::Device& device = fit_.node.device;
    using Shape = std::tuple<double, double, double, double, int>;
    std::map<Shape, std::vector<double>> shapes;
    for (const Kernel& kernel : trace_.kernels) {
      if (kernel.kind == KernelClass::kProduct && kernel.m > 0 && kernel.operand_bytes == 2)
        shapes[{kernel.m, kernel.n, kernel.k, kernel.batch, kernel.operand_bytes}].push_back(kernel.seconds);
    }
    if (shapes.empty()) {
      return keep(kPointer, device.gemm_efficiency,
                  "no 16-bit product with its shape in the trace (PyTorch: record_shapes=True)");
    }
    const auto type = device.peak.contains(hardware::Arithmetic::kBf16) ? program::DType::kBf16 : program::DType::kFp16;
    const simulator::GemmRates rates = simulator::gemm_rates(device, type, 1);
    std::vector<std::pair<double, double>> ratios;
    int count = 0;
    for (const auto& [shape, seconds] : shapes) {
      const auto& [m, n, k, batch, bytes] = shape;
      const double typical = median(seconds), predicted = simulator::gemm_time({m, n, k, batch}, rates).value();
      ratios.emplace_back(predicted / typical, typical * static_cast<double>(seconds.size()));
      count += static_cast<int>(seconds.size());
    }
    const double before = device.gemm_efficiency, after = std::min(1.0, before * weighted_median(ratios));
    note(fit_, {kPointer, before, after, spread_of(ratios), count, true, from_});
    device.gemm_efficiency = after;
    fit_.report.push_back(fmt::format("gemm_efficiency: {:.3f} -> {:.3f} from {} shapes, {} products", before, after,
                                      shapes.size(), count));
  }

  void fit_copies() {
    constexpr const char* kPointer = "/host_link";
    std::vector<double> rates;
    for (const imports::HostCopy& copy : trace_.copies) {
      if (copy.bytes >= kLargeCopy) rates.push_back(copy.bytes / copy.seconds);
    }
    if (rates.empty())
      return keep(kPointer, fit_.node.host_link.value(), "no copy of 1 MiB or more to or from the host");
    // Pageable memory is copied slower than the link can: the faster ones tell the link.
    const double before = fit_.node.host_link.value(), rate = quantile(rates, 0.9);
    note(fit_, {kPointer, before, rate, 0, static_cast<int>(rates.size()), true, from_});
    fit_.node.host_link = base::BytesPerSecond(rate);
    fit_.report.push_back(
        fmt::format("host_link: {:.3g} -> {:.3g} GB/s from {} copies", before / 1e9, rate / 1e9, rates.size()));
  }

  // While the host is ahead, launches follow each other as fast as it issues them.
  void fit_launches() {
    constexpr const char* kPointer = "/device/kernel_issue";
    const double before = fit_.node.device.kernel_issue.value();
    if (trace_.launch_gaps_s.size() < kFewLaunches)
      return keep(kPointer, before, "fewer than 50 launches in the trace");
    const double gap = median(trace_.launch_gaps_s);
    note(fit_, {kPointer, before, gap, 0, static_cast<int>(trace_.launch_gaps_s.size()), true, from_});
    fit_.node.device.kernel_issue = base::Seconds(gap);
    fit_.report.push_back(fmt::format("kernel_issue: {:.1f} -> {:.1f} us from {} launches", before * kMicroseconds,
                                      gap * kMicroseconds, trace_.launch_gaps_s.size()));
  }

  // A collective's kernel also waits for its last member: the fastest of its like waited least.
  void fit_links() {
    std::map<std::tuple<program::OpKind, int, double>, double> fastest;
    for (const Kernel& kernel : trace_.kernels) {
      if (!kernel.collective || kernel.ranks < 2 || kernel.bytes <= 0) continue;
      if (kernel.ranks > fit_.node.devices) continue;  // over several nodes: the trace does not tell how many
      const auto [at, fresh] = fastest.try_emplace({*kernel.collective, kernel.ranks, kernel.bytes}, kernel.seconds);
      if (!fresh) at->second = std::min(at->second, kernel.seconds);
    }
    std::vector<imports::CollectiveTime> times;
    for (const auto& [key, seconds] : fastest) {
      times.push_back({std::get<0>(key), std::get<1>(key), 1, std::get<2>(key), seconds});
    }
    if (times.empty()) {
      fit_.report.push_back("collectives: none inside a node with its bytes in the trace; links kept from the base");
    } else {
      fit_collectives(fit_, times, from_);
    }
  }

  /// Seconds of one step on the device by class, of the rank of a plan without pipeline.
  std::map<KernelClass, double> predicted(const program::Program& program) const {
    std::map<KernelClass, double> seconds;
    const program::Role& role = program.roles.front();
    for (const program::Task& task : role.tasks) {
      for (const program::Op& op : program.body_of(task).ops) {
        if (program::is_communication(op.kind)) continue;
        seconds[class_of(op.kind)] += simulator::device_cost(op, fit_.node.device, program.stack).value();
      }
    }
    return seconds;
  }

  static KernelClass class_of(program::OpKind kind) {
    using program::OpKind;
    switch (kind) {
      case OpKind::kMatmul:
      case OpKind::kMatmulDgrad:
      case OpKind::kMatmulWgrad:
      case OpKind::kExpertMatmul:
      case OpKind::kExpertMatmulDgrad:
      case OpKind::kExpertMatmulWgrad:
      case OpKind::kMuonStep:  // its products have the names of others
        return KernelClass::kProduct;
      case OpKind::kAttention:
      case OpKind::kAttentionBackward:
      case OpKind::kAttentionBlock:
      case OpKind::kAttentionBlockBackward:
        return KernelClass::kAttention;
      case OpKind::kAdamW:
      case OpKind::kMuonMomentum:
      case OpKind::kGradientNorm:
        return KernelClass::kOptimizer;
      default:
        return KernelClass::kPointwise;
    }
  }

  void compare_classes(const program::Job& job) {
    constexpr const char* kPointer = "/device/memory_efficiency";
    hardware::Device& device = fit_.node.device;
    if (trace_.steps == 0) return keep(kPointer, device.memory_efficiency, "no step is marked in the trace");
    if (job.plan.pipeline > 1)
      return keep(kPointer, device.memory_efficiency, "the plan has stages, and the trace does not tell its own");
    auto lowered = program::lower(job);
    if (const auto* no = std::get_if<program::Infeasible>(&lowered))
      return keep(kPointer, device.memory_efficiency, no->reason);
    std::map<KernelClass, double> measured;
    for (const Kernel& kernel : trace_.kernels) {
      if (kernel.start_s < trace_.steps_begin_s || kernel.start_s >= trace_.steps_end_s) continue;
      measured[kernel.kind] += kernel.seconds / trace_.steps;
    }
    std::map<KernelClass, double> expected = predicted(std::get<program::Program>(lowered));
    const double moved = measured[KernelClass::kPointwise] + measured[KernelClass::kOptimizer];
    if (moved > 0) {
      const double before = device.memory_efficiency,
                   ratio = (expected[KernelClass::kPointwise] + expected[KernelClass::kOptimizer]) / moved,
                   after = std::min(1.0, before * ratio);
      note(fit_, {kPointer, before, after, 0, trace_.steps, true, from_});
      device.memory_efficiency = after;
      expected = predicted(std::get<program::Program>(lowered));
    }
    const std::pair<KernelClass, const char*> classes[] = {{KernelClass::kProduct, "products"},
                                                           {KernelClass::kAttention, "attention"},
                                                           {KernelClass::kPointwise, "memory-bound kernels"},
                                                           {KernelClass::kOptimizer, "optimizer"}};
    for (const auto& [kind, name] : classes) {
      if (measured[kind] <= 0) continue;
      fit_.report.push_back(fmt::format("{}: {:.2f} ms a step, predicted {:.2f} ms ({:+.1f} %)", name,
                                        1e3 * measured[kind], 1e3 * expected[kind],
                                        kPercent * (expected[kind] / measured[kind] - 1)));
    }
  }

  Fit& fit_;
  const TracedJob& traced_;
  const imports::KernelTrace& trace_;
  std::string from_;
};

}  // namespace

void fit_kernels(Fit& fit, const TracedJob& traced) { KernelFitter(fit, traced).run(); }

}  // namespace trivium::calibration
