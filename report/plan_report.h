// What is known of a plan, as one page: the desktop program and the command line write the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/plan/plan_file.h"
#include "report/charts.h"
#include "simulator/predict/simulate.h"

namespace trivium::report {

/// A plan listed with others.
struct PlanLine {
  std::string summary;
  double iteration_s = 0, tokens_per_s = 0, mfu = 0;
  std::int64_t peak_memory_bytes = 0;
};

/// Iterations where every op takes longer or shorter by chance.
struct Spread {
  double jitter = 0;  ///< every op that computes takes 1 ± this as long
  int samples = 0;
  double nominal_s = 0;  ///< of every rank without variation
  double p5_s = 0, p50_s = 0, p95_s = 0;
};

/// A picture as PNG bytes in base64.
struct Picture {
  std::string title, png_base64;
};

/// What a page is made of. References must outlive the call; what is empty is left out.
struct PlanReport {
  const program::PlanFile& file;
  const hardware::Cluster& cluster;
  const program::Program& program;
  const simulator::Simulation& simulation;
  const program::Timeline& timeline;  ///< of the simulation
  std::string overflow;               ///< why it does not fit; empty: it does
  std::vector<std::string> sentences;
  std::vector<ChangeBar> machine, plans;  ///< changes of the iteration: other hardware, other plans
  std::optional<Spread> spread;
  std::vector<PlanLine> others;
  std::vector<Picture> pictures;
};

/// The page. It holds no time of day and no path: the same plan gives the same bytes.
std::string plan_report(const PlanReport& report);

}  // namespace trivium::report
