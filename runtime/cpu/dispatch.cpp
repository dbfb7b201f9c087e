// Which compiled copy of the kernels runs on this processor.

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
Kernel find_kernel(OpKind kind, DType type);
OptimizerLoops<float> float_loops();
OptimizerLoops<double> double_loops();
}  // namespace v2
#if defined(__x86_64__)
namespace v3 {
Kernel find_kernel(OpKind kind, DType type);
OptimizerLoops<float> float_loops();
OptimizerLoops<double> double_loops();
}  // namespace v3
namespace v4 {
Kernel find_kernel(OpKind kind, DType type);
OptimizerLoops<float> float_loops();
OptimizerLoops<double> double_loops();
}  // namespace v4
#endif

namespace {

template <class T>
Kernel find_plain(OpKind kind) {
  switch (kind) {
    case OpKind::kEmbedding:
      return embedding<T>;
    case OpKind::kEmbeddingBackward:
      return embedding_backward<T>;
    case OpKind::kPosition:
      return position<T>;
    case OpKind::kPositionBackward:
      return position_backward<T>;
    case OpKind::kSplitKv:
      return split_kv<T>;
    case OpKind::kJoinKv:
      return join_kv<T>;
    case OpKind::kPackHeads:
      return pack_heads<T>;
    case OpKind::kUnpackHeads:
      return unpack_heads<T>;
    case OpKind::kPackTokens:
      return pack_tokens<T>;
    case OpKind::kUnpackTokens:
      return unpack_tokens<T>;
    case OpKind::kRoute:
      return route<T>;
    case OpKind::kRouteBackward:
      return route_backward<T>;
    case OpKind::kSpill:
      return spill<T>;
    case OpKind::kDispatch:
      return dispatch<T>;
    case OpKind::kDispatchBackward:
      return dispatch_backward<T>;
    case OpKind::kCombine:
      return combine<T>;
    case OpKind::kCombineBackward:
      return combine_backward<T>;
    case OpKind::kCompress:
      return compress<T>;
    case OpKind::kDecompress:
      return decompress<T>;
    case OpKind::kAdd:
      return add<T>;
    case OpKind::kZeroGradients:
      return zero_gradients<T>;
    case OpKind::kGradientNorm:
      return gradient_norm<T>;
    case OpKind::kAdamW:
      return adamw<T>;
    default:
      return nullptr;
  }
}

Kernel find_half(OpKind kind) {
  switch (kind) {
    case OpKind::kAdamW:
      return adamw_half;
    case OpKind::kGradientNorm:
      return gradient_norm_half;
    case OpKind::kZeroGradients:
      return zero_gradients_half;
    case OpKind::kCompress:
    case OpKind::kDecompress:
      return copy_half;
    default:
      return program::is_communication(kind) ? nullptr : widened;
  }
}

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
  if (program::is_copy(kind)) return copy;
  const bool wide = type == DType::kFp32 || type == DType::kFp64;
  if (!wide && !program::is_half(type)) return nullptr;
  if (kind == OpKind::kPlaceRows) return place_rows;
  if (kind == OpKind::kPickRows) return pick_rows;
  if (!wide) return find_half(kind);
  const Kernel plain = type == DType::kFp32 ? find_plain<float>(kind) : find_plain<double>(kind);
  if (plain != nullptr) return plain;
#if defined(__x86_64__)
  if (variant == Variant::kV3) return v3::find_kernel(kind, type);
  if (variant == Variant::kV4) return v4::find_kernel(kind, type);
#endif
  static_cast<void>(variant);
  return v2::find_kernel(kind, type);
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

}  // namespace trivium::runtime::cpu
