#include "calibration/certainty/pooled_scale.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>

#include "calibration/measurements/statistics.h"

namespace trivium::calibration {
namespace {

constexpr double kPriorMedian = 0.05, kPriorSpread = 1;  // prior of the parts: log-normal
constexpr int kTurns = 4;

double shared(const ScaleParts& parts, bool same_device, bool same_machine) {
  return (same_device ? square(parts.device) : 0) + (same_machine ? square(parts.machine) : 0);
}

/// The cells' covariance, factorised, and the mean that it weighs best.
struct Pool {
  Eigen::LLT<Eigen::MatrixXd> covariance;
  Eigen::VectorXd scales, solved;  ///< solved: covariance^-1 (scales - mean)
  double mean = 0, weight = 0;     ///< weight: 1' covariance^-1 1
};

Pool pool_of(const std::vector<ScaleCell>& cells, const ScaleParts& parts) {
  const auto size = static_cast<Eigen::Index>(cells.size());
  Eigen::MatrixXd covariance(size, size);
  Pool pool;
  pool.scales.resize(size);
  for (Eigen::Index i = 0; i < size; ++i) {
    const ScaleCell& a = cells[static_cast<std::size_t>(i)];
    pool.scales(i) = a.log_scale;
    for (Eigen::Index j = 0; j <= i; ++j) {
      const ScaleCell& b = cells[static_cast<std::size_t>(j)];
      covariance(i, j) = covariance(j, i) = shared(parts, a.device == b.device, a.machine == b.machine);
    }
    covariance(i, i) += square(parts.publisher) + a.variance;
  }
  pool.covariance.compute(covariance);
  const Eigen::VectorXd ones = Eigen::VectorXd::Ones(size), weights = pool.covariance.solve(ones);
  pool.weight = weights.sum();
  pool.mean = weights.dot(pool.scales) / pool.weight;
  pool.solved = pool.covariance.solve(pool.scales - pool.mean * ones);
  return pool;
}

double log_density(const std::vector<ScaleCell>& cells, const ScaleParts& parts) {
  const Pool pool = pool_of(cells, parts);
  const Eigen::MatrixXd root = pool.covariance.matrixL();
  double density = -root.diagonal().array().log().sum() - std::log(pool.weight) / 2;
  density -= (pool.scales.array() - pool.mean).matrix().dot(pool.solved) / 2;
  for (const double part : {parts.device, parts.machine, parts.publisher}) {
    density -= square(std::log(part / kPriorMedian) / kPriorSpread) / 2;
  }
  return density;
}

}  // namespace

ScaleParts scale_parts(const std::vector<ScaleCell>& cells) {
  static constexpr std::array kValues{.005, .0075, .01, .015, .02, .03, .04, .06, .08, .1, .13, .17, .22, .3, .4};
  ScaleParts parts{kPriorMedian, kPriorMedian, kPriorMedian};
  for (int round = 0; round < kTurns; ++round) {
    for (double* part : {&parts.device, &parts.machine, &parts.publisher}) {
      double best = 0, most = -1e300;
      for (const double value : kValues) {
        *part = value;
        const double now = log_density(cells, parts);
        if (now > most) most = now, best = value;
      }
      *part = best;
    }
  }
  return parts;
}

std::optional<double> pooled_scale(const std::vector<ScaleCell>& cells, const ScaleParts& parts,
                                   const std::string& machine, const std::string& device) {
  if (std::ranges::none_of(cells, [&](const ScaleCell& cell) { return cell.device == device; })) return std::nullopt;
  const Pool pool = pool_of(cells, parts);
  double log_scale = pool.mean;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    log_scale += shared(parts, cells[i].device == device, cells[i].machine == machine) *
                 pool.solved(static_cast<Eigen::Index>(i));
  }
  return std::exp(log_scale);
}

}  // namespace trivium::calibration
