#include "simulator/certainty/error_model.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numbers>

namespace trivium::simulator {
namespace {

constexpr double kEasyMfu = 0.30, kHardMfu = 0.10;
constexpr double kUsualRuns = 10;  // the usual spread counts as this many runs in addition to a cell's own

double square(double x) { return x * x; }

}  // namespace

/// The cells' covariance, factorised.
struct ErrorModel::Factor {
  Eigen::LLT<Eigen::MatrixXd> covariance;
};

int ease_of(double mfu) { return mfu >= kEasyMfu ? 0 : mfu >= kHardMfu ? 1 : 2; }

ErrorModel::ErrorModel(std::vector<ErrorCell> cells, const ErrorParts& parts)
    : cells_(std::move(cells)), parts_(parts) {
  const auto size = static_cast<Eigen::Index>(cells_.size());
  Eigen::MatrixXd covariance(size, size);
  for (Eigen::Index i = 0; i < size; ++i) {
    const ErrorCell& a = cells_[static_cast<std::size_t>(i)];
    for (Eigen::Index j = 0; j <= i; ++j) {
      covariance(i, j) = covariance(j, i) = shared(a.like, cells_[static_cast<std::size_t>(j)].like);
    }
    covariance(i, i) += own_variance({&a}, a.like.ease) / a.runs;
  }
  factor_ = std::make_shared<const Factor>(Factor{Eigen::LLT<Eigen::MatrixXd>(covariance)});
}

double ErrorModel::shared(const Likeness& a, const Likeness& b) const {
  double sum = 0;
  if (a.device == b.device) sum += square(parts_.device);
  if (a.stack == b.stack) sum += square(parts_.stack);
  if (a.kind == b.kind) sum += square(parts_.kind);
  if (a.machine == b.machine && a.stack == b.stack) sum += square(parts_.machine);
  return sum;
}

double ErrorModel::own_variance(const std::vector<const ErrorCell*>& cells, int ease) const {
  double squares = square(parts_.run[static_cast<std::size_t>(ease)]) * kUsualRuns, freedom = kUsualRuns;
  for (const ErrorCell* cell : cells) {
    squares += square(cell->spread) * (cell->runs - 1);
    freedom += cell->runs - 1;
  }
  return squares / freedom;
}

ErrorOutlook ErrorModel::at(const Likeness& like) const {
  const auto size = static_cast<Eigen::Index>(cells_.size());
  Eigen::VectorXd with(size), errors(size);
  ErrorOutlook outlook;
  std::vector<const ErrorCell*> near;  // runs of the machine and stack, where there are of the same ease
  bool known = false;
  for (Eigen::Index i = 0; i < size; ++i) {
    const ErrorCell& cell = cells_[static_cast<std::size_t>(i)];
    const bool here = cell.like.machine == like.machine && cell.like.stack == like.stack;
    known |= here;
    if (here && cell.like.ease == like.ease) near.push_back(&cell);
    with(i) = shared(cell.like, like);
    errors(i) = here ? cell.mean : cell.left_out;
    if (cell.like.device == like.device) outlook.on_device += cell.runs;
    if (cell.like.stack == like.stack) outlook.of_stack += cell.runs;
    if (cell.like.device != like.device || cell.like.stack != like.stack || cell.like.kind != like.kind) continue;
    outlook.runs += cell.runs;
    if (std::ranges::find(outlook.sources, cell.source) == outlook.sources.end())
      outlook.sources.push_back(cell.source);
  }
  double variance = shared(like, like) + own_variance(near, like.ease);
  if (size > 0) {
    const Eigen::VectorXd solved = factor_->covariance.solve(with);
    outlook.mean = solved.dot(errors);
    variance -= solved.dot(with);
  }
  outlook.deviation = std::sqrt(std::max(variance, 0.0));
  outlook.reach = known ? parts_.known : parts_.unknown;
  return outlook;
}

double ErrorModel::log_likelihood() const {
  const auto size = static_cast<Eigen::Index>(cells_.size());
  Eigen::VectorXd errors(size);
  for (Eigen::Index i = 0; i < size; ++i) errors(i) = cells_[static_cast<std::size_t>(i)].left_out;
  const Eigen::MatrixXd root = factor_->covariance.matrixL();
  return -0.5 * errors.dot(factor_->covariance.solve(errors)) - root.diagonal().array().log().sum() -
         0.5 * static_cast<double>(size) * std::log(2 * std::numbers::pi);
}

}  // namespace trivium::simulator
