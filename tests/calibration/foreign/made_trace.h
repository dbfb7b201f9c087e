// Traces of PyTorch's profiler that are made by hand, event by event.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calibration/measurements/kernel_trace.h"

namespace trivium::calibration::foreign {

using Dims = std::vector<std::vector<int>>;

/// Times in microseconds. Operators run on thread 1, kernels on stream 7.
class MadeTrace {
 public:
  explicit MadeTrace(int rank = 0, int ranks = 1);
  MadeTrace& step(int number, double begin, double end);
  MadeTrace& range(const std::string& name, double begin, double end);
  /// An operator; kernels name it by the number that it is given, the first is 1.
  MadeTrace& op(const std::string& name, double begin, double end, const Dims& dims = {});
  /// A kernel of the last operator.
  MadeTrace& kernel(const std::string& name, double begin, double end);
  MadeTrace& collective(const std::string& name, double begin, double end, int elements = 1 << 20);
  std::string text() const { return document_.dump(); }
  /// Read as explain reads it.
  imports::KernelTrace read(const std::string& file = "made.json") const;

 private:
  MadeTrace& add(const std::string& category, const std::string& name, int thread, double begin, double end,
                 nlohmann::json args);
  nlohmann::json document_;
  int ranks_;
  int operators_ = 0;
};

}  // namespace trivium::calibration::foreign
