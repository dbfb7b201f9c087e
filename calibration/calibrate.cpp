#include "calibration/calibrate.h"

#include <fmt/format.h>

#include <algorithm>

#include "calibration/shapes.h"
#include "calibration/statistics.h"
#include "edge/error.h"

namespace trivium::calibration {
namespace {

constexpr double kMicroseconds = 1e6;
constexpr double kPercent = 100;

/// Rates of a kind that the base has: measured ones, or its physics in the same form.
Terms prior_of(const hardware::Device& device, program::OpKind kind) {
  const auto found = device.op_rates.find(std::string(program::name_of(kind)));
  if (found != device.op_rates.end()) {
    return {found->second.overhead.value(), found->second.seconds_per_flop, found->second.seconds_per_byte};
  }
  const double bandwidth = device.memory_bandwidth.value() * device.memory_efficiency;
  double peak = 0;
  for (const auto& [arithmetic, rate] : device.peak) peak = std::max(peak, rate.value());
  return {device.kernel_issue.value(), 1 / (peak * device.gemm_efficiency * device.compute_scale), 1 / bandwidth};
}

std::string describe(const program::RunRecord& record) {
  return fmt::format("{} run of {}, {}, program {}", record.backend, record.job.model.name,
                     program::summary(record.job.plan), record.program_hash);
}

std::string lineage(const KindSamples& kind, std::span<const program::RunRecord> records) {
  std::string text = fmt::format("trivium calibrate: {} events, {} shapes", kind.events, kind.samples.size());
  for (const std::size_t record : kind.records) text += "; " + describe(records[record - 1]);
  return text;
}

std::string report_line(const std::string& what, const KindSamples& kind, const TermFit& fit) {
  return fmt::format(
      "{}: {} shapes, {} events, error {:.1f} % -> {:.1f} %{}", what, kind.samples.size(), kind.events,
      kPercent * fit.before, kPercent * fit.after,
      kind.samples.size() < 3 ? "; too few shapes to tell its terms apart: proportions kept from the base" : "");
}

class Calibrator {
 public:
  Calibrator(const hardware::Node& base, std::span<const program::RunRecord> records)
      : records_(records), measured_(measure(records)) {
    fit_.node = base;
  }

  Fit run() {
    fit_.report.push_back(
        fmt::format("host: {:.2f} us between ops, added to every op's overhead", kMicroseconds * measured_.host_gap));
    for (std::size_t r = 0; r < records_.size(); ++r) {
      fit_.report.push_back(fmt::format("run {}: {}; other work on the machine: x{:.2f} on every op", r + 1,
                                        describe(records_[r]), measured_.disturbance[r]));
    }
    for (auto& [kind, samples] : measured_.compute) fit_kind(kind, samples);
    report_missing();
    fit_links();
    fit_skew();
    return std::move(fit_);
  }

 private:
  void fit_kind(program::OpKind kind, KindSamples& samples) {
    if (samples.samples.empty()) return;
    const std::string name(program::name_of(kind));
    for (Sample& sample : samples.samples) sample.seconds += measured_.host_gap;
    const TermFit fitted = fit_terms(samples.samples, prior_of(fit_.node.device, kind));
    hardware::OpRate rate;
    rate.overhead = edge::Seconds(fitted.terms[0]);
    rate.seconds_per_flop = fitted.terms[1];
    rate.seconds_per_byte = fitted.terms[2];
    rate.spread = quantile(samples.spread, 0.9) - quantile(samples.spread, 0.1);
    fit_.node.device.op_rates[name] = rate;
    fit_.node.sources["/device/op_rates/" + name] = lineage(samples, records_);
    fit_.report.push_back(report_line(name, samples, fitted));
  }

  void report_missing() {
    for (int k = 0; k < program::kOpKinds; ++k) {
      const auto kind = static_cast<program::OpKind>(k);
      if (program::is_communication(kind) || measured_.compute.contains(kind)) continue;
      fit_.report.push_back(fmt::format("{}: in no run, kept from the base", program::name_of(kind)));
    }
  }

  void fit_links() {
    const KindSamples& samples = measured_.communication;
    hardware::Node& node = fit_.node;
    if (samples.samples.empty()) {
      fit_.report.push_back("intra: no communication in the runs, kept from the base");
      return;
    }
    if (node.topology != hardware::Topology::kSharedMemory) {
      fit_.report.push_back("intra: only links of shared-memory nodes are fitted, kept from the base");
      return;
    }
    const Terms prior{node.intra.latency.value(), 1 / (node.intra.bandwidth.value() * node.intra.efficiency), 0};
    const TermFit fitted = fit_terms(samples.samples, prior);
    node.intra.latency = edge::Seconds(fitted.terms[0]);
    node.sources["/intra/latency"] = lineage(samples, records_);
    if (fitted.terms[1] > 0) {
      node.intra.bandwidth = edge::BytesPerSecond(1 / (fitted.terms[1] * node.intra.efficiency));
      node.sources["/intra/bandwidth"] = lineage(samples, records_);
    }
    fit_.report.push_back(report_line("intra", samples, fitted));
  }

  void fit_skew() {
    if (measured_.late.empty()) {
      fit_.report.push_back("collective_skew: no collectives within a stage, kept from the base");
      return;
    }
    const double late = median(measured_.late);
    fit_.report.push_back(fmt::format("collective_skew: {:.1f} us -> {:.1f} us",
                                      kMicroseconds * fit_.node.collective_skew.value(), kMicroseconds * late));
    fit_.node.collective_skew = edge::Seconds(late);
    fit_.node.sources["/collective_skew"] =
        "trivium calibrate: mean wait at collectives of " + describe(records_.front());
  }

  std::span<const program::RunRecord> records_;
  Measurements measured_;
  Fit fit_;
};

}  // namespace

Fit calibrate(const hardware::Node& base, std::span<const program::RunRecord> records) {
  if (records.empty()) throw edge::Failure(edge::ErrorKind::kInput, "calibrate: no run records; give at least one");
  return Calibrator(base, records).run();
}

}  // namespace trivium::calibration
