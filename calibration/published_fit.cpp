#include "calibration/published_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "calibration/published_runs.h"
#include "calibration/statistics.h"
#include "edge/error.h"

namespace trivium::calibration {
namespace {

constexpr double kSourceWeight = 2;  // times the root of its rows

struct Row {
  const PublishedRun* run = nullptr;
  std::size_t configuration = 0;
  double weight = 0;
};

/// Runs of equal configuration differ in nothing that is simulated: each is prepared and timed once.
struct Configuration {
  PreparedRun prepared;
  hardware::Node node;
};

class Fitter {
 public:
  Fitter(const std::vector<PublishedRun>& runs, const PublishedFitOptions& options) : options_(options) {
    std::map<std::string, std::size_t> known;
    std::map<std::string, double> count;
    for (const PublishedRun& run : runs) {
      if (options_.stop()) break;
      if (run.tier == "C") continue;
      const auto [at, fresh] = known.try_emplace(run.sweep + " | " + run.plan, configurations_.size());
      if (fresh) {
        configurations_.push_back({PreparedRun(run), run.cluster.groups.front().node});
        if (configurations_.size() % 100 == 0)
          options_.progress(fmt::format("{} plans lowered", configurations_.size()));
      }
      if (!configurations_[at->second].prepared.reason().empty()) {
        result_.unsupported.push_back(run.case_name + ": " + configurations_[at->second].prepared.reason());
        continue;
      }
      rows_.push_back({&run, at->second, 0});
      ++count[run.source];
      nodes_.try_emplace(run.hardware, run.cluster.groups.front().node);
    }
    if (rows_.empty()) throw edge::Failure(edge::ErrorKind::kInput, "no run of tier A or B can be replayed");
    for (Row& row : rows_) row.weight = kSourceWeight * std::sqrt(count[row.run->source]) / count[row.run->source];
    seconds_.resize(configurations_.size());
    std::vector<hardware::Node> nodes;
    for (const auto& [name, node] : nodes_) nodes.push_back(node);
    result_.constants = fit_constants(nodes);
    result_.rows = static_cast<int>(rows_.size());
  }

  PublishedFit fit() {
    std::vector<double> start;
    for (const FitConstant& constant : result_.constants) {
      priors_.push_back(constant.prior);
      start.push_back(constant.prior.prior);
    }
    RobustOptions robust;
    robust.stop = options_.stop;
    robust.report = [&](int step, double cost) {
      options_.progress(fmt::format("step {}: cost {:.1f} over {} runs", step, cost, rows_.size()));
    };
    const auto errors = [&](const std::vector<double>& values, int touched, Eigen::VectorXd& out) {
      evaluate(values, touched, out);
    };
    result_.fit = robust_fit(priors_, start, weights(""), errors, robust);
    result_.interrupted = options_.stop();
    compare_sources(robust.noise);
    return std::move(result_);
  }

 private:
  std::vector<double> weights(const std::string& without) const {
    std::vector<double> w;
    for (const Row& row : rows_) w.push_back(row.run->source == without ? 0 : row.weight);
    return w;
  }

  hardware::Node with(hardware::Node node, const std::vector<double>& values) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const FitConstant& constant = result_.constants[i];
      if (constant.profile.empty() || constant.profile == node.name) constant.set(node, values[i]);
    }
    return node;
  }

  // Differences of one machine's constant leave the runs of others as they were.
  void evaluate(const std::vector<double>& values, int touched, Eigen::VectorXd& out) {
    const std::string profile = touched < 0 ? "" : result_.constants[static_cast<std::size_t>(touched)].profile;
    std::vector<double> seconds = seconds_;
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < configurations_.size(); i = next++) {
        const Configuration& c = configurations_[i];
        if (!c.prepared.reason().empty() || (!profile.empty() && c.node.name != profile)) continue;
        seconds[i] = c.prepared.iteration_s(with(c.node, values));
      }
    };
    {
      std::jthread other(work);
      work();
    }
    if (touched < 0) seconds_ = seconds;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      out[static_cast<Eigen::Index>(i)] = std::log(seconds[rows_[i].configuration] / rows_[i].run->iteration_s);
    }
  }

  ValidationGroup errors_of(const std::string& source, const Eigen::VectorXd& errors) const {
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].run->source != source) continue;
      const double measured = rows_[i].run->iteration_s;
      pairs.push_back({measured, measured * std::exp(errors[static_cast<Eigen::Index>(i)])});
    }
    return group_of("source", source, pairs);
  }

  void compare_sources(double noise) {
    std::vector<std::string> sources;
    for (const Row& row : rows_) {
      if (std::find(sources.begin(), sources.end(), row.run->source) == sources.end())
        sources.push_back(row.run->source);
    }
    for (const std::string& source : sources) {
      SourceErrors both{errors_of(source, result_.fit.errors), {}};
      if (options_.leave_one_out && sources.size() > 1 && !options_.stop()) {
        options_.progress(fmt::format("without {}", source));
        const std::vector<double> values = refit_linear(priors_, result_.fit, weights(source), noise);
        Eigen::VectorXd errors = result_.fit.errors;
        evaluate(values, -1, errors);
        both.left_out = errors_of(source, errors);
      }
      result_.sources.push_back(both);
    }
  }

  const PublishedFitOptions& options_;
  std::vector<Configuration> configurations_;
  std::vector<Row> rows_;
  std::map<std::string, hardware::Node> nodes_;
  std::vector<FitPrior> priors_;
  std::vector<double> seconds_;  // by configuration, at the values last asked for as a whole
  PublishedFit result_;
};

}  // namespace

PublishedFit fit_published(const std::vector<PublishedRun>& runs, const PublishedFitOptions& options) {
  return Fitter(runs, options).fit();
}

}  // namespace trivium::calibration
