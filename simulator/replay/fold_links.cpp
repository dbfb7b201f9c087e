// Links and flows of all ranks as classes of links and flows: one rank of every stage then stands for all.
#include <algorithm>
#include <cmath>
#include <set>

#include "simulator/engine/routes.h"
#include "simulator/replay/world_builder.h"

namespace trivium::simulator {
namespace {

constexpr double kSame = 1e-12;  // sums of the same parts in another order

bool same(double a, double b) { return a == b || std::abs(a - b) <= kSame * std::max(std::abs(a), std::abs(b)); }

class LinkFolder {
 public:
  LinkFolder(const World& folded, const World& every, const std::vector<Script>& scripts)
      : folded_(folded), every_(every), scripts_(scripts), routes_(every), load_(every.capacity.size(), 0) {
    players_.resize(scripts.size());
    for (std::int32_t p = 0; p < every.players(); ++p) {
      players_[static_cast<std::size_t>(every.role[static_cast<std::size_t>(p)])].push_back(p);
    }
  }

  bool fold(World& result) {
    if (every_.capacity.empty()) return true;
    classify();
    for (std::int32_t role = 0; role < static_cast<std::int32_t>(scripts_.size()); ++role) {
      const Script& script = scripts_[static_cast<std::size_t>(role)];
      for (const auto& stream : script.streams) {
        for (const Instruction& in : stream) {
          const Step& step = script.steps[static_cast<std::size_t>(in.first_step)];
          if (in.joint != Joint::kNone && step.wire > 0 && !fold_flows(role, in, step)) return false;
        }
      }
    }
    result.capacity = std::move(capacity_);
    result.folded = std::move(routes_of_classes_);
    return true;
  }

 private:
  // Links are alike where they are of one sort and size and the same stages sit at them.
  void classify() {
    std::vector<std::vector<std::int32_t>> roles(every_.capacity.size());  // at each link
    std::vector<int> sorts(every_.capacity.size(), -1);
    for (std::int32_t p = 0; p < every_.players(); ++p) {
      const Seat& seat = every_.seats[static_cast<std::size_t>(p)];
      int sort = 0;
      for (const std::int32_t link : {seat.port, seat.bus, seat.adapters, seat.uplink}) {
        for (std::int32_t direction = 0; link >= 0 && direction < 2; ++direction) {
          const auto at = static_cast<std::size_t>(link + direction);
          roles[at].push_back(every_.role[static_cast<std::size_t>(p)]);
          if (sorts[at] < 0) sorts[at] = 2 * sort + direction;
        }
        ++sort;
      }
      for (const SiteJoint& joint : every_.between) {
        if (joint.a != seat.site && joint.b != seat.site) continue;
        for (std::int32_t direction = 0; direction < 2; ++direction) {
          const auto at = static_cast<std::size_t>(joint.link + direction);
          roles[at].push_back(every_.role[static_cast<std::size_t>(p)]);
          if (sorts[at] < 0) sorts[at] = 2 * sort + direction;
        }
      }
    }
    std::map<std::tuple<int, double, std::vector<std::int32_t>>, std::int32_t> classes;
    for (std::size_t link = 0; link < roles.size(); ++link) {
      std::sort(roles[link].begin(), roles[link].end());
      const auto [at, fresh] = classes.try_emplace({sorts[link], every_.capacity[link], std::move(roles[link])},
                                                   static_cast<std::int32_t>(capacity_.size()));
      if (fresh) {
        capacity_.push_back(every_.capacity[link]);
        links_.emplace_back();
      }
      class_of_.push_back(at->second);
      links_[static_cast<std::size_t>(at->second)].push_back(link);
    }
  }

  // All flows that an instruction of a role stands for, once.
  bool fold_flows(std::int32_t role, const Instruction& in, const Step& step) {
    std::vector<FlowParty> parties;
    std::tuple<FlowKind, std::int32_t, std::int32_t> key;
    const auto& players = players_[static_cast<std::size_t>(role)];
    if (in.joint == Joint::kCollective) {
      const FlowKind kind = step.exchange ? FlowKind::kExchange : FlowKind::kCollective;
      key = {kind, communicator(folded_, role, in.partner), 0};
      if (routes_of_classes_.contains(key)) return true;
      std::set<std::int32_t> ids;
      for (const std::int32_t p : players) ids.insert(communicator(every_, p, in.partner));
      for (const std::int32_t id : ids) parties.push_back({kind, 0, id});
    } else if (in.joint == Joint::kTransfer) {
      if (!step.sends) return true;
      key = {FlowKind::kTransfer, role, in.peer_role};
      if (routes_of_classes_.contains(key)) return true;
      for (const std::int32_t p : players) {
        const std::int32_t peer = p + (in.peer_role - role) * every_.role_stride;
        parties.push_back({FlowKind::kTransfer, p * kStreams, peer * kStreams});
      }
    } else {
      key = {FlowKind::kCopy, role, in.partner};
      if (routes_of_classes_.contains(key)) return true;
      for (const std::int32_t p : players) parties.push_back({FlowKind::kCopy, p * kStreams, in.partner});
    }
    return fold_parties(parties, routes_of_classes_[key]);
  }

  bool fold_parties(const std::vector<FlowParty>& parties, Route& together) {
    std::set<std::int32_t> crossed;  // classes
    bool first = true;
    for (const FlowParty& party : parties) {
      const Route& route = routes_.of(party);
      std::set<std::int32_t> classes;
      for (const sharing::Use& use : route.uses) {
        load_[static_cast<std::size_t>(use.link)] += use.amount;
        classes.insert(class_of_[static_cast<std::size_t>(use.link)]);
      }
      if (first) crossed = classes, together.limit = route.limit;
      if (classes != crossed || !same(route.limit, together.limit)) return false;
      first = false;
    }
    for (const std::int32_t c : crossed) {
      const auto& links = links_[static_cast<std::size_t>(c)];
      const double amount = load_[links.front()];
      for (const std::size_t link : links) {
        if (!same(load_[link], amount)) return false;
        load_[link] = 0;
      }
      together.uses.push_back({c, amount});
    }
    return true;
  }

  static std::int32_t communicator(const World& world, std::int32_t player, std::int32_t channel) {
    return world.communicator[static_cast<std::size_t>(player * world.channels + channel)];
  }

  const World& folded_;
  const World& every_;
  const std::vector<Script>& scripts_;
  Routes routes_;
  std::vector<std::vector<std::int32_t>> players_;  // of every world, by role
  std::vector<std::int32_t> class_of_;              // by link
  std::vector<std::vector<std::size_t>> links_;     // by class
  std::vector<double> capacity_;                    // by class
  std::vector<double> load_;                        // by link: of the flows being folded
  std::map<std::tuple<FlowKind, std::int32_t, std::int32_t>, Route> routes_of_classes_;
};

}  // namespace

bool fold_links(World& folded, const World& every, const std::vector<Script>& scripts) {
  return LinkFolder(folded, every, scripts).fold(folded);
}

}  // namespace trivium::simulator
