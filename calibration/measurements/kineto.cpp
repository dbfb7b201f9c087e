#include "calibration/measurements/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "calibration/measurements/host_operators.h"
#include "calibration/measurements/operator_shapes.h"
#include "calibration/measurements/quantities.h"

namespace trivium::calibration::imports {
namespace {

using nlohmann::json;
using program::OpKind;

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

/// The type of the first operand, of operators with "Input type".
std::string operand_type(const ChromeEvent& op) {
  const auto types = op.args.find("Input type");
  if (types == op.args.end() || !types->is_array() || types->empty() || !types->front().is_string()) return "";
  return types->front();
}

bool is_operator(const std::string& category) { return category == "cpu_op" || category == "operator"; }

/// Ranges that last as long as a collective.
bool is_library_range(const std::string& name) { return name.starts_with("gloo:") || name.starts_with("mpi:"); }

std::string text_in(const ChromeEvent& event, const char* key, const std::string& otherwise) {
  if (!event.args.is_object()) return otherwise;
  const auto found = event.args.find(key);
  return found != event.args.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

void add_collective(const ChromeEvent& event, Kernel& kernel) {
  const std::string name = text_in(event, "Collective name", event.name);
  kernel.collective = collective_named(name);
  if (!kernel.collective) kernel.other_collective = name;
  kernel.ranks = static_cast<int>(number_in(event, "Group size"));
  kernel.group = text_in(event, "Process Group Name", "");
  const double most = std::max(number_in(event, "In msg nelems"), number_in(event, "Out msg nelems"));
  kernel.bytes = most * bytes_of_type(text_in(event, "dtype", "Float"));
}

class KinetoReader {
 public:
  explicit KinetoReader(const ChromeTrace& trace) : trace_(trace) {
    result_.file = trace.file;
    result_.tool = "Kineto";
    result_.is_truncated = trace.is_truncated;
    const json devices = trace.head.value("deviceProperties", json::array());
    if (devices.is_array() && !devices.empty() && devices.front().is_object())
      result_.device = devices.front().value("name", "");
  }

  KernelTrace read(OnCores on_cores) {
    const bool device =
        std::ranges::any_of(trace_.events, [](const ChromeEvent& event) { return category_of(event) == "kernel"; });
    read_operators();
    operators_.place_in(result_, !device && on_cores == OnCores::kTaken);
    for (const auto& [id, product] : products_) product_at_[operators_.of_id(id)] = product;
    for (Kernel& kernel : result_.kernels) add_product(kernel);
    result_.on_cores = !result_.kernels.empty();
    if (result_.on_cores) name_collectives();
    for (const ChromeEvent& event : trace_.events) take(event);
    if (result_.kernels.empty()) refuse();
    take_steps();
    take_gaps();
    read_distribution();
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

  /// Threads that the trainer's own code runs on, as opposed to those that a library keeps for its collectives.
  std::set<std::int64_t> trainer_threads() const {
    std::set<std::int64_t> threads;
    for (const ChromeEvent& event : trace_.events) {
      const std::string& name = event.name;
      const bool range = category_of(event) == "user_annotation" && !is_library_range(name);
      if (range || name.starts_with("autograd::") || name == "aten::mm" || name == "aten::addmm" ||
          name.starts_with("c10d::"))
        threads.insert(event.thread);
    }
    return threads;
  }

  void read_operators() {
    std::map<std::string, int> types;
    const std::set<std::int64_t> trainers = trainer_threads();
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      const ChromeEvent& event = trace_.events[i];
      const std::string category = category_of(event);
      const bool range = category == "user_annotation";
      if (!is_operator(category) && !range) continue;
      HostEvent host{
          event.thread, event.start_us * kMicro, (event.start_us + event.duration_us) * kMicro, id_of(event), {}};
      host.op.name = intern_.name(event.name);
      host.op.is_range = range;
      host.op.is_collective = range && is_library_range(event.name);
      host.is_detached = host.op.is_collective && trainers.contains(event.thread);
      if (const auto dims = event.args.find("Input Dims"); dims != event.args.end() && !range) {
        const Shapes shapes = shapes_from(*dims);
        host.op.shapes = intern_.shapes(shapes);
        if (auto product = product_of(event.name, shapes)) {
          const std::string type = operand_type(event);
          if (!type.empty()) product->operand_bytes = bytes_of_type(type);
          ++types[type];
          products_[host.id] = *product;
        }
      }
      operators_.add(std::move(host));
    }
    int most = 0;
    for (const auto& [type, count] : types) {
      if (count > most) most = count, result_.operand_type = type;
    }
  }

  /// Gloo's ranges tell how long a collective takes, the calls of c10d which one it is, of what and among whom. Calls
  /// begin in the order of ranges of their kind; a trace may begin between the two.
  void name_collectives() {
    std::vector<Kernel*> made;
    for (Kernel& kernel : result_.kernels) {
      if (kernel.kind == KernelClass::kCollective) made.push_back(&kernel);
    }
    std::vector<const ChromeEvent*> called;
    for (const ChromeEvent& event : trace_.events) {
      if (is_operator(category_of(event)) && (event.name.starts_with("c10d::") || is_functional(event)))
        called.push_back(&event);
    }
    std::ranges::stable_sort(made, {}, &Kernel::start_s);
    std::ranges::stable_sort(called, {}, &ChromeEvent::start_us);
    std::vector<Call> calls;
    const ChromeEvent* above = nullptr;
    for (const ChromeEvent* event : called) {
      if (is_functional(*event)) {
        above = event;
        continue;
      }
      const bool within =
          above != nullptr && event->thread == above->thread && event->start_us <= above->start_us + above->duration_us;
      calls.push_back({event, within ? group_of_call(*above) : ""});
    }
    const bool same = made.size() == calls.size();
    for (std::size_t i = 0; i < made.size(); ++i) {
      const auto call = same ? calls.begin() + static_cast<std::ptrdiff_t>(i) : call_of(*made[i], calls);
      name_collective(*made[i], call == calls.end() ? nullptr : &*call);
    }
  }

  struct Call {
    const ChromeEvent* event;
    std::string group;
    bool is_taken = false;
  };

  static bool is_functional(const ChromeEvent& event) {
    return event.name.find("c10d_functional::") != std::string::npos && event.name.find("wait") == std::string::npos;
  }

  /// What a functional collective was told last: the name of its group.
  static std::string group_of_call(const ChromeEvent& call) {
    const auto inputs = call.args.find("Concrete Inputs");
    if (inputs == call.args.end() || !inputs->is_array() || inputs->empty() || !inputs->back().is_string()) return "";
    return inputs->back().get<std::string>();
  }

  static std::string_view word_of(const std::string& name) {
    for (const std::string_view word : {"send", "recv", "broadcast", "barrier", "gather", "scatter", "all_to_all"}) {
      if (name.find(word) != std::string::npos) return word;
    }
    return name.find("alltoall") != std::string::npos ? "all_to_all" : "";
  }

  /// The first call of the range's kind that began before it and has no range yet.
  std::vector<Call>::iterator call_of(const Kernel& range, std::vector<Call>& calls) const {
    const std::string_view kind = word_of(result_.name_of(range));
    for (auto call = calls.begin(); call != calls.end() && call->event->start_us * kMicro <= range.start_s; ++call) {
      if (call->is_taken || word_of(call->event->name) != kind) continue;
      call->is_taken = true;
      return call;
    }
    return calls.end();
  }

  void name_collective(Kernel& kernel, const Call* call) const {
    const std::string& name = call == nullptr ? result_.name_of(kernel) : call->event->name;
    kernel.collective = collective_named(name);
    if (!kernel.collective) kernel.other_collective = name;
    if (call == nullptr) return;
    kernel.bytes = bytes_of_call(*call->event);
    kernel.group = call->group;
    const auto inputs = call->event->args.find("Concrete Inputs");
    const bool transfer = name == "c10d::send" || name.starts_with("c10d::recv_");
    constexpr std::size_t kPeer = 2;  // after the tensors and the group
    if (!transfer || inputs == call->event->args.end() || inputs->size() <= kPeer) return;
    const json& peer = inputs->at(kPeer);
    if (peer.is_string() && !peer.get_ref<const std::string&>().empty())
      kernel.peer = std::atoi(peer.get<std::string>().c_str());
  }

  /// Of the largest of the two tensors that a call begins with: what comes out, and what goes in.
  static double bytes_of_call(const ChromeEvent& call) {
    const auto dims = call.args.find("Input Dims");
    if (dims == call.args.end() || !dims->is_array()) return 0;
    double most = 0;
    for (const auto& input : *dims) most = std::max(most, elements_of(input));
    return most * bytes_of_type(operand_type(call));
  }

  /// Of a tensor, or of all tensors of a list.
  static double elements_of(const json& input) {
    if (!input.is_array() || input.empty()) return 0;
    double product = 1, sum = 0;
    for (const auto& each : input) {
      if (each.is_number()) product *= each.get<double>();
      if (each.is_array()) sum += elements_of(each);
    }
    return input.front().is_array() ? sum : product;
  }

  void add_product(Kernel& kernel) const {
    const auto product = product_at_.find(kernel.launched_by);
    if (kernel.launched_by < 0 || kernel.kind != KernelClass::kProduct || product == product_at_.end()) return;
    kernel.m = product->second.m;
    kernel.n = product->second.n;
    kernel.k = product->second.k;
    kernel.batch = product->second.batch;
    kernel.operand_bytes = product->second.operand_bytes;
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
      kernel.name = intern_.name(event.name);
      kernel.launched_by = operators_.of_id(id_of(event));
      kernel.stream = event.thread;
      add_product(kernel);
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
    for (const auto& [begin, end] : steps_) result_.marked.push_back({begin * kMicro, end * kMicro});
    if (result_.is_truncated && result_.marked.size() > 1) result_.marked.pop_back();
    // Rates are learnt from the middle ones: the first warms up, and the last may be cut.
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

  /// Ranks, groups and the clock, as far as they are told.
  void read_distribution() {
    const json& head = trace_.head;
    constexpr double kNano = 1e-9;
    if (const auto base = head.find("baseTimeNanoseconds"); base != head.end() && base->is_number())
      result_.base_s = base->get<double>() * kNano;
    result_.host = text_of(head, "host_name");
    const auto info = head.find("distributedInfo");
    if (info == head.end() || !info->is_object()) return;
    result_.rank = small_integer(*info, "rank");
    result_.world_size = small_integer(*info, "world_size");
    const auto groups = info->find("pg_config");
    if (groups == info->end() || !groups->is_array()) return;
    for (const json& each : *groups) {
      if (!each.is_object()) continue;
      ProcessGroup group{
          text_of(each, "pg_name"), text_of(each, "pg_desc"), small_integer(each, "pg_size").value_or(0), {}};
      if (const auto ranks = each.find("ranks"); ranks != each.end() && ranks->is_array()) {
        for (const json& rank : *ranks) {
          if (rank.is_number_integer()) group.ranks.push_back(rank.get<int>());
        }
      }
      result_.groups.push_back(std::move(group));
    }
  }

  static std::optional<int> small_integer(const json& object, const char* key) {
    constexpr std::int64_t kMost = 1 << 24;
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_integer()) return std::nullopt;
    const auto value = found->get<std::int64_t>();
    return value >= 0 && value <= kMost ? std::optional(static_cast<int>(value)) : std::nullopt;
  }

  static std::string text_of(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
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
  Interner intern_{result_};
  HostOperators operators_;
  std::map<std::int64_t, Product> products_;    // by the id of the operator
  std::map<std::int32_t, Product> product_at_;  // by its place
  std::map<double, double> steps_;
  std::map<std::int64_t, std::vector<double>> launches_;  // by thread
};

}  // namespace

KernelTrace read_kineto(const ChromeTrace& trace, OnCores on_cores) { return KinetoReader(trace).read(on_cores); }

}  // namespace trivium::calibration::imports
