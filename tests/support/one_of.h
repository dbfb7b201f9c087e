// Draws of random tests.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <random>

namespace trivium::support {

/// One of the values, all as likely.
template <class T>
T one_of(std::mt19937& random, std::initializer_list<T> values) {
  return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random));
}

}  // namespace trivium::support
