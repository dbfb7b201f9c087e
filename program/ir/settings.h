// What interpreters take of a job as it is. Everything else of it is lowered into tasks, ops and buffers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "program/ir/space.h"
#include "program/plan/plan.h"
#include "program/plan/training.h"

namespace trivium::program {

/// The samples of a step, dealt out micro-batch by micro-batch over the replicas in order.
struct Batch {
  std::int64_t sequence = 0;  ///< tokens of a sample
  std::int64_t samples = 0;   ///< of a step: the global batch
  int replicas = 1;
  std::vector<int> micro_batch;  ///< samples of a micro-batch: one size for all replicas, or one by data coordinate

  int micro_batch_of(int data) const {
    return micro_batch[micro_batch.size() == 1 ? 0 : static_cast<std::size_t>(data)];
  }
  /// Number of the first sample of a replica's micro-batch among those of the step.
  std::int64_t first_sample(std::int64_t number, int data) const;
};

/// How rotary positions turn heads (models/model.h).
struct RotaryTable {
  std::vector<double> frequencies;  ///< radians a position, by pair; components after the pairs are not rotated
  double amplitude = 1;             ///< factor on sines and cosines
  bool operator==(const RotaryTable&) const = default;
};

/// How tokens choose experts, and what the chosen weigh (models::Experts).
struct Routing {
  bool sigmoid = false;    ///< scores: else a softmax over all experts
  bool normalised = true;  ///< weights of several choices add up to 1
  bool dropless = false;   ///< kRoute leaves rows to kCountRows
  std::int64_t groups = 1, top_groups = 1, group_best = 1;
  double scale = 1;
  double balance_loss = 0;  ///< weight of a mixture layer's balance loss
  bool operator==(const Routing&) const = default;
};

struct Settings {
  DType precision = DType::kFp32;          ///< of parameters and activations
  DType reduce_dtype = DType::kFp32;       ///< gradients between ranks
  Moments moments = Moments::kFp32;        ///< of the optimizer, between steps
  std::array<Storage, kSpaces> storage{};  ///< by space: kNone, on the device
  std::vector<int> stage_nodes;            ///< Plan::stage_nodes
  ContextMethod context_method{};          ///< which tokens of a sample a context rank holds (program/ir/context.h)
  Batch batch;
  double dropout = 0;      ///< probability, of the ops that drop (Op::dropout)
  Documents documents;     ///< that samples are packed of
  std::uint64_t seed = 0;  ///< of initial parameters, order of samples, their documents and dropout
  Optimizer optimizer;
  LossScaling loss_scaling;
  bool scales_loss = false;     ///< gradients pass through fp16
  std::int64_t vocabulary = 0;  ///< without padding
  std::int64_t padded_vocabulary = 0;
  RotaryTable rotary;
  RotaryTable window_rotary;  ///< of layers with windows; as `rotary` unless they have their own
  Routing routing;
  bool shards_parameters = false;          ///< ZeRO 3
  bool gathers_first = false;              ///< ZeRO 1 and 2: parameters are gathered during the next forward
  bool compresses = false;                 ///< gradients between ranks are compressed
  bool frozen = false;                     ///< all parameters but adapters (LoRA)
  std::int64_t spared_of_cast = 0;         ///< bytes that a stack does not hold of one of ChunkBytes::cast_numbers
  bool gathers_in_8_bits = false;          ///< of a bucket's parameters so many as Op::k of its gather says
  std::int64_t sent_bytes_per_sample = 0;  ///< of what a stage hands to the next
  double model_flops_per_token = 0;        ///< forward and backward, without recomputation

  Storage storage_of(Space space) const { return storage[static_cast<std::size_t>(space)]; }
  /// Where parameters, optimizer state and gradients lie.
  Space parameter_space() const {
    return is_offloaded(Space::kOffloadedParameter) ? Space::kOffloadedParameter : Space::kParameter;
  }
  Space state_space() const {
    return is_offloaded(Space::kOffloadedState) ? Space::kOffloadedState : Space::kOptimizer;
  }
  Space gradient_space() const {
    return is_offloaded(Space::kOffloadedGradient) ? Space::kOffloadedGradient : Space::kGradient;
  }
  /// `muon`: of a bucket that Muon steps.
  StateArrays state_arrays(bool muon) const { return {precision, moments, !muon}; }
  bool is_offloaded(Space space) const { return storage_of(space) != Storage::kNone; }
};

}  // namespace trivium::program
