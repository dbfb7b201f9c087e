#include "planner/advice/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "base/readable.h"
#include "base/seconds.h"
#include "planner/advice/neighbours.h"
#include "planner/advice/wording.h"
#include "planner/bound/evaluate.h"
#include "program/schedules/schedule.h"
#include "simulator/iteration/mfu_text.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::planner {
namespace {

using base::kSecondsPerPs;
using base::percent;
using base::seconds;
using simulator::Part;
using simulator::StageMemory;

constexpr double kWorthSaying = 0.01;     // of the iteration
constexpr double kWorthChanging = 0.005;  // of the iteration: less is within what runs of one plan differ by
constexpr std::size_t kLossesSaid = 3;

// Of a tiny job all would be 0.0 GiB.
std::string gib(std::int64_t bytes) {
  return static_cast<double>(bytes) < base::kGiB ? base::size(bytes)
                                                 : fmt::format("{:.1f} GiB", static_cast<double>(bytes) / base::kGiB);
}

class Explainer {
 public:
  Explainer(const program::Program& program, const simulator::Simulation& simulation, const hardware::Cluster& cluster,
            std::vector<Tried> tried)
      : program_(program),
        plan_(program.job.plan),
        simulation_(simulation),
        cluster_(cluster),
        tried_(std::move(tried)) {}

  std::vector<std::string> explain() {
    // Neighbours are compared with this plan undisturbed, as they are simulated.
    const auto here = iteration(program_.job, cluster_, false);
    here_ps_ = std::holds_alternative<std::int64_t>(here) ? std::get<std::int64_t>(here) : simulation_.iteration_ps;
    say_parts();
    for (const Part part : losses()) say_loss(part);
    say_balance();
    say_memory();
    say_first_change();
    return std::move(lines_);
  }

 private:
  double share(Part part) const {
    return simulation_.breakdown_s[static_cast<std::size_t>(part)] / simulation_.iteration_s;
  }

  std::vector<Part> parts_by_share() const {
    std::vector<Part> parts;
    for (int p = 0; p < simulator::kParts; ++p) {
      if (share(static_cast<Part>(p)) >= kWorthSaying) parts.push_back(static_cast<Part>(p));
    }
    std::stable_sort(parts.begin(), parts.end(), [&](Part a, Part b) { return share(a) > share(b); });
    return parts;
  }

  std::vector<Part> losses() const {
    std::vector<Part> parts = parts_by_share();
    std::erase_if(parts, [](Part part) { return part == Part::kCompute || part == Part::kOther; });
    if (parts.size() > kLossesSaid) parts.resize(kLossesSaid);
    return parts;
  }

  void say_parts() {
    std::string text = fmt::format("An iteration takes {} on {} device{} at {} MFU{}: ", seconds(simulation_.iteration_s),
                                   program_.mesh.size(), program_.mesh.size() == 1 ? "" : "s",
                                   percent(simulation_.mfu),
                    simulator::mfu_peak_text(plan_));
    const char* comma = "";
    for (const Part part : parts_by_share()) {
      text += fmt::format("{}{} {}", comma, words_of(part, program_.mesh), percent(share(part)));
      comma = ", ";
    }
    lines_.push_back(text + ".");
  }

  void say_loss(Part part) {
    std::string text =
        fmt::format("{} costs {} ({})", words_of(part, program_.mesh),
                    seconds(simulation_.breakdown_s[static_cast<std::size_t>(part)]), percent(share(part)));
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    if (part == Part::kBubble && plan_.pipeline > 1) {
      const program::StagePlace first = stage_place(plan_, 0);
      text += "; " + program::traits_of(plan_.schedule).bubble(first, program_.micro_batches);
    }
    if (part == Part::kExposedTensor) text += where(program::Group::kTensor, "its groups of {} ranks");
    if (part == Part::kExposedData && program_.mesh.group_size(data_group()) > 1) {
      text += where(data_group(), "its groups of {} ranks");
    }
    std::string outcomes;
    for (const Tried& tried : tried_) {
      if (tried.neighbour.against != part) continue;
      outcomes += fmt::format("{}{}: {}", outcomes.empty() ? "" : "; ", tried.neighbour.change, outcome(tried));
    }
    lines_.push_back(text + (outcomes.empty() ? "." : ". Tried against it: " + outcomes + "."));
  }

  program::Group data_group() const { return plan_.shard_group > 0 ? program::Group::kShard : program::Group::kData; }

  std::string where(program::Group group, const char* what) const {
    std::set<int> nodes;
    const simulator::PlacedCluster placed(plan_, cluster_);
    const std::vector<int> members = program_.mesh.members(group, 0);
    for (const int member : members) nodes.insert(placed.get().node_index(member));
    return fmt::format("; {} lie on {} node{}", fmt::format(fmt::runtime(what), members.size()), nodes.size(),
                       nodes.size() == 1 ? "" : "s");
  }

  std::string outcome(const Tried& tried) const {
    if (!tried.fits()) return fmt::format("refused, {}", std::get<program::Infeasible>(tried.outcome).reason);
    const std::string narrow =
        tried.narrow ? fmt::format(", but fits with a probability below {:.0f} %", 100 * kFitProbability) : "";
    return fmt::format("{} ({:+.1f} %{})", time_text(tried.iteration_ps()), 100 * gain(tried), narrow);
  }

  /// Change of the iteration, as a share of this plan's: negative is faster.
  double gain(const Tried& tried) const {
    return static_cast<double>(tried.iteration_ps() - here_ps_) / static_cast<double>(here_ps_);
  }

  void say_balance() {
    if (plan_.pipeline == 1) return;
    std::vector<double> busy;
    for (const simulator::StageResult& stage : simulation_.stages) {
      busy.push_back(static_cast<double>(stage.breakdown[static_cast<std::size_t>(Part::kCompute)] +
                                         stage.breakdown[static_cast<std::size_t>(Part::kRecompute)]));
    }
    const double mean = std::accumulate(busy.begin(), busy.end(), 0.0) / static_cast<double>(busy.size());
    const auto most = std::max_element(busy.begin(), busy.end());
    if (*most < mean * (1 + kWorthSaying)) return;
    const std::string name = simulation_.stages[static_cast<std::size_t>(most - busy.begin())].memory.name();
    lines_.push_back(fmt::format("S{} computes longest: {} of an iteration, {} more than the mean of the stages.",
                                 name.substr(1), seconds(*most * kSecondsPerPs), percent(*most / mean - 1)));
  }

  void say_memory() {
    const auto fullest =
        std::max_element(simulation_.stages.begin(), simulation_.stages.end(),
                         [](const auto& a, const auto& b) { return a.memory.total() < b.memory.total(); });
    const StageMemory& m = fullest->memory;
    const std::array<std::pair<const char*, std::int64_t>, 6> parts{{{"parameters", m.parameters},
                                                                     {"gradients", m.gradients},
                                                                     {"optimizer state", m.optimizer},
                                                                     {"activations", m.activations},
                                                                     {"workspace", m.workspace},
                                                                     {"what the device reserves", m.reserved}}};
    const auto biggest =
        std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::int64_t left = m.capacity - m.total();
    lines_.push_back(fmt::format("S{} is fullest: {} of {}, {} {} ({}); {} {}.", m.name().substr(1), gib(m.total()),
                                 gib(m.capacity), 2 * biggest->second > m.total() ? "most of it" : "the largest part",
                                 biggest->first, gib(biggest->second), gib(std::abs(left)),
                                 left < 0 ? "are missing" : "are left"));
  }

  void say_first_change() {
    const Tried* best = nullptr;
    std::size_t fit = 0;
    bool narrow_is_faster = false;
    for (const Tried& tried : tried_) {
      if (!tried.fits()) continue;
      ++fit;
      narrow_is_faster |= tried.narrow && gain(tried) <= -kWorthChanging;
      if (best == nullptr ||
          std::make_pair(tried.narrow, tried.iteration_ps()) < std::make_pair(best->narrow, best->iteration_ps())) {
        best = &tried;  // of those that a search would take
      }
    }
    const std::string count = fmt::format("{} plans one change away, {} of which fit", tried_.size(), fit);
    if (best == nullptr) {
      lines_.push_back(fmt::format("Tried {}.", count));
    } else if (gain(*best) > -kWorthChanging) {
      const std::string sure =
          narrow_is_faster ? fmt::format(" that fits with a probability of {:.0f} %", 100 * kFitProbability) : "";
      const std::string by =
          best->iteration_ps() < here_ps_ ? fmt::format(" by {:.1f} % or more", 100 * kWorthChanging) : "";
      lines_.push_back(fmt::format("Tried {}: none{} is faster{}; the nearest is {}, {}.", count, sure, by,
                                   best->neighbour.change, outcome(*best)));
    } else {
      lines_.push_back(
          fmt::format("Change first: {}: {}, the fastest of {}.", best->neighbour.change, outcome(*best), count));
    }
  }

  const program::Program& program_;
  const program::Plan& plan_;
  const simulator::Simulation& simulation_;
  const hardware::Cluster& cluster_;
  std::int64_t here_ps_ = 0;
  std::vector<Tried> tried_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> explain(const program::Program& program, const simulator::Simulation& simulation,
                                 const hardware::Cluster& cluster) {
  return explain(program, simulation, cluster, try_neighbours(program.job, cluster));
}

std::vector<std::string> explain(const program::Program& program, const simulator::Simulation& simulation,
                                 const hardware::Cluster& cluster, std::vector<Tried> tried) {
  return Explainer(program, simulation, cluster, std::move(tried)).explain();
}

}  // namespace trivium::planner
