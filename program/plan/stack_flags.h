// The table of a stack's flags: their JSON, documentation and listing are derived from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/json_reader.h"
#include "program/plan/stack.h"

namespace trivium::program {

/// A member of StackTraits that a stack's file may set.
struct StackFlag {
  using Member = std::variant<bool StackTraits::*, int StackTraits::*, std::int64_t StackTraits::*,
                              double StackTraits::*, ExpertDispatch StackTraits::*>;

  const char* name;  ///< of the member in JSON, which is that of StackTraits
  Member member;
  const char* help;          ///< one sentence; ends without a full stop
  double low = 0, high = 0;  ///< of a number

  bool is_number() const;
  /// "true, false", "0 to 1", or the names of a choice.
  std::string values() const;
  /// The value in `traits`, as JSON has it.
  std::string text(const StackTraits& traits) const;
  nlohmann::ordered_json json(const StackTraits& traits) const;
  /// Sets the member. Errors: Failure(kInput) at `value`.
  void read(const base::JsonReader& value, StackTraits& traits) const;
};

std::span<const StackFlag> stack_flags();

}  // namespace trivium::program
