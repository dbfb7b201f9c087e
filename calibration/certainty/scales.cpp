#include "calibration/certainty/scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cmath>
#include <exception>
#include <map>
#include <numbers>
#include <string_view>
#include <thread>
#include <utility>

#include "calibration/certainty/run_errors.h"
#include "calibration/measurements/statistics.h"
#include "calibration/validate/validate.h"
#include "simulator/certainty/certainty.h"
#include "simulator/certainty/error_model.h"

namespace trivium::calibration {
namespace {

constexpr int kSteps = 2;                           // of the scale: what a run's time does with it is all but a power
constexpr double kStep = 0.05;                      // of the logarithm, over which that power is taken
constexpr double kTells = 0.05;                     // least power of a run that says something of the scale
constexpr double kLeastSpread = 0.01;               // nobody measures a step time better
constexpr double kRunSpread = 0.06;                 // of a run's own, as simulator/certainty has learned it,
constexpr double kRunsOfPrior = 10;                 // counts as so many runs, lest three alike be taken for sure
constexpr double kOfMedian = std::numbers::pi / 2;  // variance of a median of normal errors over that of their mean
constexpr double kTellsNothing = kRunSpread / kTells;  // deviation of a scale that changes nothing
constexpr double kLeastMfu = 0.10;

/// log(predicted / measured) of every run with the machine's scale set; nothing of what cannot be replayed.
std::vector<double> log_errors(const std::vector<const PublishedRun*>& runs, double scale) {
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

/// By what power of the scale every run's time goes: -1 where all is products, 0 where nothing is.
std::vector<double> powers_of(const std::vector<const PublishedRun*>& runs, double scale,
                              const std::vector<double>& errors) {
  std::vector<double> powers = log_errors(runs, scale * std::exp(kStep));
  for (std::size_t i = 0; i < powers.size(); ++i) powers[i] = (powers[i] - errors[i]) / kStep;
  return powers;
}

/// Sets `best` and `deviation`; those shipped and none where the scale changes nothing.
void fit_scale(MachineRuns& machine, const std::vector<const PublishedRun*>& runs, std::vector<double> errors) {
  const std::vector<double> powers = powers_of(runs, machine.scale, errors);
  machine.best = machine.scale, machine.deviation = kTellsNothing;
  double told = 0;
  for (const double power : powers) told += std::abs(power) < kTells ? 0 : square(power);
  if (told == 0) return;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::pair<double, double>> wanted;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      if (std::abs(powers[i]) >= kTells) wanted.emplace_back(-errors[i] / powers[i], std::abs(powers[i]));
    }
    machine.best *= std::exp(weighted_median(wanted));
    errors = log_errors(runs, machine.best);
  }
  for (double& error : errors) error = std::abs(error);
  const auto count = static_cast<double>(errors.size());
  const double own = square(std::max(kLeastSpread, kNormalSpread * median(errors)));
  const double variance = (own * count + square(kRunSpread) * kRunsOfPrior) / (count + kRunsOfPrior);
  machine.deviation = std::sqrt(kOfMedian * variance / told);
}

/// Rate of products measured by themselves over that of the device's curve, in the middle; 1 where none were.
double rate_of_products(const std::string& machine, const std::vector<MicroRow>& micro) {
  std::vector<double> rates;
  for (const MicroRow& row : micro) {
    if (!row.product || row.node.name != machine) continue;
    hardware::Node node = row.node;
    node.device.compute_scale = 1;
    rates.push_back(row.predict(node) / row.seconds);
  }
  return rates.empty() ? 1 : median(rates);
}

/// What all but the publisher say.
void leave_out(MachineRuns& of, const std::vector<MachineRuns>& all) {
  std::vector<ScaleCell> cells;
  for (const MachineRuns& other : all) {
    if (other.publisher == of.publisher || other.deviation == kTellsNothing) continue;
    cells.push_back(
        {other.publisher, other.machine, other.device, std::log(other.best / other.products), square(other.deviation)});
    if (other.device == of.device) ++of.others;
  }
  if (of.others > 0) of.left_out = of.products * *pooled_scale(cells, scale_parts(cells), of.machine, of.device);
}

bool busy(const PublishedRun& run) {
  const auto time = predicted_iteration_s(run);
  return time && simulator::ease_of(mfu_of(run, *time)) < simulator::kEases - 1;
}

/// What something is aimed at for.
struct Class {
  const char* name;
  bool (*holds)(const PublishedRun& run);
};

bool has_device(const PublishedRun& run, std::initializer_list<std::string_view> names) {
  const std::string device = simulator::likeness_of(run.job, run.cluster, 0).device;
  return std::ranges::find(names, device) != names.end();
}
bool dense(const PublishedRun& run) { return !run.job.model.experts; }
bool narrow(const PublishedRun& run) { return run.job.plan.fp8 != program::Fp8::kNone; }

constexpr std::array kClasses{
    Class{"dense, 16 bits, H100 and H200",
          [](const PublishedRun& run) {
            return dense(run) && !narrow(run) && has_device(run, {"h100", "h200"});
          }},
    Class{"dense, 8 bits, H100 and H200",
          [](const PublishedRun& run) {
            return dense(run) && narrow(run) && has_device(run, {"h100", "h200"});
          }},
    Class{"mixtures", [](const PublishedRun& run) { return !dense(run); }},
    Class{"B200 and GB200",
          [](const PublishedRun& run) {
            return has_device(run, {"b200", "gb200"});
          }},
};

ScaleErrors means_of(std::string of, const std::vector<const RunScaled*>& runs) {
  ScaleErrors errors{std::move(of), static_cast<int>(runs.size())};
  const auto count = static_cast<double>(runs.size());
  for (const RunScaled* run : runs) {
    const double shipped = std::expm1(run->shipped), left = std::expm1(run->left_out);
    errors.mean += std::abs(shipped) / count, errors.bias += shipped / count;
    errors.left_mean += std::abs(left) / count, errors.left_bias += left / count;
  }
  return errors;
}

}  // namespace

std::string publisher_of(const std::string& source) {
  for (std::size_t at = source.find(" v"); at != std::string::npos; at = source.find(" v", at + 1)) {
    if (at + 2 < source.size() && std::isdigit(static_cast<unsigned char>(source[at + 2]))) return source.substr(0, at);
  }
  return source;
}

std::vector<MachineRuns> leave_out_scales(const std::vector<PublishedRun>& runs, const std::vector<MicroRow>& micro) {
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
    machine.products = rate_of_products(machine.machine, micro);
    const std::vector<double> shipped = log_errors(of, machine.scale);
    for (std::size_t i = 0; i < of.size(); ++i) {
      machine.runs.push_back({of[i], mfu_of(*of[i], of[i]->iteration_s), shipped[i], 0});
    }
    fit_scale(machine, of, shipped);
    machines.push_back(std::move(machine));
  }
  for (MachineRuns& machine : machines) {
    leave_out(machine, machines);
    if (!machine.known()) continue;
    const std::vector<double> left = log_errors(members.at({machine.machine, machine.publisher}), machine.left_out);
    for (std::size_t i = 0; i < left.size(); ++i) machine.runs[i].left_out = left[i];
  }
  return machines;
}

ScaleErrors errors_of(const MachineRuns& machine) {
  std::vector<const RunScaled*> runs;
  for (const RunScaled& run : machine.runs) runs.push_back(&run);
  return means_of("", runs);
}

std::vector<ScaleErrors> errors_by_class(const std::vector<MachineRuns>& machines) {
  std::vector<ScaleErrors> classes;
  for (const Class& one : kClasses) {
    std::map<std::string, std::vector<const RunScaled*>> publishers;
    std::vector<const RunScaled*> all;
    for (const MachineRuns& machine : machines) {
      if (!machine.known()) continue;
      for (const RunScaled& run : machine.runs) {
        if (run.mfu < kLeastMfu || !one.holds(*run.run)) continue;
        publishers[machine.publisher].push_back(&run);
        all.push_back(&run);
      }
    }
    for (const auto& [publisher, runs] : publishers) {
      classes.push_back(means_of(fmt::format("{}: {}", one.name, publisher), runs));
    }
    if (!all.empty()) classes.push_back(means_of(fmt::format("{}: all", one.name), all));
  }
  return classes;
}

std::string to_table(const std::vector<MachineRuns>& machines) {
  std::string text =
      fmt::format("{:<32}{:<38}{:>5}{:>9}{:>16}{:>10}{:>10}{:>8}{:>8}{:>11}{:>8}\n", "machine", "publisher", "runs",
                  "shipped", "best", "products", "left out", "mean", "bias", "left: mean", "bias");
  for (const MachineRuns& m : machines) {
    const ScaleErrors e = errors_of(m);
    text += fmt::format("{:<32}{:<38.37}{:>5}{:>9.3f}{:>8.3f} +-{:>3.0f} %{:>10.2f}{:>10}{:>6.1f} %{:>+6.1f} %",
                        m.machine, m.publisher, e.runs, m.scale, m.best, 100 * m.deviation, m.products,
                        m.known() ? fmt::format("{:.3f}", m.left_out) : "none", 100 * e.mean, 100 * e.bias);
    text += m.known() ? fmt::format("{:>9.1f} %{:>+6.1f} %\n", 100 * e.left_mean, 100 * e.left_bias) : "\n";
  }
  return text;
}

std::string to_table(const std::vector<ScaleErrors>& classes) {
  std::string text =
      fmt::format("{:<72}{:>5}{:>8}{:>8}{:>13}{:>8}\n", "class", "runs", "mean", "bias", "left: mean", "bias");
  for (const ScaleErrors& e : classes) {
    text += fmt::format("{:<72.71}{:>5}{:>6.1f} %{:>+6.1f} %{:>11.1f} %{:>+6.1f} %\n", e.of, e.runs, 100 * e.mean,
                        100 * e.bias, 100 * e.left_mean, 100 * e.left_bias);
  }
  return text;
}

}  // namespace trivium::calibration
