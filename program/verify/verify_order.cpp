#include "program/verify/verify_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "program/ir/text.h"
#include "program/ir/turns.h"

namespace trivium::program {
namespace {

bool is_member(const Program& program, Group group, int stage) {
  const int last = program.mesh.pipeline() - 1;
  return group != Group::kEmbedding || stage == 0 || stage == last;
}

/// Roles whose ranks meet in the same collectives of a group have the same: its stage, and its kind of replicas, or -1
/// where all meet.
using Rendezvous = std::tuple<Group, int, int>;

Rendezvous rendezvous_of(const Role& role, Group group) {
  return {group, joins_stages(group) ? -1 : role.stage, joins_replicas(group) ? -1 : role.replica_kind};
}

// Whether roles have to meet: ranks of one role do the same anyhow.
bool joins_roles(const Program& program, Group group) {
  return joins_stages(group) || (joins_replicas(group) && !program.replica_kinds.empty());
}

std::string name_of(const Program& program, const Role& role) {
  std::string name = fmt::format("stage {}", role.stage);
  return program.replica_kinds.empty() ? name : fmt::format("{} of replica {}", name, role.first_replica);
}

// Nodes are (role, task, segment), numbered role by role; ends of one rendezvous share a representative.
class Graph {
 public:
  explicit Graph(const Program& program) : program_(program) {
    for (const Role& role : program.roles) {
      auto& first = first_.emplace_back();
      for (const Task& task : role.tasks) {
        first.push_back(count_);
        count_ += static_cast<int>(program.body_of(task).segments.size());
      }
    }
    same_.resize(static_cast<std::size_t>(count_));
    std::iota(same_.begin(), same_.end(), 0);
  }

  int node(const Role& role, int task, int segment) const {
    const auto at = static_cast<std::size_t>(&role - program_.roles.data());
    return first_[at][static_cast<std::size_t>(task)] + segment;
  }
  int find(int n) const { return same_[static_cast<std::size_t>(n)]; }
  void merge(int a, int b) { same_[static_cast<std::size_t>(b)] = find(a); }
  int count() const { return count_; }
  void edge(int from, int to) { edges_.emplace_back(find(from), find(to)); }

  // Nodes that cannot start: those on a cycle, and what follows them.
  std::vector<int> stuck() const {
    std::vector<std::vector<int>> next(static_cast<std::size_t>(count_));
    std::vector<int> pending(static_cast<std::size_t>(count_), 0);
    for (const auto& [from, to] : edges_) {
      if (from == to) continue;
      next[static_cast<std::size_t>(from)].push_back(to);
      ++pending[static_cast<std::size_t>(to)];
    }
    std::vector<int> ready;
    for (int n = 0; n < count_; ++n) {
      if (find(n) == n && pending[static_cast<std::size_t>(n)] == 0) ready.push_back(n);
    }
    for (std::size_t i = 0; i < ready.size(); ++i) {
      for (const int to : next[static_cast<std::size_t>(ready[i])]) {
        if (--pending[static_cast<std::size_t>(to)] == 0) ready.push_back(to);
      }
    }
    std::vector<int> left;
    for (int n = 0; n < count_; ++n) {
      if (find(n) == n && pending[static_cast<std::size_t>(n)] > 0) left.push_back(n);
    }
    return left;
  }

  // One cycle among the stuck: each waits for the one before it, the first for the last.
  std::vector<int> cycle(const std::vector<int>& stuck) const {
    std::map<int, int> waits_for;
    for (const auto& [from, to] : edges_) {
      if (from != to && std::binary_search(stuck.begin(), stuck.end(), from)) waits_for[to] = from;
    }
    std::vector<int> path;
    int n = stuck.front();
    for (; std::find(path.begin(), path.end(), n) == path.end(); n = waits_for.at(n)) path.push_back(n);
    path.erase(path.begin(), std::find(path.begin(), path.end(), n));
    std::reverse(path.begin(), path.end());
    return path;
  }

  std::string name(int n) const {
    for (std::size_t role = 0; role < first_.size(); ++role) {
      const auto& first = first_[role];
      if (first.empty() || n < first.front()) continue;
      const bool last = role + 1 == first_.size() || first_[role + 1].empty() || n < first_[role + 1].front();
      if (!last) continue;
      const auto task = std::upper_bound(first.begin(), first.end(), n) - first.begin() - 1;
      const Role& at = program_.roles[role];
      return fmt::format("{} task {} ({})", name_of(program_, at), task,
                         describe(at.tasks[static_cast<std::size_t>(task)]));
    }
    return "?";
  }

 private:
  const Program& program_;
  std::vector<std::vector<int>> first_;
  std::vector<int> same_;
  std::vector<std::pair<int, int>> edges_;
  int count_ = 0;
};

void merge_rendezvous(const Program& program, Graph& graph) {
  std::map<int, int> transfers;
  std::map<std::pair<Rendezvous, int>, int> joint;  // and how many came before -> node
  for (const Role& role : program.roles) {
    std::map<Group, int> counts;
    for (std::size_t t = 0; t < role.tasks.size(); ++t) {
      const Task& task = role.tasks[t];
      const int id = static_cast<int>(t);
      if (task.transfer >= 0) {
        const auto [at, fresh] = transfers.try_emplace(task.transfer, graph.node(role, id, 0));
        if (!fresh) graph.merge(at->second, graph.node(role, id, 0));
        continue;
      }
      const Body& body = program.body_of(task);
      for (std::size_t segment = 0; segment < body.segments.size(); ++segment) {
        for (int i = body.segments[segment].begin; i < body.segments[segment].end; ++i) {
          const Op& op = body.ops[static_cast<std::size_t>(i)];
          if (!is_communication(op.kind) || !joins_roles(program, op.group)) continue;
          const int n = graph.node(role, id, static_cast<int>(segment));
          const auto [at, fresh] = joint.try_emplace({rendezvous_of(role, op.group), counts[op.group]++}, n);
          if (!fresh && graph.find(n) == n) graph.merge(at->second, n);
        }
      }
    }
  }
}

// Host order: what computes or reduces is one chain, transfers are another. Without an order only the compute lane is a
// chain: reductions and gathers run when they are ready.
void chain(const Program& program, const Role& role, Graph& graph) {
  int last_work = -1, last_transfer = -1;
  const auto follow = [&](int& last, int n) {
    if (last >= 0) graph.edge(last, n);
    last = n;
  };
  if (!role.order.empty()) {
    for (const Issue& issue : role.order) {
      const bool transfer = role.tasks[static_cast<std::size_t>(issue.task)].transfer >= 0;
      const int here = graph.node(role, issue.task, issue.segment);
      if (transfer && last_work >= 0) graph.edge(last_work, here);  // a host posts it when its work until then is done
      follow(transfer ? last_transfer : last_work, here);
    }
    return;
  }
  const std::vector<std::int32_t> backward_beside = backwards_beside(role);
  for (std::size_t t = 0; t < role.tasks.size(); ++t) {
    const Task& task = role.tasks[t];
    const auto& ops = program.body_of(task).ops;
    const bool computes = std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.lane == Lane::kCompute; });
    if (task.transfer >= 0 || !computes || task.beside >= 0) continue;
    const auto here = static_cast<int>(t);
    if (const std::int32_t backward = backward_beside[t]; backward >= 0) {
      const Body& other = program.body_of(role.tasks[static_cast<std::size_t>(backward)]);
      take_turns(turns_of(other), turns_of(program.body_of(task)), [&](bool is_forward, std::int16_t segment) {
        follow(last_work, graph.node(role, is_forward ? here : backward, segment));
      });
      continue;
    }
    const auto segments = program.body_of(task).segments.size();
    for (std::size_t s = 0; s < segments; ++s) follow(last_work, graph.node(role, here, static_cast<int>(s)));
  }
}

bool order_is_complete(const Program& program, const Role& role, std::vector<std::string>& problems) {
  if (role.order.empty()) return true;
  std::map<std::pair<int, int>, int> place;
  for (std::size_t i = 0; i < role.order.size(); ++i) {
    if (!place.try_emplace({role.order[i].task, role.order[i].segment}, static_cast<int>(i)).second) {
      problems.push_back(fmt::format("stage {}: task {} segment {} is issued twice", role.stage, role.order[i].task,
                                     role.order[i].segment));
      return false;
    }
  }
  std::size_t expected = 0;
  for (const Task& task : role.tasks) expected += program.body_of(task).segments.size();
  if (place.size() != expected) {
    problems.push_back(
        fmt::format("stage {}: the host order has {} of {} segments", role.stage, place.size(), expected));
    return false;
  }
  for (std::size_t t = 0; t < role.tasks.size(); ++t) {
    for (const Dependency& d : role.tasks[t].after) {
      const int segments =
          static_cast<int>(program.body_of(role.tasks[static_cast<std::size_t>(d.task)]).segments.size());
      const int last = d.segment == kWholeTask ? segments - 1 : d.segment;
      if (place[{d.task, last}] > place[{static_cast<int>(t), d.before}]) {
        problems.push_back(
            fmt::format("stage {}: task {} is issued before task {} that it waits for", role.stage, t, d.task));
      }
    }
  }
  return true;
}

}  // namespace

void check_temporaries(const Program& program, std::vector<std::string>& problems) {
  struct Life {
    int first, last;
  };
  for (const Body& body : program.bodies) {
    const ChunkTemplate& kind = program.kind_of(body);
    std::map<int, Life> lives;
    for (int i = 0; i < static_cast<int>(body.ops.size()); ++i) {
      const Op& op = body.ops[static_cast<std::size_t>(i)];
      const auto touch = [&](int b) {
        if (b == kNoBuffer || !is_workspace(kind.buffers[static_cast<std::size_t>(b)].space)) return;
        lives.try_emplace(b, Life{i, i}).first->second.last = i;
      };
      for (const int b : op.in) touch(b);
      for (const int b : op.out) touch(b);
    }
    // Sweep by first use; only temporaries still alive are compared.
    std::vector<std::pair<int, int>> by_first;
    for (const auto& [b, life] : lives) by_first.emplace_back(life.first, b);
    std::sort(by_first.begin(), by_first.end());
    std::vector<int> alive;
    for (const auto& [first, b] : by_first) {
      std::erase_if(alive, [&, use = first](int other) { return lives.at(other).last < use; });
      const Buffer& mine = kind.buffers[static_cast<std::size_t>(b)];
      for (const int other : alive) {
        const Buffer& theirs = kind.buffers[static_cast<std::size_t>(other)];
        if (mine.offset < theirs.offset + theirs.bytes() && theirs.offset < mine.offset + mine.bytes()) {
          problems.push_back(fmt::format("body \"{}\": \"{}\" and \"{}\" share memory while both live", body.name,
                                         mine.name, theirs.name));
        }
      }
      alive.push_back(b);
    }
  }
}

void check_joint_collectives(const Program& program, std::vector<std::string>& problems) {
  struct Expected {
    const Role* from = nullptr;
    std::vector<std::pair<OpKind, std::int64_t>> collectives;
  };
  std::map<Rendezvous, Expected> expected;
  for (int g = 0; g < kGroups; ++g) {
    const auto group = static_cast<Group>(g);
    if (!joins_roles(program, group)) continue;
    for (const Role& role : program.roles) {
      if (!is_member(program, group, role.stage)) continue;
      std::vector<std::pair<OpKind, std::int64_t>> found;
      for (const Task& task : role.tasks) {
        for (const Op& op : program.body_of(task).ops) {
          if (is_communication(op.kind) && op.group == group) found.emplace_back(op.kind, op.elements);
        }
      }
      Expected& other = expected[rendezvous_of(role, group)];
      if (other.from == nullptr) {
        other = {&role, std::move(found)};
      } else if (found != other.collectives) {
        problems.push_back(
            fmt::format("{} and {} disagree on the collectives of group {}: {} and {} of them, or other kinds or sizes",
                        name_of(program, *other.from), name_of(program, role), program::name_of(group),
                        other.collectives.size(), found.size()));
      }
    }
  }
}

void check_order(const Program& program, std::vector<std::string>& problems) {
  for (const Role& role : program.roles) {
    if (!order_is_complete(program, role, problems)) return;
  }
  Graph graph(program);
  merge_rendezvous(program, graph);
  for (const Role& role : program.roles) {
    chain(program, role, graph);
    for (std::size_t t = 0; t < role.tasks.size(); ++t) {
      for (const Dependency& d : role.tasks[t].after) {
        const int segments =
            static_cast<int>(program.body_of(role.tasks[static_cast<std::size_t>(d.task)]).segments.size());
        const int last = d.segment == kWholeTask ? segments - 1 : d.segment;
        graph.edge(graph.node(role, d.task, last), graph.node(role, static_cast<int>(t), d.before));
      }
    }
  }
  const std::vector<int> stuck = graph.stuck();
  if (stuck.empty()) return;
  constexpr std::size_t kNamed = 8;
  const std::vector<int> cycle = graph.cycle(stuck);
  std::string text =
      fmt::format("{} segments can never start, {} of them wait for each other:", stuck.size(), cycle.size());
  for (std::size_t i = 0; i < std::min(cycle.size(), kNamed); ++i) text += " " + graph.name(cycle[i]) + ";";
  problems.push_back(text + (cycle.size() > kNamed ? " …" : ""));
}

}  // namespace trivium::program
