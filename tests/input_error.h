// What a reader says of input that it does not take.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace trivium {

/// The message of the Failure that `action` throws, which must be one of input; `otherwise` where it throws none.
template <class Action>
std::string input_error(const Action& action, const std::string& otherwise = "") {
  try {
    action();
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kInput);
    return failure.error().message;
  }
  return otherwise;
}

}  // namespace trivium
