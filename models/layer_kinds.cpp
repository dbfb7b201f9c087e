// Which layers of a model are alike.
#include <algorithm>

#include "models/model.h"

namespace trivium::models {

LayerKind Model::layer_kind(std::int64_t layer) const {
  const auto listed = [&](const std::vector<std::int64_t>& some) { return std::ranges::binary_search(some, layer); };
  LayerKind kind;
  if (experts && !experts->mixture_layers.empty()) {
    kind.mixture = listed(experts->mixture_layers);
  } else {
    kind.mixture =
        experts && layer >= experts->dense_layers && (layer - experts->dense_layers + 1) % experts->every == 0;
  }
  const bool full = !window || layer < window->first_layer || listed(window->full_layers) ||
                    (window->full_every > 0 && (layer + 1) % window->full_every == 0);
  kind.window = full ? 0 : window->keys;
  return kind;
}

bool has(const Extra& extra, const LayerKind& kind) {
  switch (extra.layers) {
    case Extra::Layers::kAll:
      return true;
    case Extra::Layers::kMixture:
      return kind.mixture;
    case Extra::Layers::kDense:
      return !kind.mixture;
    case Extra::Layers::kWindowed:
      return kind.window > 0;
    case Extra::Layers::kFull:
      return kind.window == 0;
    case Extra::Layers::kNone:
      break;
  }
  return false;
}

std::int64_t Model::extra_parameters(const LayerKind& kind) const {
  std::int64_t sum = 0;
  for (const Extra& extra : extras) sum += has(extra, kind) ? extra.parameters : 0;
  return sum;
}

std::vector<std::string> not_run(const Model& model) {
  std::vector<std::string> names;
  for (const Extra& extra : model.extras) names.push_back(extra.name);
  if (model.plain_norms) names.push_back("norms without weights");
  return names;
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
