#include "calibration/measurements/training_log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "base/units.h"
#include "calibration/measurements/statistics.h"
#include "calibration/measurements/text_lines.h"

namespace trivium::calibration::imports {
namespace {

constexpr double kMilli = 1e-3, kTera = 1e12;

/// A memory of zero is what is printed where there is no GPU.
void raise(std::optional<double>& to, std::optional<double> value, double unit) {
  if (value && *value > 0) to = std::max(to.value_or(0), *value * unit);
}

template <class Integer>
void set(std::optional<Integer>& to, std::optional<double> value) {
  if (value && *value >= 1 && *value < 1e9) to = static_cast<Integer>(std::llround(*value));
}

/// Seconds of a stamp like "2026-11-23 12:00:01,250", from some fixed day; none where there is none.
std::optional<double> stamp_of(std::string_view line) {
  constexpr std::string_view kPrefix = "[titan] ";
  const std::size_t at = line.find(kPrefix);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string text(line.substr(at + kPrefix.size(), 23));
  int year = 0, hour = 0, minute = 0, second = 0, milli = 0;
  unsigned month = 0, day = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2u %2d:%2d:%2d,%3d", &year, &month, &day, &hour, &minute, &second, &milli) !=
      7) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  const auto days = static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  return ((days * 24 + hour) * 60 + minute) * 60 + second + kMilli * milli;
}

class TrainingLogReader {
 public:
  TrainingLog read(std::string_view text, const std::string& file) {
    TextLines input = lines_of(text);
    log_.file = file;
    log_.is_truncated = !input.is_last_whole;
    if (log_.is_truncated && !input.lines.empty()) input.lines.pop_back();  // its numbers may be cut
    for (const std::string& line : input.lines) take(line);
    spread_stamps();
    for (const auto& [iteration, seconds] : seconds_) log_.iteration_s.push_back(seconds);
    for (const auto& [iteration, rate] : rates_) log_.flops_per_s.push_back(rate);
    if (log_.iteration_s.empty()) {
      throw base::Failure(
          base::ErrorKind::kInput,
          file +
              ": names no whole iteration with its time (\"elapsed time per iteration (ms)\", \"iter "
              "time (s)\", \"CurrSamplesPerSec\", \"step N … seconds\" or two of torchtitan's \"step: N\")");
    }
    return std::move(log_);
  }

 private:
  void take(std::string_view line) {
    if (has(line, "elapsed time per iteration (ms):")) return megatron_iteration(line);
    if (has(line, "iter time (s):")) return deepspeed_pipeline(line);
    if (has(line, "CurrSamplesPerSec=")) return deepspeed_throughput(line);
    if (line.starts_with("step ") && has(line, " seconds ")) return pytorch_step(line);
    if (has(line, "[titan] ") && has(line, "tps:")) return torchtitan_step(line);
    if (has(line, "memory (MB) | allocated:")) return megatron_memory(line);
    if (has(line, "Max_MA ")) return deepspeed_memory(line);
    if (has(line, "model-parallel size") || has(line, "model-parallel-size")) return sizes(line);
    if (names_batch(line)) batch(line);
    if (has(line, "time (ms) | ")) log_.perturbed = true;
    if (has(line, " ...")) setting(line);
  }

  // By itself: elastic settings have a max_train_batch_size and a min_train_batch_size.
  static bool names_batch(std::string_view line) {
    constexpr std::string_view kName = "train_batch_size";
    const std::size_t at = line.find(kName);
    if (at == std::string_view::npos) return false;
    return at == 0 || line[at - 1] == ' ' || line[at - 1] == '"';
  }

  // `  train_batch_size ............. 256` of DeepSpeed's dump, or `"train_batch_size": 256,` of the user's JSON.
  void batch(std::string_view line) {
    std::vector<std::string> words = words_of(line);
    if (words.back().ends_with(',')) words.back().pop_back();
    set(log_.global_batch, number_of(words.back()));
  }

  // `step 3 loss 2.079442 seconds 0.1234`: the script of `export --to fsdp2`.
  void pytorch_step(std::string_view line) {
    const auto step = number_after(line, "step "), seconds = number_after(line, " seconds ");
    if (!step || !seconds || *seconds <= 0) return;
    seconds_[std::llround(*step)] = *seconds;
    if (log_.trainer.empty()) log_.trainer = "PyTorch";
  }

  // torchtitan logs every few steps, with the time of day; colours may stand between its words.
  void torchtitan_step(std::string_view line) {
    const auto step = number_after(line, "step:");
    const auto stamp = stamp_of(line);
    if (!step || !stamp) return;
    const auto at = std::llround(*step);
    stamps_[at] = *stamp;
    log_.trainer = "torchtitan";
    const auto rate = number_after(line, "tflops:");
    if (rate && *rate > 0 && at > 1) rates_[at] = *rate * kTera;
    raise(log_.reserved_bytes, number_after(line, "memory:"), base::kGiB);
  }

  // An interval of several steps stands for the mean of each, once.
  void spread_stamps() {
    for (auto later = stamps_.begin(); later != stamps_.end(); ++later) {
      if (later == stamps_.begin()) continue;
      const auto before = std::prev(later);
      const double seconds = (later->second - before->second) / static_cast<double>(later->first - before->first);
      if (seconds > 0) seconds_[later->first] = seconds;
    }
  }

  void megatron_iteration(std::string_view line) {
    const auto iteration = number_after(line, "iteration "),
               ms = number_after(line, "elapsed time per iteration (ms):");
    if (!iteration || !ms || *ms <= 0) return;
    const auto at = std::llround(*iteration);
    seconds_[at] = *ms * kMilli;
    if (log_.trainer.empty()) log_.trainer = "Megatron-LM";
    if (has(line, "samples per second:") && has(line, "TFLOPs:")) log_.trainer = "Megatron-DeepSpeed";
    for (const char* key : {"throughput per GPU (TFLOP/s/GPU):", "TFLOPs:"}) {
      const auto rate = number_after(line, key);
      if (rate && *rate > 0) rates_[at] = *rate * kTera;  // zero is a small one, rounded
    }
    set(log_.global_batch, number_after(line, "global batch size:"));
  }

  void deepspeed_pipeline(std::string_view line) {
    const auto steps = number_after(line, "steps:"), seconds = number_after(line, "iter time (s):"),
               rate = number_after(line, "samples/sec:");
    if (!steps || !seconds || *seconds <= 0) return;
    if (log_.trainer.empty()) log_.trainer = "DeepSpeed";
    seconds_[std::llround(*steps)] = *seconds;
    if (rate && *rate > 0 && !log_.global_batch) set(log_.global_batch, *rate * *seconds);
  }

  // Samples a second of the last step, over all ranks: the batch has to be known.
  void deepspeed_throughput(std::string_view line) {
    const auto step = number_after(line, "global_step="), rate = number_after(line, "CurrSamplesPerSec=");
    raise(log_.peak_bytes, number_after(line, "MaxMemAllocated="), base::kGiB);
    if (!step || !rate || *rate <= 0 || !log_.global_batch) return;
    if (log_.trainer.empty()) log_.trainer = "DeepSpeed";
    seconds_.try_emplace(std::llround(*step), static_cast<double>(*log_.global_batch) / *rate);
  }

  void megatron_memory(std::string_view line) {
    raise(log_.peak_bytes, number_after(line, "max allocated:"), base::kMiB);
    raise(log_.reserved_bytes, number_after(line, "max reserved:"), base::kMiB);
  }

  void deepspeed_memory(std::string_view line) {
    raise(log_.peak_bytes, number_after(line, "Max_MA "), base::kGiB);
    raise(log_.reserved_bytes, number_after(line, "Max_CA "), base::kGiB);
  }

  void sizes(std::string_view line) {
    for (const char* key :
         {"tensor-model-parallel size:", "tensor-model-parallel-size:", "tensor-model-parallel size "}) {
      set(log_.tensor, number_after(line, key));
    }
    for (const char* key : {"pipeline-model-parallel size:", "pipeline-model-parallel size "})
      set(log_.pipeline, number_after(line, key));
    for (const char* key : {" data-parallel size:", "data-parallel-size:", " data-parallel size "})
      set(log_.data, number_after(line, key));
    set(log_.context, number_after(line, " context-parallel size:"));
  }

  // Values after dots: `  tensor_model_parallel_size ...... 2` of Megatron's dump of arguments, and its timers `
  // forward-backward ...... : (12.30, 12.40)`, printed where the synchronising ones are enabled.
  void setting(std::string_view line) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 3 || !words[1].starts_with("...")) return;
    log_.perturbed |= words[0] == "forward-backward";
    if (words.size() > 3) return;
    const auto value = number_of(words[2]);
    if (words[0] == "tensor_model_parallel_size") set(log_.tensor, value);
    if (words[0] == "pipeline_model_parallel_size") set(log_.pipeline, value);
    if (words[0] == "context_parallel_size") set(log_.context, value);
    if (words[0] == "data_parallel_size") set(log_.data, value);
    if (words[0] == "global_batch_size") set(log_.global_batch, value);
  }

  TrainingLog log_;
  std::map<std::int64_t, double> stamps_;           // by step: the time of day
  std::map<std::int64_t, double> seconds_, rates_;  // by iteration: what is printed twice counts once, the last time
};

}  // namespace

double TrainingLog::typical_iteration_s() const {
  constexpr std::size_t kWarmUp = 5;
  const std::size_t skipped = std::min(kWarmUp, iteration_s.size() / 2);
  return median({iteration_s.begin() + static_cast<std::ptrdiff_t>(skipped), iteration_s.end()});
}

TrainingLog read_training_log(std::string_view text, const std::string& file) {
  return TrainingLogReader().read(text, file);
}

bool is_training_log(const FileText& file) {
  const std::string_view text = file.whole();
  return file.form() == FileText::Form::kText &&
         (has(text, "elapsed time per iteration (ms)") || has(text, "iter time (s)") ||
          has(text, "CurrSamplesPerSec=") || (has(text, "\nstep ") && has(text, " seconds ")) ||
          (has(text, "[titan] ") && has(text, "tps:")));
}

}  // namespace trivium::calibration::imports
