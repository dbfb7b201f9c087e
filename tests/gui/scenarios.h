// Small jobs that are simulated in milliseconds.
#pragma once

#include "gui/model/scenario.h"

namespace trivium::gui {

/// GPT-2 124M on one DGX A100, eight replicas.
inline Scenario small_scenario() {
  Scenario scenario = with_model(example_scenario(), "gpt2-124m");
  scenario = with_cluster(std::move(scenario), "dgx-a100-80gb:1");
  scenario.file.job.training.global_batch = 16;
  scenario.file.job.training.sequence = 1024;
  scenario.file.job.plan = {};
  scenario.file.job.plan.data = 8;
  return scenario;
}

/// The same in four stages of two tensor ranks.
inline Scenario staged_scenario() {
  Scenario scenario = small_scenario();
  scenario.file.job.plan.data = 1;
  scenario.file.job.plan.tensor = 2;
  scenario.file.job.plan.pipeline = 4;
  return scenario;
}

}  // namespace trivium::gui
