#include "calibration/fit/fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace trivium::calibration {
namespace {

constexpr double kSampleNoise = 0.02;  // relative: what two measurements of a shape differ by
constexpr double kOutlier = 0.10;      // relative: beyond it, errors count linearly (Huber)
constexpr double kPriorSpread = 1.0;   // relative: how far proportions of terms differ between machines
constexpr double kSmallShare = 0.05;   // of a sample's time: the least that the prior lets a term explain
constexpr int kReweightings = 8;

constexpr auto kColumns = static_cast<Eigen::Index>(kTerms);

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, kColumns>;
using Square = Eigen::Matrix<double, kColumns, kColumns>;
using Vector = Eigen::Vector<double, kColumns>;

double weighted_median_scale(std::span<const Sample> samples, const Terms& prior) {
  std::vector<std::pair<double, double>> ratios;  // (measured / predicted, weight)
  double total = 0;
  for (const Sample& s : samples) {
    ratios.emplace_back(s.seconds / time_of(prior, s.sizes), s.weight);
    total += s.weight;
  }
  std::sort(ratios.begin(), ratios.end());
  double passed = 0;
  for (const auto& [ratio, weight] : ratios) {
    passed += weight;
    if (passed >= total / 2) return ratio;
  }
  return ratios.back().first;
}

double mean_error(std::span<const Sample> samples, const Terms& terms) {
  double sum = 0, total = 0;
  for (const Sample& s : samples) {
    sum += s.weight * std::abs(time_of(terms, s.sizes) / s.seconds - 1);
    total += s.weight;
  }
  return sum / total;
}

/// min |A x - b|^2 with x >= 0, exactly: the best over which of the terms are zero.
Vector nonnegative(const Matrix& a, const Eigen::VectorXd& b) {
  Vector best = Vector::Zero();
  double least = std::numeric_limits<double>::infinity();
  for (unsigned free = 1; free < 1U << kTerms; ++free) {
    std::vector<Eigen::Index> columns;
    for (Eigen::Index j = 0; j < kColumns; ++j) {
      if ((free >> j & 1U) != 0) columns.push_back(j);
    }
    const Eigen::MatrixXd part = a(Eigen::all, columns);
    const Eigen::VectorXd solution = part.colPivHouseholderQr().solve(b);
    if ((solution.array() < 0).any()) continue;
    const double cost = (part * solution - b).squaredNorm();
    if (cost >= least) continue;
    least = cost;
    best.setZero();
    for (std::size_t j = 0; j < columns.size(); ++j) best[columns[j]] = solution[static_cast<Eigen::Index>(j)];
  }
  return best;
}

/// Unknowns are counted in units of the prior's spread, so that one column is as large as another.
struct Scaled {
  Vector unit;    // one unknown's unit
  Vector centre;  // prior, in units
};

Scaled scale_of(std::span<const Sample> samples, const Terms& prior, double scale) {
  Scaled result;
  for (std::size_t j = 0; j < kTerms; ++j) {
    double least = std::numeric_limits<double>::infinity();  // term that explains the small share of some sample
    for (const Sample& s : samples) {
      if (s.sizes[j] > 0) least = std::min(least, kSmallShare * s.seconds / s.sizes[j]);
    }
    const double centre = prior[j] * scale;
    const auto at = static_cast<Eigen::Index>(j);
    const double unit = std::max(kPriorSpread * centre, std::isfinite(least) ? least : 0.0);
    result.unit[at] = unit > 0 ? unit : 1.0;
    result.centre[at] = centre / result.unit[at];
  }
  return result;
}

}  // namespace

double time_of(const Terms& terms, const Terms& sizes) {
  return std::inner_product(terms.begin(), terms.end(), sizes.begin(), 0.0);
}

TermFit fit_terms(std::span<const Sample> samples, const Terms& prior) {
  const Scaled scaled = scale_of(samples, prior, weighted_median_scale(samples, prior));
  double total = 0;
  for (const Sample& s : samples) total += s.weight;
  const auto rows = static_cast<Eigen::Index>(samples.size());
  std::vector<double> robust(samples.size(), 1.0);
  Vector x = scaled.centre;
  Square normal = Square::Zero();
  for (int pass = 0; pass < kReweightings; ++pass) {
    Matrix a = Matrix::Zero(rows + kColumns, kColumns);
    Eigen::VectorXd b = Eigen::VectorXd::Zero(rows + kColumns);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const Sample& s = samples[static_cast<std::size_t>(i)];
      // Weights average one, so that the prior means the same for any number of samples.
      const double weight =
          std::sqrt(robust[static_cast<std::size_t>(i)] * s.weight / total * static_cast<double>(rows));
      for (Eigen::Index j = 0; j < kColumns; ++j) {
        a(i, j) = weight * s.sizes[static_cast<std::size_t>(j)] * scaled.unit[j] / s.seconds / kSampleNoise;
      }
      b[i] = weight / kSampleNoise;
    }
    a.bottomRows<kColumns>().setIdentity();
    b.tail<kColumns>() = scaled.centre;
    x = nonnegative(a, b);
    normal = a.topRows(rows).transpose() * a.topRows(rows);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const Sample& s = samples[static_cast<std::size_t>(i)];
      double predicted = 0;
      for (Eigen::Index j = 0; j < kColumns; ++j)
        predicted += s.sizes[static_cast<std::size_t>(j)] * scaled.unit[j] * x[j];
      const double error = std::abs(predicted / s.seconds - 1);
      robust[static_cast<std::size_t>(i)] = error > kOutlier ? kOutlier / error : 1.0;
    }
  }
  TermFit fit;
  for (std::size_t j = 0; j < kTerms; ++j)
    fit.terms[j] = x[static_cast<Eigen::Index>(j)] * scaled.unit[static_cast<Eigen::Index>(j)];
  // What the samples say, with noise as large as they scatter; the prior's own part is left out of it.
  const double noise = std::max(kSampleNoise, mean_error(samples, fit.terms));
  const Square precision = normal * (kSampleNoise / noise) * (kSampleNoise / noise) + 1e-12 * Square::Identity();
  const Square covariance = precision.inverse();
  for (std::size_t j = 0; j < kTerms; ++j) {
    const auto at = static_cast<Eigen::Index>(j);
    fit.spread[j] = x[at] > 0 ? std::sqrt(covariance(at, at)) / x[at] : std::numeric_limits<double>::infinity();
  }
  fit.before = mean_error(samples, prior);
  fit.after = mean_error(samples, fit.terms);
  return fit;
}

}  // namespace trivium::calibration
