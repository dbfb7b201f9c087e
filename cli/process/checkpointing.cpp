#include "cli/process/checkpointing.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/quote.h"
#include "base/say.h"
#include "cli/render/output.h"
#include "runtime/checkpoint/keeper.h"

namespace trivium::cli {

void add_checkpoint_options(CLI::App& command, CheckpointOptions& options) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  CLI::Option* folder =
      command
          .add_option("--checkpoint", options.folder, "Keep checkpoints here; the last step and Ctrl-C write one too")
          ->type_name("DIR");
  mark_output(command, folder, OutputKind::kFolder);
  command.add_option("--checkpoint-every", options.every, "Steps from one checkpoint to the next (0: the last alone)")
      ->check(CLI::Range(std::int64_t{0}, kMost))
      ->needs(folder);
  command.add_option("--keep", options.keep, "How many of the newest checkpoints stay (0: all)")
      ->check(CLI::Range(std::int64_t{0}, kMost))
      ->needs(folder)
      ->capture_default_str();
  command.add_flag("--resume", options.resume, "Go on from the newest checkpoint, under this plan")->needs(folder);
}

runtime::KeeperFactory keepers_of(const CheckpointOptions& options, const JobRequest& request,
                                  std::int64_t corpus_tokens) {
  if (options.folder.empty()) return {};
  runtime::checkpoint::KeeperOptions keeping;
  keeping.folder = options.folder;
  keeping.every = options.every;
  keeping.keep = options.keep;
  keeping.resume = options.resume;
  keeping.job = request.file;
  keeping.ramp = options.ramp;
  keeping.corpus_tokens = corpus_tokens;
  keeping.note = [](const std::string& text) { base::say("note: {}\n", base::one_line(text)); };
  return runtime::checkpoint::make_keepers(keeping);
}

}  // namespace trivium::cli
