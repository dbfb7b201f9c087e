// trivium sample: text from a checkpoint.
#include "runtime/generate/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/quote.h"
#include "cli/options/command.h"
#include "cli/options/values.h"
#include "cli/render/render.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/whole.h"
#include "runtime/text/tokenizer.h"

namespace trivium::cli {
namespace {

struct SampleOptions {
  std::string checkpoint, prompt, vocabulary, merges;
  runtime::generate::SampleOptions how;
};

std::unique_ptr<runtime::text::Tokenizer> tokenizer_of(const SampleOptions& options) {
  if (options.vocabulary.empty()) return runtime::text::bytes_tokenizer();
  return runtime::text::open_bpe(options.vocabulary, options.merges);
}

runtime::checkpoint::StoredTensors borrowed(const runtime::checkpoint::WholeTensors& whole, const std::string& where) {
  std::map<std::string, runtime::checkpoint::StoredTensors::Borrowed> values;
  for (const auto& [name, tensor] : whole) values[name] = {tensor.rows, tensor.columns, tensor.values.data()};
  return {values, where};
}

void sample(const SampleOptions& options) {
  const auto path = runtime::checkpoint::newest_or_throw(options.checkpoint);
  const runtime::checkpoint::Opened opened = runtime::checkpoint::open(path, true);
  const models::Model& model = opened.description.job.job.model;
  const auto tokenizer = tokenizer_of(options);
  std::vector<std::int32_t> prompt = tokenizer->encode(options.prompt);
  if (prompt.empty())
    throw base::Failure(base::ErrorKind::kUsage, "--prompt: give at least one character to begin with");
  const std::int32_t highest = *std::max_element(prompt.begin(), prompt.end());
  if (highest >= model.vocab) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("the prompt has token {}, the model's vocabulary is {}; give the --vocabulary and "
                                    "--merges it was trained with",
                                    highest, model.vocab));
  }
  print_as_it_is(options.prompt);
  runtime::generate::SampleOptions how = options.how;
  how.on_token = [&](std::int32_t token) {
    print_as_it_is(tokenizer->decode({&token, 1}));
    return std::fflush(stdout) == 0;  // nobody reads on: nothing more to write
  };
  const program::Lora& adapters = opened.description.job.job.training.lora;
  if (adapters.used()) {
    runtime::checkpoint::WholeTensors whole = runtime::checkpoint::whole_values(opened.tensors);
    runtime::checkpoint::merge_adapters(whole, adapters.scale());
    runtime::generate::sample(model, borrowed(whole, path.string()), std::move(prompt), how);
  } else {
    runtime::generate::sample(model, opened.tensors, std::move(prompt), how);
  }
  print("\n");
}

}  // namespace

void add_sample(CLI::App& app, int& exit_code) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  constexpr double kHottest = 1e6;
  auto options = std::make_shared<SampleOptions>();
  CLI::App* command = app.add_subcommand("sample", "Generate text from a checkpoint");
  command->add_option("--checkpoint", options->checkpoint, "Folder of checkpoints, or of one step")
      ->required()
      ->type_name("DIR");
  command->add_option("--prompt", options->prompt, "Text to continue")->required();
  command->add_option("--tokens", options->how.tokens, "Tokens to generate")
      ->transform(token_suffixes())
      ->check(CLI::Range(std::int64_t{1}, kMost))
      ->capture_default_str();
  command->add_option("--temperature", options->how.temperature, "0: always the most likely token")
      ->check(CLI::Range(0.0, kHottest))
      ->capture_default_str();
  command->add_option("--top-k", options->how.top_k, "Sample only from the k most likely tokens (0: all)")
      ->check(CLI::Range(std::int64_t{0}, kMost))
      ->capture_default_str();
  command->add_option("--seed", options->how.seed, "Seed of the sampling")->capture_default_str();
  CLI::Option* vocabulary = command->add_option("--vocabulary", options->vocabulary, "GPT-2's vocab.json; else bytes");
  CLI::Option* merges = command->add_option("--merges", options->merges, "GPT-2's merges.txt");
  vocabulary->type_name("FILE")->needs(merges);
  merges->type_name("FILE")->needs(vocabulary);
  command->callback([options, &exit_code] {
    sample(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
