#include "planner/launch/patch/patch.h"

#include <algorithm>

#include "base/error.h"
#include "planner/launch/patch/rewrites.h"
#include "planner/launch/yaml/yaml.h"
#include "program/lower/layout.h"
#include "program/plan/differences.h"
#include "program/plan/job_json.h"

namespace trivium::planner::launch {
namespace {

using patch::FileSettings;
using patch::Key;
using patch::OptionChange;
using patch::Place;
using patch::Texts;

ImportRequest with_text(const ImportRequest& request, std::string text) {
  ImportRequest other = request;
  other.text = std::move(text);
  return other;
}

/// The file that starts the job there, as if the user had it.
ImportRequest exported(const ImportRequest& request, Trainer trainer, const program::Job& job,
                       const hardware::Cluster& cluster) {
  ImportRequest other = with_text(request, export_plan(job, cluster, trainer).text);
  other.surroundings = {};
  return other;
}

/// Options that a new one goes next to: what splits the model, then what describes it.
const std::vector<std::string>& anchors() {
  static const std::vector<std::string> kAnchors{"pipeline-model-parallel-size",
                                                 "tensor-model-parallel-size",
                                                 "model-parallel-size",
                                                 "micro-batch-size",
                                                 "global-batch-size",
                                                 "seq-length",
                                                 "num-layers",
                                                 "hidden-size",
                                                 "bf16",
                                                 "fp16",
                                                 "train-iters",
                                                 "lr"};
  return kAnchors;
}

Texts candidates(const std::string& text, const OptionChange& change) {
  const std::string& name = change.key.name;
  const std::vector<std::string> values = change.after.value_or(std::vector<std::string>{});
  switch (change.key.place) {
    case Place::kOption:
      if (yaml::is_document(text)) {
        return change.after ? patch::with_argument_line(text, name, values, anchors())
                            : patch::without_argument_line(text, name);
      }
      if (!change.after) return patch::without_option(text, name, change.before->size());
      return change.before ? patch::with_option_value(text, name, change.before->size(), values)
                           : patch::with_option(text, name, values, anchors());
    case Place::kVariable:
      return change.after ? patch::with_variable(text, name, values.front()) : patch::without_variable(text, name);
    case Place::kMember:
      return change.after ? patch::with_member(text, name, values.front()) : Texts{};
    case Place::kKey: {
      if (!change.after) return {};
      const std::string& value = values.front();
      Texts texts = patch::with_key(text, name, value);
      for (std::string& quoted : patch::with_key(text, name, "\"" + value + "\"")) texts.push_back(std::move(quoted));
      return texts;
    }
  }
  return {};
}

class Patcher {
 public:
  Patcher(const ImportRequest& request, Trainer trainer, const FileSettings& own, std::vector<OptionChange> changes)
      : request_(request), trainer_(trainer), now_(own), wanted_(own) {
    patch_.text = request.text;
    patch_.changes = std::move(changes);
    patch::apply(patch_.changes, wanted_);
  }

  Patch make() {
    // Each new option goes right after the same old one: the first is applied last.
    const auto added = std::ranges::find_if(patch_.changes, [](const OptionChange& c) { return !c.before; });
    std::vector<OptionChange> ordered(patch_.changes.begin(), added);
    ordered.insert(ordered.end(), patch_.changes.rbegin(), std::make_reverse_iterator(added));
    for (const OptionChange& change : ordered) {
      if (!apply(change)) patch_.by_hand.push_back(change);
    }
    return std::move(patch_);
  }

 private:
  bool apply(const OptionChange& change) {
    if (has(now_, change)) return true;  // a variable of an earlier change decides it too
    for (std::string& text : candidates(patch_.text, change)) {
      try {
        FileSettings settings = patch::file_settings(with_text(request_, text), trainer_);
        if (!has(settings, change) || !only_wanted(settings)) continue;
        now_ = std::move(settings);
        patch_.text = std::move(text);
        return true;
      } catch (const base::Failure&) {  // a text that is no script any more
      }
    }
    return false;
  }

  static bool has(const FileSettings& settings, const OptionChange& change) {
    const auto found = settings.find(change.key);
    if (!change.after) return found == settings.end();
    return found != settings.end() && found->second == *change.after;
  }

  /// Every setting is as it was, or as it shall be; names that a setting is part of may follow it.
  bool only_wanted(const FileSettings& settings) const {
    for (const auto& [key, values] : settings) {
      const auto old = now_.find(key), goal = wanted_.find(key);
      if (old != now_.end() && (old->second == values || !patch::is_setting(old->second))) continue;
      if (goal == wanted_.end() || goal->second != values) return false;
    }
    return std::ranges::all_of(
        now_, [&](const auto& one) { return settings.contains(one.first) || !wanted_.contains(one.first); });
  }

  const ImportRequest& request_;
  Trainer trainer_;
  FileSettings now_, wanted_;
  Patch patch_;
};

/// Fields that the file read again has otherwise than the plan, unless even the trainer's own file has them so.
std::vector<std::string> fields_that_differ(const ImportRequest& changed, Trainer trainer, const program::Job& best,
                                            const hardware::Cluster& cluster) {
  const program::Job read = import_plan(changed, trainer).job;
  const program::Job own = import_plan(exported(changed, trainer, best, cluster), trainer).job;
  std::vector<std::string> fields;
  if (program::to_json(read.training) != program::to_json(best.training)) fields.emplace_back("training");
  for (const program::Difference& d : program::differences(best.plan, read.plan)) {
    if (d.field == "stack" || program::text_of(own.plan, d.field) == d.after) continue;
    if (d.field == "stage_layers" && program::chunk_layers(read) == program::chunk_layers(best)) continue;
    fields.push_back(d.field);
  }
  return fields;
}

}  // namespace

std::vector<OptionChange> changes_between(const FileSettings& own, const ImportRequest& request, Trainer trainer,
                                          const program::Job& before, const program::Job& after,
                                          const hardware::Cluster& cluster, const std::vector<std::string>& unsettled) {
  const auto settings = [&](const program::Job& job) {
    return patch::file_settings(exported(request, trainer, job, cluster), trainer);
  };
  return patch::option_changes(own, settings(before), settings(after), after.model.layers, after.plan, unsettled);
}

Patch patch_launch(const ImportRequest& request, Trainer trainer, const program::Job& today, const program::Job& best,
                   const hardware::Cluster& cluster) {
  const FileSettings own = patch::file_settings(request, trainer);
  const auto with = [&](const std::vector<std::string>& unsettled) {
    Patch patch =
        Patcher(request, trainer, own, changes_between(own, request, trainer, today, best, cluster, unsettled)).make();
    if (patch.by_hand.empty()) {
      patch.differs = fields_that_differ(with_text(request, patch.text), trainer, best, cluster);
    }
    return patch;
  };
  Patch patch = with({});
  if (patch.differs.empty()) return patch;
  Patch again = with(patch.differs);
  return again.by_hand.empty() && again.differs.empty() ? again : patch;
}

}  // namespace trivium::planner::launch
