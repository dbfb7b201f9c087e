// How far iterations of a plan lie apart when every op takes longer or shorter by chance.
#pragma once

#include <optional>
#include <stop_token>

#include "gui/model/evaluation.h"
#include "report/plan_report.h"

namespace trivium::gui {

constexpr double kUsualJitter = 0.05;
constexpr int kSpreadSamples = 50;  ///< as many as the command line draws

/// Plays every rank `kSpreadSamples` times with seeds from the training's on (simulator/uncertainty.h): what `trivium
/// simulate --jitter` says. On all cores; seconds for a large job. Nothing when stopped, or where the plan was not
/// played in full or cannot be played.
std::optional<report::Spread> sample_spread(const Evaluation& evaluation, double jitter, const std::stop_token& stop);

}  // namespace trivium::gui
