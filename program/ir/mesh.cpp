#include "program/ir/mesh.h"

#include <algorithm>
#include <string>

namespace trivium::program {
namespace {

constexpr std::array<std::string_view, 4> kDimensions{"tensor", "context", "data", "pipeline"};

// The placement is checked before a Mesh is made; names that are missing keep their default place.
std::array<int, 4> order_of(const std::string& placement) {
  std::array<int, 4> order{};
  std::size_t filled = 0;
  for (std::string_view left = placement; !left.empty() && filled < order.size();) {
    const std::size_t end = std::min(left.find('-'), left.size());
    const auto found = std::find(kDimensions.begin(), kDimensions.end(), left.substr(0, end));
    order[filled++] = static_cast<int>(found - kDimensions.begin());
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return order;
}

// Of a context rank's group: of all of them, of the neighbours that exchange heads, or of one of each such set.
int context_at(Group group, int here, int i, int heads) {
  if (group == Group::kContextHeads) return here / heads * heads + i;
  return group == Group::kContextRing ? i * heads + here % heads : i;
}

}  // namespace

bool joins_stages(Group group) {
  return group == Group::kEmbedding || group == Group::kModel || group == Group::kWorld;
}

bool joins_replicas(Group group) {
  switch (group) {
    case Group::kData:
    case Group::kShard:
    case Group::kReplica:
    case Group::kExpert:
    case Group::kExpertData:
    case Group::kWorld:
      return true;
    default:
      return false;
  }
}

Mesh::Mesh(const Plan& plan, int key_ranks)
    : extents_{plan.tensor, plan.context, plan.data, plan.pipeline},
      context_heads_(plan.context > 1 ? plan.context_heads : 1),
      shard_(plan.shard_group > 0 ? plan.shard_group : plan.data),
      order_(order_of(plan.placement)),
      expert_replicas_(program::expert_replicas(plan)),
      expert_tensor_(expert_tensor_ranks(plan)),
      key_ranks_(key_ranks) {}

int Mesh::shard_rank(int rank) const { return index_in(Group::kShard, rank); }

int Mesh::size() const { return extents_[0] * extents_[1] * extents_[2] * extents_[3]; }

int Mesh::rank(const Coordinates& at) const {
  const std::array<int, 4> place{at.tensor, at.context, at.data, at.pipeline};
  int rank = 0, stride = 1;
  for (const int dimension : order_) {
    const auto d = static_cast<std::size_t>(dimension);
    rank += place[d] * stride;
    stride *= extents_[d];
  }
  return rank;
}

Coordinates Mesh::coordinates(int rank) const {
  std::array<int, 4> place{};
  for (const int dimension : order_) {
    const auto d = static_cast<std::size_t>(dimension);
    place[d] = rank % extents_[d];
    rank /= extents_[d];
  }
  return {place[0], place[1], place[2], place[3]};
}

std::vector<int> Mesh::members(Group group, int rank) const {
  const Coordinates here = coordinates(rank);
  const int size = group_size(group);
  std::vector<int> ranks;
  const auto along = [&](auto set, int extent) {
    for (int i = 0; i < extent; ++i) {
      Coordinates at = here;
      set(at, i);
      ranks.push_back(this->rank(at));
    }
  };
  switch (group) {
    case Group::kNone:
      return {rank};
    case Group::kTensor:
    case Group::kKeys:
    case Group::kExpertTensor:
      along([&](Coordinates& at, int i) { at.tensor = here.tensor / size * size + i; }, size);
      break;
    case Group::kContext:
    case Group::kContextHeads:
    case Group::kContextRing:
      along([&](Coordinates& at, int i) { at.context = context_at(group, here.context, i, context_heads_); }, size);
      break;
    case Group::kData:
      // Context ranks hold the same parameters too: they reduce together with the replicas.
      for (int c = 0; c < context(); ++c) {
        along([c](Coordinates& at, int i) { at.data = i, at.context = c; }, data());
      }
      break;
    case Group::kShard:
      for (int c = 0; c < context(); ++c) {
        along([&, c](Coordinates& at, int i) { at.data = here.data / shard_ * shard_ + i, at.context = c; }, shard_);
      }
      break;
    case Group::kReplica:
      along([&](Coordinates& at, int i) { at.data = i * shard_ + here.data % shard_; }, data() / shard_);
      break;
    case Group::kExpert:
      for (int t = here.tensor % expert_tensor_; t < tensor(); t += expert_tensor_) {
        along(
            [&, t](Coordinates& at, int i) {
              at.data = here.data / expert_replicas_ * expert_replicas_ + i;
              at.tensor = t;
            },
            expert_replicas_);
      }
      break;
    case Group::kExpertData:
      for (int c = 0; c < context(); ++c) {
        along([&](Coordinates& at,
                  int i) { at.data = i * expert_replicas_ + here.data % expert_replicas_, at.context = c; },
              data() / expert_replicas_);
      }
      break;
    case Group::kPipeline:
      along([](Coordinates& at, int i) { at.pipeline = i; }, pipeline());
      break;
    case Group::kEmbedding:
      along([this](Coordinates& at, int i) { at.pipeline = i * (pipeline() - 1); }, pipeline() > 1 ? 2 : 1);
      break;
    case Group::kModel:
      for (int p = 0; p < pipeline(); ++p) {
        for (int e = 0; e < expert_replicas_; ++e) {
          along(
              [&](Coordinates& at, int i) {
                at.tensor = i, at.pipeline = p, at.data = here.data / expert_replicas_ * expert_replicas_ + e;
              },
              tensor());
        }
      }
      break;
    case Group::kWorld:
      for (int r = 0; r < size; ++r) ranks.push_back(r);
      break;
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

int Mesh::index_in(Group group, int rank) const {
  const std::vector<int> ranks = members(group, rank);
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

int Mesh::group_size(Group group) const {
  switch (group) {
    case Group::kNone:
      return 1;
    case Group::kTensor:
      return tensor();
    case Group::kKeys:
      return key_ranks_;
    case Group::kContext:
      return context();
    case Group::kContextHeads:
      return context_heads_;
    case Group::kContextRing:
      return context() / context_heads_;
    case Group::kData:
      return data() * context();
    case Group::kShard:
      return shard_ * context();
    case Group::kReplica:
      return data() / shard_;
    case Group::kExpert:
      return expert();
    case Group::kExpertData:
      return data() / expert_replicas_ * context();
    case Group::kExpertTensor:
      return expert_tensor_;
    case Group::kPipeline:
      return pipeline();
    case Group::kEmbedding:
      return pipeline() > 1 ? 2 : 1;
    case Group::kModel:
      return tensor() * pipeline() * expert_replicas_;
    case Group::kWorld:
      return size();
  }
  return 1;
}

}  // namespace trivium::program
