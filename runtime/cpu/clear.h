#pragma once

#include <cstddef>

namespace trivium::runtime::cpu {

/// Writes zeros over `bytes` bytes. What is larger than a core's caches goes past them, so that no line is read
/// before it is overwritten.
void clear(void* memory, std::size_t bytes);

}  // namespace trivium::runtime::cpu
