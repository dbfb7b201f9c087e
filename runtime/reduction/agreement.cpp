// Comparing the members' calls and wording what differs.
#include "runtime/reduction/agreement.h"

#include <fmt/format.h>

#include <algorithm>

namespace trivium::runtime::reduction {
namespace {

using program::Reduction;

std::string text_of(const Call& call) {
  const char* const how = call.how == Reduction::kSum ? "sum" : call.how == Reduction::kMax ? "max" : "pair sum";
  const std::string_view type = program::name_of(call.type);
  switch (call.kind) {
    case CallKind::kBarrier:
      return "barrier";
    case CallKind::kAllReduce:
      return fmt::format("all_reduce ({}) of {} {}", how, call.count, type);
    case CallKind::kReduceScatter:
      return fmt::format("reduce_scatter of {} {}", call.count, type);
    case CallKind::kAllGather:
      return fmt::format("all_gather of {} {}", call.count, type);
    case CallKind::kBroadcast:
      return fmt::format("broadcast of {} bytes from rank {}", call.count, call.root);
  }
  return "unknown collective";
}

}  // namespace

std::optional<std::string> disagreement(std::span<const int> ranks, std::span<const Call> calls) {
  const Call& first = calls.front();
  for (std::size_t i = 1; i < calls.size(); ++i) {
    if (calls[i] != first) {
      return fmt::format("members of a group disagree: rank {} calls {}, rank {} calls {}", ranks.front(),
                         text_of(first), ranks[i], text_of(calls[i]));
    }
  }
  const auto members = static_cast<std::int64_t>(ranks.size());
  if (first.count < 0) return fmt::format("{}: the count is negative", text_of(first));
  const bool is_shared = first.kind == CallKind::kReduceScatter || first.kind == CallKind::kAllGather;
  if (is_shared && first.count % members != 0) {
    return fmt::format("{}: the count is not a multiple of the {} members", text_of(first), members);
  }
  if (first.kind == CallKind::kBroadcast && std::find(ranks.begin(), ranks.end(), first.root) == ranks.end()) {
    return fmt::format("{}: the root is not a member of the group", text_of(first));
  }
  return std::nullopt;
}

std::optional<std::string> misplaced_part(const void* part, const void* whole, std::int64_t part_bytes, int members,
                                          int index) {
  if (part_bytes <= 0) return std::nullopt;  // nothing, or a count that `disagreement` refuses
  const auto part_at = reinterpret_cast<std::uintptr_t>(part);
  const auto whole_at = reinterpret_cast<std::uintptr_t>(whole);
  const auto bytes = static_cast<std::uintptr_t>(part_bytes);
  const bool overlaps = part_at < whole_at + bytes * static_cast<std::uintptr_t>(members) && whole_at < part_at + bytes;
  if (!overlaps || part_at == whole_at + bytes * static_cast<std::uintptr_t>(index)) return std::nullopt;
  return fmt::format("the part of member {} overlaps the whole, but not at place {} of {}", index, index, members);
}

}  // namespace trivium::runtime::reduction
