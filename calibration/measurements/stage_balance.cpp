#include "calibration/measurements/stage_balance.h"

#include <algorithm>

namespace trivium::calibration {

std::vector<int> layers_by_cost(const models::Model& model, int stages) {
  const double hidden = static_cast<double>(model.hidden);
  const double attention = 2.0 * static_cast<double>((model.heads + model.kv_heads) * model.head_dim) * hidden;
  const double layer = attention + (model.gated() ? 3 : 2) * static_cast<double>(model.ffn_hidden) * hidden;
  const double total = layer * static_cast<double>(model.layers) + static_cast<double>(model.vocab) * hidden;
  std::vector<int> layers(static_cast<std::size_t>(stages), 0);
  std::size_t stage = 0;
  for (std::int64_t i = 1; i <= model.layers; ++i) {
    ++layers[stage];
    const double share = total * static_cast<double>(stage + 1) / stages;
    if (layer * static_cast<double>(i) > share && stage + 1 < layers.size()) ++stage;
  }
  // A last stage may hold the head alone. Where nanotron gives it the loss alone, as the stage before had room for the
  // head, it is replayed with both.
  for (std::size_t empty = layers.size() - 1; empty-- > 0 && layers[empty] == 0;) {
    const auto from = std::find_if(layers.rbegin(), layers.rend(), [](int count) { return count > 1; });
    --*from;
    layers[empty] = 1;
  }
  return layers;
}

}  // namespace trivium::calibration
