#include "tests/runtime/checkpoint/training.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <stop_token>

#include "hardware_profiles/load.h"
#include "program/lower/lower.h"
#include "program/verify/verify.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/cpu/backend.h"
#include "runtime/executor/train.h"
#include "simulator/predict/prepare.h"

namespace trivium::runtime::checkpoint {
namespace {

constexpr std::int64_t kCorpusTokens = 4000;

/// What all ranks hold, gathered.
struct Gathered {
  Collection values, first, second;
  void add(const program::Program& program, int rank, const Arenas& arenas) {
    values.add(program, rank, arenas, Quantity::kValue);
    first.add(program, rank, arenas, Quantity::kFirstMoment);
    second.add(program, rank, arenas, Quantity::kSecondMoment);
  }
  Whole whole() const {
    Whole all;
    const auto put = [&](const std::string& what, const Collection& collection) {
      for (const auto& [name, tensor] : collection.tensors()) {
        for (const double x : tensor) {
          if (std::isnan(x)) throw std::runtime_error(what + name + ": an element is held by no rank");
        }
        all[what + name] = tensor;
      }
    };
    put("value of ", values);
    put("first moment of ", first);
    put("second moment of ", second);
    return all;
  }
  bool replicas_agree() const { return values.replicas_agree() && first.replicas_agree() && second.replicas_agree(); }
};

/// A checkpointer that also looks at the memory after the last step.
class Watching final : public StepCheckpointer {
 public:
  Watching(std::unique_ptr<StepCheckpointer> checkpointer, std::function<void()> at_end)
      : checkpointer_(std::move(checkpointer)), at_end_(std::move(at_end)) {}
  Progress begin(const Progress& fresh) override { return checkpointer_->begin(fresh); }
  void after_step(const Progress& done, bool last) override {
    checkpointer_->after_step(done, last);
    if (last) at_end_();
  }

 private:
  std::unique_ptr<StepCheckpointer> checkpointer_;
  std::function<void()> at_end_;
};

}  // namespace

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "trivium-checkpoint-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

program::Job small_job(const program::Plan& plan) {
  program::Job job = testing::toy_job(plan);
  job.model.layers = 4;
  return job;
}

Toy train(const program::Job& job, const std::filesystem::path& folder, std::int64_t total, bool resume,
          std::int64_t stop_after, std::int64_t every, std::int64_t keep, const BatchRamp& ramp) {
  const program::VerifiedProgram program = verified_program(job);
  const auto corpus = testing::toy_corpus(kCorpusTokens, static_cast<std::int32_t>(job.model.vocab));
  CheckpointerOptions keeping;
  keeping.folder = folder;
  keeping.every = every;
  keeping.keep = keep;
  keeping.resume = resume;
  keeping.ramp = ramp;
  keeping.job = {job, "generic-cpu"};
  keeping.corpus_tokens = corpus->tokens();
  Gathered gathered;
  std::stop_source stop;
  TrainOptions options;
  options.steps = total;
  options.timeline_steps = 0;
  options.stop = stop.get_token();
  options.training_schedule.ramp = ramp;
  options.program_for = [&](std::int64_t batch) {
    program::Job smaller = job;
    smaller.training.global_batch = batch;
    return verified_program(smaller);
  };
  options.on_step = [&](const program::StepRecord& step) {
    if (step.step + 1 == stop_after) stop.request_stop();
  };
  options.checkpointer = [&, make = make_checkpointers(keeping)](
                             const program::Program& p, Communicator& communicator, Arenas& arenas,
                             Backend& backend) -> std::unique_ptr<StepCheckpointer> {
    return std::make_unique<Watching>(make(p, communicator, arenas, backend),
                                      [&, rank = communicator.rank()] { gathered.add(program, rank, arenas); });
  };
  const TrainResult result = train_in_threads(program, *corpus, options);
  if (!result.refused.empty()) throw std::runtime_error(result.refused);
  Toy toy;
  for (const program::StepRecord& step : result.steps) {
    toy.losses.push_back(step.loss);
    toy.scales.push_back(step.loss_scale);
  }
  toy.whole = gathered.whole();
  return toy;
}

Whole loaded(const program::Program& program, const std::filesystem::path& checkpoint, bool& replicas_agree) {
  const Opened opened = open(checkpoint, true);
  Gathered gathered;
  cpu::CpuBackend core;
  for (int rank = 0; rank < program.mesh.size(); ++rank) {
    const Arenas arenas(program, program.role_of(rank), core);
    fill(opened.tensors, program, rank, arenas);
    gathered.add(program, rank, arenas);
  }
  replicas_agree = gathered.replicas_agree();
  return gathered.whole();
}

std::string first_difference(const Whole& a, const Whole& b) {
  if (a.size() != b.size()) return "the number of tensors";
  for (const auto& [name, values] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second.size() != values.size() ||
        std::memcmp(values.data(), other->second.data(), values.size() * sizeof(double)) != 0) {
      return name;
    }
  }
  return "";
}

}  // namespace trivium::runtime::checkpoint
