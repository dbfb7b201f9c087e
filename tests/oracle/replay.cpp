#include "tests/oracle/replay.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "base/json_reader.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/whole.h"
#include "runtime/data/corpus.h"
#include "runtime/executor/collect.h"
#include "runtime/executor/rank_executor.h"
#include "runtime/executor/train.h"
#include "runtime/generate/forward.h"
#include "runtime/inproc/threads.h"
#include "simulator/predict/prepare.h"
#include "tests/support/verified_program.h"

namespace trivium::oracle {
namespace {

using support::verified_program;

namespace fs = std::filesystem;
namespace checkpoint = runtime::checkpoint;

double relative(double ours, double theirs) { return std::abs(ours - theirs) / std::abs(theirs); }

template <class Ours>
double relative(const Ours& ours, const std::vector<float>& theirs) {
  double largest = 0, most = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(theirs[i])));
    most = std::max(most, std::abs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i])));
  }
  return most / largest;
}

double worst_of(const std::vector<double>& ours, const std::vector<double>& theirs) {
  if (ours.size() != theirs.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, relative(ours[i], theirs[i]));
  return worst;
}

/// One folder's files.
struct Case {
  explicit Case(const fs::path& folder)
      : model(model_of(folder)),
        weights(whole(folder / "model.safetensors", checkpoint::Stored::kWeights)),
        gradients(whole(folder / "gradients.safetensors", checkpoint::Stored::kGradients)),
        expected(base::read_json_file(folder / "expected.json")) {
    if (model.experts) {  // transformers drops no token, and trains without a balance loss unless told
      model.experts->capacity_factor = static_cast<double>(model.experts->count);
      model.experts->balance_loss = 0;
    }
    if (model.mtp) model.mtp->loss_scale = expected.at("mtp_loss_scale");
    for (const auto& [name, tensor] : weights) borrowed[name] = {tensor.rows, tensor.columns, tensor.values.data()};
    job.model = model;
    job.training.sequence = expected.at("sequence");
    job.training.global_batch = expected.at("global_batch");
    program::Optimizer& o = job.training.optimizer;
    const nlohmann::json& training = expected.at("training");
    o.learning_rate = o.min_learning_rate = training.at("learning_rate");
    o.beta1 = training.at("beta1");
    o.beta2 = training.at("beta2");
    o.epsilon = training.at("epsilon");
    o.weight_decay = training.at("weight_decay");
    o.clip_norm = training.at("clip_norm");
    o.warmup_steps = 0;
    job.plan.precision = program::DType::kFp32;
    corpus = runtime::data::open_corpus(folder / "tokens.bin", job.training.sequence, model.vocab);
  }
  checkpoint::WholeTensors whole(const fs::path& file, checkpoint::Stored stored) const {
    return checkpoint::from_hugging_face(checkpoint::SafetensorsFile(file), model, file.string(), stored);
  }
  checkpoint::StoredTensors stored() const { return {borrowed, "weights"}; }

  models::Model model;
  checkpoint::WholeTensors weights, gradients;
  nlohmann::json expected;
  std::map<std::string, checkpoint::StoredTensors::Borrowed> borrowed;
  program::Job job;
  std::unique_ptr<runtime::data::Corpus> corpus;
};

/// Begins with the weights of the case.
class FromWeights final : public runtime::StepCheckpointer {
 public:
  FromWeights(const Case& from, const program::Program& program, int rank, const runtime::Arenas& arenas)
      : from_(from), program_(program), rank_(rank), arenas_(arenas) {}
  runtime::Progress begin(const runtime::Progress& fresh) override {
    checkpoint::fill(from_.stored(), program_, rank_, arenas_);
    return fresh;
  }
  void after_step(const runtime::Progress&, bool) override {}

 private:
  const Case& from_;
  const program::Program& program_;
  int rank_;
  const runtime::Arenas& arenas_;
};

std::vector<program::StepRecord> trained(const Case& c, const program::Plan& plan) {
  program::Job job = c.job;
  job.plan = plan;
  job.plan.precision = program::DType::kFp32;
  const program::VerifiedProgram program = verified_program(job);
  runtime::TrainOptions options;
  options.steps = std::ssize(c.expected.at("losses"));
  options.timeline_steps = 0;
  options.checkpointer = [&](const program::Program& p, runtime::Communicator& communicator, runtime::Arenas& arenas,
                             runtime::Backend&) {
    return std::make_unique<FromWeights>(c, p, communicator.rank(), arenas);
  };
  return runtime::train_in_threads(program, *c.corpus, options).steps;
}

void compare_gradients(const Case& c, Agreement& agreement) {
  const program::Program program = verified_program(c.job);
  auto communicators = runtime::inproc::make_communicators(1);
  runtime::RankExecutor executor(program, *communicators.front(), *c.corpus);
  checkpoint::fill(c.stored(), program, 0, executor.arenas());
  runtime::Collection collected;
  executor.before_optimizer([&] { collected.add(program, 0, executor.arenas(), runtime::Quantity::kGradient); });
  const auto tokens = static_cast<double>(c.job.training.global_batch * c.job.training.sequence);
  executor.step({0, 0, 1 / tokens}, nullptr);
  for (const auto& [name, theirs] : c.gradients) {
    const double difference = relative(collected.tensors().at(name), theirs.values);
    if (difference > agreement.gradients) agreement.gradients = difference, agreement.worst_gradient = name;
  }
}

void compare_logits(const Case& c, const fs::path& file, Agreement& agreement) {
  const checkpoint::StoredTensors stored = c.stored();
  runtime::generate::Forward forward(c.model, stored, c.job.training.sequence);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < c.job.training.sequence; ++i) tokens.push_back(c.corpus->token(i));
  std::vector<float> ours;
  for (const auto& row : forward(tokens)) ours.insert(ours.end(), row.begin(), row.end());
  const checkpoint::SafetensorsFile theirs(file);
  const std::byte* values = theirs.bytes_of(theirs.header().tensors.front()).data();
  std::vector<float> expected(ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    expected[i] =
        static_cast<float>(checkpoint::element(values, static_cast<std::int64_t>(i), checkpoint::Number::kF32));
  }
  agreement.logits = relative(ours, expected);
  // The same after a prompt of a quarter, and of one token.
  for (const std::size_t prompt : {tokens.size() / 4, std::size_t{1}}) {
    std::vector<float> row, whole;
    forward.forget();
    for (std::size_t i = prompt; i < tokens.size(); ++i) {
      const auto unread = i == prompt ? std::span(tokens).first(prompt) : std::span(tokens).subspan(i - 1, 1);
      const auto logits = forward.next(unread);
      row.insert(row.end(), logits.begin(), logits.end());
      const auto same = std::span(ours).subspan((i - 1) * logits.size(), logits.size());
      whole.insert(whole.end(), same.begin(), same.end());
    }
    agreement.kept = std::max(agreement.kept, relative(row, whole));
  }
}

}  // namespace

models::Model model_of(const fs::path& folder) {
  const std::string config = (folder / "config.json").string();
  return models::with_modules(models::load_model(config), models::modules_left_out(config));
}

double Agreement::worst() const { return std::max({logits, gradients, losses, gradient_norms, split_losses}); }

Agreement replay(const fs::path& folder) {
  const Case c(folder);
  Agreement agreement;
  agreement.name = folder.filename().string();
  compare_logits(c, folder / "logits.safetensors", agreement);
  compare_gradients(c, agreement);
  const auto losses_of = [&](const std::vector<program::StepRecord>& steps) {
    std::vector<double> losses;
    for (const program::StepRecord& step : steps) losses.push_back(step.loss);
    return worst_of(losses, c.expected.at("losses"));
  };
  const std::vector<program::StepRecord> steps = trained(c, {});
  agreement.losses = losses_of(steps);
  std::vector<double> norms;
  for (const program::StepRecord& step : steps) norms.push_back(step.grad_norm);
  agreement.gradient_norms = worst_of(norms, c.expected.at("gradient_norms"));
  program::Plan split;
  split.tensor = 2;
  split.pipeline = 2;
  agreement.split_losses = losses_of(trained(c, split));
  return agreement;
}

}  // namespace trivium::oracle
