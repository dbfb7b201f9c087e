// A rank's collectives: the communicator's own, and those that are made of transfers.
#include <span>
#include <vector>

#include "program/ir/op_views.h"
#include "runtime/executor/exchange.h"
#include "runtime/executor/rank_executor.h"

namespace trivium::runtime {

using program::Op;
using program::OpKind;
using program::Task;

void RankExecutor::run_collective(const Task& task, const Op& op, int number) {
  const int group = groups_[static_cast<std::size_t>(op.group)];
  std::byte* in = arenas_.address(task, op.in[0]);
  std::byte* out = arenas_.address(task, op.out[0]);
  const std::int64_t part_bytes = op.elements / program_.mesh.group_size(op.group) * size_of(op.dtype);
  std::byte* own_part = in + place_in(op.group) * part_bytes;  // of a bucket that is reduced or gathered where it lies
  const program::Buffer& kept = program_.kind_of(program_.body_of(task)).buffers[static_cast<std::size_t>(op.in[0])];
  const bool converted = backend_.shares_host_memory() && kept.dtype != op.dtype;  // gradients in Plan::reduce_dtype
  switch (op.kind) {
    case OpKind::kAllReduce: {
      const std::int64_t count = op.reduction == program::Reduction::kPairSum ? op.elements / 2 : op.elements;
      // Shard groups add the parts that each left inside its whole bucket; shards lie apart and are named themselves.
      const bool inside = op.group == program::Group::kReplica && op.elements < kept.elements;
      std::byte* const at = inside ? out + shard_rank_ * op.elements * size_of(kept.dtype) : out;
      if (converted) {
        wire_.all_reduce(communicator_, group, at, count, kept.dtype, op.dtype);
      } else {
        communicator_.all_reduce(group, at, count, op.dtype, op.reduction);
      }
      break;
    }
    case OpKind::kReduceScatter:
      if (converted) {
        const int members = program_.mesh.group_size(op.group);
        std::byte* const own = in + place_in(op.group) * (op.elements / members) * size_of(kept.dtype);
        wire_.reduce_scatter(communicator_, group, members, in, in == out ? own : out, op.elements, kept.dtype,
                             op.dtype);
      } else {
        communicator_.reduce_scatter(group, in, in == out ? own_part : out, op.elements, op.dtype);
      }
      break;
    case OpKind::kAllGather:
      communicator_.all_gather(group, in == out ? own_part : in, out, op.elements, op.dtype);
      break;
    case OpKind::kAllToAll:
      if (op.in[1] != program::kNoBuffer) {
        exchange_spills(task, op, number);
        break;
      }
      all_to_all(communicator_, members_[static_cast<std::size_t>(op.group)], in, out, part_bytes, number);
      break;
    case OpKind::kRingShift:
      ring_shift(communicator_, members_[static_cast<std::size_t>(op.group)], in, out, op.elements * size_of(op.dtype),
                 number);
      break;
    default:
      break;
  }
}

// How many rows go where is known when their tokens have been routed, not before.
void RankExecutor::exchange_spills(const Task& task, const Op& op, int number) {
  const std::vector<int>& members = members_[static_cast<std::size_t>(op.group)];
  std::vector<std::int32_t> counts(2 * members.size());
  backend_.download(counts.data(), arenas_.address(task, op.in[1]),
                    static_cast<std::int64_t>(counts.size() * sizeof(std::int32_t)));
  const auto to = std::span(counts).first(members.size()), from = std::span(counts).last(members.size());
  const bool back = program::returns_rows(op);
  exchange_rows(communicator_, members, arenas_.address(task, op.in[0]), arenas_.address(task, op.out[0]),
                back ? from : to, back ? to : from, op.n * size_of(op.dtype), number);
}

}  // namespace trivium::runtime
