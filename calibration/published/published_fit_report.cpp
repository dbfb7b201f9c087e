// A fit to published runs, for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibration/measurements/quantities.h"
#include "calibration/published/published_fit.h"

namespace trivium::calibration {
namespace {

constexpr std::size_t kResiduals = 20;  // printed; --json has all
constexpr double kTogether = 0.8;       // correlation

}  // namespace

std::string to_table(const PublishedFit& fit) {
  std::string text = fmt::format("{} runs, {} constants under priors, {:.1f} of them effective, {} steps{}\n\n",
                                 fit.rows, fit.constants.size(), fit.fit.freedom, fit.fit.steps,
                                 fit.interrupted ? ", interrupted: the best so far" : "");
  text += fmt::format("{:<44} {:>5} {:>7} {:>7} {:>10} {:>7}\n", "source", "cases", "error %", "bias %", "left out %",
                      "bias %");
  double fitted = 0, left_out = 0;
  for (const SourceErrors& s : fit.sources) {
    const bool known = s.left_out.cases > 0;
    text += fmt::format("{:<44} {:>5} {:>7.1f} {:>+7.1f} {:>10} {:>7}\n", s.fitted.name, s.fitted.cases,
                        kPercent * s.fitted.mape, kPercent * s.fitted.bias,
                        known ? fmt::format("{:.1f}", kPercent * s.left_out.mape) : "",
                        known ? fmt::format("{:+.1f}", kPercent * s.left_out.bias) : "");
    fitted += kPercent * s.fitted.mape / static_cast<double>(fit.sources.size());
    left_out += kPercent * s.left_out.mape / static_cast<double>(fit.sources.size());
  }
  text += fmt::format("{:<44} {:>5} {:>7.1f} {:>7} {:>10.1f}\n\n", "mean over sources", "", fitted, "", left_out);
  for (const ValidationGroup& m : fit.micro) {
    text += fmt::format("{:<44} {:>5} {:>7.1f} {:>+7.1f}\n", m.name, m.cases, kPercent * m.mape, kPercent * m.bias);
  }
  if (!fit.micro.empty()) text += "\n";
  text += fmt::format("{:<46} {:>10} {:>10} {:>7}\n", "constant", "prior", "fitted", "+- %");
  const auto& values = fit.fit.values;
  for (std::size_t i = 0; i < fit.constants.size(); ++i) {
    const FitPrior& prior = fit.constants[i].prior;
    std::string remark;
    if (fit.fit.sigma[i] > kUndetermined * prior.sigma) remark = "undetermined: the prior's";
    if (values[i] <= prior.low || values[i] >= prior.high) remark = "at its bound";
    for (std::size_t j = 0; j < i; ++j) {
      const double r = fit.fit.correlation(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
      if (std::abs(r) > kTogether) remark += fmt::format(" r {:+.2f} with {}", r, fit.constants[j].prior.name);
    }
    text += fmt::format("{:<46} {:>10.4g} {:>10.4g} {:>7.1f}  {}\n", prior.name, prior.prior, values[i],
                        kPercent * fit.fit.sigma[i], remark);
  }
  text += "\nlargest residuals, %\n";
  for (std::size_t i = 0; i < std::min(kResiduals, fit.residuals.size()); ++i) {
    const Residual& one = fit.residuals[i];
    text += fmt::format("{:>+7.1f}  {} ({})\n", kPercent * one.error, one.name, one.source);
  }
  for (const std::string& row : fit.unsupported) text += "not replayed: " + row + "\n";
  return text;
}

}  // namespace trivium::calibration
