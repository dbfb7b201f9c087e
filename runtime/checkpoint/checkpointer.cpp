#include "runtime/checkpoint/checkpointer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "runtime/checkpoint/agree.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/lock.h"
#include "runtime/cpu/backend.h"

namespace trivium::runtime::checkpoint {
namespace {

namespace fs = std::filesystem;

using HeldLock = std::unique_ptr<FolderLock>;

class Checkpointer final : public StepCheckpointer {
 public:
  Checkpointer(const CheckpointerOptions& options, std::shared_ptr<HeldLock> lock, const program::Program& program,
               Communicator& communicator, Arenas& arenas, Backend& backend)
      : options_(options),
        lock_(std::move(lock)),
        program_(program),
        communicator_(communicator),
        arenas_(arenas),
        backend_(backend) {
    std::vector<int> ranks(static_cast<std::size_t>(communicator.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    everyone_ = communicator.make_group(ranks);
  }

  Progress begin(const Progress& fresh) override {
    std::array<char, 4096> path{};
    agree(communicator_, everyone_, [&]() -> ShardFile {
      if (leads()) choose(path);
      return {};
    });
    communicator_.broadcast(everyone_, path.data(), path.size(), 0);
    if (path.front() == '\0') return fresh;
    Progress saved = fresh;
    agree(communicator_, everyone_, [&]() -> ShardFile {
      const Opened opened = open(path.data(), false);  // rank 0 has verified the files
      std::string why = cannot_continue(opened.description, options_.job.job, options_.corpus_tokens);
      const std::int64_t samples =
          samples_before(options_.ramp, options_.job.job.training.global_batch, opened.description.step);
      if (why.empty() && samples != opened.description.samples) {
        why = fmt::format("its {} steps read {} samples, with this --ramp-batch they would have read {}",
                          opened.description.step, opened.description.samples, samples);
      }
      if (!why.empty()) {
        throw base::Failure(base::ErrorKind::kInput, fmt::format("{}: {}", base::one_line(path.data()), why));
      }
      for (const std::string& member : changed_members(opened.description, options_.job.job)) {
        note(fmt::format("the model's {}", member));
      }
      fill_rank(opened.tensors);
      saved.step = opened.description.step;
      // A training that did not scale its loss begins to do so here; its skipped steps stay.
      const bool scaled = opened.description.job.job.plan.precision == program::DType::kFp16;
      if (scaled && program_.settings.scales_loss) {
        saved.scale = opened.description.scale;
      } else {
        saved.scale.skipped = opened.description.scale.skipped;
      }
      return {};
    });
    note(fmt::format("resumed at step {} from {}", saved.step, path.data()));
    saved_ = saved.step;
    return saved;
  }

  void after_step(const Progress& progress, bool last) override {
    const std::int64_t done = progress.step;
    const bool due = options_.every > 0 && done % options_.every == 0;
    if ((!due && !last) || done == saved_) return;
    Description description;
    description.step = done;
    description.samples = samples_before(options_.ramp, options_.job.job.training.global_batch, done);
    description.corpus_tokens = options_.corpus_tokens;
    description.scale = progress.scale;
    description.job = options_.job;
    const auto write = [&](const Arenas& host) {
      save(options_.folder, std::move(description), options_.keep, program_, host, communicator_, everyone_);
    };
    backend_.shares_host_memory() ? write(arenas_) : write(arenas_.on_host(backend_, kKeptSpaces));
    saved_ = done;
    if (last) note(fmt::format("saved step {} to {}", done, (options_.folder / folder_name(done)).string()));
  }

 private:
  bool leads() const { return communicator_.rank() == 0; }
  void note(const std::string& text) const {
    if (leads() && options_.note) options_.note(text);
  }

  void fill_rank(const StoredTensors& tensors) {
    if (backend_.shares_host_memory()) return fill(tensors, program_, communicator_.rank(), arenas_);
    cpu::CpuBackend core;
    const Arenas host(program_, program_.role_of(communicator_.rank()), core, kKeptSpaces);
    fill(tensors, program_, communicator_.rank(), host);
    arenas_.take(backend_, host, kKeptSpaces);
    backend_.finish();
  }

  // Rank 0's choice of where to begin; empty: at the beginning.
  void choose(std::array<char, 4096>& path) {
    std::error_code ignored;
    const std::string folder = base::one_line(options_.folder.string());
    if (options_.resume && !fs::is_directory(options_.folder, ignored)) {
      throw base::Failure(
          base::ErrorKind::kInput,
          fmt::format("{}: there is no such folder to resume from; leave --resume out to begin", folder));
    }
    take_lock();
    refuse_odd_latest(options_.folder);
    if (!options_.resume) {
      if (const Listing listing = list(options_.folder); !listing.whole.empty()) {
        throw base::Failure(base::ErrorKind::kUsage,
                            fmt::format("{} already holds {}; go on with --resume or name another folder", folder,
                                        base::one_line(listing.whole.front().filename().string())));
      }
      return;
    }
    const Newest found = newest(options_.folder);
    for (const std::string& text : found.passed_over) note(text);
    if (!found.path && !list(options_.folder).whole.empty()) {
      throw base::Failure(
          base::ErrorKind::kInput,
          fmt::format("{}: none of its checkpoints can be read, and nothing was changed; mend one, or begin in another "
                      "folder without --resume",
                      folder));
    }
    if (!found.path) return note(fmt::format("{} holds no checkpoint; beginning at step 0", folder));
    const std::string text = found.path->string();
    if (text.size() >= path.size()) throw base::Failure(base::ErrorKind::kInput, "the checkpoint's path is too long");
    std::copy(text.begin(), text.end(), path.begin());
  }

  // Shows also, before anything was computed, that the folder can be written.
  void take_lock() {
    std::error_code error;
    fs::create_directories(options_.folder, error);
    if (error) {
      throw base::Failure(
          base::ErrorKind::kRuntime,
          fmt::format("{}: cannot make the folder: {}", base::one_line(options_.folder.string()), error.message()));
    }
    *lock_ = std::make_unique<FolderLock>(options_.folder, options_.note);
  }

  CheckpointerOptions options_;
  std::shared_ptr<HeldLock> lock_;  // longer than one checkpointer of a training whose batch grows
  const program::Program& program_;
  Communicator& communicator_;
  Arenas& arenas_;
  Backend& backend_;
  int everyone_ = -1;
  std::int64_t saved_ = -1;  // the step whose checkpoint is on the disk
};

}  // namespace

CheckpointerFactory make_checkpointers(const CheckpointerOptions& options) {
  return [options, lock = std::make_shared<HeldLock>()](const program::Program& program, Communicator& communicator,
                                                        Arenas& arenas, Backend& backend) {
    return std::make_unique<Checkpointer>(options, lock, program, communicator, arenas, backend);
  };
}

}  // namespace trivium::runtime::checkpoint
