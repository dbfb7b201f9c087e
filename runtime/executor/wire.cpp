#include "runtime/executor/wire.h"

#include "runtime/reduction/half.h"
#include "runtime/reduction/number.h"

namespace trivium::runtime {
namespace {

using program::DType;

// All but fp64 go through fp32, which holds them exactly, so nothing is rounded twice.
void write(std::byte* to, std::int64_t i, DType type, double value) {
  switch (type) {
    case DType::kFp64:
      reinterpret_cast<double*>(to)[i] = value;
      return;
    case DType::kBf16:
      reinterpret_cast<std::uint16_t*>(to)[i] = reduction::bf16_of_float(static_cast<float>(value));
      return;
    case DType::kFp16:
      reinterpret_cast<std::uint16_t*>(to)[i] = reduction::fp16_of_float(static_cast<float>(value));
      return;
    default:
      reinterpret_cast<float*>(to)[i] = static_cast<float>(value);
  }
}

void convert(const std::byte* from, DType kept, std::byte* to, DType wanted, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) write(to, i, wanted, reduction::number_at(from, i, kept));
}

std::byte* room(std::vector<double>& memory, std::int64_t elements) {
  if (memory.size() < static_cast<std::size_t>(elements)) memory.resize(static_cast<std::size_t>(elements));
  return reinterpret_cast<std::byte*>(memory.data());
}

}  // namespace

void Wire::all_reduce(Communicator& communicator, int group, std::byte* data, std::int64_t count, DType kept,
                      DType on_wire) {
  std::byte* copy = room(whole_, count);
  convert(data, kept, copy, on_wire, count);
  communicator.all_reduce(group, copy, count, on_wire, program::Reduction::kSum);
  convert(copy, on_wire, data, kept, count);
}

void Wire::reduce_scatter(Communicator& communicator, int group, int members, const std::byte* whole, std::byte* part,
                          std::int64_t count, DType kept, DType on_wire) {
  std::byte* copy = room(whole_, count);
  std::byte* sums = room(part_, count / members);
  convert(whole, kept, copy, on_wire, count);
  communicator.reduce_scatter(group, copy, sums, count, on_wire);
  convert(sums, on_wire, part, kept, count / members);
}

}  // namespace trivium::runtime
