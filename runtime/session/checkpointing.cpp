#include "runtime/session/checkpointing.h"

#include "base/quote.h"
#include "base/say.h"
#include "runtime/checkpoint/checkpointer.h"

namespace trivium::runtime::session {

CheckpointerFactory checkpointers_of(const CheckpointOptions& options, const BatchRamp& ramp,
                                     const program::PlanFile& job, std::int64_t corpus_tokens) {
  if (options.folder.empty()) return {};
  checkpoint::CheckpointerOptions keeping;
  keeping.folder = options.folder;
  keeping.every = options.every;
  keeping.keep = options.keep;
  keeping.resume = options.resume;
  keeping.job = job;
  keeping.ramp = ramp;
  keeping.corpus_tokens = corpus_tokens;
  keeping.note = [](const std::string& text) { base::say("note: {}\n", base::one_line(text)); };
  return checkpoint::make_checkpointers(keeping);
}

}  // namespace trivium::runtime::session
