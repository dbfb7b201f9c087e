#include "program/lower/chunk_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "program/ir/alignment.h"
#include "program/ir/fp8_layout.h"
#include "program/lower/layers.h"
#include "program/lower/layout.h"
#include "program/lower/muon.h"
#include "program/lower/offload.h"
#include "program/lower/optimizer_bodies.h"
#include "program/lower/parameter_gather.h"
#include "program/lower/pass_writer.h"
#include "program/lower/sharding.h"
#include "program/schedules/schedule.h"

namespace trivium::program {
namespace {

constexpr std::int64_t kParameterAlignment = 16;  // elements: 64 bytes in fp32, 32 in 16 bits

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Order of a segment's parameters, as OptimizerBodies reduces them.
int replicated_first(const Parameter& p) { return p.split != Split::kReplicated ? 2 : p.partial_over_tensor ? 1 : 0; }

class TemplateMaker {
 public:
  TemplateMaker(const Job& job, const StackTraits& stack, const ChunkKey& key, int index, std::vector<Body>& bodies)
      : job_(job), stack_(stack), key_(key), shape_(job), bodies_(bodies), builder_(kind_, index) {
    kind_.layers = key.layers;
    kind_.embedding = key.embedding;
    kind_.head = key.head;
    kind_.mtp = key.head ? job.model.mtp_depth() : 0;
    kind_.recompute = key.recompute;
    shape_.first_layer = key.phase;
    shape_.layers = key.layers;
  }

  ChunkTemplate make() {
    place_state();
    PassWriter(job_, key_, shape_, parameters_, slots_, builder_, kind_, bodies_).write();
    add_optimizer();
    add_copies(builder_, job_.plan, slots_, bodies_);
    return std::move(kind_);
  }

  ChunkTemplate make_without_passes(KindParts parts) {
    if (parts.state) {
      place_state();
      add_optimizer();
      add_bucket_copies(builder_, job_.plan, bodies_);
    }
    if (parts.transfers) {
      PassWriter(job_, key_, shape_, parameters_, slots_, builder_, kind_, bodies_).write_transfers_alone();
    }
    return std::move(kind_);
  }

 private:
  void place_state() {
    place_parameters();
    place_buckets();
    place_away_state(builder_, job_.plan);
    if (shape_.fp8 == Fp8::kDelayed) place_history();
  }

  void add_optimizer() { OptimizerBodies(job_, stack_, builder_, bodies_, segment_of_parameter_).add(); }

  int segments() const { return key_.layers + (key_.embedding ? 1 : 0) + kind_.parts_at_end(); }

  void place_parameters() {
    const auto place = [&](std::vector<Parameter> list, int segment, Laid& laid) {
      std::ranges::stable_sort(list, {}, replicated_first);
      for (Parameter& p : list) {
        p.frozen = &laid == &frozen_;
        p.muon = &laid == &matrices_;
        p.offset = laid.elements;
        laid.elements += round_up(p.local_rows * p.local_columns, kParameterAlignment);
        segment_of_parameter_.push_back(segment);
        kind_.parameters.push_back(std::move(p));
      }
      laid.segment_end.push_back(laid.elements);
    };
    const bool adapts = shape_.lora.used(), has_muon = job_.training.optimizer.kind == Update::kMuon;
    const auto place_part = [&](std::vector<Parameter> list, std::vector<Parameter> adapters, int part) {
      std::vector<Parameter> matrices;
      const auto by_adamw = [&](const Parameter& p) { return !is_orthogonalised(job_.training, p); };
      const auto end = std::stable_partition(list.begin(), list.end(), by_adamw);
      std::move(end, list.end(), std::back_inserter(matrices));
      list.erase(end, list.end());
      place(std::move(list), part, adapts ? frozen_ : trained_);
      if (has_muon) place(std::move(matrices), part, matrices_);
      if (adapts) place(std::move(adapters), part, trained_);
    };
    int segment = 0;
    if (key_.embedding) place_part(embedding_parameters(job_), {}, segment++);
    const auto place_layer = [&](int layer, std::vector<Parameter> parameters) {
      const bool mixture = shape_.kind(layer).mixture;
      std::vector<Parameter> adapters = adapter_parameters(job_, layer, mixture);
      for (Parameter& p : layer_parameters(job_, layer, mixture)) parameters.push_back(std::move(p));
      if (mixture && job_.plan.expert > 1) {
        experts_.emplace_back(segment, expert_parameters(job_, layer));
        expert_adapters_.emplace_back(segment, expert_adapter_parameters(job_, layer));
      } else if (mixture) {
        for (Parameter& p : expert_parameters(job_, layer)) parameters.push_back(std::move(p));
        for (Parameter& p : expert_adapter_parameters(job_, layer)) adapters.push_back(std::move(p));
      }
      place_part(std::move(parameters), std::move(adapters), segment++);
    };
    for (int layer = 0; layer < key_.layers; ++layer) place_layer(layer, {});
    if (key_.head) place_part(head_parameters(job_, key_.embedding), {}, segment++);
    for (int i = key_.layers; i < key_.layers + kind_.mtp; ++i) place_layer(i, module_parameters(job_, i));
  }

  /// Where parameters that are trained, or those that are frozen, lie before buckets are padded.
  struct Laid {
    std::vector<std::int64_t> segment_end;
    std::int64_t elements = 0;

    std::int64_t begin_of(int segment) const {
      return segment == 0 ? 0 : segment_end[static_cast<std::size_t>(segment) - 1];
    }
    std::int64_t end_of(int segment) const { return segment_end[static_cast<std::size_t>(segment)]; }
    bool empty(int segment) const { return begin_of(segment) == end_of(segment); }
  };

  /// Bytes of the optimizer's state of so many elements.
  std::int64_t state_bytes(std::int64_t shard, bool muon) const {
    const int arrays = stack_.keeps_half_gradients(shape_.type) ? 4 : is_half(shape_.type) ? 3 : 2;
    return StateArrays{shape_.type, job_.plan.moment_dtype, !muon}.offset(arrays, shard);
  }

  /// First and last segments of buckets, the first run first: they are filled from the end as the backward reaches
  /// them.
  std::vector<std::pair<int, int>> runs_of(const Laid& laid) const {
    const std::int64_t width = size_of(shape_.gradient);
    std::vector<std::pair<int, int>> runs;
    for (int last = segments() - 1; last >= 0;) {
      int first = last;
      const auto bytes = [&] { return (laid.end_of(last) - laid.begin_of(first)) * width; };
      while (first > 0 && bytes() < job_.plan.bucket_bytes) --first;
      int begin = first, end = last;
      while (begin < end && laid.empty(begin)) ++begin;
      while (end > begin && laid.empty(end)) --end;
      if (!laid.empty(begin)) runs.emplace_back(begin, end);
      last = first - 1;
    }
    std::ranges::reverse(runs);
    return runs;
  }

  // Buckets are padded so that every rank of the shard group owns an equal part. Parameters move to follow the padding
  // of the buckets before them. `end`: of those before; returns the new one.
  std::int64_t place_runs(const Laid& laid, const Sharding& sharding, std::int64_t end) {
    const bool frozen = &laid == &frozen_, muon = &laid == &matrices_;
    const int shards = frozen && !sharding.parameters ? 1 : sharding.shards;
    for (const auto& [first, last] : runs_of(laid)) {
      Bucket bucket;
      bucket.frozen = frozen;
      bucket.muon = muon;
      bucket.first_segment = static_cast<std::int16_t>(first);
      bucket.last_segment = static_cast<std::int16_t>(last);
      bucket.begin = end;
      const std::int64_t shift = end - laid.begin_of(first);
      bucket.elements =
          round_up(laid.end_of(last) - laid.begin_of(first), shards * sharding.parts * kParameterAlignment);
      bucket.shard = bucket.elements / shards;
      bucket.parts = shards > 1 ? sharding.parts : 1;
      bucket.optimizer_offset = kind_.bytes[static_cast<std::size_t>(Space::kOptimizer)];
      if (!frozen) kind_.bytes[static_cast<std::size_t>(Space::kOptimizer)] += state_bytes(bucket.shard, muon);
      for (std::size_t i = 0; i < kind_.parameters.size(); ++i) {
        const bool of_run = segment_of_parameter_[i] >= first && segment_of_parameter_[i] <= last;
        Parameter& p = kind_.parameters[i];
        if (of_run && p.frozen == frozen && p.muon == muon) p.offset += shift;
      }
      end = bucket.begin + bucket.elements;
      kind_.buckets.push_back(bucket);
    }
    return end;
  }

  void place_buckets() {
    const Sharding sharding(job_, stack_);
    std::int64_t end = 0;
    const auto place_laid = [&](const Laid& laid) {
      if (!laid.segment_end.empty()) end = place_runs(laid, sharding, end);
    };
    const auto place_spread = [&](std::vector<std::pair<int, std::vector<Parameter>>>& layers, bool frozen) {
      for (auto& [segment, list] : layers) {
        if (!list.empty()) end = place_experts(segment, std::move(list), end, sharding, frozen);
      }
    };
    place_laid(trained_);
    place_laid(matrices_);
    place_spread(expert_adapters_, false);
    place_laid(frozen_);
    place_spread(experts_, shape_.lora.used());
    place_shards(kind_, job_, sharding, shape_.type, shape_.gradient);
    place_away_gradients(builder_, job_.plan, shape_.gradient);
    place_away_parameters(builder_, job_.plan, shape_.type);
    for (Parameter& p : kind_.parameters) name_parameter(p);
    if (shape_.keeps_casts) place_casts();
    const bool trains_ends = !shape_.lora.used();
    if (key_.embedding && key_.head && trains_ends && job_.model.embeds_at_end() && stack_.separate_tied_gradients) {
      Parameter at_end =
          *std::ranges::find_if(kind_.parameters, [](const Parameter& p) { return p.name == "wte.weight"; });
      at_end.name = "wte.weight at the end";
      const int gradient = builder_.place("gradient of wte.weight at the end", Space::kGradient, shape_.gradient,
                                          at_end.local_rows * at_end.local_columns);
      parameters_.add(at_end, kNoBuffer, gradient);
      kind_.tied_head_gradient = gradient;
    }
  }

  // Makes the buffers of a parameter and of its gradient: in the bucket where it is kept whole on the device, else in
  // the bucket's slot. Experts that no other rank holds are whole even where the rest is sharded.
  void name_parameter(Parameter& p) {
    const auto holder = std::find_if(kind_.buckets.begin(), kind_.buckets.end(), [&](const Bucket& bucket) {
      return p.offset >= bucket.begin && p.offset < bucket.begin + bucket.elements;
    });
    const std::int64_t count = p.local_rows * p.local_columns, inside = p.offset - holder->begin;
    const auto name = [&](const std::string& text, Space space, DType type, std::int64_t bucket_begins) {
      return builder_.view(text, space, type, count, bucket_begins + inside * size_of(type));
    };
    p.value =
        holder->parameter_slot >= 0
            ? name(p.name, Space::kGathered, shape_.type, holder->parameter_slot)
            : name(p.name, Space::kParameter, shape_.type,
                   (holder->parameter_shard >= 0 ? holder->parameter_shard : holder->begin) * size_of(shape_.type));
    const std::string gradient = "gradient of " + p.name;
    if (p.frozen) {
      p.gradient = kNoBuffer;
    } else if (holder->gradient_slot >= 0) {
      p.gradient = name(gradient, Space::kGathered, shape_.gradient, holder->gradient_slot);
    } else if (holder->staged_gradient != kNoBuffer) {
      p.gradient = name(gradient, Space::kStaging, shape_.gradient, builder_.buffer(holder->staged_gradient).offset);
    } else {
      p.gradient =
          name(gradient, Space::kGradient, shape_.gradient, holder->kept_gradients() * size_of(shape_.gradient));
    }
    parameters_.add(p, p.value, p.gradient);
  }

  // Follows the optimizer's state, also where that is elsewhere.
  void place_history() {
    for (Parameter& p : kind_.parameters) {
      if (!is_cast(p)) continue;
      p.first_site = static_cast<std::int32_t>(kind_.sites);
      kind_.sites += kFp8Operands;
    }
    if (kind_.sites == 0) return;
    const std::int64_t sites = kind_.sites;
    kind_.history = builder_.place("largest numbers of steps", Space::kOptimizer, DType::kFp32,
                                   AmaxHistory::rows(kAmaxHistory) * sites);
    const std::int64_t begin = builder_.buffer(kind_.history).offset;
    for (const Parameter& p : kind_.parameters) {
      if (p.first_site < 0) continue;
      ParameterBuffers::Histories histories{};
      for (int operand = 0; operand < kFp8Operands; ++operand) {
        constexpr std::array<const char*, kFp8Operands> kNames{"input", "weight", "gradient"};
        // What a cast looks at: this step's and the window's.
        histories[static_cast<std::size_t>(operand)] = builder_.view(
            fmt::format("largest numbers of {}, {}", p.name, kNames[static_cast<std::size_t>(operand)]),
            Space::kOptimizer, DType::kFp32, sites + 1, begin + (p.first_site + operand) * size_of(DType::kFp32));
      }
      parameters_.add_histories(p, histories);
    }
  }

  // The layers' 8-bit matrices follow the parameters, each as its product reads it and as its data gradient does.
  void place_casts() {
    std::int64_t& bytes = kind_.bytes[static_cast<std::size_t>(Space::kParameter)];
    bytes = aligned(bytes);
    for (const Parameter& p : kind_.parameters) {
      if (!is_cast(p)) continue;
      const std::int64_t runs = std::max<std::int64_t>(1, p.local_experts);
      const auto place = [&](const char* product, bool along_rows) {
        const Fp8Layout layout =
            fp8_layout(shape_.fp8, Fp8Operand::kWeight, along_rows, runs, p.local_rows, p.local_columns);
        return builder_.place(fmt::format("{} in 8 bits, {}", p.name, product), Space::kParameter, DType::kUint8,
                              layout.bytes());
      };
      parameters_.add_cast(p, {place("forward", false), place("backward", true)});
      kind_.bytes.cast_numbers += p.local_rows * p.local_columns;
    }
  }

  // Experts that are spread over ranks are reduced among the ranks that hold the same ones: a bucket for each mixture
  // layer, after all others; their adapters likewise, but before all that is frozen.
  std::int64_t place_experts(int segment, std::vector<Parameter> matrices, std::int64_t end, const Sharding& sharding,
                             bool frozen) {
    const bool whole = job_.plan.zero_stage == 0 || (frozen && !sharding.parameters);
    const int parts = sharding.parts,
              shards = whole ? 1 : job_.plan.data / expert_replicas(job_.plan) * job_.plan.context;
    std::ranges::stable_sort(matrices, {}, replicated_first);
    Bucket bucket;
    bucket.expert = true;
    bucket.frozen = frozen;
    bucket.muon = job_.training.optimizer.kind == Update::kMuon;
    bucket.first_segment = bucket.last_segment = static_cast<std::int16_t>(segment);
    bucket.begin = end;
    for (Parameter& p : matrices) {
      p.offset = end;
      p.muon = bucket.muon;
      p.frozen = frozen;
      end += round_up(p.local_rows * p.local_columns, kParameterAlignment);
      segment_of_parameter_.push_back(segment);
      kind_.parameters.push_back(std::move(p));
    }
    bucket.elements = round_up(end - bucket.begin, shards * parts * kParameterAlignment);
    bucket.shard = bucket.elements / shards;
    bucket.parts = shards > 1 ? parts : 1;
    bucket.optimizer_offset = kind_.bytes[static_cast<std::size_t>(Space::kOptimizer)];
    if (!frozen) kind_.bytes[static_cast<std::size_t>(Space::kOptimizer)] += state_bytes(bucket.shard, bucket.muon);
    kind_.buckets.push_back(bucket);
    return bucket.begin + bucket.elements;
  }

  const Job& job_;
  const StackTraits& stack_;
  ChunkKey key_;
  ChunkShape shape_;
  std::vector<Body>& bodies_;
  ChunkTemplate kind_;
  BodyBuilder builder_;
  ParameterBuffers parameters_;
  LayerSlots slots_;
  std::vector<int> segment_of_parameter_;
  std::vector<std::pair<int, std::vector<Parameter>>> experts_, expert_adapters_;  // segment, what is spread over ranks
  Laid trained_, matrices_, frozen_;                                               // by AdamW, by Muon, and not at all
};

}  // namespace

int phase_of(const models::Model& model, int first_layer, int layers) {
  return static_cast<int>(models::first_alike(model, first_layer, layers));
}

ChunkKey with_recompute(ChunkKey key, const Plan& plan, int position) {
  key.recompute =
      plan.stage_recompute.empty() ? plan.recompute : plan.stage_recompute[static_cast<std::size_t>(position)];
  const bool some = key.recompute == Recompute::kFull && plan.recompute_layers < key.layers;
  key.again = some ? plan.recompute_layers : 0;
  const int most = std::max(2, key.layers);  // one layer has the segments of several
  key.group = key.recompute == Recompute::kFull ? std::min(plan.recompute_group, most) : 1;
  key.modules = key.recompute == Recompute::kSelective ? modules_of(plan) : ModuleSet{};
  return key;
}

ChunkTemplate make_chunk_template(const Job& job, const StackTraits& stack, const ChunkKey& key, int kind_index,
                                  std::vector<Body>& bodies) {
  return TemplateMaker(job, stack, key, kind_index, bodies).make();
}

ChunkTemplate make_parts(const Job& job, const StackTraits& stack, const ChunkKey& key, KindParts parts,
                         std::vector<Body>& bodies) {
  return TemplateMaker(job, stack, key, 0, bodies).make_without_passes(parts);
}

ChunkBytes bytes_without_passes(const Job& job, const StackTraits& stack, const ChunkKey& key) {
  std::vector<Body> bodies;
  return TemplateMaker(job, stack, key, 0, bodies).make_without_passes({.state = true}).bytes;
}

}  // namespace trivium::program
