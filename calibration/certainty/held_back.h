// Predictions of runs as if their source had never been seen, for given parts and rule: what learn_time() chooses by.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "calibration/certainty/learn_time.h"

namespace trivium::calibration {

/// Of one run with its source left out: log(measured / predicted) as the shared parts say, and the interval.
struct HeldBack {
  double mean = 0, deviation = 0;
  simulator::ErrorQuantiles quantiles;
  double at(double distance) const { return mean + distance * deviation; }
  double low() const { return at(quantiles.low); }
  double high() const { return at(quantiles.high); }
};

/// What does not depend on parts and rule, counted once.
class HeldBackRuns {
 public:
  explicit HeldBackRuns(const std::vector<TimeRun>& runs);

  struct Result {
    std::vector<HeldBack> runs;
    std::vector<simulator::QuantilesOf> quantiles;
  };
  /// Quantiles are those of all runs, as the model has them.
  Result at(const simulator::SharedParts& parts, const simulator::SpreadRule& rule) const;
  /// The same with quantiles that have not seen the run's source either: what a source that nobody knows is like.
  std::vector<HeldBack> of_strangers(const simulator::SharedParts& parts, const simulator::SpreadRule& rule) const;

  /// The cells that the model is made of.
  std::vector<simulator::RunCell> cells(const simulator::SpreadRule& rule) const;
  /// Of machine and stack, how many other sources measured.
  const std::vector<int>& measured() const { return measured_; }
  const std::vector<TimeRun>& runs() const { return runs_; }

 private:
  /// Whose quantiles they are, and what weight each run has in them.
  struct Group {
    simulator::QuantilesOf of;
    std::vector<double> weights;  ///< for the ends
    std::vector<double> middle;   ///< for the middle
  };
  std::vector<HeldBack> means(const simulator::SharedParts& parts, const simulator::SpreadRule& rule) const;
  /// Of the groups, from all runs but those of a source (empty: of none).
  std::vector<simulator::QuantilesOf> quantiles(const std::vector<HeldBack>& held, const std::string& without) const;
  simulator::ErrorQuantiles quantiles_of(std::size_t run, const std::vector<simulator::QuantilesOf>& all) const;
  void find_cells();
  void find_measured();
  void find_groups();
  std::vector<double> weights_of(const std::vector<bool>& members, double most) const;
  void add_group(const std::string& kind, const std::string& device, bool busy, int measured);

  const std::vector<TimeRun>& runs_;
  std::vector<simulator::RunCell> cells_;
  std::vector<std::size_t> cell_of_;
  std::vector<std::vector<Eigen::Index>> sources_;  ///< cells of each source
  std::vector<int> measured_;
  std::vector<Group> groups_;
};

}  // namespace trivium::calibration
