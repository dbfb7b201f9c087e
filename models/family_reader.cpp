// Reads a Hugging Face configuration by its family's file: expressions give the members of a model in our own form.
#include "models/family_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/quote.h"
#include "models/family_expression.h"
#include "models/hugging_face_parts.h"
#include "models/load.h"

namespace trivium::models {
namespace {

using base::JsonReader;
using Json = nlohmann::json;

const std::string kFull = "full_attention";

/// Which layers are as `is_marked` says of an entry: `told` is a list of texts or flags, one for every layer.
std::vector<bool> marks_of(const Json& told, std::int64_t layers, const JsonReader& where) {
  std::vector<bool> marks;
  for (const Json& one : told) {
    if (one.is_string() && one != kFull && one != "sliding_attention" && one != "chunked_attention") {
      where.fail(fmt::format("has layers of {}, a mixer that Trivium lacks", base::quote(one.get<std::string>())));
    }
    marks.push_back(one.is_string() ? one != kFull : one == true || one == 1);
  }
  if (std::ssize(marks) != layers) where.fail(fmt::format("tells {} layers of {}", marks.size(), layers));
  return marks;
}

std::vector<std::int64_t> numbers_where(const std::vector<bool>& marks, bool wanted) {
  std::vector<std::int64_t> numbers;
  for (std::size_t layer = 0; layer < marks.size(); ++layer) {
    if (marks[layer] == wanted) numbers.push_back(static_cast<std::int64_t>(layer));
  }
  return numbers;
}

/// Whether the marked layers are all but the last of every so many.
bool is_every(const std::vector<bool>& marks, std::size_t every, bool of_last) {
  for (std::size_t layer = 0; layer < marks.size(); ++layer) {
    if (marks[layer] != (((layer + 1) % every == 0) == of_last)) return false;
  }
  return every > 1 && every <= marks.size();
}

/// Layers before the first marked one, all after it being marked; -1: some are not.
std::int64_t first_of_rest(const std::vector<bool>& marks) {
  const auto first = std::ranges::find(marks, true);
  return std::find(first, marks.end(), false) == marks.end() ? first - marks.begin() : -1;
}

void tell_windows(const std::vector<bool>& windowed, Json& window) {
  const auto full = std::ranges::find(windowed, false);
  const auto every = static_cast<std::size_t>(full - windowed.begin()) + 1;
  if (full == windowed.end()) return;
  if (const std::int64_t first = first_of_rest(windowed); first >= 0) {
    window["first_layer"] = first;
  } else if (is_every(windowed, every, false)) {
    window["full_every"] = every;
  } else {
    window["full_layers"] = numbers_where(windowed, false);
  }
}

void tell_mixtures(const std::vector<bool>& mixtures, Json& experts) {
  const auto first = static_cast<std::size_t>(std::ranges::find(mixtures, true) - mixtures.begin());
  if (const std::int64_t dense = first_of_rest(mixtures); dense >= 0) {
    if (dense > 0) experts["dense_layers"] = dense;
  } else if (is_every(mixtures, first + 1, true)) {
    experts["every"] = first + 1;
  } else {
    experts["mixture_layers"] = numbers_where(mixtures, true);
  }
}

/// transformers' names of activations as ours.
Json activation_named(const std::string& name, bool gated, const JsonReader& where) {
  struct Row {
    const char* name;
    const char* plain;
    const char* gated;
  };
  constexpr std::array<Row, 9> kRows = {{{"silu", nullptr, "swiglu"},
                                         {"swish", nullptr, "swiglu"},
                                         {"gelu", "gelu_erf", nullptr},
                                         {"gelu_new", "gelu", "geglu"},
                                         {"gelu_fast", "gelu", "geglu"},
                                         {"gelu_pytorch_tanh", "gelu", "geglu"},
                                         {"relu", "relu", nullptr},
                                         {"relu2", "squared_relu", nullptr},
                                         {"gelu_python_tanh", "gelu", "geglu"}}};
  const auto row = std::ranges::find(kRows, name, &Row::name);
  const char* ours = row == kRows.end() ? nullptr : gated ? row->gated : row->plain;
  if (ours == nullptr) {
    where.fail(fmt::format("unsupported activation {} of {} MLPs", base::quote(name), gated ? "gated" : "plain"));
  }
  return ours;
}

class FamilyReader {
 public:
  FamilyReader(const Family& family, const Config& config)
      : family_(family), file_(family_.file, family.where), config_(config) {
    lookup_ = [this](const std::string& name) { return key(name); };
  }

  FamilyModel read() {
    refuse();
    document_ = {{"schema", "trivium.model/1"}, {"name", family_.name}};
    const JsonReader model = file_.at("model");
    for (const auto& [name, told] : model.members()) {
      if (std::ranges::find(kApart, name) == kApart.end()) tell(document_, name, told);
    }
    if (const auto activation = model.find("activation")) read_activation(*activation);
    if (const auto latent = model.find("latent")) read_object("latent", *latent);
    if (const auto experts = model.find("experts")) read_experts(*experts);
    if (const auto window = model.find("window")) read_window(*window);
    if (const auto temperature = model.find("temperature")) read_object("temperature", *temperature);
    if (const auto rotary = model.find("rotary")) read_rotary_members(*rotary);
    if (const auto extras = model.find("extras")) read_extras(*extras);
    demand_numbers(model);
    return {
        model_from_json(document_, fmt::format("{}#{} (read as {})", config_.file(), config_.pointer(), family_.name)),
        ignored_keys()};
  }

 private:
  static constexpr std::array<std::string_view, 7> kApart = {"activation",  "latent", "experts", "window",
                                                             "temperature", "rotary", "extras"};

  Json key(const std::string& name) const {
    if (const auto member = config_.find(name)) return member->json();
    return file_.has("defaults") ? file_.at("defaults").json().value(name, Json()) : Json();
  }

  Json value(const JsonReader& told) const {
    if (!told.json().is_string()) return told.json();
    for (const std::string& name : names_of(told.text(), told)) config_.find(name);  // known, if not used here
    return evaluate(told.text(), lookup_, told);
  }

  void tell(Json& object, const std::string& name, const JsonReader& told) const {
    Json one = value(told);
    if (!one.is_null()) object[name] = std::move(one);
  }

  /// An object of expressions; nothing where its "if" does not hold.
  Json object_of(const JsonReader& told) const {
    Json object = Json::object();
    const auto condition = told.find("if");
    const bool there = !condition || value(*condition) == true;
    for (const auto& [name, one] : told.members()) {
      if (name == "if") continue;
      if (name == "part" || (name == "layers" && told.has("parameters"))) {
        object[name] = one.json();  // names, not expressions
      } else if (there) {
        tell(object, name, one);
      } else if (one.json().is_string()) {
        for (const std::string& known : names_of(one.text(), one)) config_.find(known);
      }
    }
    return there ? object : Json();
  }

  void read_object(const char* name, const JsonReader& told) {
    Json object = object_of(told);
    if (!object.is_null()) document_[name] = std::move(object);
  }

  /// Of a key whose name alone the expression is, for errors; the configuration else.
  JsonReader place_of(const JsonReader& told) const {
    if (told.json().is_string()) {
      for (const std::string& name : names_of(told.text(), told)) {
        if (config_.has(name)) return config_.at(name);
      }
    }
    return config_;
  }

  void read_activation(const JsonReader& told) {
    const bool gated = value(told.at("gated")) == true;
    const JsonReader name = told.at("name");
    const Json given = value(name);
    if (!given.is_string()) place_of(name).fail("must name an activation");
    const auto own = told.find("own");
    const bool ours = own && std::ranges::find(own->json(), given) != own->json().end();
    document_["activation"] = ours ? given : activation_named(given.get<std::string>(), gated, place_of(name));
  }

  std::int64_t layers() const {
    const Json told = document_.value("layers", Json());
    return told.is_number_integer() ? told.get<std::int64_t>() : 0;
  }

  void read_experts(const JsonReader& told) {
    Json experts = object_of(told);
    if (experts.is_null()) return;
    if (const auto told_layers = experts.find("layers"); told_layers != experts.end()) {
      const std::vector<bool> mixtures = marks_of(*told_layers, layers(), place_of(told.at("layers")));
      experts.erase("layers");
      if (std::ranges::find(mixtures, true) == mixtures.end()) {
        document_["ffn_hidden"] = experts.value("dense_hidden", document_.value("ffn_hidden", Json()));
        return;
      }
      tell_mixtures(mixtures, experts);
    }
    if (experts.value("shared_hidden", Json()) == 0) experts.erase("shared_hidden");
    document_["experts"] = std::move(experts);
  }

  void read_window(const JsonReader& told) {
    Json window = object_of(told);
    if (window.is_null() || !window.contains("keys")) return;
    const Json keys = window["keys"], most = document_.value("max_sequence", Json());
    const bool turns_otherwise = window.contains("rotary") || window.value("plain_full", false);
    if (!turns_otherwise && keys.is_number() && most.is_number() && keys >= most) return;  // sees all there is
    if (const auto told_layers = window.find("layers"); told_layers != window.end()) {
      const std::vector<bool> windowed = marks_of(*told_layers, layers(), place_of(told.at("layers")));
      window.erase("layers");
      if (std::ranges::find(windowed, true) == windowed.end()) return;
      tell_windows(windowed, window);
    }
    document_["window"] = std::move(window);
  }

  /// theta and share by expressions; scaling by the members that transformers 4 and 5 write, of each type of layers or
  /// of all. "windowed": the theta of layers with windows, where they have one of their own.
  void read_rotary_members(const JsonReader& told) {
    if (document_.value("positions", Json()) != "rotary") return;
    const Rotary full = rotary_of(told, kFull);
    document_["rotary"] = rotary_json(full);
    if (const auto windowed = told.find("windowed"); windowed && document_.contains("window")) {
      const Rotary other = rotary_of(*windowed, "sliding_attention");
      if (other != full) document_["window"]["rotary"] = rotary_json(other);
    }
  }

  Rotary rotary_of(const JsonReader& told, const std::string& type) {
    Model model;
    model.max_sequence = document_.value("max_sequence", std::int64_t{0});
    model.rotary.theta = value(told.at("theta")).get<double>();
    if (const auto share = told.find("share")) model.rotary.share = value(*share).get<double>();
    const bool scaled = !told.has("scaled") || value(told.at("scaled")) == true;
    for (const char* name : {"rope_scaling", "rope_parameters"}) {
      scaling_ = key(name);
      const bool by_type = scaling_.is_object() && scaling_.contains(type);
      if (by_type) scaling_ = Json(scaling_[type]);
      if ((scaled || by_type) && scaling_.is_object()) read_scaling_of(name, model);
    }
    return model.rotary;
  }

  void read_scaling_of(const char* name, Model& model) {
    const Json kind = scaling_.value("rope_type", scaling_.value("type", Json()));
    static const std::array<std::string, 4> kKnown = {"default", "linear", "llama3", "yarn"};
    if (kind.is_string() && std::ranges::find(kKnown, kind.get<std::string>()) == kKnown.end() && kind != "mrope") {
      if (scaling_.contains("rope_theta")) model.rotary.theta = scaling_["rope_theta"].get<double>();
      if (scaling_.contains("partial_rotary_factor")) {
        model.rotary.share = scaling_["partial_rotary_factor"].get<double>();
      }
      add_extra(fmt::format("rotary scaling {}", kind.get<std::string>()));
      return;
    }
    if (kind == "mrope") scaling_["rope_type"] = "default";  // positions on several axes: of text all equal
    const Json wrapped = {{name, scaling_}};
    read_scaling(Config(JsonReader(wrapped, config_.file())), name, model);
  }

  static Json rotary_json(const Rotary& rotary) {
    Model model;
    model.rotary = rotary;
    return to_json(model).value("rotary", Json::object());
  }

  void add_extra(const std::string& name) {
    for (const Json& one : document_["extras"]) {
      if (one["name"] == name) return;
    }
    document_["extras"].push_back({{"name", name}, {"parameters", 0}});
  }

  /// {"name": {"if", "parameters", "part", "layers"}}: what planning counts and no backend runs.
  void read_extras(const JsonReader& told) {
    for (const auto& [name, extra] : told.members()) {
      Json object = object_of(extra);
      if (object.is_null()) continue;
      object["name"] = name;
      if (!object.contains("parameters")) object["parameters"] = 0;
      document_["extras"].push_back(std::move(object));
    }
  }

  /// Missing or mistyped numbers are errors of the configuration's key, not of our form.
  void demand_numbers(const JsonReader& model) const {
    for (const char* name : {"layers", "hidden", "heads", "vocab", "max_sequence"}) {
      if (document_.contains(name) && document_[name].is_number_integer() && document_[name] > 0) continue;
      const JsonReader told = model.at(name);
      const std::set<std::string> names = names_of(told.json().is_string() ? told.text() : "null", told);
      if (names.empty()) told.fail("is no number");
      const JsonReader member = config_.at(*names.begin());
      member.integer(1, std::numeric_limits<std::int64_t>::max());
      member.fail("must be a number above 0");
    }
  }

  /// Keys whose values the family's file refuses: {"key": {"if": "...", "reason": "..."}}.
  void refuse() const {
    const auto refused = file_.find("refused");
    if (!refused) return;
    for (const auto& [name, told] : refused->members()) {
      if (value(told.at("if")) != true) continue;
      const std::string reason = told.at("reason").text();
      if (config_.has(name)) config_.at(name).fail(reason);
      config_.fail(fmt::format("{} by default: {}", name, reason));
    }
  }

  std::vector<std::string> ignored_keys() const {
    std::vector<std::string> names;
    if (const auto ignored = file_.find("ignored")) {
      for (const auto& [name, reason] : ignored->members()) {
        if (config_.has(name) && !config_.asked(name)) names.push_back(name);
      }
    }
    return names;
  }

  const Family& family_;
  JsonReader file_;
  const Config& config_;
  Lookup lookup_;
  Json document_, scaling_;
};

}  // namespace

FamilyModel read_by_family(const Family& family, const Config& config) { return FamilyReader(family, config).read(); }

}  // namespace trivium::models
