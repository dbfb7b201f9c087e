#include "calibration/published/published_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <thread>

#include "base/error.h"
#include "calibration/measurements/published_runs.h"
#include "calibration/measurements/statistics.h"
#include "calibration/validate/groups.h"
#include "calibration/validate/predict_on.h"

namespace trivium::calibration {
namespace {

constexpr double kSourceWeight = 2;  // times the root of its rows

struct Row {
  std::string name, source;
  double measured = 0;
  std::size_t configuration = 0;
  double weight = 0;
  bool micro = false;
};

/// Runs of equal configuration differ in nothing that is simulated: each is prepared and timed once.
struct Configuration {
  std::function<double(const hardware::Node&)> seconds;  ///< empty where it cannot be replayed
  std::string reason;
  hardware::Node node;
};

class Fitter {
 public:
  Fitter(const std::vector<PublishedRun>& runs, const std::vector<MicroRow>& micro, const PublishedFitOptions& options)
      : options_(options) {
    for (const PublishedRun& run : runs) {
      if (options_.stop()) interrupted_before_the_fit();
      if (run.tier != "C") add(run);
    }
    if (rows_.empty()) throw base::Failure(base::ErrorKind::kInput, "no run of tier A or B can be replayed");
    result_.rows = static_cast<int>(rows_.size());
    std::vector<hardware::Node> nodes, measured;
    for (const auto& [name, node] : nodes_) nodes.push_back(node);
    for (const MicroRow& one : micro) {
      rows_.push_back({one.name, one.source, one.seconds, configurations_.size(), 0, true});
      configurations_.push_back({one.predict, "", one.node});
      if (!one.fitted) continue;
      ++count_[one.source];
      const auto same = [&](const hardware::Node& other) { return other.name == one.node.name; };
      if (std::none_of(measured.begin(), measured.end(), same)) measured.push_back(one.node);
    }
    for (Row& row : rows_) {
      const double count = count_[row.source];
      row.weight = count > 0 ? kSourceWeight * std::sqrt(count) / count : 0;  // 0: judged only
    }
    seconds_.resize(configurations_.size());
    result_.constants = fit_constants(nodes, measured);
  }

  [[noreturn]] static void interrupted_before_the_fit() {
    throw base::Failure(base::ErrorKind::kInterrupted, "interrupted before the fit had begun; nothing was written");
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
    if (result_.interrupted && result_.fit.steps == 0) interrupted_before_the_fit();
    compare_sources(robust.noise);
    list_residuals();
    return std::move(result_);
  }

 private:
  void add(const PublishedRun& run) {
    if (!run.ran) return;
    const auto [at, fresh] = known_.try_emplace(run.sweep + " | " + run.plan, configurations_.size());
    if (fresh) {
      configurations_.push_back(configuration_of(run));
      if (configurations_.size() % 100 == 0) options_.progress(fmt::format("{} plans lowered", configurations_.size()));
    }
    if (const std::string& reason = configurations_[at->second].reason; !reason.empty()) {
      result_.unsupported.push_back(run.case_name + ": " + reason);
      return;
    }
    rows_.push_back({run.case_name, run.source, run.iteration_s, at->second, 0, false});
    ++count_[run.source];
    nodes_.try_emplace(run.hardware, run.cluster.groups.front().node);
  }

  static Configuration configuration_of(const PublishedRun& run) {
    Configuration one{nullptr, run.unsupported.value_or(""), {}};
    if (!one.reason.empty()) return one;
    one.node = run.cluster.groups.front().node;
    if (const auto now = predict_on(run.job, run.cluster, one.node); !now) {
      one.reason = now.error().message;
    } else {
      one.seconds = [job = run.job, cluster = run.cluster](const hardware::Node& node) {
        return predict_on(job, cluster, node).value_or_throw();
      };
    }
    return one;
  }

  std::vector<double> weights(const std::string& without) const {
    std::vector<double> w;
    for (const Row& row : rows_) w.push_back(row.source == without ? 0 : row.weight);
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
    std::exception_ptr failure;
    const auto work = [&] {
      for (std::size_t i = next++; i < configurations_.size(); i = next++) {
        const Configuration& c = configurations_[i];
        if (!c.seconds || (!profile.empty() && c.node.name != profile)) continue;
        seconds[i] = c.seconds(with(c.node, values));
      }
    };
    {
      const std::jthread other([&] {
        try {
          work();
        } catch (...) {
          failure = std::current_exception();
        }
      });
      work();
    }
    if (failure) std::rethrow_exception(failure);
    if (touched < 0) seconds_ = seconds;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      out[static_cast<Eigen::Index>(i)] = std::log(seconds[rows_[i].configuration] / rows_[i].measured);
    }
  }

  ValidationGroup errors_of(const std::string& source, const Eigen::VectorXd& errors) const {
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].source != source) continue;
      const double measured = rows_[i].measured;
      pairs.push_back({measured, measured * std::exp(errors[static_cast<Eigen::Index>(i)])});
    }
    return group_of("source", source, pairs);
  }

  std::vector<std::string> sources(bool micro) const {
    std::vector<std::string> names;
    for (const Row& row : rows_) {
      if (row.micro == micro && std::find(names.begin(), names.end(), row.source) == names.end())
        names.push_back(row.source);
    }
    return names;
  }

  void compare_sources(double noise) {
    const std::vector<std::string> runs = sources(false);
    for (const std::string& source : runs) {
      SourceErrors both{errors_of(source, result_.fit.errors), {}};
      if (options_.leave_one_out && runs.size() > 1 && !options_.stop()) {
        options_.progress(fmt::format("without {}", source));
        const std::vector<double> values = refit_linear(priors_, result_.fit, weights(source), noise);
        Eigen::VectorXd errors = result_.fit.errors;
        evaluate(values, -1, errors);
        both.left_out = errors_of(source, errors);
      }
      result_.sources.push_back(both);
    }
    for (const std::string& source : sources(true)) result_.micro.push_back(errors_of(source, result_.fit.errors));
  }

  void list_residuals() {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].micro) continue;
      const double error = std::exp(result_.fit.errors[static_cast<Eigen::Index>(i)]) - 1;
      result_.residuals.push_back({rows_[i].name, rows_[i].source, error});
    }
    std::stable_sort(result_.residuals.begin(), result_.residuals.end(),
                     [](const Residual& a, const Residual& b) { return std::abs(a.error) > std::abs(b.error); });
  }

  const PublishedFitOptions& options_;
  std::vector<Configuration> configurations_;
  std::vector<Row> rows_;
  std::map<std::string, std::size_t> known_;  // configurations of runs
  std::map<std::string, double> count_;       // rows of a source
  std::map<std::string, hardware::Node> nodes_;
  std::vector<FitPrior> priors_;
  std::vector<double> seconds_;  // by configuration, at the values last asked for as a whole
  PublishedFit result_;
};

}  // namespace

PublishedFit fit_published(const std::vector<PublishedRun>& runs, const PublishedFitOptions& options,
                           const std::vector<MicroRow>& micro) {
  return Fitter(runs, micro, options).fit();
}

}  // namespace trivium::calibration
