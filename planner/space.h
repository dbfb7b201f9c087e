// The search space: every plan a request leaves open.
#pragma once

#include <string>
#include <vector>

#include "planner/search.h"

namespace trivium::planner {

/// Devices that plans of the request use: `request.ranks`, or all of the cluster.
int ranks_of(const SearchRequest& request);

/// Every plan of the request, in an order that depends on the request alone. Plans that differ only in virtual stages
/// and schedule stand together. Where the fixed fields fit no split of the ranks, the request's own plan stands alone,
/// so that its refusal has a reason. tensor: divisors of the attention heads up to 64, over nodes too (the cost of that
/// is the simulator's to say). pipeline: any count up to the layers; tensor x pipeline divides the ranks and data is
/// the rest. micro_batch: divisors of a replica's share of the global batch, up to 64. virtual_stages: those that cut
/// the layers evenly. schedule: interleaved with virtual stages, else 1f1b, and zero_bubble with the trivium stack
/// where gradients are kept whole. recompute: none, selective, full. offload: with SearchRequest::offload none and host
/// for optimizer state and activations. zero_stage: 0, and 1 to 3 with data ranks; there reductions and gathers overlap,
/// where the devices have lanes for them. shard_group: 0, and with zero_stage 3 the replicas that share a node.
/// sequence_parallel: both with tensor ranks. context: 1, and divisors of the ranks up to 64 for sequences of 16,384
/// tokens and more; both methods above 1. expert: divisors of data and of the experts of a mixture model. stage_nodes,
/// where nodes differ: none, and with several stages the groups in their order and in the opposite one, where stages end
/// with nodes; their layers are balanced by the search (planner/balance.h). Plans that a constraint does not allow are
/// left out and, where `forbidden` is given, counted there.
std::vector<program::Plan> enumerate(const SearchRequest& request, std::int64_t* forbidden = nullptr);

/// Whether a plan of an enumeration leaves its stage layers to be balanced over unequal nodes.
bool leaves_layers_open(const program::Plan& plan);

/// Whether two plans of one enumeration can share a simulator::Sketch: they differ in virtual stages and schedule at
/// most, and either both split their backwards or neither.
bool share_layers(const program::Plan& a, const program::Plan& b);

/// "TP8 PP16 DP8".
std::string family_of(const program::Plan& plan);

}  // namespace trivium::planner
