// What a trainer's own recipes usually use and a search for it leaves out: the first line of its answer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/space/request.h"

namespace trivium::planner {

/// Values of plan fields, together, that a trainer's recipes or published runs usually have.
struct UsualValue {
  enum class Of : std::uint8_t { kAll, kDense, kMixtures };
  std::string_view trainer;  ///< of trainer_spaces()
  Of models = Of::kAll;
  /// Field and value, as program::set_field takes them. The first one is what is usual; the others go along with it.
  std::vector<std::pair<std::string_view, std::string_view>> values;
  std::string_view in;      ///< "17 of 18 published runs"
  std::string_view source;  ///< a file of validation/runs_modern, or of the trainer
};

std::span<const UsualValue> usual_values();

/// One that the space excludes though the user did not.
struct Missing {
  std::string field, value;
  std::string why;  ///< "its files run products in 16 bits"
  std::string in;   ///< UsualValue::in
};

/// What a search for a trainer excludes: by a rule of the trainer's, or by a usual bound. Fields that are fixed, or
/// that the user bounds, are the user's choice. Nothing without a trainer.
std::vector<Missing> missing_values(const SearchRequest& request);

/// "missing: fp8 current (18 of 18 published runs; its files run products in 16 bits); …", or empty.
std::string text_of(const std::vector<Missing>& missing);

}  // namespace trivium::planner
