// How a training is split and executed: the value the planner searches and both interpreters obey.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/plan/dtype.h"
#include "program/plan/expert_dispatch.h"
#include "program/plan/fp8.h"
#include "program/plan/modules.h"
#include "program/plan/moments.h"
#include "program/schedules/schedule.h"

namespace trivium::program {

enum class Recompute : std::uint8_t { kNone, kSelective, kFull };
enum class Attention : std::uint8_t { kUnfused, kFlash };
enum class Storage : std::uint8_t { kNone, kHost, kDisk };
enum class Compression : std::uint8_t { kNone, kFp16, kTopK };
enum class ContextMethod : std::uint8_t { kRing, kAllToAll };
enum class ScatterGather : std::uint8_t { kStack, kOn, kOff };

/// What may overlap with what.
struct Overlap {
  bool gradient_reduction = false;  ///< bucket reductions with the last backward
  bool parameter_gather = false;    ///< gathers with the next forward
  bool pipeline = true;             ///< transfers with compute
  bool tensor = false;              ///< tensor collectives with weight-gradient GEMMs
  /// Exchanges of rows with the experts with the other pass: a stage runs a forward and a backward of different
  /// micro-batches as a pair, whose parts between the exchanges alternate.
  bool expert = false;
};

struct Offload {
  Storage optimizer = Storage::kNone;
  Storage gradients = Storage::kNone;
  Storage parameters = Storage::kNone;
  Storage activations = Storage::kNone;
};

struct Plan {
  int tensor = 1;
  bool sequence_parallel = false;
  int context = 1;
  ContextMethod context_method = ContextMethod::kRing;
  int context_heads =
      1;  ///< of a ring: neighbouring context ranks that exchange heads, and together are one of its ranks
  int pipeline = 1;
  int virtual_stages = 1;  ///< model chunks per pipeline stage
  Schedule schedule = kUsualSchedule;
  std::vector<int> stage_layers;  ///< layers of every chunk in model order (pipeline * virtual_stages); empty: even
  int data = 1;
  int zero_stage = 0;
  int shard_group = 0;  ///< ranks the ZeRO state is split over; 0: all of `data`
  int expert = 1;
  int expert_tensor = 0;  ///< neighbouring tensor ranks that split each expert, which divide `tensor`; 0: all; 1:
                          ///< experts are whole
  ExpertDispatch expert_dispatch = ExpertDispatch::kStack;  ///< between ranks that share the experts of a layer
  int micro_batch = 1;                                      ///< samples
  /// Samples of a micro-batch of every replica, by data coordinate, where they are not the same; empty: `micro_batch`.
  std::vector<int> replica_micro_batch;
  Recompute recompute = Recompute::kNone;
  std::vector<Recompute> stage_recompute;  ///< per chunk; empty: `recompute` everywhere
  int recompute_layers = 0;                ///< first ones of every chunk that full recomputation makes again; 0: all
  int recompute_group = 1;                 ///< layers between two kept inputs of full recomputation
  std::vector<Module> recompute_modules;   ///< that selective recomputation drops; empty: core_attn
  DType precision = DType::kBf16;
  Fp8 fp8 = Fp8::kNone;  ///< products of the layers; all else stays in `precision`
  Fp8Gather fp8_parameter_gather = Fp8Gather::kStack;
  DType reduce_dtype = DType::kFp32;  ///< gradients on the wire
  Moments moment_dtype = Moments::kFp32;
  Attention attention = Attention::kUnfused;
  Overlap overlap;
  std::int64_t bucket_bytes = 0;  ///< gradients reduced together; 0: one bucket per layer
  Offload offload;
  /// Pipeline transfers in parts: every tensor rank sends its own, who received one gathers the others'
  /// (program/lower/layout.h: transfer_parts). kStack: as the stack does.
  ScatterGather scatter_gather = ScatterGather::kStack;
  Compression compression = Compression::kNone;
  double top_k_share = 0.01;  ///< of each parameter's elements that compression top_k sends; above 0, at most 1
  std::string placement = "tensor-context-data-pipeline";  ///< dimensions, innermost (neighbouring devices) first
  std::vector<int> stage_nodes;   ///< group of the cluster whose nodes hold the stage, one per stage; empty: in order
  std::string stack = "trivium";  ///< whose stack: program/plan/stack.h

  int ranks() const { return tensor * context * pipeline * data; }
  int chunks() const { return pipeline * virtual_stages; }
  /// Which stage holds the chunk at `position` in the model, where chunk `chunk` of a stage is, and whether a chunk's
  /// input is made on its own stage: as the schedule places chunks (ScheduleTraits).
  int stage_of(int position) const;
  int position_of(int stage, int chunk) const;
  bool stays(int position) const;
};

std::string_view name_of(Recompute value);      ///< "none" "selective" "full"
std::string_view name_of(Attention value);      ///< "unfused" "flash"
std::string_view name_of(Storage value);        ///< "none" "host" "disk"
std::string_view name_of(Compression value);    ///< "none" "fp16" "top_k"
std::string_view name_of(ContextMethod value);  ///< "ring" "all_to_all"
std::string_view name_of(ScatterGather value);  ///< "stack" "on" "off"

/// One line that names the split: "TP8 PP16x2 DP8 SP ZeRO-1 mb1 1f1b recompute=full"; stages that are told their layers
/// or nodes add " layers=6x8,3x8 nodes=0x8,1x8" (eight stages of six, eight of three); replicas of different
/// micro-batches are "mb4x2,1x2".
std::string summary(const Plan& plan);

/// Whether some chunk recomputes that way.
bool recomputes(const Plan& plan, Recompute how);

/// What chunks with selective recomputation drop.
ModuleSet modules_of(const Plan& plan);

/// Leaves the details of recomputation at what they are unless told: recompute_modules, recompute_layers and
/// recompute_group, or of these what is of full recomputation alone.
void settle_recomputation(Plan& plan);
void settle_full_recomputation(Plan& plan);

struct StackTraits;

/// The traits of the plan's stack, which must be known, with what the plan decides instead of it.
StackTraits stack_of(const Plan& plan);

/// Tensor ranks that split each expert: `expert_tensor`, or all of them.
int expert_tensor_ranks(const Plan& plan);

/// Whether some tensor ranks hold other experts than their neighbours, instead of all having a part of each.
bool folds_experts(const Plan& plan);

/// Sets of tensor ranks that hold experts of their own. Exact for a plan that passed `check`.
int tensor_parts_of_experts(const Plan& plan);

/// Neighbouring replicas that share the experts of a layer: `expert`, or as many times fewer as there are sets of
/// tensor ranks that hold their own. Exact for a plan that passed `check`.
int expert_replicas(const Plan& plan);

/// What schedules know of a stage.
StagePlace stage_place(const Plan& plan, int stage);

/// Samples of a micro-batch of the replica with data coordinate `data`.
int micro_batch_of(const Plan& plan, int data);

/// Samples of all replicas' micro-batches together; of those before the one with data coordinate `data`.
std::int64_t samples_of_pass(const Plan& plan);
std::int64_t samples_before(const Plan& plan, int data);

/// The different sizes of micro-batches, that of the first replica first: the plan's kinds of replicas.
std::vector<int> micro_batch_sizes(const Plan& plan);

/// By data coordinate: place of the replica's size among micro_batch_sizes(); empty where all replicas are alike.
std::vector<int> replica_kinds(const Plan& plan);

/// Micro-batches per replica and step, the same for all: global_batch / samples_of_pass. Exact for a plan that passed
/// `check`.
std::int64_t micro_batches(const Plan& plan, std::int64_t global_batch);

}  // namespace trivium::program
