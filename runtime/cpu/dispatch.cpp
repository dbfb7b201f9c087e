// Which compiled copy of the kernels runs on this processor.

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/optimizer_loops.h"
#include "runtime/cpu/plain_kernels.h"
#include "runtime/cpu/variant.h"

namespace trivium::runtime::cpu {

using program::DType;
using program::OpKind;

namespace v2 {
void add_kernels(KernelTable& table);
OptimizerLoops<float> float_loops();
OptimizerLoops<double> double_loops();
}  // namespace v2
#if defined(__x86_64__)
namespace v3 {
void add_kernels(KernelTable& table);
OptimizerLoops<float> float_loops();
OptimizerLoops<double> double_loops();
}  // namespace v3
namespace v4 {
void add_kernels(KernelTable& table);
OptimizerLoops<float> float_loops();
OptimizerLoops<double> double_loops();
}  // namespace v4
#endif

namespace {

Variant choose() {
  const char* wish = std::getenv("TRIVIUM_CPU");
  if (wish == nullptr || *wish == '\0') {
    if (available(Variant::kV4)) return Variant::kV4;
    return available(Variant::kV3) ? Variant::kV3 : Variant::kV2;
  }
  const std::string_view name(wish);
  if (name != "v2" && name != "v3" && name != "v4") {
    throw base::Failure(base::ErrorKind::kUsage, "TRIVIUM_CPU: no such instruction set; use v2, v3 or v4");
  }
  const Variant variant = name == "v2" ? Variant::kV2 : name == "v3" ? Variant::kV3 : Variant::kV4;
  if (!available(variant)) {
    throw base::Failure(
        base::ErrorKind::kHardware,
        "TRIVIUM_CPU=" + std::string(name) + ": this processor or its system lacks the instructions; unset it");
  }
  return variant;
}

KernelTable table_of([[maybe_unused]] Variant variant) {
  KernelTable table;
#if defined(__x86_64__)
  if (variant == Variant::kV3) v3::add_kernels(table);
  if (variant == Variant::kV4) v4::add_kernels(table);
#endif
  if (variant == Variant::kV2) v2::add_kernels(table);
  add_casts(table);
  add_compression(table);
  add_context(table);
  add_embeddings(table);
  add_mixtures(table);
  add_muon(table);
  add_optimizer(table);
  return table;
}

}  // namespace

bool available(Variant variant) {
#if defined(__x86_64__)
  // __builtin_cpu_supports also asks whether the operating system saves the wide registers.
  if (variant == Variant::kV3) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (variant == Variant::kV4) {
    return available(Variant::kV3) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  }
#endif
  return variant == Variant::kV2;
}

Variant chosen_variant() {
  static const Variant variant = choose();
  return variant;
}

Kernel find_kernel(Variant variant, OpKind kind, DType type) {
  static const std::array<KernelTable, 3> tables{table_of(Variant::kV2), table_of(Variant::kV3),
                                                 table_of(Variant::kV4)};
  const KernelTable& table = tables[static_cast<std::size_t>(variant)];
  const auto k = static_cast<std::size_t>(kind);
  if (program::is_copy(kind) || type == DType::kFp32) return table.fp32[k];
  if (type == DType::kFp64) return table.fp64[k];
  if (!program::is_half(type) || program::is_communication(kind)) return nullptr;
  return table.half[k] != nullptr ? table.half[k] : widened;
}

template <>
OptimizerLoops<float> optimizer_loops([[maybe_unused]] Variant variant) {
#if defined(__x86_64__)
  if (variant == Variant::kV3) return v3::float_loops();
  if (variant == Variant::kV4) return v4::float_loops();
#endif
  return v2::float_loops();
}

template <>
OptimizerLoops<double> optimizer_loops([[maybe_unused]] Variant variant) {
#if defined(__x86_64__)
  if (variant == Variant::kV3) return v3::double_loops();
  if (variant == Variant::kV4) return v4::double_loops();
#endif
  return v2::double_loops();
}

Kernel find_kernel(OpKind kind, DType type) { return find_kernel(chosen_variant(), kind, type); }

Kernel kernel_of(const program::Op& op, DType type) {
  const bool in_8_bits = op.fp8 != program::Fp8::kNone && op.kind != OpKind::kQuantize;
  return in_8_bits ? fp8_product(type) : find_kernel(op.kind, type);
}

}  // namespace trivium::runtime::cpu
