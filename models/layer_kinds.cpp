// Which layers of a model are alike.
#include <algorithm>

#include "models/model.h"

namespace trivium::models {

LayerKind Model::layer_kind(std::int64_t layer) const {
  LayerKind kind;
  kind.mixture = experts && layer >= experts->dense_layers && (layer - experts->dense_layers + 1) % experts->every == 0;
  const bool full =
      !window || layer < window->first_layer || (window->full_every > 0 && (layer + 1) % window->full_every == 0);
  kind.window = full ? 0 : window->keys;
  return kind;
}

std::vector<LayersOfKind> layer_kinds(const Model& model) {
  std::vector<LayersOfKind> kinds;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const LayerKind kind = model.layer_kind(layer);
    auto known = std::find_if(kinds.begin(), kinds.end(), [&](const LayersOfKind& k) { return k.kind == kind; });
    if (known == kinds.end()) known = kinds.insert(kinds.end(), {kind, layer, 0});
    ++known->count;
  }
  return kinds;
}

double keys_seen(std::int64_t sequence, std::int64_t window, bool chunked) {
  const double s = static_cast<double>(sequence), w = static_cast<double>(window);
  if (window <= 0 || window >= sequence) return s / 2;
  if (!chunked) return w - w * w / (2 * s);
  const double last = static_cast<double>(sequence % window);
  return ((s - last) * w + last * last) / (2 * s);
}

std::int64_t first_alike(const Model& model, std::int64_t layer, std::int64_t count) {
  for (std::int64_t first = 0; first < layer; ++first) {
    std::int64_t same = 0;
    while (same < count && model.layer_kind(first + same) == model.layer_kind(layer + same)) ++same;
    if (same == count) return first;
  }
  return layer;
}

}  // namespace trivium::models
