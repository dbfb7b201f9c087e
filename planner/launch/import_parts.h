// What the importers share: arguments looked up by name, and shape and training out of Megatron's flags.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/launch/arguments.h"
#include "planner/launch/launch.h"

namespace trivium::planner::launch {

/// Arguments of a script by name; remembers which were asked for. All errors: Failure(kInput) naming the argument.
class Settings {
 public:
  Settings(Script script, std::string where) : script_(std::move(script)), where_(std::move(where)) {}

  /// The last argument of one of these names (older spellings after the current one); null where there is none.
  const Argument* find(std::initializer_list<const char*> names);
  bool has(std::initializer_list<const char*> names) { return find(names) != nullptr; }
  std::optional<std::string> text(std::initializer_list<const char*> names);
  /// A whole number in [low, high].
  std::optional<std::int64_t> count(std::initializer_list<const char*> names, std::int64_t low = 1,
                                    std::int64_t high = std::int64_t{1} << 24);
  std::optional<double> number(std::initializer_list<const char*> names);  ///< 0 or more
  /// A switch, or an assigned true (True).
  bool is_on(std::initializer_list<const char*> names);
  /// The name as the file has it: "--name", or the assigned name.
  std::string spelled(const std::string& name) const;
  [[noreturn]] void fail(const std::string& what) const;
  /// The same with the line of the argument, where it has one.
  [[noreturn]] void fail_at(const Argument& argument, const std::string& what) const;

  /// Those nobody asked for.
  std::vector<Argument> unread() const;
  const Script& script() const { return script_; }

 private:
  Script script_;
  std::string where_;
  std::set<std::string> read_;
};

/// The model the arguments describe: a shipped one where the shape is its. Errors: as Settings, also when a needed
/// argument is missing.
models::Model read_model(Settings& settings, const ImportRequest& request, std::vector<Loss>& losses);

/// The model with what follows from its numbers filled in; a shipped one where the shape is its. Errors:
/// Failure(kInput) naming `where`, for numbers that make no model.
models::Model settled(const models::Model& read, const std::string& where);

/// Multi-token prediction, where a file says how many modules of it there are; after the shape is known, which may be a
/// shipped model's. Errors: as Settings, also where the model's positions are learned.
void read_multi_token(Settings& settings, const char* depth, const char* loss_scale, models::Model& model);

/// The models we ship, read once.
const std::vector<models::Model>& all_shipped();

/// Sequence, global batch, steps, optimizer. `sequence` of the request wins; missing ones keep their default.
void read_training(Settings& settings, const ImportRequest& request, program::Job& job, std::vector<Loss>& losses);

/// How Megatron-Core keeps moments: as these two arguments say where a precision-aware optimizer, named third, is on
/// and its state is on the device. fp32, and a loss where they say otherwise, elsewhere and where they are not both
/// fp32 or both bf16.
struct MomentNames {
  const char *first, *second, *precision_aware;
};
program::Moments read_moments(Settings& settings, const MomentNames& names, bool on_host, std::vector<Loss>& losses);

/// Megatron-Core's choice of optimizer, by Megatron-LM's options or Megatron-Bridge's members; after `zero_stage`,
/// which dist_muon implies. Losses of what differs from Muon here.
void read_muon(Settings& settings, bool bridge, Imported& imported);

/// LoRA in Megatron-Bridge's cfg.peft. Errors: as Settings.
void read_peft(Settings& settings, Imported& imported);

/// The first of Megatron-Core's hierarchical sizes, which exchanges heads where a2a+p2p is `exchange`; 1 elsewhere.
/// Errors: as Settings, for sizes that do not make up `context`.
int read_context_heads(Settings& settings, const std::string& exchange, const std::vector<std::string>& sizes,
                       int context);

/// How Megatron-Core's tokens travel to experts: by two settings of these names, and one of its stack if that says so
/// itself. Losses of what is none of the three ways.
struct DispatchNames {
  const char *type, *backend;
};
program::ExpertDispatch read_dispatch(Settings& settings, const DispatchNames& names, std::string_view stack,
                                      std::vector<Loss>& losses);

/// How Megatron-Core's context ranks exchange keys and values, `name` its setting, `given` its value: rings, or heads
/// all to all. Losses of what is neither.
program::ContextMethod read_exchange(Settings& settings, const char* name, const std::vector<std::string>& given,
                                     std::vector<Loss>& losses);

/// Megatron-Core's names of modules that selective recomputation drops. Those that a plan does not have are a loss.
/// Nothing is taken where other activations are recomputed.
void read_modules(const std::string& argument, const std::vector<std::string>& names, Imported& imported);

/// Processes that are started: torchrun's and deepspeed's counts, a log's world size, WORLD_SIZE, else the request's.
int read_ranks(Settings& settings, const ImportRequest& request);

/// One loss for every argument nobody asked for; those that concern data, logs and checkpoints share one.
void lose_unread(const Settings& settings, std::vector<Loss>& losses);

}  // namespace trivium::planner::launch
