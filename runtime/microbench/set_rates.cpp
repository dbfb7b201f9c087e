#include "runtime/microbench/set_rates.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/microbench/rate_fit.h"
#include "runtime/microbench/statistics.h"

namespace trivium::runtime::microbench {

void set_rates(hardware::Node& node, const KernelTimes& times, const std::string& from) {
  for (const auto& [kind, shapes] : times.shapes) {
    const std::string name(program::name_of(kind));
    hardware::OpRate rate = fit_rate(shapes);
    const std::vector<double>& spread = times.spread.at(kind);
    rate.spread = quantile(spread, 0.9) - quantile(spread, 0.1);
    double error = 0;
    for (const auto& s : shapes) {
      const double fitted = rate.overhead.value() + s.flops * rate.seconds_per_flop + s.bytes * rate.seconds_per_byte +
                            s.blocks * rate.seconds_per_block;
      error += std::abs(fitted / s.seconds - 1) / static_cast<double>(shapes.size());
    }
    node.device.op_rates[name] = rate;
    node.sources["/device/op_rates/" + name] =
        fmt::format("{}; {} shapes, mean error of the fit {:.0f} %", from, shapes.size(), 100 * error);
  }
}

}  // namespace trivium::runtime::microbench
