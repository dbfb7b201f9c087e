#include "calibration/measurements/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"

namespace trivium::calibration::imports {
namespace {

using nlohmann::json;
using program::OpKind;

constexpr double kMicro = 1e-6;

/// Categories were capitalised in 2021.
std::string category_of(const ChromeEvent& event) {
  std::string category = event.category;
  std::transform(category.begin(), category.end(), category.begin(), [](unsigned char c) { return std::tolower(c); });
  return category;
}

std::int64_t id_of(const ChromeEvent& event) {
  for (const char* key : {"External id", "external id"}) {
    if (event.args.contains(key) && event.args.at(key).is_number_integer()) return event.args.at(key);
  }
  return -1;
}

double number_in(const ChromeEvent& event, const char* key) {
  if (!event.args.is_object() || !event.args.contains(key)) return 0;
  const json& value = event.args.at(key);
  return value.is_number() ? value.get<double>() : 0;
}

/// Bytes of an element of PyTorch's names of types, in operators ("c10::BFloat16") and collectives ("BFloat16").
int bytes_of_type(const std::string& name) {
  if (name.find("BFloat16") != std::string::npos || name.find("Half") != std::string::npos) return 2;
  if (name.find("Double") != std::string::npos || name == "double" || name.find("Long") != std::string::npos) return 8;
  if (name.find("Byte") != std::string::npos || name.find("Float8") != std::string::npos) return 1;
  return 4;
}

struct Product {
  double m = 0, n = 0, k = 0, batch = 1;
  int operand_bytes = 4;
};

/// m, n, k from "Input Dims" of mm, addmm, bmm, baddbmm and linear: the first two inputs that are matrices.
std::optional<Product> product_of(const ChromeEvent& op) {
  static constexpr std::array<std::string_view, 5> kProducts{"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm",
                                                             "aten::linear"};
  if (std::find(kProducts.begin(), kProducts.end(), op.name) == kProducts.end()) return std::nullopt;
  if (!op.args.contains("Input Dims") || !op.args.at("Input Dims").is_array()) return std::nullopt;
  std::vector<std::vector<double>> matrices;
  for (const json& dims : op.args.at("Input Dims")) {
    if (!dims.is_array() || dims.size() < 2) continue;
    std::vector<double> sizes;
    for (const json& size : dims) sizes.push_back(size.is_number() ? size.get<double>() : 0);
    matrices.push_back(std::move(sizes));
  }
  const bool adds = op.name.find("add") != std::string::npos && matrices.size() > 2;  // the matrix that is added to
  if (matrices.size() < (adds ? 3U : 2U)) return std::nullopt;
  const std::vector<double>&a = matrices[adds ? 1 : 0], &b = matrices[adds ? 2 : 1];
  Product product;
  product.m = product.batch = 1;
  product.k = a.back();
  const bool batched = op.name.find("bmm") != std::string::npos;
  for (std::size_t i = 0; i + 1 < a.size(); ++i) (batched && i == 0 ? product.batch : product.m) *= a[i];
  const bool transposed = op.name == "aten::linear";  // its weight is (n, k)
  product.n = transposed ? b.front() : b.back();
  const double inner = transposed ? b.back() : b[b.size() - 2];
  if (inner != product.k || product.m <= 0 || product.n <= 0 || product.k <= 0) return std::nullopt;
  if (op.args.contains("Input type") && op.args.at("Input type").is_array() && !op.args.at("Input type").empty() &&
      op.args.at("Input type").front().is_string()) {
    product.operand_bytes = bytes_of_type(op.args.at("Input type").front());
  }
  return product;
}

void add_collective(const ChromeEvent& event, Kernel& kernel) {
  const std::string name = event.args.is_object() ? event.args.value("Collective name", event.name) : event.name;
  kernel.collective = collective_named(name);
  kernel.ranks = static_cast<int>(number_in(event, "Group size"));
  const double most = std::max(number_in(event, "In msg nelems"), number_in(event, "Out msg nelems"));
  const std::string type = event.args.is_object() ? event.args.value("dtype", "Float") : "Float";
  kernel.bytes = most * bytes_of_type(type);
}

class Reader {
 public:
  explicit Reader(const ChromeTrace& trace) : trace_(trace) {
    result_.file = trace.file;
    result_.tool = "Kineto";
    result_.is_truncated = trace.is_truncated;
    const json devices = trace.head.value("deviceProperties", json::array());
    if (devices.is_array() && !devices.empty() && devices.front().is_object())
      result_.device = devices.front().value("name", "");
  }

  KernelTrace read() {
    for (const ChromeEvent& event : trace_.events) {
      if (category_of(event) != "cpu_op" && category_of(event) != "operator") continue;
      if (const auto product = product_of(event)) products_[id_of(event)] = *product;
    }
    for (const ChromeEvent& event : trace_.events) take(event);
    if (result_.kernels.empty()) refuse();
    take_steps();
    take_gaps();
    return std::move(result_);
  }

 private:
  /// Operators on cores are other kernels than ours, with threads of their own: they say nothing about a rank on a
  /// core.
  [[noreturn]] void refuse() const {
    const auto operators = std::ranges::count_if(trace_.events, [](const ChromeEvent& event) {
      return category_of(event) == "cpu_op" || category_of(event) == "operator";
    });
    std::string what = fmt::format("holds no kernel of a GPU{}", trace_.is_truncated ? " before it ends early" : "");
    if (operators > 0) {
      what += fmt::format(
          ", only {} operators on the host: of a GPU's work, profile with ProfilerActivity.CUDA; how fast cores are is "
          "learnt from `trivium profile` and `trivium run --record`, whose kernels are not PyTorch's",
          operators);
    } else {
      what += "; profile with ProfilerActivity.CUDA";
    }
    throw base::Failure(base::ErrorKind::kInput, trace_.file + "#/traceEvents: " + what);
  }

  void take(const ChromeEvent& event) {
    const std::string category = category_of(event);
    if (category == "kernel") {
      Kernel kernel;
      kernel.kind = class_of_kernel(event.name);
      kernel.device = static_cast<int>(number_in(event, "device"));
      kernel.start_s = event.start_us * kMicro;
      kernel.seconds = event.duration_us * kMicro;
      if (kernel.kind == KernelClass::kCollective) add_collective(event, kernel);
      const auto product = products_.find(id_of(event));
      if (kernel.kind == KernelClass::kProduct && product != products_.end()) {
        kernel.m = product->second.m;
        kernel.n = product->second.n;
        kernel.k = product->second.k;
        kernel.batch = product->second.batch;
        kernel.operand_bytes = product->second.operand_bytes;
      }
      result_.kernels.push_back(kernel);
    } else if (category == "gpu_memcpy" || category == "memcpy") {
      const bool host = event.name.find("HtoD") != std::string::npos || event.name.find("DtoH") != std::string::npos;
      const double bytes = number_in(event, "bytes");
      const HostCopy copy{bytes, event.duration_us * kMicro};
      if (host && is_plausible(copy)) result_.copies.push_back(copy);
    } else if (category == "cuda_runtime" || category == "cuda_driver" || category == "runtime") {
      if (event.name.find("LaunchKernel") != std::string::npos) launches_[event.thread].push_back(event.start_us);
    } else if (category == "user_annotation" && event.name.starts_with("ProfilerStep#")) {
      steps_[event.start_us] = event.start_us + event.duration_us;
    }
  }

  void take_steps() {
    auto first = steps_.begin(), last = steps_.end();
    if (steps_.size() >= 3) {
      ++first;
      --last;
    }
    result_.steps = static_cast<int>(std::distance(first, last));
    if (result_.steps == 0) return;
    result_.steps_begin_s = first->first * kMicro;
    result_.steps_end_s = std::prev(last)->second * kMicro;
  }

  void take_gaps() {
    for (auto& [thread, starts] : launches_) {
      std::sort(starts.begin(), starts.end());
      for (std::size_t i = 1; i < starts.size(); ++i)
        result_.launch_gaps_s.push_back((starts[i] - starts[i - 1]) * kMicro);
    }
  }

  const ChromeTrace& trace_;
  KernelTrace result_;
  std::map<std::int64_t, Product> products_;  // by the id of the operator
  std::map<double, double> steps_;
  std::map<std::int64_t, std::vector<double>> launches_;  // by thread
};

}  // namespace

KernelTrace read_kineto(const ChromeTrace& trace) { return Reader(trace).read(); }

}  // namespace trivium::calibration::imports
