// Masks of dropout on cores, a row at a time. Static functions: see operands.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/cpu/operands.h"

namespace trivium::runtime::cpu {

/// keep (count): 1 where column `first` + i of the row is kept, 0 where it is dropped (runtime/dropout.h).
[[maybe_unused]] static void draw_row(const Dropout& d, std::int64_t head, std::int64_t sample, std::int64_t position,
                                      std::int64_t first, std::int64_t count, std::uint8_t* keep) {
  constexpr std::int64_t kQuads = 16, kColumns = 4 * kQuads;  // drawn side by side, so that compilers make vectors
  const std::uint64_t whole_key = d.key + static_cast<std::uint64_t>(d.first_head + head);
  for (std::int64_t at = first / 4 * 4; at < first + count; at += kColumns) {
    std::uint32_t a[kQuads], b[kQuads], c[kQuads], e[kQuads];
    for (std::int64_t q = 0; q < kQuads; ++q) {
      a[q] = static_cast<std::uint32_t>(at / 4 + q), b[q] = static_cast<std::uint32_t>(position);
      c[q] = d.first_sample + static_cast<std::uint32_t>(sample), e[q] = d.step;
    }
    auto key = static_cast<std::uint32_t>(whole_key), other_key = static_cast<std::uint32_t>(whole_key >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      for (std::int64_t q = 0; q < kQuads; ++q) {
        const std::uint64_t x = static_cast<std::uint64_t>(kPhiloxFirst) * a[q],
                            y = static_cast<std::uint64_t>(kPhiloxSecond) * c[q];
        a[q] = static_cast<std::uint32_t>(y >> 32) ^ b[q] ^ key;
        b[q] = static_cast<std::uint32_t>(y);
        c[q] = static_cast<std::uint32_t>(x >> 32) ^ e[q] ^ other_key;
        e[q] = static_cast<std::uint32_t>(x);
      }
      key += kPhiloxFirstStep;
      other_key += kPhiloxSecondStep;
    }
    std::uint8_t drawn[kColumns];
    for (std::int64_t q = 0; q < kQuads; ++q) {
      drawn[4 * q] = a[q] >= d.threshold, drawn[4 * q + 1] = b[q] >= d.threshold;
      drawn[4 * q + 2] = c[q] >= d.threshold, drawn[4 * q + 3] = e[q] >= d.threshold;
    }
    const std::int64_t begin = std::max(at, first), end = std::min(at + kColumns, first + count);
    std::memcpy(keep + (begin - first), drawn + (begin - at), static_cast<std::size_t>(end - begin));
  }
}

/// Of an op over token rows: the columns [0, n) of its local row `r`.
[[maybe_unused]] static void draw_token(const KernelArguments& a, std::int64_t r, std::uint8_t* keep) {
  const std::int64_t sequence = a.dropout.sequence;
  draw_row(a.dropout, 0, sample_of(a, r, sequence), position_of(a, r, sequence), 0, a.op->n, keep);
}

}  // namespace trivium::runtime::cpu
