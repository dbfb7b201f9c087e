#include "gui/model/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/readable.h"
#include "gui/model/axis.h"
#include "gui/model/command_line.h"
#include "gui/model/display_name.h"
#include "hardware_profiles/cluster_text.h"
#include "hardware_profiles/part_of_node.h"
#include "planner/advice/studies.h"
#include "program/plan/job_json.h"

namespace trivium::gui {
namespace {

constexpr std::int64_t kAround = 4;  // usual ranges reach from a fourth of what there is to four times that
constexpr int kMostDevices = 1 << 20;
constexpr std::int64_t kMostTokens = 1 << 24;

constexpr std::array kTable{
    QuestionTraits{Question::kDevices, "more or fewer devices, the same batch", "counts of devices",
                   "scale --curve strong --devices ", "devices", true},
    QuestionTraits{Question::kDevicesAndBatch, "more or fewer devices, the batch with them", "counts of devices",
                   "scale --curve weak --devices ", "devices", true},
    QuestionTraits{Question::kBatch, "another batch", "samples, LEAST:MOST", "plan --batch-range ", "samples of a step",
                   true},
    QuestionTraits{Question::kSequence, "other sequences, the same tokens a step", "tokens, LEAST:MOST",
                   "plan --sequence-range ", "tokens of a sample", true},
    QuestionTraits{Question::kDeadline, "the fewest nodes by a deadline", "time of the training", "plan --deadline ",
                   "devices", false},
    QuestionTraits{Question::kMemory, "less memory", "", "plan --pareto", "peak memory", false},
    QuestionTraits{Question::kPrice, "less money", "", "plan --pareto", "price of the training", false},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].question != static_cast<Question>(i)) return false;
  }
  return true;
}
static_assert(is_in_order(), "rows stand in the order of the enumeration");

bool counts_devices(Question question) {
  return question == Question::kDevices || question == Question::kDevicesAndBatch;
}

std::string count(std::int64_t n) { return base::integer(static_cast<double>(n)); }

std::string nodes_words(std::int64_t nodes) { return count(nodes) + (nodes == 1 ? " node" : " nodes"); }
std::string times(double factor) { return fmt::format("{:.3g}", factor); }

std::vector<int> counts_of(const std::string& text) {
  std::vector<int> counts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string one = text.substr(begin, end - begin);
    std::erase(one, ' ');
    int value = 0;
    const auto read = std::from_chars(one.data(), one.data() + one.size(), value);
    if (read.ec != std::errc() || read.ptr != one.data() + one.size() || value < 1 || value > kMostDevices) return {};
    counts.push_back(value);
    begin = end + 1;
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

/// The same job on `nodes` nodes: said as it was, where that was a name. Nodes without adapters stay alone.
Scenario on_nodes(const Scenario& scenario, int nodes) {
  const hardware::NodeGroup& group = scenario.cluster.groups.front();
  if (group.count == nodes || group.node.adapters == 0) return scenario;
  if (scenario.file.cluster.is_string()) {
    const auto name = scenario.file.cluster.get<std::string>();
    if (name.rfind(':') != std::string::npos) {
      std::vector<hardware::ClusterTerm> terms = hardware::parse_cluster_text(name);
      terms.front().count = nodes;
      return with_cluster(scenario, hardware::text_of(terms));
    }
  }
  hardware::Cluster cluster = scenario.cluster;
  cluster.groups.front().count = nodes;
  cluster.name = hardware::cluster_text(group.node, nodes);
  return with_cluster(scenario, std::move(cluster));
}

class Study {
 public:
  Study(const WhatIfRequest& request, const planner::Effort& effort)
      : request_(request), effort_(effort), search_(search_request(request.scenario, 1)) {}

  WhatIfAnswer answer() {
    WhatIfAnswer answer{request_, {}, {}, true};
    switch (request_.question) {
      case Question::kDevices:
      case Question::kDevicesAndBatch:
        devices();
        break;
      case Question::kBatch:
        batches();
        break;
      case Question::kSequence:
        sequences();
        break;
      case Question::kDeadline:
        deadline();
        break;
      case Question::kMemory:
        memory();
        break;
      case Question::kPrice:
        price();
        break;
    }
    answer.whole = !effort_.stop.stop_requested();
    answer.sentence = std::move(sentence_);
    answer.rows = std::move(rows_);
    return answer;
  }

 private:
  WhatIfRow& add(std::string change, double at, Scenario scenario, std::optional<planner::Candidate> best) {
    WhatIfRow row{std::move(change), at, std::move(scenario), std::move(best), {}, 0, {}};
    if (row.best) {
      row.scenario.file.job.plan = row.best->plan;
      row.training = simulator::whole_training(row.scenario.file.job, row.scenario.cluster, row.best->simulation);
    } else {
      row.refused = "no plan fits";
    }
    rows_.push_back(std::move(row));
    return rows_.back();
  }

  /// First and last row that have a plan; false: fewer than two do.
  bool ends(const WhatIfRow*& first, const WhatIfRow*& last) const {
    const auto has_plan = [](const WhatIfRow& row) { return row.best.has_value(); };
    const auto begin = std::find_if(rows_.begin(), rows_.end(), has_plan);
    const auto end = std::find_if(rows_.rbegin(), rows_.rend(), has_plan);
    if (begin == rows_.end() || &*begin == &*end) return false;
    first = &*begin, last = &*end;
    return true;
  }

  const WhatIfRow* fastest() const {
    const WhatIfRow* best = nullptr;
    for (const WhatIfRow& row : rows_) {
      if (row.best && (!best || row.best->simulation.tokens_per_s > best->best->simulation.tokens_per_s)) best = &row;
    }
    return best;
  }

  void devices() {
    const bool weak = request_.question == Question::kDevicesAndBatch;
    const std::vector<int> counts = counts_of(request_.value);
    planner::SearchRequest search = search_;
    if (weak) {  // the batch of the request is that of the largest count there
      search.job.training.global_batch =
          search.job.training.global_batch * counts.back() / request_.scenario.cluster.devices();
    }
    for (planner::ScalePoint& point : planner::scaling(search, counts, weak, effort_)) {
      Scenario scenario = on_nodes(request_.scenario, point.nodes);
      scenario.file.job.training.global_batch = point.global_batch;
      WhatIfRow& row = add(count(point.ranks) + (point.ranks == 1 ? " device" : " devices"), point.ranks,
                           std::move(scenario), std::move(point.best));
      row.efficiency = point.efficiency;
      if (!row.best) row.refused = display_name(point.refused);
    }
    const WhatIfRow *first = nullptr, *last = nullptr;
    if (!ends(first, last)) return;
    sentence_ = fmt::format("From {} to {} an iteration goes from {} to {}: each device does {} of what it did.",
                            first->change, last->change, seconds_words(first->best->simulation.iteration_s),
                            seconds_words(last->best->simulation.iteration_s), base::percent(last->efficiency));
  }

  void batches() {
    const planner::Doublings range = planner::parse_doublings(request_.value, "samples").value_or_throw();
    for (planner::BatchPoint& point : planner::batches(search_, range, 0, effort_)) {
      Scenario scenario = request_.scenario;
      scenario.file.job.training.global_batch = point.global_batch;
      add("batch " + count(point.global_batch), static_cast<double>(point.global_batch), std::move(scenario),
          std::move(point.best));
    }
    if (const WhatIfRow* first = nullptr, *last = nullptr; ends(first, last)) {
      sentence_ = fmt::format(
          "From {} to {} the training goes from {} to {} tokens a second. A larger batch may need more tokens to "
          "learn as much; that is not simulated.",
          first->change, last->change, base::integer(first->best->simulation.tokens_per_s),
          base::integer(last->best->simulation.tokens_per_s));
    }
  }

  void sequences() {
    const planner::Doublings range = planner::parse_doublings(request_.value, "tokens").value_or_throw();
    for (planner::SequencePoint& point : planner::sequences(search_, range, effort_)) {
      Scenario scenario = request_.scenario;
      scenario.file.job.training.sequence = point.sequence;
      scenario.file.job.training.global_batch = point.global_batch;
      add(fmt::format("{} tokens, batch {}", count(point.sequence), count(point.global_batch)),
          static_cast<double>(point.sequence), std::move(scenario), std::move(point.best));
    }
    if (const WhatIfRow* first = nullptr, *last = nullptr; ends(first, last)) {
      sentence_ =
          fmt::format("A token of {} takes {} times as long as one of {}.", last->change,
                      times(first->best->simulation.tokens_per_s / last->best->simulation.tokens_per_s), first->change);
    }
  }

  void deadline() {
    const double limit_s = base::parse_seconds(request_.value).value_or_throw().value();
    planner::DeadlineAnswer found = planner::smallest_cluster(search_, limit_s, effort_);
    if (!found.best) {
      sentence_ =
          fmt::format("No cluster of up to {} trains within {}.", nodes_words(found.tried), base::duration(limit_s));
      return;
    }
    Scenario scenario = on_nodes(request_.scenario, found.nodes);
    const int devices = scenario.cluster.devices();
    const WhatIfRow& row = add(nodes_words(found.nodes), devices, std::move(scenario), std::move(found.best));
    sentence_ = fmt::format("With {} the training takes {}, within {}.", row.change, base::duration(found.seconds),
                            base::duration(limit_s));
  }

  void memory() {
    for (planner::Candidate& one : planner::memory_front(search_, effort_)) {
      const std::int64_t peak = one.simulation.peak_memory_bytes;
      add(base::size(peak), static_cast<double>(peak), request_.scenario, std::move(one));
    }
    if (const WhatIfRow* first = nullptr, *last = nullptr; ends(first, last)) {
      sentence_ =
          fmt::format("The smallest plan takes {} in place of {} and {} times as long.", last->change, first->change,
                      times(last->best->simulation.iteration_s / first->best->simulation.iteration_s));
    }
  }

  void price() {
    for (planner::CostPoint& point : planner::cost_front(search_, effort_)) {
      add(nodes_words(point.nodes), point.cost_usd, on_nodes(request_.scenario, point.nodes), std::move(point.best));
    }
    if (const WhatIfRow* first = nullptr, *last = nullptr; ends(first, last)) {
      sentence_ = fmt::format("With {} the training takes {} times as long as with {}, for {} of the price.",
                              last->change, times(last->training->seconds / first->training->seconds), first->change,
                              base::percent(last->at / first->at));
    } else if (rows_.size() == 1) {
      sentence_ = fmt::format("Fewer nodes than {} are no cheaper.", rows_.front().change);
    }
  }

  const WhatIfRequest& request_;
  const planner::Effort& effort_;
  planner::SearchRequest search_;
  std::vector<WhatIfRow> rows_;
  std::string sentence_;
};

std::string doublings_around(std::int64_t middle, std::int64_t most) {
  const std::int64_t least = middle % kAround == 0 ? middle / kAround : middle;
  return fmt::format("{}:{}", least, std::max(least, std::min(middle * kAround, most)));
}

}  // namespace

std::span<const QuestionTraits> question_table() { return kTable; }

const QuestionTraits& traits_of(Question question) { return kTable[static_cast<std::size_t>(question)]; }

std::string usual_value(Question question, const Scenario& scenario) {
  const program::Training& training = scenario.file.job.training;
  const models::Model& model = scenario.file.job.model;
  if (counts_devices(question)) {
    std::string text;
    const std::int64_t devices = scenario.cluster.devices(), node = scenario.cluster.groups.front().node.devices;
    for (std::int64_t n = devices / kAround; n <= devices * kAround; n *= 2) {
      if (n == 0) n = 1;
      if (n % node != 0 && n != devices && n > node) continue;
      if (n <= kMostDevices) text += (text.empty() ? "" : ",") + std::to_string(n);
    }
    return text.empty() ? std::to_string(devices) : text;
  }
  if (question == Question::kBatch) return doublings_around(training.global_batch, kMostTokens);
  if (question == Question::kSequence) {
    const bool learned = model.positions == models::Positions::kLearned;
    return doublings_around(training.sequence, learned ? model.max_sequence : kMostTokens);
  }
  return question == Question::kDeadline ? "30 d" : "";
}

bool needs_like_nodes(Question question) {
  return counts_devices(question) || question == Question::kDeadline || question == Question::kPrice;
}

std::string why_not_asked(const WhatIfRequest& request) {
  const Scenario& scenario = request.scenario;
  if (needs_like_nodes(request.question) && !scenario.cluster.homogeneous())
    return "This needs a cluster of one kind of node.";
  const bool whole = request.question == Question::kDeadline || request.question == Question::kPrice;
  if (whole && scenario.file.job.training.total_tokens == 0) {
    return "Say in the job how many tokens the training has.";
  }
  if (request.question == Question::kPrice && scenario.cluster.groups.front().node.price.value() <= 0) {
    return "The cluster's profile has no price of a node: edit it in the view of the cluster.";
  }
  if (counts_devices(request.question)) {
    const std::vector<int> counts = counts_of(request.value);
    if (counts.empty()) return "Write counts of devices with commas, like 64,128,256.";
    const std::int64_t batch = scenario.file.job.training.global_batch;
    if (request.question == Question::kDevicesAndBatch && batch * counts.back() % scenario.cluster.devices() != 0) {
      return fmt::format("A batch of {} does not grow to a whole one on {} devices.", count(batch),
                         count(counts.back()));
    }
  }
  if (request.question == Question::kBatch || request.question == Question::kSequence) {
    const auto range =
        planner::parse_doublings(request.value, request.question == Question::kBatch ? "samples" : "tokens");
    if (!range) return "Please " + range.error().message + ".";
  }
  if (request.question == Question::kDeadline) {
    const auto limit = base::parse_seconds(request.value);
    if (!limit || limit.value().value() <= 0) return "Write a time, like 30 d or 12 h.";
  }
  return "";
}

std::string command_line(const WhatIfRequest& request) {
  const QuestionTraits& traits = traits_of(request.question);
  const std::string_view option = traits.option;
  const std::size_t space = option.find(' ');
  std::string words(option.substr(space));
  if (*traits.takes != '\0') words += shell_quoted(request.value);
  return search_command(request.scenario, option.substr(0, space)) + words;
}

WhatIfAnswer answer_of(const WhatIfRequest& request, const std::stop_token& stop,
                       const std::function<void(const std::string&)>& says) {
  const planner::Effort effort{0, stop, says};
  return Study(request, effort).answer();
}

std::string what_if_csv(const WhatIfAnswer& answer) {
  std::string text =
      "change,devices,global_batch,sequence,iteration_s,iteration_low_s,iteration_high_s,tokens_per_s,mfu,"
      "peak_memory_bytes,training_s,cost_usd,plan\n";
  for (const WhatIfRow& row : answer.rows) {
    const program::Training& training = row.scenario.file.job.training;
    text +=
        fmt::format("\"{}\",{},{},{},", row.change, row.best ? row.best->plan.ranks() : row.scenario.cluster.devices(),
                    training.global_batch, training.sequence);
    if (row.best) {
      const simulator::Simulation& s = row.best->simulation;
      text += fmt::format("{},{},{},{},{},{},{},{},{}\n", s.iteration_s, s.certainty.iteration_s.low,
                          s.certainty.iteration_s.high, s.tokens_per_s, s.mfu, s.peak_memory_bytes,
                          row.training ? fmt::format("{}", row.training->seconds) : "",
                          row.training && row.training->cost_usd ? fmt::format("{}", *row.training->cost_usd) : "",
                          program::summary(row.best->plan));
    } else {
      text += ",,,,,,,,\n";
    }
  }
  return text;
}

}  // namespace trivium::gui
