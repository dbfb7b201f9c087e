#include "tests/runtime/cuda/emulated_call.h"

#include <cmath>
#include <utility>

namespace trivium::runtime::cuda {
namespace {

using program::DType;

double rounded(double x, DType type) {
  if (type == DType::kBf16) return static_cast<double>(widen(narrow<Bf16>(static_cast<float>(x))));
  if (type == DType::kFp16) return static_cast<double>(widen(narrow<Fp16>(static_cast<float>(x))));
  return x;
}

/// The operand's bytes in a run of type `type`; `rounding`: of typed operands beforehand.
std::vector<std::byte> bytes_of(const EmulatedCall::Operand& operand, DType type, DType rounding) {
  std::vector<std::byte> bytes;
  const auto add = [&](auto value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof value);
  };
  for (const double x : operand.numbers) {
    if (operand.form == Form::kInts) {
      add(static_cast<std::int32_t>(x));
    } else if (operand.form == Form::kBytes) {
      add(static_cast<std::uint8_t>(x));
    } else if (operand.form == Form::kPair) {
      add(x);
    } else if (operand.form == Form::kTyped && type == DType::kBf16) {
      add(narrow<Bf16>(static_cast<float>(x)));
    } else if (operand.form == Form::kTyped && type == DType::kFp16) {
      add(narrow<Fp16>(static_cast<float>(x)));
    } else {
      add(static_cast<float>(operand.form == Form::kTyped ? rounded(x, rounding) : x));
    }
  }
  bytes.resize(bytes.size() + 64);  // so that an empty operand has an address
  return bytes;
}

std::vector<double> numbers_of(const EmulatedCall::Operand& operand, DType type, const std::vector<std::byte>& bytes) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < operand.numbers.size(); ++i) {
    const auto at = [&]<class V>(V) {
      V value;
      std::memcpy(&value, bytes.data() + i * sizeof(V), sizeof(V));
      return value;
    };
    if (operand.form == Form::kInts) {
      numbers.push_back(at(std::int32_t{}));
    } else if (operand.form == Form::kBytes) {
      numbers.push_back(at(std::uint8_t{}));
    } else if (operand.form == Form::kPair) {
      numbers.push_back(at(double{}));
    } else if (operand.form == Form::kTyped && type == DType::kBf16) {
      numbers.push_back(static_cast<double>(widen(at(Bf16{}))));
    } else if (operand.form == Form::kTyped && type == DType::kFp16) {
      numbers.push_back(static_cast<double>(widen(at(Fp16{}))));
    } else {
      numbers.push_back(static_cast<double>(at(float{})));
    }
  }
  return numbers;
}

}  // namespace

std::array<std::vector<double>, 3> EmulatedCall::run(DType type, DType rounding, const Run& kernel) const {
  const EmulatedCall& call = *this;
  std::array<std::vector<std::byte>, program::kMaxOperands> read;
  std::array<std::vector<std::byte>, 3> written;
  KernelArguments arguments = call.a;
  program::Op copy = call.op;
  Sizes sizes;
  copy.dtype = type;
  arguments.op = &copy;
  arguments.values = &call.values;
  arguments.routing = &call.routing;
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (!call.in[i].given) continue;
    read[i] = bytes_of(call.in[i], type, rounding);
    arguments.in[i] = read[i].data();
    sizes.in[i] = static_cast<std::int64_t>(read[i].size());
  }
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (!call.out[i].given) continue;
    written[i] = bytes_of(call.out[i], type, rounding);
    arguments.out[i] = written[i].data();
    sizes.out[i] = static_cast<std::int64_t>(written[i].size());
  }
  if (call.in_place) arguments.out[0] = arguments.in[0];
  if (call.raises) {
    arguments.in[1] = std::exchange(arguments.out[2], nullptr);
    sizes.in[1] = sizes.out[2];
  }
  kernel(arguments, sizes);
  std::array<std::vector<double>, 3> results;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (!call.out[i].given) continue;
    std::vector<std::byte>& bytes = call.in_place && i == 0 ? read[0] : written[i];
    if (i == 0 && call.packs_rows && program::is_half(type)) {
      for (std::int64_t r = 0; r < copy.m; ++r) {
        for (std::int64_t j = 0; j < copy.n; ++j) {
          std::uint16_t bits = 0;
          std::memcpy(&bits, bytes.data() + r * copy.n * 4 + j * 2, 2);
          results[0].push_back(static_cast<double>(type == DType::kBf16 ? widen(Bf16{bits}) : widen(Fp16{bits})));
        }
      }
      continue;
    }
    results[i] = numbers_of(call.out[i], type, bytes);
  }
  return results;
}

std::array<std::vector<double>, 3> EmulatedCall::on_cpu(DType rounding) const {
  return run(DType::kFp32, rounding, [](const KernelArguments& arguments, const Sizes&) {
    cpu::find_kernel(arguments.op->kind, DType::kFp32)(arguments);
  });
}

void drop_a_quarter(EmulatedCall& call, std::int64_t sequence) {
  Dropout& d = call.a.dropout;
  d.threshold = 1U << 30;
  d.scale = 4.0 / 3;
  d.key = 0x0123456789abcdefULL;
  d.step = 3, d.first_sample = 8, d.first_head = 4;
  d.sequence = sequence;
}

void expect_equal_to_emulation(const EmulatedCall& call, DType type, double tolerance) {
  const auto wanted = call.on_cpu(type), got = call.on_emulation(type);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(got[i].size(), wanted[i].size());
    double largest = 0;
    for (const double x : wanted[i]) largest = std::max(largest, std::abs(x));
    for (std::size_t j = 0; j < wanted[i].size(); ++j) {
      ASSERT_NEAR(got[i][j], wanted[i][j], tolerance * largest)
          << name_of(call.op.kind) << " in " << name_of(type) << ", output " << i << ", element " << j;
    }
  }
}

}  // namespace trivium::runtime::cuda
