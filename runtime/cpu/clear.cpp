#include "runtime/cpu/clear.h"

#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace trivium::runtime::cpu {

void clear(void* memory, std::size_t bytes) {
#if defined(__SSE2__)
  constexpr std::size_t kLarge = std::size_t{4} << 20;
  constexpr std::size_t kLine = 64;
  if (bytes >= kLarge) {
    auto* at = static_cast<char*>(memory);
    const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(at) % kLine) % kLine;
    std::memset(at, 0, head);
    const std::size_t lines = (bytes - head) / kLine;
    const __m128i zero = _mm_setzero_si128();
    for (std::size_t i = 0; i < lines; ++i) {
      auto* line = reinterpret_cast<__m128i*>(at + head + i * kLine);
      for (int part = 0; part < 4; ++part) _mm_stream_si128(line + part, zero);
    }
    _mm_sfence();
    const std::size_t done = head + lines * kLine;
    std::memset(at + done, 0, bytes - done);
    return;
  }
#endif
  std::memset(memory, 0, bytes);
}

}  // namespace trivium::runtime::cpu
