#include "tests/runtime/executor/harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

#include "hardware_profiles/load.h"
#include "program/lower/lower.h"
#include "program/verify/verify.h"
#include "runtime/executor/collect.h"
#include "runtime/executor/loss_scale.h"
#include "runtime/executor/rank_executor.h"
#include "runtime/executor/train.h"
#include "runtime/executor/training_schedule.h"
#include "runtime/inproc/threads.h"
#include "simulator/schedule/engine.h"

namespace trivium::runtime::testing {
namespace {

class RandomCorpus : public data::Corpus {
 public:
  RandomCorpus(std::int64_t tokens, std::int32_t vocabulary) : vocabulary_(vocabulary) {
    std::uint64_t state = 12345;
    for (std::int64_t i = 0; i < tokens; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      tokens_.push_back(static_cast<std::int32_t>((state >> 33) % static_cast<std::uint64_t>(vocabulary)));
    }
  }
  std::int64_t tokens() const override { return static_cast<std::int64_t>(tokens_.size()); }
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::int32_t token(std::int64_t position) const override { return tokens_[static_cast<std::size_t>(position)]; }
  std::string description() const override { return "pseudo-random tokens"; }

 private:
  std::int32_t vocabulary_;
  std::vector<std::int32_t> tokens_;
};

double tensor_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0, most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    const double d = std::abs(a[i] - b[i]);
    if (!(d <= most)) most = d;  // also takes NaN
  }
  return largest > 0 ? most / largest : most;
}

// Calls visit(name, a's values, b's values) for everything that both runs must agree on.
template <class Visit>
void compare(const Trained& a, const Trained& b, Visit visit) {
  visit("losses", a.losses, b.losses);
  visit("norms", a.norms, b.norms);
  const auto all = [&](const std::string& what, const Tensors& x, const Tensors& y) {
    for (const auto& [name, values] : x) {
      const auto other = y.find(name);
      visit(what + " of " + name, values, other == y.end() ? std::vector<double>{} : other->second);
    }
    if (x.size() != y.size()) visit(what + " (number of tensors)", {1.0}, {});
  };
  for (std::size_t s = 0; s < std::max(a.gradients.size(), b.gradients.size()); ++s) {
    if (s >= a.gradients.size() || s >= b.gradients.size()) return visit("steps", {1.0}, {});
    all("gradient in step " + std::to_string(s), a.gradients[s], b.gradients[s]);
  }
  all("value", a.parameters, b.parameters);
  all("first moment", a.first_moments, b.first_moments);
  all("second moment", a.second_moments, b.second_moments);
}

}  // namespace

std::unique_ptr<data::Corpus> toy_corpus(std::int64_t tokens, std::int32_t vocabulary) {
  return std::make_unique<RandomCorpus>(tokens, vocabulary);
}

program::Job toy_job(const program::Plan& plan, std::int64_t global_batch) {
  program::Job job;
  job.model.name = "toy";
  job.model.layers = 8;
  job.model.hidden = 32;
  job.model.heads = job.model.kv_heads = 4;
  job.model.head_dim = 8;
  job.model.ffn_hidden = 64;
  job.model.vocab = 61;
  job.model.max_sequence = 16;
  job.training.sequence = 16;
  job.training.global_batch = global_batch;
  job.training.optimizer.warmup_steps = 2;
  job.training.optimizer.learning_rate = 1e-2;
  job.plan = plan;
  job.plan.precision = program::DType::kFp64;
  return job;
}

program::Program ordered_program(const program::Job& job, const std::string& cluster_name) {
  auto lowered = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered)) throw std::runtime_error(no->reason);
  hardware::Cluster cluster = hardware::load_cluster(cluster_name);
  cluster.groups.front().node.devices = job.plan.ranks();
  auto ordered = simulator::order(std::get<program::Program>(std::move(lowered)), cluster);
  if (!ordered) throw base::Failure(ordered.error());
  if (const auto problems = program::verify(ordered.value()); !problems.empty()) {
    throw std::runtime_error(problems.front());
  }
  return std::move(ordered).value();
}

Trained run(const program::Job& job, int steps, const std::function<void(program::Program&)>& spoil,
            const std::string& cluster_name) {
  Trained result;
  if (const auto no = program::check(job)) {
    result.refused = no->rule + ": " + no->reason;
    return result;
  }
  program::Program program = ordered_program(job, cluster_name);
  if (spoil) spoil(program);
  const auto corpus = toy_corpus(4000, static_cast<std::int32_t>(job.model.vocab));
  std::vector<Collection> gradients(static_cast<std::size_t>(steps));
  Collection parameters, first, second;
  auto communicators = inproc::make_communicators(job.plan.ranks());
  std::mutex mutex;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> threads;
    for (auto& communicator : communicators) {
      threads.emplace_back([&, end = communicator.get()] {
        try {
          RankExecutor executor(program, *end, *corpus);
          for (int step = 0; step < steps; ++step) {
            executor.before_optimizer([&, step] {
              gradients[static_cast<std::size_t>(step)].add(program, executor.rank(), executor.arenas(),
                                                            Quantity::kGradient);
            });
            const StepValues values{
                .step = step,
                .learning_rate = learning_rate({}, job.training.optimizer, job.training.global_batch, step, steps),
                .loss_weight = 1.0 / static_cast<double>(program.settings.batch.samples * job.training.sequence),
                .loss_scale = first_scale(program.settings).scale};
            const auto outcome = executor.step(values, nullptr);
            if (executor.rank() != 0) continue;
            result.losses.push_back(outcome.loss);
            result.norms.push_back(outcome.grad_norm);
          }
          parameters.add(program, executor.rank(), executor.arenas(), Quantity::kValue);
          first.add(program, executor.rank(), executor.arenas(), Quantity::kFirstMoment);
          second.add(program, executor.rank(), executor.arenas(), Quantity::kSecondMoment);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failure) failure = std::current_exception(), end->abort("a rank failed");
        }
      });
    }
  }
  if (failure) std::rethrow_exception(failure);
  for (const Collection& c : gradients) {
    result.gradients.push_back(c.tensors());
    result.replicas_agree &= c.replicas_agree();
  }
  result.parameters = parameters.tensors();
  result.first_moments = first.tensors();
  result.second_moments = second.tensors();
  result.replicas_agree &= parameters.replicas_agree() && first.replicas_agree() && second.replicas_agree();
  return result;
}

double difference(const Trained& a, const Trained& b, std::string& where) {
  double worst = -1;
  compare(a, b, [&](const std::string& name, const std::vector<double>& x, const std::vector<double>& y) {
    const double d = tensor_difference(x, y);
    if (d > worst || std::isnan(d)) worst = std::isnan(d) ? std::numeric_limits<double>::infinity() : d, where = name;
  });
  return worst;
}

double gradient_error(const Trained& a, const Trained& b, std::string& where) {
  double worst = 0;
  for (const auto& [name, values] : a.gradients.front()) {
    const std::vector<double>& other = b.gradients.front().at(name);
    double difference = 0, whole = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += (values[i] - other[i]) * (values[i] - other[i]);
      whole += values[i] * values[i];
    }
    const double error = std::sqrt(difference / whole);
    if (!(error <= worst)) worst = error, where = name;
  }
  return worst;
}

bool bitwise_equal(const Trained& a, const Trained& b, std::string& where) {
  bool equal = true;
  compare(a, b, [&](const std::string& name, const std::vector<double>& x, const std::vector<double>& y) {
    if (!equal) return;
    equal = x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
    if (!equal) where = name;
  });
  return equal;
}

}  // namespace trivium::runtime::testing
