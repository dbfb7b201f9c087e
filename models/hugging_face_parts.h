// What the readers of Hugging Face's config.json share.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "models/model.h"

namespace trivium::models {

/// An object of the file that remembers which members were asked for, so that the others can be judged.
class Config : public base::JsonReader {
 public:
  explicit Config(const base::JsonReader& reader) : base::JsonReader(reader) {}
  base::JsonReader at(std::string_view key) const { return asked_.emplace(key), base::JsonReader::at(key); }
  std::optional<base::JsonReader> find(std::string_view key) const {
    return asked_.emplace(key), base::JsonReader::find(key);
  }
  bool asked(const std::string& key) const { return asked_.contains(key); }

 private:
  mutable std::set<std::string> asked_;
};

/// The member where it is there and not null: these files write null for "take the default".
std::optional<base::JsonReader> given(const Config& config, std::string_view key);
std::int64_t count_or(const Config& config, std::string_view key, std::int64_t most, std::int64_t otherwise);
/// As count_or, but may be 0.
std::int64_t amount_or(const Config& config, std::string_view key, std::int64_t most, std::int64_t otherwise);
bool flag_or(const Config& config, std::string_view key, bool otherwise);
double number_or(const Config& config, std::string_view key, double otherwise);
/// A factor that must be above 0.
double factor_or(const Config& config, std::string_view key, double otherwise);
/// The MLP's activation under the name the library gives it.
Activation activation_of(const Config& config, std::string_view key, bool gated, const std::string& otherwise);

/// Refuses the member's value where it does not hold: it is not supported but `what`.
void only(const Config& config, std::string_view key, bool holds, const char* what);

/// YaRN raises scores by lengthening queries and keys (arXiv 2309.00071, eq. 22).
double yarn_amplitude(double factor, double weight);
/// Scaling as transformers 4 ("rope_scaling") and 5 ("rope_parameters", with theta in it) write it.
void read_scaling(const Config& config, std::string_view key, Model& model);
/// `theta`, `share`: what the type calls them, and its default share. After max_sequence is known.
void read_rotary(const Config& config, Model& model, std::string_view theta, std::string_view share,
                 double usual_share);
/// Members that change what is computed and have no like here: refused unless they have the value that changes nothing.
void refuse_flag(const Config& config, std::string_view key);
/// Members that all but gpt2 spell alike.
void read_common(const Config& config, Model& model);
/// Which of the layers that "layer_types" names are of this type, all others having full attention.
std::vector<bool> windowed_layers(const base::JsonReader& types, std::int64_t layers, const std::string& type);
/// Gives the model windows in these layers, by the patterns that it can have: full ones first, or every so many. Errors
/// are those of `where`.
void set_windows(const base::JsonReader& where, Model& model, std::int64_t keys, const std::vector<bool>& windowed);
/// The same of the layers that "layer_types" names.
void read_layer_types(const base::JsonReader& types, Model& model, std::int64_t keys);

// Families whose layers look back a window in turn (hugging_face_windows.cpp).
Model read_gpt_oss(const Config& config);
/// Gemma 2, and the text model of Gemma 3.
Model read_gemma(const Config& config, bool third);

/// Llama 4's text model (hugging_face_llama4.cpp).
Model read_llama4(const Config& config);

// Mixtures (hugging_face_mixtures.cpp). Experts drop no token, as the library's do; their loss counts balance where
// output_router_logits is true.
void read_mixtral_experts(const Config& config, Model& model);
void read_qwen3_experts(const Config& config, Model& model);
Model read_deepseek(const Config& config, const std::string& type);
Model read_glm4_moe(const Config& config);
Model read_grok(const Config& config);

}  // namespace trivium::models
