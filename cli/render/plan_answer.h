// The page that `plan` prints: its answer in at most 25 lines that fit the terminal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "planner/advice/relax.h"
#include "planner/search/search.h"

namespace trivium::cli {

inline constexpr std::size_t kPageLines = 25;

/// A trainer's best plan, or why it has none.
struct TrainerAnswer {
  std::string name;  ///< as --for takes it
  std::optional<planner::Candidate> best;
  std::string why_not;
  std::string unproved;  ///< " (stopped early: …)", or empty
};

/// What the page shows in addition to what was searched and found.
struct PlanNotes {
  bool own_runtime = false;             ///< neither a trainer nor a stack was given, on several GPUs
  std::vector<TrainerAnswer> trainers;  ///< then: the others
  std::string launch;                   ///< of --for: version, and what its file does not express
  std::string batch;                    ///< a batch that uses the devices better
  std::string output;                   ///< the file that holds the plan
  std::vector<planner::Relaxation> relaxations;
  std::size_t listed = 0;  ///< how many plans --best asks for; all of them are listed
};

/// Sentence, plan, memory, cost, other splits, trainers, certainty, proof, published run and what to do next.
std::string plan_page(const JobRequest& request, const planner::SearchRequest& wanted,
                      const planner::SearchResult& result, const PlanNotes& notes);

/// The trainers in a table with all figures; `own`: the plan of Trivium's own runtime, the last row.
std::string trainers_table(const std::vector<TrainerAnswer>& trainers, const TrainerAnswer& own,
                           const program::Plan& plan);

}  // namespace trivium::cli
