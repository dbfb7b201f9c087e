// Text of a model with random weights, on one core: tokens a second with keys and values kept, and without.
//   bench_sampling [MODEL [TOKENS]]
// GPT-2 124M and 128 tokens after a prompt of 16, by default.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "models/load.h"
#include "program/lower/layout.h"
#include "program/lower/lower.h"
#include "runtime/checkpoint/whole.h"
#include "runtime/generate/forward.h"
#include "runtime/generate/sample.h"

namespace {

using namespace trivium;
namespace checkpoint = runtime::checkpoint;
namespace generate = runtime::generate;

constexpr std::int64_t kPrompt = 16, kTokens = 128;

checkpoint::WholeTensors random_weights(const models::Model& model) {
  program::Job job;
  job.model = model;
  job.training.sequence = job.training.global_batch = 1;
  const auto program = std::get<program::Program>(program::lower(job));
  checkpoint::WholeTensors tensors;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02F);
  for (const program::Parameter& p : program.kinds.front().parameters) {
    checkpoint::WholeTensor& tensor = tensors[program::global_name(p, 0)];
    tensor = {p.rows, p.columns, std::vector<float>(static_cast<std::size_t>(p.rows * p.columns))};
    for (float& value : tensor.values) value = static_cast<float>(p.init_value) + normal(random);
  }
  return tensors;
}

/// Every token from the whole text, in programs whose room doubles.
std::vector<std::int32_t> recomputed(const models::Model& model, const checkpoint::StoredTensors& stored,
                                     std::vector<std::int32_t> text, std::int64_t tokens) {
  std::optional<generate::Forward> forward;
  std::vector<std::int32_t> drawn;
  for (std::int64_t i = 0; i < tokens; ++i) {
    if (!forward || forward->longest() < std::ssize(text)) {
      const std::int64_t room = static_cast<std::int64_t>(std::bit_ceil(text.size()));
      forward.reset();
      forward.emplace(model, stored, std::min(model.max_sequence, std::max<std::int64_t>(32, room)));
    }
    text.push_back(generate::choose((*forward)(text).back(), 0, 0, 0));
    drawn.push_back(text.back());
  }
  return drawn;
}

template <class Work>
double seconds_of(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const models::Model model = models::load_model(argc > 1 ? argv[1] : "gpt2-124m");
  generate::SampleOptions options;
  options.tokens = argc > 2 ? std::stoll(argv[2]) : kTokens;
  options.temperature = 0;
  const checkpoint::WholeTensors tensors = random_weights(model);
  std::map<std::string, checkpoint::StoredTensors::Borrowed> borrowed;
  for (const auto& [name, tensor] : tensors) borrowed[name] = {tensor.rows, tensor.columns, tensor.values.data()};
  const checkpoint::StoredTensors stored(borrowed, "weights");
  std::vector<std::int32_t> prompt(kPrompt), kept, whole;
  for (std::int64_t i = 0; i < kPrompt; ++i) prompt[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(7 * i + 1);
  const double with = seconds_of([&] { kept = generate::sample(model, stored, prompt, options); });
  const double without = seconds_of([&] { whole = recomputed(model, stored, prompt, options.tokens); });
  const auto rate = [&](double seconds) { return static_cast<double>(options.tokens) / seconds; };
  fmt::print(
      "model,prompt,tokens,tokens_per_s,tokens_per_s_recomputed,ratio,same_tokens\n{},{},{},{:.1f},{:.2f},{:.1f},{}\n",
      model.name, kPrompt, options.tokens, rate(with), rate(without), without / with, kept == whole);
}
