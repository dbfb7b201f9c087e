// What the desktop program is about: one job on one cluster, with what the user holds fixed.
#pragma once

#include <set>
#include <string>

#include "hardware_profiles/hardware.h"
#include "planner/search/search.h"
#include "program/plan/plan_file.h"

namespace trivium::gui {

/// A value: an edit makes another one, so that undoing is going back to the old one.
struct Scenario {
  program::PlanFile file;       ///< `cluster` as it stands in files
  hardware::Cluster cluster;    ///< the same, read
  std::set<std::string> fixed;  ///< names of plan fields that a search leaves alone
  int ranks = 0;                ///< devices a search may use; 0: all
  bool ignore_memory = false;
  std::string trainer;  ///< of planner::trainer_spaces, that a search plans for; empty: Trivium's own runtime
};

/// GPT-3 175B on 1,024 A100s in the split of Narayanan et al. 2021 (arXiv 2104.04473), section 5.1.
Scenario example_scenario();

/// GPT-3 13B on 16 nodes of A100s and 16 of V100s.
Scenario mixed_example();

/// A tiny GPT on two cores of this machine, small enough to be run while one waits.
Scenario local_example();

/// A model on a cluster given as text, split in the plainest way: replicas alone, as many as share out the batch.
/// Errors: Failure(kInput).
Scenario own_scenario(const std::string& model, const std::string& cluster, std::int64_t batch);

/// The same job on a cluster given as text ("dgx-a100-80gb:128") or file; the precision becomes what its devices do
/// best where they cannot do the plan's, and stages on groups of nodes that it lacks fill its nodes in order. Errors:
/// Failure(kInput).
Scenario with_cluster(Scenario scenario, const std::string& text);

/// The same job on a cluster that was edited: it stands in the files whole.
Scenario with_cluster(Scenario scenario, hardware::Cluster cluster);

/// Another model; the sequence follows where it was the longest of the old one. Errors: Failure(kInput).
Scenario with_model(Scenario scenario, const std::string& name_or_path);

/// Sets a field of plan or training from text. Errors: Failure(kUsage) in words.
Scenario with_field(Scenario scenario, const std::string& field, const std::string& text);

/// What plans are compared for: "gpt3-175b on dgx-a100-80gb:128, 1,536 samples of 2,048 tokens".
std::string job_words(const Scenario& scenario);
/// Whether figures of plans for the one say something of the other: the same model, training and cluster.
bool same_job(const Scenario& a, const Scenario& b);

/// The same job planned for a trainer of planner::trainer_spaces, and its plan as that one's stack runs it; empty:
/// Trivium's own runtime. Errors: Failure(kUsage) where it does not run what the job or a field held fixed asks.
Scenario with_trainer(Scenario scenario, const std::string& trainer);

/// The trainer as people call it: "Megatron-LM"; empty: "Trivium".
std::string trainer_words(const std::string& trainer);

/// What a search is asked for: the space and the gap of `trivium plan`. Where the trainer does not run what is held
/// fixed, every plan of the space is refused for it; `why_no_search` says so before.
planner::SearchRequest search_request(const Scenario& scenario, int best);
/// Why a search of the scenario finds nothing: "--for torchtitan: …"; empty: nobody knows before.
std::string why_no_search(const Scenario& scenario);

}  // namespace trivium::gui
