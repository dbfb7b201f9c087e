// Whole iterations of other trainers: the few constants of a machine that nothing else shows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "calibration/fit/fit_parts.h"
#include "calibration/measurements/published_runs.h"
#include "calibration/measurements/quantities.h"
#include "calibration/published/published_fit.h"
#include "calibration/published/robust_fit.h"
#include "calibration/validate/predict_on.h"
#include "program/lower/lower.h"
#include "simulator/memory/memory.h"

namespace trivium::calibration {
namespace {

/// A job on as many nodes of the machine as it takes.
struct Placed {
  const MeasuredJob* measured;
  hardware::Cluster cluster;

  double iteration_s(const hardware::Node& node) const {
    return predict_on(measured->job, cluster, node).value_or_throw();
  }
};

hardware::Cluster cluster_of(const hardware::Node& node, const program::Job& job) {
  return {node.name, {{node, (job.plan.ranks() + node.devices - 1) / node.devices}}};
}

/// The machine's own constants, known beforehand as the profile has them now.
std::vector<FitConstant> constants_of(const hardware::Node& node) {
  const std::map<std::string, double> now = {{"/device/compute_scale", node.device.compute_scale},
                                             {"/device/kernel_issue", node.device.kernel_issue.value() / kMicro},
                                             {"/collective_skew", node.collective_skew.value() / kMicro},
                                             {"/network/efficiency", node.network.efficiency}};
  std::vector<FitConstant> constants;
  for (FitConstant& constant : fit_constants({node})) {
    const auto value = now.find(constant.pointer);
    if (value == now.end() || !(value->second > 0)) continue;
    constant.prior.low = std::min(constant.prior.low, value->second);
    constant.prior.high = std::max(constant.prior.high, value->second);
    constant.prior.prior = value->second;
    constants.push_back(std::move(constant));
  }
  return constants;
}

hardware::Node with(hardware::Node node, const std::vector<FitConstant>& constants, const std::vector<double>& values) {
  for (std::size_t i = 0; i < constants.size(); ++i) constants[i].set(node, values[i]);
  return node;
}

void report_memory(Fit& fit, const MeasuredJob& job) {
  if (!job.peak_bytes) return;
  auto lowered = program::lower(job.job);
  if (!std::holds_alternative<program::Program>(lowered)) return;
  const hardware::Cluster cluster = cluster_of(fit.node, job.job);
  double most = 0;
  for (const simulator::StageMemory& stage : simulator::memory_of(std::get<program::Program>(lowered), cluster))
    most = std::max(most, static_cast<double>(stage.total()));
  fit.report.push_back(fmt::format("{}: peak {:.1f} GiB, predicted {:.1f} GiB ({:+.1f} %); memory is not fitted",
                                   job.from, *job.peak_bytes / base::kGiB, most / base::kGiB,
                                   kPercent * (most / *job.peak_bytes - 1)));
}

}  // namespace

void fit_jobs(Fit& fit, std::span<const MeasuredJob> jobs) {
  std::vector<Placed> placed;
  for (const MeasuredJob& job : jobs) {
    placed.push_back({&job, cluster_of(fit.node, job.job)});
    if (const auto now = predict_on(job.job, placed.back().cluster, fit.node); !now) {
      throw base::Failure(base::ErrorKind::kInput, fmt::format("{}: its plan does not run on {}: {}", job.from,
                                                               fit.node.name, now.error().message));
    }
  }
  const std::vector<FitConstant> constants = constants_of(fit.node);
  std::vector<FitPrior> priors;
  std::vector<double> start;
  for (const FitConstant& constant : constants) {
    priors.push_back(constant.prior);
    start.push_back(constant.prior.prior);
  }
  const auto errors = [&](const std::vector<double>& values, int, Eigen::VectorXd& out) {
    const hardware::Node node = with(fit.node, constants, values);
    for (std::size_t i = 0; i < placed.size(); ++i) {
      out[static_cast<Eigen::Index>(i)] = std::log(placed[i].iteration_s(node) / placed[i].measured->iteration_s);
    }
  };
  Eigen::VectorXd before(static_cast<Eigen::Index>(placed.size()));
  errors(start, -1, before);
  const RobustFit fitted = robust_fit(priors, start, std::vector<double>(placed.size(), 1), errors, {});
  std::string from = "trivium calibrate: iterations of ";
  for (const MeasuredJob& job : jobs) from += (&job == jobs.data() ? "" : "; ") + job.from;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const bool determined = fitted.sigma[i] <= kUndetermined * priors[i].sigma;
    const double unit = constants[i].unit.empty() ? 1 : kMicro, value = determined ? fitted.values[i] : start[i];
    note(fit,
         {constants[i].pointer, start[i] * unit, value * unit, fitted.sigma[i], static_cast<int>(jobs.size()),
          determined, determined ? from : "kept from the base: these iterations do not tell it apart from the others"});
    constants[i].set(fit.node, value);
    fit.report.push_back(fmt::format("{}: {:.4g} -> {:.4g} {} (+-{:.0f} %){}", constants[i].pointer, start[i], value,
                                     constants[i].unit, kPercent * fitted.sigma[i],
                                     determined ? "" : "; undetermined, kept from the base"));
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const double predicted = placed[i].iteration_s(fit.node);
    fit.report.push_back(fmt::format("{}: {:.4g} s, predicted {:+.1f} % -> {:+.1f} %", jobs[i].from,
                                     jobs[i].iteration_s,
                                     kPercent * (std::exp(before[static_cast<Eigen::Index>(i)]) - 1),
                                     kPercent * (predicted / jobs[i].iteration_s - 1)));
    report_memory(fit, jobs[i]);
  }
}

}  // namespace trivium::calibration
