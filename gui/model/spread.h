// How far iterations of a plan lie apart when every op takes longer or shorter by chance.
#pragma once

#include <optional>
#include <stop_token>

#include "gui/model/evaluation.h"
#include "report/plan_report.h"

namespace trivium::gui {

constexpr double kUsualJitter = 0.05;
constexpr int kMostSamples = 50;    ///< as many as the command line draws
constexpr int kFewestSamples = 10;  ///< of jobs so large that a simulation takes seconds

/// How often a plan is simulated: less often the more ops an iteration has over all ranks. Precondition: it runs.
int spread_samples(const Evaluation& evaluation);

/// Simulates every rank `spread_samples` times with seeds from the training's on (simulator/studies/uncertainty.h), as
/// `trivium simulate --jitter` does. On all cores; up to half a minute for thousands of ranks, with looks at the stop
/// token in between. Nothing when stopped, or where the plan was not simulated in full or cannot be simulated.
std::optional<report::Spread> sample_spread(const Evaluation& evaluation, double jitter, const std::stop_token& stop);

}  // namespace trivium::gui
