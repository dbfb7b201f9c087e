#include "planner/relax.h"

#include <fmt/format.h>

#include <algorithm>

#include "edge/error.h"
#include "planner/plan_fields.h"
#include "program/job_json.h"

namespace trivium::planner {
namespace {

constexpr int kMostNodesFactor = 64;
constexpr double kAnyPlan = 0.5;  // of the iteration: what counts is that a plan fits

class Relaxer {
 public:
  Relaxer(const SearchRequest& request, std::size_t most, const Effort& effort)
      : request_(request), most_(most), effort_(effort) {}

  std::vector<Relaxation> relax() {
    bounds();
    fixed_fields();
    features();
    batch();
    nodes();
    return std::move(found_);
  }

 private:
  void say(const std::string& words) const {
    if (effort_.says) effort_.says(words);
  }

  std::optional<Candidate> on(int nodes) const {
    say(fmt::format("on {} nodes", nodes));
    return any_plan(on_nodes(request_, nodes));
  }

  // One that is within kAnyPlan of the fastest ends the search.
  std::optional<Candidate> any_plan(SearchRequest request) const {
    request.gap = std::max(request.gap, kAnyPlan);
    return best_plan(request, {effort_.threads, effort_.stop});
  }

  bool enough() const { return found_.size() >= most_ || effort_.stop.stop_requested(); }

  bool look(const SearchRequest& other, const std::string& words, const std::string& field = "") {
    if (enough()) return false;
    say(words);
    auto best = any_plan(other);
    if (!best) return false;
    const std::string value = field.empty() ? "" : fmt::format(": {}={}", field, text_of(best->plan, field));
    found_.push_back({words + value, std::move(*best)});
    return true;
  }

  void bounds() {
    for (std::size_t i = 0; i < request_.constraints.size(); ++i) {
      SearchRequest other = request_;
      other.constraints.erase(other.constraints.begin() + static_cast<std::ptrdiff_t>(i));
      look(other, request_.constraints[i].lifted());
    }
  }

  void fixed_fields() {
    for (const std::string& field : request_.fixed) {
      SearchRequest other = request_;
      other.fixed.erase(field);
      // What a search does not open goes back to its default.
      const std::string otherwise = text_of(program::Plan{}, field);
      if (!otherwise.empty()) program::set_field(other.job.plan, other.job.training, field, otherwise);
      look(other, fmt::format("without {}={}", field, text_of(request_.job.plan, field)), field);
    }
  }

  void features() {
    const std::pair<const char*, const char*> features[] = {
        {"attention", "flash"}, {"precision", "bf16"},    {"precision", "fp16"},
        {"precision", "fp32"},  {"zero_stage", "2"},      {"zero_stage", "3"},
        {"context", "2"},       {"attention", "unfused"}, {"offload.optimizer", "host"}};
    for (const auto& [field, value] : features) {
      // A type that the devices lack is in the way even where it was asked for.
      const bool is_kept = request_.fixed.contains(field) && field != std::string_view("precision");
      if (is_kept || text_of(request_.job.plan, field) == value) continue;
      SearchRequest other = request_;
      program::set_field(other.job.plan, other.job.training, field, value);
      other.fixed.insert(field);
      look(other, fmt::format("with {}={}", field, value));
    }
  }

  // The next batch that the fixed part of the split divides.
  void batch() {
    const program::Plan& plan = request_.job.plan;
    std::int64_t step = 1;
    if (request_.fixed.contains("data")) step *= plan.data;
    if (request_.fixed.contains("micro_batch")) step *= plan.micro_batch;
    const std::int64_t batch = request_.job.training.global_batch;
    if (step <= 1 || batch % step == 0) return;
    SearchRequest other = request_;
    other.job.training.global_batch = (batch / step + 1) * step;
    look(other, fmt::format("with a global batch of {}", other.job.training.global_batch));
  }

  void nodes() {
    const hardware::Node& node = request_.cluster.groups.front().node;
    if (enough() || !request_.cluster.homogeneous()) return;
    if (request_.ranks > 0 && request_.ranks < request_.cluster.devices()) {
      SearchRequest all = request_;
      all.ranks = 0;
      if (look(all, fmt::format("on all {} devices", request_.cluster.devices()))) return;
    }
    if (node.adapters == 0) return;
    const int here = request_.cluster.nodes();
    int low = here, high = here;
    std::optional<Candidate> best;
    while (!best && high < here * kMostNodesFactor && !effort_.stop.stop_requested()) {
      low = high;
      high *= 2;
      best = on(high);
    }
    if (!best) return;
    while (high - low > 1 && !effort_.stop.stop_requested()) {
      const int middle = low + (high - low) / 2;
      auto fewer = on(middle);
      if (!fewer && effort_.stop.stop_requested()) break;
      (fewer ? high : low) = middle;
      if (fewer) best = std::move(fewer);
    }
    found_.push_back({fmt::format("on {} nodes", high), std::move(*best)});
  }

  const SearchRequest& request_;
  std::size_t most_;
  Effort effort_;
  std::vector<Relaxation> found_;
};

}  // namespace

std::vector<Relaxation> relaxations(const SearchRequest& request, std::size_t most, const Effort& effort) {
  return Relaxer(request, most, effort).relax();
}

}  // namespace trivium::planner
