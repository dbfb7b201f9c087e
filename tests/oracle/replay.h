// What PyTorch and transformers computed, computed again here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/model.h"

namespace trivium::oracle {

/// Largest differences, each relative to the largest value of its tensor (losses and norms: to the value itself).
struct Agreement {
  std::string name;
  double logits = 0, gradients = 0, losses = 0, gradient_norms = 0;
  double split_losses = 0;  ///< of the same training cut over two stages of two tensor ranks
  double kept = 0;          ///< logits token by token, keys and values kept, from those of the whole text: ours alone
  std::string worst_gradient;
  double worst() const;
};

/// The model of a case, with the modules of multi-token prediction that its config.json names.
models::Model model_of(const std::filesystem::path& folder);

/// Replays one case that make_cases.py wrote, in fp32. Errors: base::Failure for files that are not right.
Agreement replay(const std::filesystem::path& folder);

}  // namespace trivium::oracle
