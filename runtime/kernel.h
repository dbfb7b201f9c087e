// What a backend offers: one kernel per op kind and arithmetic type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "program/ir/program.h"
#include "runtime/dropout.h"

namespace trivium::runtime {

/// Values that change from step to step and are read when an op runs.
struct StepValues {
  std::int64_t step = 0;  ///< 0-based
  double learning_rate = 0;
  double loss_weight = 0;          ///< 1 / tokens of the global batch: every token's share of the loss
  double loss_scale = 1;           ///< gradients are those of the loss times this, until AdamW (fp16)
  std::int64_t skipped_steps = 0;  ///< before this one: they did not count for AdamW
  bool looks_first = false;        ///< no step before left largest numbers: casts of fp8 delayed find their own
};

/// Keys and values of the tokens of one text, as a layer's attention saw them: (key heads, room, their width) each.
struct KeptKeys {
  float *keys = nullptr, *values = nullptr;
  std::int64_t room = 0;  ///< tokens
};

/// Everything a kernel may look at. Pointers are aligned to 64 bytes; absent operands are null.
struct KernelArguments {
  const program::Op* op = nullptr;
  std::array<std::byte*, program::kMaxOperands> in{};
  std::array<std::byte*, 3> out{};
  int tensor_rank = 0, tensor_ranks = 1;
  int shard_rank = 0;          ///< which part of a sharded bucket this rank holds
  int shard_replica = 0;       ///< which of the shard groups it belongs to: all hold the same shards
  int expert_ranks = 1;        ///< that share the experts
  int expert_tensor_rank = 0;  ///< place among the tensor ranks that split each of them
  int expert_replica = 0;      ///< place among the replicas that do
  int context_rank = 0, context_ranks = 1;
  program::ContextMethod context_method = program::ContextMethod::kRing;
  const program::ChunkTemplate* kind = nullptr;           ///< optimizer kinds: parameters and buckets of the chunk
  std::array<std::byte*, program::kSpaces> chunk_base{};  ///< optimizer kinds: start of the chunk's part of every space
  const program::Optimizer* optimizer = nullptr;
  const StepValues* values = nullptr;
  Dropout dropout;                               ///< what this op drops
  const program::RotaryTable* rotary = nullptr;  ///< of the model
  const program::Routing* routing = nullptr;     ///< of the model's mixtures
  /// (samples, sequence) of the micro-batch: the position at which a token's document begins; null: all at 0.
  const std::int32_t* document_starts = nullptr;
  std::int64_t vocabulary = 0;     ///< true vocabulary: columns from here on are padding
  std::int64_t past = 0;           ///< tokens of the text before the op's own, when text is generated
  const KeptKeys* kept = nullptr;  ///< attention then: theirs, to which the op's own are added
};

using Kernel = void (*)(const KernelArguments&);

}  // namespace trivium::runtime
