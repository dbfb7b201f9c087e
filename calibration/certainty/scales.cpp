#include "calibration/certainty/scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <exception>
#include <thread>

#include "calibration/certainty/run_errors.h"
#include "calibration/measurements/statistics.h"
#include "calibration/validate/validate.h"
#include "simulator/certainty/error_model.h"

namespace trivium::calibration {
namespace {

constexpr int kSteps = 4;              // of the secant: the median is within a thousandth long before
constexpr double kEnough = 0.001;      // of the median's distance from zero
constexpr int kFewestRuns = 5;         // that tell another's scale
constexpr double kUsualSlope = -0.85;  // of log(time) by log(scale): what is not products does not get faster

/// log(predicted / measured) of every run with the machine's scale set; nothing of what cannot be replayed.
std::vector<double> errors_of(const std::vector<const PublishedRun*>& runs, double scale) {
  std::vector<std::optional<double>> times(runs.size());
  std::vector<std::exception_ptr> failures(runs.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < runs.size(); i = next++) {
      PublishedRun run = *runs[i];
      for (hardware::NodeGroup& group : run.cluster.groups) group.node.device.compute_scale = scale;
      try {
        times[i] = predicted_iteration_s(run);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) helpers.emplace_back(work);
    work();
  }
  std::vector<double> errors;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (failures[i]) std::rethrow_exception(failures[i]);
    if (times[i]) errors.push_back(std::log(*times[i] / runs[i]->iteration_s));
  }
  return errors;
}

/// The scale at which the median error is zero, by the secant in logarithms.
double best_scale(const std::vector<const PublishedRun*>& runs, double scale, double off) {
  double slope = kUsualSlope;
  for (int step = 0; step < kSteps && std::abs(off) > kEnough; ++step) {
    const double next = scale * std::exp(-off / slope);
    const double then = median(errors_of(runs, next));
    if (std::abs(then - off) > kEnough) slope = (then - off) / std::log(next / scale);
    scale = next, off = then;
  }
  return scale;
}

double mean_of(const std::vector<double>& logs, bool absolute) {
  double sum = 0;
  for (const double log : logs) sum += absolute ? std::abs(std::expm1(log)) : std::expm1(log);
  return sum / static_cast<double>(logs.size());
}

/// Geometric mean of what the others say: of this machine, else of its device.
void leave_out(MachineRuns& of, const std::vector<MachineRuns>& all) {
  for (const bool same_machine : {true, false}) {
    double sum = 0;
    for (const MachineRuns& other : all) {
      if (other.runs < kFewestRuns) continue;
      if (same_machine ? other.machine != of.machine || other.publisher == of.publisher
                       : other.machine == of.machine || other.device != of.device) {
        continue;
      }
      sum += std::log(other.best);
      ++of.others;
    }
    if (of.others == 0) continue;
    of.left_out = std::exp(sum / of.others);
    return;
  }
}

bool busy(const PublishedRun& run) {
  const auto time = predicted_iteration_s(run);
  return time && simulator::ease_of(mfu_of(run, *time)) < simulator::kEases - 1;
}

}  // namespace

std::string publisher_of(const std::string& source) {
  for (std::size_t at = source.find(" v"); at != std::string::npos; at = source.find(" v", at + 1)) {
    if (at + 2 < source.size() && std::isdigit(static_cast<unsigned char>(source[at + 2]))) return source.substr(0, at);
  }
  return source;
}

std::vector<MachineRuns> leave_out_scales(const std::vector<PublishedRun>& runs) {
  std::map<std::pair<std::string, std::string>, std::vector<const PublishedRun*>> members;
  for (const PublishedRun& run : runs) {
    if (!run.timed() || run.tier == "C" || !busy(run) || run.job.training.lora.used()) continue;
    members[{run.hardware, publisher_of(run.source)}].push_back(&run);
  }
  std::vector<MachineRuns> machines;
  for (const auto& [key, of] : members) {
    const hardware::Device& device = of.front()->cluster.groups.front().node.device;
    MachineRuns machine;
    machine.machine = key.first, machine.publisher = key.second;
    machine.device = device.name;
    machine.scale = device.compute_scale;
    const std::vector<double> shipped = errors_of(of, machine.scale);
    machine.runs = static_cast<int>(shipped.size());
    machine.mean = mean_of(shipped, true), machine.bias = mean_of(shipped, false);
    machine.best = best_scale(of, machine.scale, median(shipped));
    machines.push_back(std::move(machine));
  }
  for (MachineRuns& machine : machines) {
    leave_out(machine, machines);
    if (machine.others == 0) continue;
    const std::vector<double> left = errors_of(members.at({machine.machine, machine.publisher}), machine.left_out);
    machine.left_mean = mean_of(left, true), machine.left_bias = mean_of(left, false);
  }
  return machines;
}

std::string to_table(const std::vector<MachineRuns>& machines) {
  std::string text = fmt::format("{:<28}{:<40}{:>5}{:>9}{:>7}{:>10}{:>8}{:>8}{:>11}{:>8}\n", "machine", "publisher",
                                 "runs", "shipped", "best", "left out", "mean", "bias", "left: mean", "bias");
  for (const MachineRuns& m : machines) {
    const bool known = m.others > 0;
    text += fmt::format("{:<28}{:<40.39}{:>5}{:>9.3f}{:>7.3f}{:>10}{:>6.1f} %{:>+6.1f} %{:>11}{:>8}\n", m.machine,
                        m.publisher, m.runs, m.scale, m.best, known ? fmt::format("{:.3f}", m.left_out) : "none",
                        100 * m.mean, 100 * m.bias, known ? fmt::format("{:.1f} %", 100 * m.left_mean) : "",
                        known ? fmt::format("{:+.1f} %", 100 * m.left_bias) : "");
  }
  return text;
}

}  // namespace trivium::calibration
