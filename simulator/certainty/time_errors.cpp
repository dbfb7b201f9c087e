#include "simulator/certainty/time_errors.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "program/plan/stack.h"

namespace trivium::simulator {
namespace {

constexpr double kOfMedianError =
    1.5;  // variance of a median of normal errors over that of their mean: pi / 2, less of few
constexpr int kMachineAndStack = 2;  // machine and stack

double squared(double x) { return x * x; }

bool ran_here(const RunLikeness& a, const RunLikeness& b) {
  return a.machine == b.machine && family_of_stack(a.stack) == family_of_stack(b.stack);
}

const QuantilesOf* find_quantiles(const std::vector<QuantilesOf>& all, const std::string& kind,
                                  const std::string& device, bool busy, int measured) {
  const auto found = std::ranges::find_if(all, [&](const QuantilesOf& of) {
    return of.kind == kind && of.device == device && of.busy == busy && of.measured == measured;
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

/// The cells' covariance, factorised.
struct TimeErrors::Factor {
  Eigen::LLT<Eigen::MatrixXd> covariance;
};

std::string family_of_stack(std::string_view stack) {
  const program::StackTraits* traits = program::find_stack(stack);
  return traits && !traits->family.empty() ? traits->family : std::string(stack);
}

std::string pooled_kind(const std::string& kind) {
  for (const std::string_view any : {"adapters", "experts"}) {
    if (kind.starts_with(any)) return std::string(any);
  }
  return kind;
}

double SpreadRule::of(const Composition& made_of) const {
  return std::exp(base + exposed * made_of.exposed + bubble * made_of.bubble);
}

double shared(const SharedParts& parts, const RunLikeness& a, const RunLikeness& b) {
  double sum = 0;
  if (a.device == b.device) sum += squared(parts.device);
  if (family_of_stack(a.stack) == family_of_stack(b.stack)) sum += squared(parts.stack);
  if (a.kind == b.kind) sum += squared(parts.kind);
  if (ran_here(a, b)) sum += squared(parts.machine);
  return sum;
}

ErrorQuantiles quantiles_at(const std::vector<QuantilesOf>& all, const RunLikeness& like, bool busy, int measured) {
  const std::string kind = pooled_kind(like.kind);
  const QuantilesOf* nearest = nullptr;
  // What idles does so for reasons of its stack: what others' runs on the device say counts for busy devices alone.
  const int least = busy ? 0 : measured;
  for (int less = measured; less >= least && !nearest; --less) {
    nearest = find_quantiles(all, kind, like.device, busy, less);
  }
  if (!nearest) nearest = find_quantiles(all, kind, "", busy, measured);
  if (!nearest) nearest = find_quantiles(all, "", "", busy, measured);
  ErrorQuantiles quantiles = nearest ? nearest->quantiles : ErrorQuantiles{};
  for (int more = measured + 1; more <= kMachineAndStack; ++more) {
    const QuantilesOf* surer = find_quantiles(all, kind, like.device, busy, more);
    if (!surer) continue;
    quantiles.low = std::min(quantiles.low, surer->quantiles.low);
    quantiles.high = std::max(quantiles.high, surer->quantiles.high);
  }
  return quantiles;
}

TimeErrors::TimeErrors(std::vector<RunCell> cells, const SharedParts& parts, const SpreadRule& spread,
                       std::vector<QuantilesOf> quantiles, double between_plans, double picked)
    : cells_(std::move(cells)),
      parts_(parts),
      spread_(spread),
      quantiles_(std::move(quantiles)),
      between_plans_(between_plans),
      picked_(picked) {
  const auto size = static_cast<Eigen::Index>(cells_.size());
  Eigen::MatrixXd covariance(size, size);
  for (Eigen::Index i = 0; i < size; ++i) {
    const RunCell& a = cells_[static_cast<std::size_t>(i)];
    for (Eigen::Index j = 0; j <= i; ++j) {
      covariance(i, j) = covariance(j, i) = shared(parts_, a.like, cells_[static_cast<std::size_t>(j)].like);
    }
    covariance(i, i) += squared(parts_.source) + kOfMedianError * a.variance / a.runs;
  }
  factor_ = std::make_shared<const Factor>(Factor{Eigen::LLT<Eigen::MatrixXd>(covariance)});
}

TimeOutlook TimeErrors::at(const RunLikeness& like, const Composition& made_of) const {
  const auto size = static_cast<Eigen::Index>(cells_.size());
  Eigen::VectorXd with(size), errors(size);
  TimeOutlook outlook;
  bool machine = false, stack = false;
  const std::string family = family_of_stack(like.stack);
  for (Eigen::Index i = 0; i < size; ++i) {
    const RunCell& cell = cells_[static_cast<std::size_t>(i)];
    const bool of_stack = family_of_stack(cell.like.stack) == family, on_device = cell.like.device == like.device;
    machine |= cell.like.machine == like.machine;
    stack |= of_stack;
    with(i) = shared(parts_, cell.like, like);
    errors(i) = ran_here(cell.like, like) ? cell.mean : cell.left_out;
    if (on_device) outlook.on_device += cell.runs;
    if (of_stack) outlook.of_stack += cell.runs;
    if (!on_device || !of_stack || cell.like.kind != like.kind) continue;
    outlook.runs += cell.runs;
    outlook.sisters |= cell.like.stack != like.stack;
    if (std::ranges::find(outlook.sources, cell.source) == outlook.sources.end())
      outlook.sources.push_back(cell.source);
  }
  double variance = shared(parts_, like, like);
  if (size > 0) {
    const Eigen::VectorXd solved = factor_->covariance.solve(with);
    outlook.mean = solved.dot(errors);
    variance -= solved.dot(with);
  }
  outlook.measured = static_cast<int>(machine) + static_cast<int>(stack);
  outlook.deviation = std::sqrt(std::max(variance, 0.0) + squared(parts_.source) + squared(spread_.of(made_of)));
  outlook.quantiles = quantiles_at(quantiles_, like, is_busy(made_of), outlook.measured);
  return outlook;
}

}  // namespace trivium::simulator
