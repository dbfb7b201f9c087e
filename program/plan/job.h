// A training job: what is trained, how, and in which split.
#pragma once

#include "models/model.h"
#include "program/plan/plan.h"
#include "program/plan/training.h"

namespace trivium::program {

struct Job {
  models::Model model;
  Training training;
  Plan plan;
};

}  // namespace trivium::program
