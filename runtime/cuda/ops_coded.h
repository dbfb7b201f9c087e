// Products of operands in 8 bits: to cuBLASLt with their scales where it reads them, or where it has no such product as
// products of the numbers that codes stand for.
#pragma once

#include <string>

#include "runtime/cuda/ops_blocks.h"
#include "runtime/cuda/ops_quantize.h"
#include "runtime/cuda/scaling.h"

namespace trivium::runtime::cuda {

/// The products of an op, which are all C (m, n) = A (m, k) B (n, k)^T: one, or one a run of an expert's rows, as every
/// run of an operand has scales of its own.
struct CodedProducts {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t count = 1, weights = 1;
  bool forward = false, wgrad = false;

  explicit CodedProducts(const program::Op& op) {
    using program::OpKind;
    const bool experts = op.experts > 0;
    forward = op.kind == OpKind::kMatmul || op.kind == OpKind::kExpertMatmul;
    wgrad = op.kind == OpKind::kMatmulWgrad || op.kind == OpKind::kExpertMatmulWgrad;
    const std::int64_t rows = experts ? op.m / op.parts : op.m;
    if (experts) weights = op.experts, count = weights * op.parts;
    m = wgrad ? op.k : rows;
    n = forward || wgrad ? op.n : op.k;
    k = wgrad ? rows : forward ? op.k : op.n;
  }
  /// Of B, that of product `at`: a run of rows, or the expert's weight.
  std::int64_t run_of_b(std::int64_t at) const { return wgrad ? at : at % weights; }
  /// Where C begins, in elements: what gradients of a weight are added up in is the expert's.
  std::int64_t c_begin(std::int64_t at) const { return (wgrad ? at % weights : at) * m * n; }
};

/// An operand: (runs, outer, inner) codes, of which a product sums over `inner`, and scales.
struct CodedOperand {
  const std::byte* codes = nullptr;
  const std::byte* scales = nullptr;
  program::Fp8Operand what = program::Fp8Operand::kInput;
  Codes type = Codes::kNone;
  std::int64_t runs = 1, outer = 0, inner = 0, scale_bytes = 0;
  ScalePlaces places;
};
inline CodedOperand coded_operand(const KernelArguments& a, int operand) {
  const program::Op& op = *a.op;
  const CodedProducts p(op);
  const program::Fp8Layout layout = program::operand_layout(op, operand);
  const bool along_rows = operand == 0 ? !p.wgrad : !p.forward && !p.wgrad;
  CodedOperand o;
  o.codes = a.in[static_cast<std::size_t>(operand)];
  o.scales = o.codes + layout.scales_begin();
  o.what = program::operand_of(op, operand);
  o.type = codes_of(op.fp8, o.what);
  o.runs = layout.runs, o.scale_bytes = layout.scale_bytes;
  o.outer = operand == 0 ? p.m : p.n, o.inner = p.k;
  o.places = scale_places(layout, along_rows);
  return o;
}

/// What a product reads of an operand: run r's numbers r * run_bytes on, its scales r * scale_run.
struct ReadOperand {
  const std::byte* numbers = nullptr;
  const std::byte* scales = nullptr;
  std::int64_t run_bytes = 0, scale_run = 0;
  Codes type = Codes::kNone;
  Scaling scaling = Scaling::kTensor;
};

/// Where an operand's scales are laid for a product that does not read them where they are; of one tensor, and of
/// vectors of 128, it does.
struct LaidScales {
  std::int64_t outer = 1, inner = 1;  ///< scales of a run, padded
  std::int64_t bytes_each = 4;
  bool in_place = false;
  std::int64_t run_bytes() const { return in_place ? 0 : outer * inner * bytes_each; }

  LaidScales(const CodedOperand& o, Scaling scaling) {
    const auto padded = [](std::int64_t n, std::int64_t block, std::int64_t to) {
      return ((n + block - 1) / block + to - 1) / to * to;
    };
    constexpr std::int64_t kWords = 4;  // of 16 bytes
    in_place = scaling == Scaling::kVectors128 || (scaling == Scaling::kTensor && o.runs == 1);
    if (scaling == Scaling::kTensor) inner = kWords;
    if (scaling == Scaling::kSquares128) {
      outer = padded(o.outer, o.places.outer_block, 1), inner = padded(o.inner, o.places.inner_block, kWords);
    }
    if (scaling == Scaling::kVectors32) {
      outer = padded(o.outer, 1, TileWords::kOuter);
      inner = padded(o.inner, TileWords::kNumbers, TileWords::kInner), bytes_each = 1;
    }
  }
};

template <class Launcher>
ReadOperand with_scales(Launcher& l, const CodedOperand& o, Scaling scaling, std::byte* room) {
  const LaidScales laid(o, scaling);
  ReadOperand read{o.codes, o.scales, o.outer * o.inner, o.places.of_run * o.scale_bytes, o.type, scaling};
  if (laid.in_place) return read;
  read.scales = room, read.scale_run = laid.run_bytes();
  const auto* from = reinterpret_cast<const float*>(o.scales);
  if (scaling != Scaling::kVectors32) {
    const bool squares = scaling == Scaling::kSquares128;
    const std::int64_t inner = squares ? (o.inner + o.places.inner_block - 1) / o.places.inner_block : 1;
    const PadScales pad{from, reinterpret_cast<float*>(room), o.places, o.runs, laid.outer, inner, laid.inner};
    run_elements(l, pad, pad.count());
    return read;
  }
  const TileWords tiles{reinterpret_cast<std::uint32_t*>(room), o.places, o.runs, o.outer, o.inner};
  if (o.scale_bytes == 1) {
    run_elements(l, TileScales<std::uint8_t>{reinterpret_cast<const std::uint8_t*>(o.scales), tiles}, tiles.count());
  } else {
    run_elements(l, TileScales<float>{from, tiles}, tiles.count());
  }
  return read;
}

template <class T, class Launcher>
ReadOperand read_back(Launcher& l, const CodedOperand& o, std::byte* room) {
  const std::int64_t count = o.runs * o.outer * o.inner;
  const auto* codes = reinterpret_cast<const std::uint8_t*>(o.codes);
  const auto read = [&](auto* scales) {
    using Scale = std::remove_cvref_t<decltype(*scales)>;
    using Kernel = ReadCodes<T, Scale>;
    run_elements(l, Kernel{codes, scales, reinterpret_cast<T*>(room), o.places, o.outer, o.inner, count}, count,
                 Kernel::kPack);
  };
  if (o.scale_bytes == 1) {
    read(reinterpret_cast<const std::uint8_t*>(o.scales));
  } else {
    read(reinterpret_cast<const float*>(o.scales));
  }
  return {room, nullptr, o.outer * o.inner * static_cast<std::int64_t>(sizeof(T))};
}

/// Products from `first` on, until `run` (a Gemm) says that there is none; how many are done then. Transformer Engine's
/// recipes of tensors sum forward products faster and with fewer bits (use_split_accumulator), gradients and blocks
/// not.
template <class T, class Run>
std::int64_t run_products(const KernelArguments& a, const CodedProducts& p, const ReadOperand& x, const ReadOperand& w,
                          std::int64_t first, const Run& run) {
  Gemm g{.m = p.m, .n = p.n, .k = p.k, .type = kTypeOf<T>};
  g.a_codes = x.type, g.b_codes = w.type, g.b_transposed = true;
  g.a_scaling = x.scaling, g.b_scaling = w.scaling;
  g.lda = g.ldb = p.k, g.ldc = p.n;
  g.out = p.wgrad ? program::DType::kFp32 : kTypeOf<T>;
  g.beta = p.wgrad ? 1.0F : 0.0F;
  g.fast_sums = p.forward && x.type != Codes::kNone && program::scales_tensors(a.op->fp8);
  if (a.op->kind == program::OpKind::kMatmul) g.bias = a.in[2];
  for (std::int64_t at = first; at < p.count; ++at) {
    const std::int64_t b = p.run_of_b(at);
    g.a = x.numbers + at * x.run_bytes, g.b = w.numbers + b * w.run_bytes;
    if (x.scales != nullptr) g.a_scale = x.scales + at * x.scale_run, g.b_scale = w.scales + b * w.scale_run;
    g.c = a.out[0] + p.c_begin(at) * size_of(g.out);
    if (!run(g)) return at;
  }
  return p.count;
}

template <class T, class Launcher>
void coded_matmul(Launcher& l, const KernelArguments& a) {
  const CodedProducts p(*a.op);
  const CodedOperand x = coded_operand(a, 0), w = coded_operand(a, 1);
  const program::Fp8 recipe = a.op->fp8;
  const auto of_x = scaling_of(l.scaled_products(), recipe, x.what),
             of_w = scaling_of(l.scaled_products(), recipe, w.what);
  std::int64_t done = 0;
  if (of_x && of_w) {
    const LaidScales laid(x, *of_x);
    const std::int64_t bytes = x.runs * laid.run_bytes();
    std::byte* const room = l.scratch(bytes + w.runs * LaidScales(w, *of_w).run_bytes());
    done = run_products<T>(a, p, with_scales(l, x, *of_x, room), with_scales(l, w, *of_w, room + bytes), 0,
                           [&](const Gemm& g) {
                             if (!program::scales_tensors(recipe)) return l.try_gemm(g);
                             return l.gemm(g), true;
                           });
    if (done == p.count) return;
    l.note("cuBLASLt has no product in 8 bits by blocks of (" + std::to_string(p.m) + ", " + std::to_string(p.k) +
           ") x (" + std::to_string(p.k) + ", " + std::to_string(p.n) + "): it is of the same numbers in bf16");
  }
  const std::int64_t size = sizeof(T), numbers = x.runs * x.outer * x.inner;
  std::byte* const room = l.scratch((numbers + w.runs * w.outer * w.inner) * size);
  run_products<T>(a, p, read_back<T>(l, x, room), read_back<T>(l, w, room + numbers * size), done,
                  [&](const Gemm& g) { return l.gemm(g), true; });
}

/// The function for an op of products or casts in 8 bits, for activations of type T; null for another op.
template <class T, class Launcher>
Operation<Launcher> coded_operation(const program::Op& op) {
  if (op.kind == program::OpKind::kQuantize) {
    return program::scales_tensors(op.fp8) ? quantize<T, Launcher> : quantize_blocks<T, Launcher>;
  }
  if (op.kind == program::OpKind::kRecordLargest) return record_largest<Launcher>;
  return op.fp8 == program::Fp8::kNone ? nullptr : coded_matmul<T, Launcher>;
}

}  // namespace trivium::runtime::cuda
