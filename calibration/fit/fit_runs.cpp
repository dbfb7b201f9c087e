// Our own runs: every op kind's rate, and how cores reach each other.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "calibration/fit/fit_parts.h"
#include "calibration/fit/shapes.h"
#include "calibration/measurements/quantities.h"
#include "calibration/measurements/statistics.h"
#include "simulator/cost/op_rate.h"

namespace trivium::calibration {
namespace {

constexpr double kKnown = 0.25;  // relative: a term whose spread is larger is not told by the runs

/// Names of a term by kind of fit, in the order of Terms.
using TermNames = std::array<const char*, kTerms>;

/// Rates of a kind that the base has: measured ones, or its physics in the same form.
Terms prior_of(const hardware::Device& device, program::RateKind kind) {
  if (const hardware::OpRate* rate = simulator::find_rate(device, kind)) {
    return {rate->overhead.value(), rate->seconds_per_flop, rate->seconds_per_byte, rate->seconds_per_block};
  }
  const double bandwidth = device.memory_bandwidth.value() * device.memory_efficiency;
  double peak = 0;
  for (const auto& [arithmetic, rate] : device.peak) peak = std::max(peak, rate.value());
  return {device.kernel_issue.value(), 1 / (peak * device.gemm_efficiency * device.sustained_scale()), 1 / bandwidth,
          0};
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

/// Names of the terms that are zero everywhere, or that the samples do not determine.
std::string not_told(const KindSamples& kind, const TermFit& fit, const TermNames& names) {
  std::string text;
  for (std::size_t j = 0; j < kTerms; ++j) {
    const bool used = std::any_of(kind.samples.begin(), kind.samples.end(),
                                  [&](const Sample& sample) { return sample.sizes[j] > 0; });
    if (!used || fit.spread[j] <= kKnown) continue;
    text += (text.empty() ? "; undetermined: " : ", ") + std::string(names[j]);
  }
  return text;
}

std::string report_line(const std::string& what, const KindSamples& kind, const TermFit& fit, const TermNames& names) {
  return fmt::format(
      "{}: {} shapes, {} events, error {:.1f} % -> {:.1f} %{}{}", what, kind.samples.size(), kind.events,
      kPercent * fit.before, kPercent * fit.after, not_told(kind, fit, names),
      kind.samples.size() < 3 ? "; too few shapes to tell its terms apart: proportions kept from the base" : "");
}

class RunFitter {
 public:
  RunFitter(Fit& fit, std::span<const program::RunRecord> records)
      : records_(records), measured_(measure(records)), fit_(fit) {}

  void run() {
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
  }

 private:
  void add(const std::string& pointer, const KindSamples& kind, double before, double after, double spread) {
    FittedNumber number;
    number.pointer = pointer;
    number.before = before;
    number.after = after;
    number.spread = spread;
    number.samples = static_cast<int>(kind.events);
    number.determined = spread <= kKnown;
    number.from = lineage(kind, records_);
    note(fit_, std::move(number));
  }

  void fit_kind(program::RateKind kind, KindSamples& samples) {
    if (samples.samples.empty()) return;
    const std::string name(program::name_of(kind));
    Reach& reach = fit_.reach[kind];
    for (Sample& sample : samples.samples) {
      sample.seconds += measured_.host_gap;
      reach.flops = std::max(reach.flops, sample.sizes[1]);
      reach.bytes = std::max(reach.bytes, sample.sizes[2]);
    }
    const Terms prior = prior_of(fit_.node.device, kind);
    const TermFit fitted = fit_terms(samples.samples, prior);
    hardware::OpRate rate;
    rate.overhead = base::Seconds(fitted.terms[0]);
    rate.seconds_per_flop = fitted.terms[1];
    rate.seconds_per_byte = fitted.terms[2];
    rate.seconds_per_block = fitted.terms[3];
    rate.spread = quantile(samples.spread, 0.9) - quantile(samples.spread, 0.1);
    fit_.node.device.op_rates[name] = rate;
    const std::string pointer = "/device/op_rates/" + name;
    constexpr TermNames kNames{"overhead", "seconds_per_flop", "seconds_per_byte", "seconds_per_block"};
    for (std::size_t j = 0; j < kTerms; ++j) {
      const bool used = std::any_of(samples.samples.begin(), samples.samples.end(),
                                    [&](const Sample& sample) { return sample.sizes[j] > 0; });
      if (used) add(pointer + "/" + kNames[j], samples, prior[j], fitted.terms[j], fitted.spread[j]);
      fit_.node.sources.erase(pointer + "/" + kNames[j]);  // one source for all terms, as their sum is what is known
    }
    fit_.node.sources[pointer] =
        lineage(samples, records_) +
        fmt::format("; up to {:.3g} FLOP, {:.3g} B{}", reach.flops, reach.bytes, not_told(samples, fitted, kNames));
    fit_.report.push_back(report_line(name, samples, fitted, kNames));
  }

  void report_missing(program::RateKind kind) {
    if (measured_.compute.contains(kind)) return;
    fit_.report.push_back(fmt::format("{}: in no run, kept from the base", program::name_of(kind)));
  }

  void report_missing() {
    for (int k = 0; k < program::kOpKinds; ++k) {
      const auto kind = static_cast<program::OpKind>(k);
      if (program::is_communication(kind)) continue;
      report_missing({kind, false});
      if (program::has_flash_rates(kind)) report_missing({kind, true});
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
    const double bandwidth = node.intra.bandwidth.value();
    const Terms prior{node.intra.latency.value(), 1 / (bandwidth * node.intra.efficiency), 0, 0};
    const TermFit fitted = fit_terms(samples.samples, prior);
    add("/intra/latency", samples, prior[0], fitted.terms[0], fitted.spread[0]);
    node.intra.latency = base::Seconds(fitted.terms[0]);
    if (fitted.terms[1] > 0) {
      const double fresh = 1 / (fitted.terms[1] * node.intra.efficiency);
      add("/intra/bandwidth", samples, bandwidth, fresh, fitted.spread[1]);
      node.intra.bandwidth = base::BytesPerSecond(fresh);
    }
    node.sources["/intra/latency"] = node.sources["/intra/bandwidth"] = lineage(samples, records_);
    fit_.report.push_back(report_line("intra", samples, fitted, {"latency", "bandwidth", "", ""}));
  }

  void fit_skew() {
    if (measured_.late.empty()) {
      fit_.report.push_back("collective_skew: no collectives inside layers, kept from the base");
      return;
    }
    const double late = median(measured_.late);
    fit_.report.push_back(fmt::format("collective_skew: {:.1f} us -> {:.1f} us",
                                      kMicroseconds * fit_.node.collective_skew.value(), kMicroseconds * late));
    FittedNumber number;
    number.pointer = "/collective_skew";
    number.before = fit_.node.collective_skew.value();
    number.after = late;
    number.samples = static_cast<int>(measured_.late.size());
    number.from = "trivium calibrate: mean wait at collectives inside layers of " + describe(records_.front());
    fit_.node.collective_skew = base::Seconds(late);
    note(fit_, std::move(number));
  }

  std::span<const program::RunRecord> records_;
  OpSamples measured_;
  Fit& fit_;
};

}  // namespace

void fit_runs(Fit& fit, std::span<const program::RunRecord> records) { RunFitter(fit, records).run(); }

}  // namespace trivium::calibration
