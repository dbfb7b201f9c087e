// How a trainer that balances its stages by cost deals out the layers.
#pragma once

#include <vector>

#include "models/model.h"

namespace trivium::calibration {

/// Layers of `stages` stages with about equal work, as nanotron deals out its blocks (models/base.py,
/// get_block_compute_costs): a layer counts the elements of its matrices, the head those of its own, embeddings
/// nothing; a stage is full once the sum passes its share. Last stages that would stay empty take a layer of
/// those before them.
/// Precondition: at least as many layers as stages.
std::vector<int> layers_by_cost(const models::Model& model, int stages);

}  // namespace trivium::calibration
