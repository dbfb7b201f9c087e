#include "program/lower/sharding.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "program/ir/alignment.h"
#include "program/schedules/schedule.h"

namespace trivium::program {
namespace {

// Places whole buckets that are in use for a while: ends apart, the others in turn in `slots` slots of equal size.
void place_slots(ChunkTemplate& kind, std::int64_t size, int slots, std::int64_t Bucket::*slot,
                 const std::function<bool(const Bucket&)>& chosen) {
  auto& bytes = kind.bytes[static_cast<std::size_t>(Space::kGathered)];
  std::int64_t widest = 0;
  for (const Bucket& bucket : kind.buckets) {
    if (chosen(bucket) && !holds_end(kind, bucket)) widest = std::max(widest, aligned(bucket.elements * size));
  }
  const std::int64_t ring = bytes;
  bytes += widest * slots;
  int turn = 0;
  for (Bucket& bucket : kind.buckets) {
    if (!chosen(bucket)) continue;
    if (!holds_end(kind, bucket)) {
      bucket.*slot = ring + widest * (turn++ % slots);
      continue;
    }
    bucket.*slot = bytes;
    bytes += aligned(bucket.elements * size);
  }
}

// Calls `touch(bucket, segment)` for every operand in a bucket, in the order of the ops. `bucket_of`: by buffer; -1: of
// none.
template <class Operands, class Touch>
void for_each_touch(const Body& body, const std::vector<int>& bucket_of, Operands operands, const Touch& touch) {
  for (std::size_t s = 0; s < body.segments.size(); ++s) {
    for (int i = body.segments[s].begin; i < body.segments[s].end; ++i) {
      for (const int b : operands(body.ops[static_cast<std::size_t>(i)])) {
        const int bucket = b == kNoBuffer ? -1 : bucket_of[static_cast<std::size_t>(b)];
        if (bucket >= 0) touch(static_cast<std::size_t>(bucket), static_cast<std::int16_t>(s));
      }
    }
  }
}

std::vector<int> buckets_of_buffers(const ChunkTemplate& kind, int Parameter::*buffer) {
  std::vector<int> bucket_of(kind.buffers.size(), -1);
  for (const Parameter& p : kind.parameters) {
    const auto holder = std::find_if(kind.buckets.begin(), kind.buckets.end(), [&](const Bucket& bucket) {
      return p.offset >= bucket.begin && p.offset < bucket.begin + bucket.elements;
    });
    if (p.*buffer == kNoBuffer) continue;  // frozen: no gradient
    bucket_of[static_cast<std::size_t>(p.*buffer)] = static_cast<int>(holder - kind.buckets.begin());
  }
  return bucket_of;
}

}  // namespace

Sharding::Sharding(const Job& job, const StackTraits& stack) {
  const Plan& plan = job.plan;
  hybrid = plan.shard_group > 0 && plan.shard_group < plan.data && plan.zero_stage > 0;
  shards = plan.zero_stage > 0 ? (hybrid ? plan.shard_group : plan.data) * plan.context : 1;
  away = plan.offload.parameters != Storage::kNone;
  parameters = away || (plan.zero_stage >= 3 && shards > 1);
  ahead = parameters && plan.overlap.parameter_gather ? stack.units_ahead : 0;
  if (shards == 1) {
    hybrid = false;
    return;
  }
  if (hybrid) group = Group::kShard;
  gradients = plan.zero_stage >= 2;
  gathers_first = !parameters && plan.overlap.parameter_gather;
  accumulates = micro_batches(plan, job.training.global_batch) > 1 || traits_of(plan.schedule).splits_backward;
  overlaps_reduce = plan.overlap.gradient_reduction;
  parts = parameters ? stack.collectives_per_unit : 1;
}

bool holds_end(const ChunkTemplate& kind, const Bucket& bucket) {
  const int head = kind.layers + (kind.embedding ? 1 : 0);  // its segment, where there is one
  return (kind.embedding && bucket.first_segment == 0) ||
         (kind.head && bucket.first_segment <= head && bucket.last_segment >= head);
}

void place_shards(ChunkTemplate& kind, const Job& job, const Sharding& sharding, DType type, DType gradient) {
  std::int64_t parameters = 0, gradients = 0;  // elements
  const bool tied_apart = job.model.embeds_at_end() && kind.embedding != kind.head;
  // Experts that no other rank holds have nothing to reduce with.
  const auto stays_whole = [&](const Bucket& bucket) {
    return (bucket.expert && bucket.shard == bucket.elements) || (tied_apart && holds_end(kind, bucket));
  };
  for (Bucket& bucket : kind.buckets) {
    if (sharding.parameters) bucket.parameter_shard = parameters;
    parameters += sharding.parameters ? bucket.shard : bucket.elements;
    if (bucket.frozen) continue;
    if (sharding.gradients && !stays_whole(bucket)) {
      bucket.gradient_shard = gradients;
      gradients += bucket.shard;
    } else {
      bucket.gradient_shift = gradients - bucket.begin;
      gradients += bucket.elements;
    }
  }
  kind.bytes[static_cast<std::size_t>(Space::kParameter)] = parameters * size_of(type);
  kind.bytes[static_cast<std::size_t>(Space::kGradient)] = gradients * size_of(gradient);
  if (sharding.parameters) {
    const int slots = sharding.ahead + 1;
    place_slots(kind, size_of(type), slots, &Bucket::parameter_slot, [](const Bucket& b) { return !b.apart(); });
    const auto place_apart = [&](const std::function<bool(const Bucket&)>& of_kind) {
      place_slots(kind, size_of(type), slots, &Bucket::parameter_slot,
                  [&](const Bucket& b) { return b.apart() && of_kind(b) && (sharding.away || b.shard < b.elements); });
    };
    place_apart([](const Bucket& b) { return !b.expert; });
    for (const bool frozen : {false, true}) {  // experts' adapters are used together with the experts
      place_apart([&](const Bucket& b) { return b.expert && b.frozen == frozen; });
    }
  }
  if (sharding.gradients) {
    for (const auto& [expert, muon] :
         {std::pair(false, false), std::pair(false, true), std::pair(true, false), std::pair(true, true)}) {
      place_slots(kind, size_of(gradient), sharding.overlaps_reduce ? 2 : 1, &Bucket::gradient_slot,
                  [&, experts = expert, by_muon = muon](const Bucket& bucket) {
                    return bucket.gradient_shard >= 0 && bucket.expert == experts && bucket.muon == by_muon;
                  });
    }
  }
}

std::vector<BucketUse> parameter_uses(const Program& program, const Body& body) {
  const ChunkTemplate& kind = program.kind_of(body);
  const std::vector<int> bucket_of = buckets_of_buffers(kind, &Parameter::value);
  std::vector<BucketUse> uses;
  std::vector<int> last_use(kind.buckets.size(), -1);  // by bucket
  std::map<std::int64_t, std::size_t> last_of_slot;    // by slot: the bucket in it
  for_each_touch(
      body, bucket_of, [](const Op& op) { return op.in; },
      [&](std::size_t bucket, std::int16_t segment) {
        const std::int64_t slot = kind.buckets[bucket].parameter_slot;
        const auto [holds, fresh] = last_of_slot.try_emplace(slot, bucket);
        const bool is_gone = slot >= 0 && holds->second != bucket;
        holds->second = bucket;
        int& last = last_use[bucket];
        if (last >= 0 && !is_gone) {
          uses[static_cast<std::size_t>(last)].segments.last = segment;
          return;
        }
        last = static_cast<int>(uses.size());
        uses.push_back({bucket, {segment, segment}});
      });
  std::ranges::stable_sort(uses, {}, [](const BucketUse& use) { return std::pair(use.segments.first, use.bucket); });
  return uses;
}

std::vector<SegmentRange> gradient_writers(const Program& program, const Body& body, bool head_use) {
  const ChunkTemplate& kind = program.kind_of(body);
  std::vector<int> bucket_of = buckets_of_buffers(kind, &Parameter::gradient);
  if (head_use && kind.tied_head_gradient != kNoBuffer)
    bucket_of[static_cast<std::size_t>(kind.tied_head_gradient)] = 0;
  std::vector<SegmentRange> ranges(kind.buckets.size());
  for_each_touch(
      body, bucket_of, [](const Op& op) { return op.out; },
      [&](std::size_t bucket, std::int16_t segment) {
        SegmentRange& range = ranges[bucket];
        if (range.first < 0) range.first = segment;
        range.last = segment;
      });
  return ranges;
}

std::vector<std::size_t> buckets_in_order(const std::vector<SegmentRange>& ranges, std::int16_t SegmentRange::*when) {
  std::vector<std::size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t b) { return ranges[b].first < 0; });
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ranges[a].*when < ranges[b].*when; });
  return order;
}

}  // namespace trivium::program
