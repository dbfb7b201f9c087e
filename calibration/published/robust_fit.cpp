#include "calibration/published/robust_fit.h"

#include <algorithm>
#include <cmath>

namespace trivium::calibration {
namespace {

constexpr double kDifference = 0.02;  // of a parameter's logarithm
constexpr double kSmallStep = 1e-3;   // of all logarithms: nothing moves any more
constexpr double kSmallGain = 2e-3;   // of the cost: no figure changes any more

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Twice the pseudo-Huber loss over noise^2: 2 (sqrt(1 + (e / noise)^2) - 1), e^2 / noise^2 for small errors.
double loss(double error, double noise) { return 2 * (std::sqrt(1 + (error / noise) * (error / noise)) - 1); }

/// The weight that makes a square of the loss at this error.
double robust_weight(double error, double noise) { return 1 / std::sqrt(1 + (error / noise) * (error / noise)); }

VectorXd offsets(const std::vector<FitPrior>& priors, const std::vector<double>& values) {
  VectorXd z(static_cast<Eigen::Index>(priors.size()));
  for (std::size_t i = 0; i < priors.size(); ++i)
    z[static_cast<Eigen::Index>(i)] = std::log(values[i] / priors[i].prior);
  return z;
}

std::vector<double> values_at(const std::vector<FitPrior>& priors, const VectorXd& z) {
  std::vector<double> values;
  for (std::size_t i = 0; i < priors.size(); ++i) {
    const double value = priors[i].prior * std::exp(z[static_cast<Eigen::Index>(i)]);
    values.push_back(std::clamp(value, priors[i].low, priors[i].high));
  }
  return values;
}

double cost_of(const std::vector<FitPrior>& priors, const VectorXd& z, const VectorXd& errors,
               const std::vector<double>& weights, double noise) {
  double cost = 0;
  for (Eigen::Index i = 0; i < errors.size(); ++i)
    cost += weights[static_cast<std::size_t>(i)] * loss(errors[i], noise);
  for (Eigen::Index i = 0; i < z.size(); ++i) cost += std::pow(z[i] / priors[static_cast<std::size_t>(i)].sigma, 2);
  return cost;
}

/// Normal matrix and gradient of the weighted squares and the priors.
struct Normal {
  MatrixXd matrix;
  VectorXd gradient;
};

Normal normal_of(const std::vector<FitPrior>& priors, const VectorXd& z, const VectorXd& errors,
                 const MatrixXd& jacobian, const std::vector<double>& weights, double noise) {
  VectorXd w(errors.size());
  for (Eigen::Index i = 0; i < errors.size(); ++i) {
    w[i] = weights[static_cast<std::size_t>(i)] * robust_weight(errors[i], noise) / (noise * noise);
  }
  Normal n{jacobian.transpose() * w.asDiagonal() * jacobian, jacobian.transpose() * (w.cwiseProduct(errors))};
  for (Eigen::Index i = 0; i < z.size(); ++i) {
    const double precision = std::pow(priors[static_cast<std::size_t>(i)].sigma, -2);
    n.matrix(i, i) += precision;
    n.gradient[i] += precision * z[i];
  }
  return n;
}

MatrixXd jacobian_at(const std::vector<FitPrior>& priors, const std::vector<double>& values, const VectorXd& errors,
                     const LogErrors& log_errors) {
  MatrixXd jacobian = MatrixXd::Zero(errors.size(), static_cast<Eigen::Index>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<double> moved = values;
    const bool up = values[i] * std::exp(kDifference) <= priors[i].high;
    moved[i] *= std::exp(up ? kDifference : -kDifference);
    VectorXd there = errors;
    log_errors(moved, static_cast<int>(i), there);
    jacobian.col(static_cast<Eigen::Index>(i)) = (there - errors) / (up ? kDifference : -kDifference);
  }
  return jacobian;
}

void add_confidence(const std::vector<FitPrior>& priors, const std::vector<double>& weights, double noise,
                    RobustFit& fit) {
  const VectorXd z = offsets(priors, fit.values);
  const MatrixXd covariance = normal_of(priors, z, fit.errors, fit.jacobian, weights, noise).matrix.inverse();
  fit.correlation = covariance;
  for (Eigen::Index i = 0; i < z.size(); ++i) {
    const double sigma = std::sqrt(covariance(i, i));
    fit.sigma.push_back(sigma);
    fit.freedom += 1 - std::pow(sigma / priors[static_cast<std::size_t>(i)].sigma, 2);
    for (Eigen::Index j = 0; j < z.size(); ++j) fit.correlation(i, j) /= std::sqrt(covariance(i, i) * covariance(j, j));
  }
}

}  // namespace

RobustFit robust_fit(const std::vector<FitPrior>& priors, std::vector<double> start, const std::vector<double>& weights,
                     const LogErrors& log_errors, const RobustOptions& options) {
  RobustFit fit;
  fit.values = std::move(start);
  fit.errors = VectorXd::Zero(static_cast<Eigen::Index>(weights.size()));
  log_errors(fit.values, -1, fit.errors);
  fit.jacobian = jacobian_at(priors, fit.values, fit.errors, log_errors);
  double cost = cost_of(priors, offsets(priors, fit.values), fit.errors, weights, options.noise);
  options.report(0, cost);
  double damping = 1e-2;
  bool stale = false;  // the Jacobian was updated (Broyden 1965), not taken anew
  const auto renew = [&] {
    log_errors(fit.values, -1, fit.errors);  // rows kept for differences are those of `values` again
    fit.jacobian = jacobian_at(priors, fit.values, fit.errors, log_errors);
    stale = false;
  };
  while (fit.steps < options.most_steps && !options.stop()) {
    const bool fresh = !stale;
    const VectorXd z = offsets(priors, fit.values);
    const Normal normal = normal_of(priors, z, fit.errors, fit.jacobian, weights, options.noise);
    bool better = false, still = false;
    for (int attempt = 0; attempt < 4 && !better && !options.stop(); ++attempt) {
      MatrixXd damped = normal.matrix;
      damped.diagonal() *= 1 + damping;
      const std::vector<double> values = values_at(priors, z + damped.ldlt().solve(-normal.gradient));
      const VectorXd moved = offsets(priors, values), step = moved - z;
      VectorXd errors = fit.errors;
      log_errors(values, -1, errors);
      const double now = cost_of(priors, moved, errors, weights, options.noise);
      better = now < cost;
      if (!better) {
        damping *= 8;
        continue;
      }
      still = step.cwiseAbs().maxCoeff() < kSmallStep || cost - now < kSmallGain * cost;
      if (step.squaredNorm() > 0) {
        fit.jacobian += (errors - fit.errors - fit.jacobian * step) * step.transpose() / step.squaredNorm();
      }
      stale = true;
      fit.values = values;
      fit.errors = errors;
      cost = now;
      damping = std::max(1e-4, damping / 4);
    }
    ++fit.steps;
    options.report(fit.steps, cost);
    if (better && !still) continue;
    if (fresh) break;
    renew();  // the end is judged, and what is known is told, by differences and not by updates
  }
  if (stale) renew();
  add_confidence(priors, weights, options.noise, fit);
  return fit;
}

std::vector<double> refit_linear(const std::vector<FitPrior>& priors, const RobustFit& fit,
                                 const std::vector<double>& weights, double noise) {
  constexpr int kSteps = 8;  // the robust weights settle
  const VectorXd at = offsets(priors, fit.values);
  VectorXd z = at;
  for (int i = 0; i < kSteps; ++i) {
    const VectorXd errors = fit.errors + fit.jacobian * (z - at);
    const Normal normal = normal_of(priors, z, errors, fit.jacobian, weights, noise);
    z = offsets(priors, values_at(priors, z - normal.matrix.ldlt().solve(normal.gradient)));
  }
  return values_at(priors, z);
}

}  // namespace trivium::calibration
