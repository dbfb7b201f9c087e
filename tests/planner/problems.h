// Search problems small enough to solve by simulating every plan.
#pragma once

#include <random>

#include "planner/search/search.h"

namespace trivium::planner {

/// gpt-tiny's shape on one node of eight A100s, 8 samples a step.
SearchRequest small_problem();

/// A small model, cluster and batch, sometimes with fixed fields, tight memory or room for few answers.
SearchRequest random_problem(std::mt19937& random);

/// The same on nodes whose devices share one slow adapter and one slow way to the host, offload open in most.
SearchRequest random_crowded_problem(std::mt19937& random);

/// Mixtures over two nodes: exchanges with experts may overlap with other passes, in some they have to.
SearchRequest random_pair_problem(std::mt19937& random);

}  // namespace trivium::planner
