// The topology of every rank as a topology of classes: one actor for all ranks that do the same at the same time.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <unordered_map>

#include "simulator/replay/routes.h"
#include "simulator/replay/topology_builder.h"

namespace trivium::simulator {
namespace {

using Key = std::vector<std::int64_t>;

// Sums of the same parts in another order differ in their last bits: the first ten digits count.
std::int64_t digits_of(double x) {
  constexpr double kScale = 1ll << 36;
  int exponent = 0;
  const double mantissa = std::isfinite(x) ? std::frexp(x, &exponent) : 2;
  return std::llround(mantissa * kScale) * 4096 + exponent;
}

struct HashOfKey {
  std::size_t operator()(const Key& key) const {
    std::uint64_t hash = key.size();
    for (const std::int64_t part : key) {
      hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

/// Equal numbers for equal keys, counted in the order in which they come up.
class Numbers {
 public:
  std::int32_t of(const Key& key) {
    const auto known = numbers_.find(key);
    if (known != numbers_.end()) return known->second;
    return numbers_.try_emplace(key, static_cast<std::int32_t>(numbers_.size())).first->second;
  }
  std::size_t count() const { return numbers_.size(); }

 private:
  std::unordered_map<Key, std::int32_t, HashOfKey> numbers_;
};

/// What comes of each colour, added up. Reused, as there is one of it for every link in turn.
class LoadSums {
 public:
  void clear() {
    for (const std::int32_t colour : colours_) seen_[static_cast<std::size_t>(colour)] = 0;
    colours_.clear();
  }
  void add(std::int32_t colour, double amount = 0) {
    const auto at = static_cast<std::size_t>(colour);
    if (at >= seen_.size()) seen_.resize(at + 1, 0), amounts_.resize(at + 1);
    if (seen_[at] == 0) {
      seen_[at] = 1;
      amounts_[at] = 0;
      colours_.push_back(colour);
    }
    amounts_[at] += amount;
  }
  const std::vector<std::int32_t>& colours() {
    std::sort(colours_.begin(), colours_.end());
    return colours_;
  }
  double amount(std::int32_t colour) const { return amounts_[static_cast<std::size_t>(colour)]; }

 private:
  std::vector<char> seen_;
  std::vector<double> amounts_;
  std::vector<std::int32_t> colours_;
};

/// Lists of numbers by number, side by side.
class Lists {
 public:
  /// Of `pairs` (list, value), in their order.
  Lists() = default;
  Lists(std::size_t lists, const std::vector<std::pair<std::int32_t, std::int32_t>>& pairs) : first_(lists + 1, 0) {
    for (const auto& [list, value] : pairs) ++first_[static_cast<std::size_t>(list) + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    values_.resize(pairs.size());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (const auto& [list, value] : pairs) values_[next[static_cast<std::size_t>(list)]++] = value;
  }
  std::span<const std::int32_t> of(std::size_t list) const {
    return std::span(values_).subspan(first_[list], first_[list + 1] - first_[list]);
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<std::int32_t> values_;
};

/// What moves data between actors over links that may be overbooked.
struct Moves {
  FlowKind kind{};
  std::int32_t from = 0, to = 0;  ///< communicator and 0 · actors · actor and direction
  double limit = 0;
  std::int32_t first = 0, last = 0;  ///< in Partition::uses_
};

/// Refines the partition by role until all actors of a class see the same: their communicators and peers are of the
/// same classes, and so are the links that their flows cross.
class Partition {
 public:
  Partition(const ReplayTopology& every, const std::vector<Traffic>& traffic) : every_(every), traffic_(traffic) {
    actors_.reserve(every.role.size());
    for (const std::int32_t role : every.role) actors_.push_back(role);
    communicators_.assign(every.communicators.size(), 0);
    for (std::size_t i = 0; i < every.communicator.size(); ++i) {  // those of two channels never are of one class
      if (every.communicator[i] >= 0) communicators_[at(every.communicator[i])] = static_cast<int>(i) % every.channels;
    }
    links_.assign(every.capacity.size(), 0);
    look_for_flows();
    flow_colours_.assign(flows_.size(), 0);
  }

  /// Precondition: there are links.
  ReplayTopology folded() {
    while (refine()) {
    }
    return quotient();
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  std::int32_t communicator(std::int32_t actor, std::int32_t channel) const {
    return every_.communicator[at(actor * every_.channels + channel)];
  }
  std::int32_t roles() const { return static_cast<std::int32_t>(traffic_.size()); }

  /// What a role's ranks send: on which channels, to whom, in which directions.
  struct Partners {
    std::set<std::int32_t> rings, exchanges, copies;
  };

  void look_for_flows() {
    Routes routes(every_);
    std::vector<char> known(every_.communicators.size() * 2, 0);
    const auto add = [&](FlowKind kind, std::int32_t from, std::int32_t to, const FlowParty& party) {
      const Route& route = routes.of(party);
      if (route.uses.empty()) return;
      const auto first = static_cast<std::int32_t>(uses_.size());
      uses_.insert(uses_.end(), route.uses.begin(), route.uses.end());
      flows_.push_back({kind, from, to, route.limit, first, static_cast<std::int32_t>(uses_.size())});
    };
    std::vector<Partners> partners;  // by role
    for (const Traffic& role : traffic_) {
      partners.push_back({role.all(&Traffic::Stream::rings), role.all(&Traffic::Stream::exchanges),
                          role.all(&Traffic::Stream::copies)});
    }
    for (std::int32_t p = 0; p < every_.actors(); ++p) {
      const std::size_t role = at(every_.role[at(p)]);
      const Partners& mine = partners[role];
      for (const FlowKind kind : {FlowKind::kCollective, FlowKind::kExchange}) {
        const bool exchanges = kind == FlowKind::kExchange;
        for (const std::int32_t channel : exchanges ? mine.exchanges : mine.rings) {
          const std::int32_t id = communicator(p, channel);
          char& is_known = known[at(id) * 2 + (exchanges ? 1 : 0)];
          if (std::exchange(is_known, 1) == 0) add(kind, id, 0, {kind, 0, id});
        }
      }
      for (const std::int32_t receiver : traffic_[role].receivers) {
        const std::int32_t peer = every_.peer(p, receiver);
        add(FlowKind::kTransfer, p, peer, {FlowKind::kTransfer, p * kStreams, peer * kStreams});
      }
      for (const std::int32_t direction : mine.copies) {
        add(FlowKind::kCopy, p, direction, {FlowKind::kCopy, p * kStreams, direction});
      }
    }
    std::vector<std::pair<std::int32_t, std::int32_t>> crossed, taken;
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const Moves& flow = flows_[f];
      const auto id = static_cast<std::int32_t>(f);
      for (std::int32_t use = flow.first; use < flow.last; ++use) {
        crossed.emplace_back(uses_[at(use)].link, use);
        flow_of_use_.push_back(id);
      }
      if (joins_many(flow)) {
        for (const std::int32_t member : members(flow.from)) taken.emplace_back(member, id);
      } else {
        taken.emplace_back(flow.from, id);
        if (flow.kind == FlowKind::kTransfer) taken.emplace_back(flow.to, id);
      }
    }
    uses_of_links_ = Lists(every_.capacity.size(), crossed);
    flows_of_players_ = Lists(every_.role.size(), taken);
  }

  std::span<const std::int32_t> members(std::int32_t id) const {
    const Communicator& all = every_.communicators[at(id)];
    return std::span(every_.members).subspan(at(all.first), at(all.size));
  }

  static bool joins_many(const Moves& flow) {
    return flow.kind == FlowKind::kCollective || flow.kind == FlowKind::kExchange;
  }

  // Every colour is distinguished by its previous value and by its neighbours; returns whether one was split.
  bool refine() {
    const std::size_t before = classes_;
    classes_ = colour_communicators() + colour_flows() + colour_links() + colour_players();
    return classes_ > before;
  }

  std::size_t colour_communicators() {
    Numbers numbers;
    for (std::size_t id = 0; id < communicators_.size(); ++id) {
      sums_.clear();
      for (const std::int32_t member : members(static_cast<std::int32_t>(id))) sums_.add(actors_[at(member)]);
      key_.assign(sums_.colours().begin(), sums_.colours().end());
      key_.push_back(communicators_[id]);
      communicators_[id] = numbers.of(key_);
    }
    return numbers.count();
  }

  std::size_t colour_flows() {
    Numbers numbers;
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const Moves& flow = flows_[f];
      sums_.clear();
      for (std::int32_t use = flow.first; use < flow.last; ++use) sums_.add(links_[at(uses_[at(use)].link)]);
      key_.assign(sums_.colours().begin(), sums_.colours().end());
      const std::int64_t from = joins_many(flow) ? communicators_[at(flow.from)] : actors_[at(flow.from)];
      const std::int64_t to = flow.kind == FlowKind::kTransfer ? actors_[at(flow.to)] : flow.to;
      const std::int64_t kind = static_cast<std::int64_t>(flow.kind);
      key_.insert(key_.end(), {kind, from, to, digits_of(flow.limit), flow_colours_[f]});
      flow_colours_[f] = numbers.of(key_);
    }
    return numbers.count();
  }

  // What a link carries, by colour of flow.
  LoadSums& loads_of(std::size_t link) {
    sums_.clear();
    for (const std::int32_t use : uses_of_links_.of(link)) {
      sums_.add(flow_colours_[at(flow_of_use_[at(use)])], uses_[at(use)].amount);
    }
    return sums_;
  }

  // Where that is the same, links are the same.
  std::size_t colour_links() {
    Numbers numbers;
    for (std::size_t l = 0; l < links_.size(); ++l) {
      LoadSums& loads = loads_of(l);
      key_.assign({links_[l], digits_of(every_.capacity[l])});
      for (const std::int32_t colour : loads.colours()) {
        key_.push_back(colour);
        key_.push_back(digits_of(loads.amount(colour)));
      }
      links_[l] = numbers.of(key_);
    }
    return numbers.count();
  }

  std::size_t colour_players() {
    Numbers numbers;
    std::vector<std::int32_t> colours(actors_.size());
    for (std::int32_t p = 0; p < every_.actors(); ++p) {
      sums_.clear();
      for (const std::int32_t flow : flows_of_players_.of(at(p))) sums_.add(flow_colours_[at(flow)]);
      key_.assign(sums_.colours().begin(), sums_.colours().end());
      key_.push_back(static_cast<std::int64_t>(key_.size()));
      key_.push_back(actors_[at(p)]);
      for (std::int32_t channel = 0; channel < every_.channels; ++channel) {
        const std::int32_t id = communicator(p, channel);
        key_.push_back(id < 0 ? -1 : communicators_[at(id)]);
      }
      for (const std::int32_t role : traffic_[at(every_.role[at(p)])].peers) {
        key_.push_back(actors_[at(every_.peer(p, role))]);
      }
      colours[at(p)] = numbers.of(key_);
    }
    actors_ = std::move(colours);
    return numbers.count();
  }

  // An actor for every class, in the order of their roles and first ranks.
  ReplayTopology quotient() {
    ReplayTopology topology;
    std::vector<std::int32_t> first;  // by colour: the first actor
    for (std::int32_t p = 0; p < every_.actors(); ++p) {
      if (at(actors_[at(p)]) == first.size()) first.push_back(p);
    }
    std::vector<std::int32_t> order = first;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return every_.role[at(a)] < every_.role[at(b)]; });
    std::vector<std::int32_t> class_of(first.size());
    for (std::size_t c = 0; c < order.size(); ++c) {
      topology.role.push_back(every_.role[at(order[c])]);
      topology.rank.push_back(every_.rank[at(order[c])]);
      class_of[at(actors_[at(order[c])])] = static_cast<std::int32_t>(c);
    }
    for (std::int32_t& colour : actors_) colour = class_of[at(colour)];
    topology.stands_for.assign(order.size(), 0);
    for (const std::int32_t c : actors_) ++topology.stands_for[at(c)];
    topology.peers.assign(order.size() * at(roles()), -1);
    for (std::size_t c = 0; c < order.size(); ++c) {
      for (const std::int32_t role : traffic_[at(topology.role[c])].peers) {
        topology.peers[c * at(roles()) + at(role)] = actors_[at(every_.peer(order[c], role))];
      }
    }
    join(topology, order);
    give_links(topology);
    return topology;
  }

  void join(ReplayTopology& topology, const std::vector<std::int32_t>& order) {
    topology.channels = every_.channels;
    for (const std::int32_t p : order) {
      for (std::int32_t channel = 0; channel < every_.channels; ++channel) {
        const std::int32_t id = communicator(p, channel);
        topology.communicator.push_back(id < 0 ? -1 : communicators_[at(id)]);
      }
    }
    for (std::size_t id = 0; id < communicators_.size(); ++id) {
      if (at(communicators_[id]) != topology.communicators.size()) continue;  // not the first of its class
      sums_.clear();
      for (const std::int32_t member : members(static_cast<std::int32_t>(id))) sums_.add(actors_[at(member)]);
      const std::vector<std::int32_t>& classes = sums_.colours();
      topology.communicators.push_back(
          {static_cast<std::int32_t>(topology.members.size()), static_cast<std::int32_t>(classes.size())});
      topology.members.insert(topology.members.end(), classes.begin(), classes.end());
    }
  }

  // Of each class one link, and of each class of flows what all of them take of it.
  void give_links(ReplayTopology& topology) {
    std::vector<std::int32_t> first;  // by colour: the first link
    for (std::size_t l = 0; l < links_.size(); ++l) {
      if (at(links_[l]) == first.size()) first.push_back(static_cast<std::int32_t>(l));
    }
    std::vector<std::vector<sharing::Use>> uses(flows_.size());  // by colour of flow
    for (std::size_t c = 0; c < first.size(); ++c) {
      topology.capacity.push_back(every_.capacity[at(first[c])]);
      LoadSums& loads = loads_of(at(first[c]));
      for (const std::int32_t colour : loads.colours()) {
        uses[at(colour)].push_back({static_cast<std::int32_t>(c), loads.amount(colour)});
      }
    }
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const Moves& flow = flows_[f];
      const std::int32_t from = joins_many(flow) ? communicators_[at(flow.from)] : actors_[at(flow.from)];
      const std::int32_t to = flow.kind == FlowKind::kTransfer ? actors_[at(flow.to)] : flow.to;
      topology.folded.try_emplace({flow.kind, from, to}, Route{uses[at(flow_colours_[f])], flow.limit});
    }
  }

  const ReplayTopology& every_;
  const std::vector<Traffic>& traffic_;  // by role
  std::vector<Moves> flows_;
  std::vector<sharing::Use> uses_;
  std::vector<std::int32_t> flow_of_use_;
  Lists uses_of_links_, flows_of_players_;
  std::vector<std::int32_t> actors_, communicators_, flow_colours_, links_;  // their colours
  std::size_t classes_ = 0;
  LoadSums sums_;
  Key key_;
};

}  // namespace

ReplayTopology fold(const ReplayTopology& every, const std::vector<Traffic>& traffic) {
  return Partition(every, traffic).folded();
}

}  // namespace trivium::simulator
