// Runs a toy GPT under a plan and brings back everything it computed, whole.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "program/ir/program.h"
#include "runtime/data/corpus.h"

namespace trivium::runtime::testing {

/// Tensors by global name, row-major.
using Tensors = std::map<std::string, std::vector<double>>;

struct Trained {
  std::vector<double> losses, norms;
  std::vector<Tensors> gradients;                     ///< of every step, reduced and unclipped
  Tensors parameters, first_moments, second_moments;  ///< after the last step
  bool replicas_agree = true;
  std::string refused;  ///< why the plan was not run
};

/// GPT-2 style: 8 layers, hidden 32, 4 heads, vocabulary 61 (so that it needs padding), 16 positions.
program::Job toy_job(const program::Plan& plan, std::int64_t global_batch = 8);

/// The job lowered, ordered by simulated times and verified. Throws std::runtime_error where the job is refused.
program::Program ordered_program(const program::Job& job, const std::string& cluster = "generic-cpu");

/// `steps` steps on threads as ranks over the toy corpus. The program is lowered, ordered by simulation and verified;
/// then `spoil`, where given, may break it. `cluster`: whose times order it, on one node of as many devices as ranks.
Trained run(const program::Job& job, int steps = 3, const std::function<void(program::Program&)>& spoil = {},
            const std::string& cluster = "generic-cpu");

/// A corpus of `tokens` pseudo-random tokens below `vocabulary`, the same every time.
std::unique_ptr<data::Corpus> toy_corpus(std::int64_t tokens, std::int32_t vocabulary);

/// Largest difference over losses, norms, gradients, moments and parameters, each tensor relative to its largest value.
/// `where` receives the worst tensor's name.
double difference(const Trained& a, const Trained& b, std::string& where);

/// Largest difference of the first step's gradients, each tensor by the L2 norm of the difference over its own.
double gradient_error(const Trained& a, const Trained& b, std::string& where);

/// Whether every value of both runs is the same bit by bit.
bool bitwise_equal(const Trained& a, const Trained& b, std::string& where);

}  // namespace trivium::runtime::testing
