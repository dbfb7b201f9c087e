// Fitting parameters to relative errors: Levenberg-Marquardt with a robust loss and priors.
#pragma once

#include <Eigen/Dense>
#include <functional>
#include <string>
#include <vector>

namespace trivium::calibration {

/// A positive parameter, known beforehand as a log-normal: the median `prior`, `sigma` of its logarithm.
struct FitPrior {
  std::string name;
  double prior = 1;
  double sigma = 0.1;
  double low = 0, high = 0;  ///< bounds, 0 < low <= prior <= high
};

/// `predict(values, touched, out)`: logarithms of predicted over measured, one a row, for the parameters' values.
/// `touched` is the parameter that alone changed since the last call with -1, which tells rows that keep theirs; -1:
/// any.
using LogErrors = std::function<void(const std::vector<double>& values, int touched, Eigen::VectorXd& out)>;

/// A parameter whose sigma stays above this share of its prior's is undetermined: the data hardly speak of it.
inline constexpr double kUndetermined = 0.9;

struct RobustFit {
  std::vector<double> values;
  std::vector<double> sigma;    ///< of the logarithm, after the fit: as large as the prior's where runs say nothing
  Eigen::VectorXd errors;       ///< log errors at `values`
  Eigen::MatrixXd jacobian;     ///< of the log errors by the logarithms of the parameters, at `values`
  Eigen::MatrixXd correlation;  ///< between parameters, after the fit
  double freedom = 0;           ///< effective number of parameters: sum of 1 - (sigma / prior sigma)^2
  int steps = 0;
};

/// Minimises sum of w_i H(e_i) / noise^2 + sum of (log(value / prior) / sigma)^2 within the bounds; H is the
/// pseudo-Huber loss with its bend at `noise`. Derivatives are differences over 2 %: ceilings and minima over tiles are
/// not smooth at less. `stop` is asked before every step; `report(step, cost)` after each.
struct RobustOptions {
  double noise = 0.04;
  int most_steps = 40;
  std::function<bool()> stop = [] { return false; };
  std::function<void(int, double)> report = [](int, double) {};
};
RobustFit robust_fit(const std::vector<FitPrior>& priors, std::vector<double> start, const std::vector<double>& weights,
                     const LogErrors& log_errors, const RobustOptions& options);

/// Where the fit would be with other weights (0 leaves a row out), by Gauss-Newton steps on the Jacobian of `fit`: a
/// parameter that only rows left out spoke of returns to its prior.
std::vector<double> refit_linear(const std::vector<FitPrior>& priors, const RobustFit& fit,
                                 const std::vector<double>& weights, double noise);

}  // namespace trivium::calibration
