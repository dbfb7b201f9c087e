// Which families of Hugging Face's single files a model can be of.
#pragma once

#include "models/model.h"

namespace trivium::runtime::checkpoint {

/// Without what Gemma, Llama 4 and Grok-1 alone have.
bool is_plain(const models::Model& model);
/// With something that Llama 4 or Grok-1 alone have.
bool is_later(const models::Model& model);
bool is_gpt2(const models::Model& model);
/// llama, Mistral, Phi-3, Qwen 2 and 3.
bool is_llama(const models::Model& model);
/// Of them those that may have windows in some of their layers.
bool is_qwen(const models::Model& model);
/// Nemotron-4: llama's tensors with LayerNorm, without gates.
bool is_nemotron(const models::Model& model);
bool is_gpt_oss(const models::Model& model);
/// Gemma 2, and with norms of heads the text model of Gemma 3.
bool is_gemma(const models::Model& model);
/// The text model of Llama 4.
bool is_llama4(const models::Model& model);
bool is_grok(const models::Model& model);

}  // namespace trivium::runtime::checkpoint
