// Latent attention (program/lower/latent.cpp): norms of the latents (T, q|k|shared), and heads made into (T, q|k|v). A
// head of q or k has its turning components first; the keys' are one for all heads.

#include <cmath>

#include "runtime/cpu/variants/eigen.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

/// The two latents of a row: where each begins, how wide it is, and which operands belong to it.
struct LatentPart {
  Index begin, width;
  std::size_t weight, narrow;  ///< its weight among inputs (gradient: outputs), and its own output
};

struct Latents {
  explicit Latents(const program::Op& op) : queries(op.elements), keys(op.n), width(queries + keys + op.k) {}
  Index queries, keys, width;

  template <class Visit>
  void for_each(Visit visit) const {
    if (queries > 0) visit(LatentPart{0, queries, 1, 0});
    visit(LatentPart{queries, keys, 2, 1});
  }
};

/// 1 over the root mean square.
template <class T>
static T inverse_of(const ConstRow<T>& x, double epsilon) {
  return T(1) / std::sqrt(x.square().sum() / static_cast<T>(x.size()) + static_cast<T>(epsilon));
}

template <class T>
static void latent_norm(const KernelArguments& a) {
  const Latents s(*a.op);
  s.for_each([&](const LatentPart& part) {
    const ConstRow<T> weight(input<T>(a, part.weight), part.width);
    for (Index r = 0; r < a.op->m; ++r) {
      const ConstRow<T> x(input<T>(a, 0) + r * s.width + part.begin, part.width);
      Row<T>(output<T>(a, part.narrow) + r * part.width, part.width) = x * inverse_of<T>(x, a.op->epsilon) * weight;
    }
  });
}

// As norm_backward; what the root mean square was is computed again.
template <class T>
static void latent_norm_backward(const KernelArguments& a) {
  const Latents s(*a.op);
  s.for_each([&](const LatentPart& part) {
    const ConstRow<T> weight(input<T>(a, part.weight), part.width);
    Row<T> xhat(scratch<T, 0>(part.width), part.width), g(scratch<T, 1>(part.width), part.width);
    for (Index r = 0; r < a.op->m; ++r) {
      const ConstRow<T> x(input<T>(a, 0) + r * s.width + part.begin, part.width);
      const ConstRow<T> dy(input<T>(a, 3 + part.narrow) + r * part.width, part.width);
      const T inverse = inverse_of<T>(x, a.op->epsilon);
      xhat = x * inverse;
      g = dy * weight;
      if (T* dweight = output<T>(a, part.weight)) Row<T>(dweight, part.width) += dy * xhat;
      const T mean_gx = (g * xhat).sum() / static_cast<T>(part.width);
      Row<T>(output<T>(a, 0) + r * s.width + part.begin, part.width) = (g - xhat * mean_gx) * inverse;
    }
  });
}

/// Where the heads of one row lie: as products make them, and as attention reads them.
struct LatentHeads {
  explicit LatentHeads(const program::Op& op)
      : heads(op.heads),
        dim(op.head_dim),
        values(program::value_dim_of(op)),
        shared(op.k),
        plain(dim - shared),
        latents(op.n),
        qkv(program::qkv_width_of(op)) {}
  Index heads, dim, values, shared, plain, latents, qkv;

  Index key(Index h) const { return (heads + h) * dim; }
  Index value(Index h) const { return 2 * heads * dim + h * values; }
  Index made(Index h) const { return h * (plain + values); }  ///< plain part of the key, followed by the value
  Index made_width() const { return heads * (plain + values); }
};

template <class T>
static void latent_heads(const KernelArguments& a) {
  const LatentHeads s(*a.op);
  for (Index r = 0; r < a.op->m; ++r) {
    const T *made = input<T>(a, 1) + r * s.made_width(), *common = input<T>(a, 2) + (r + 1) * s.latents - s.shared;
    T* y = output<T>(a, 0) + r * s.qkv;
    Row<T>(y, s.heads * s.dim) = ConstRow<T>(input<T>(a, 0) + r * s.heads * s.dim, s.heads * s.dim);
    for (Index h = 0; h < s.heads; ++h) {
      Row<T>(y + s.key(h), s.shared) = ConstRow<T>(common, s.shared);
      Row<T>(y + s.key(h) + s.shared, s.plain) = ConstRow<T>(made + s.made(h), s.plain);
      Row<T>(y + s.value(h), s.values) = ConstRow<T>(made + s.made(h) + s.plain, s.values);
    }
  }
}

template <class T>
static void latent_heads_backward(const KernelArguments& a) {
  const LatentHeads s(*a.op);
  for (Index r = 0; r < a.op->m; ++r) {
    const T* dy = input<T>(a, 0) + r * s.qkv;
    T* made = output<T>(a, 1) + r * s.made_width();
    Row<T> common(output<T>(a, 2) + (r + 1) * s.latents - s.shared, s.shared);
    Row<T>(output<T>(a, 0) + r * s.heads * s.dim, s.heads * s.dim) = ConstRow<T>(dy, s.heads * s.dim);
    common.setZero();
    for (Index h = 0; h < s.heads; ++h) {
      common += ConstRow<T>(dy + s.key(h), s.shared);
      Row<T>(made + s.made(h), s.plain) = ConstRow<T>(dy + s.key(h) + s.shared, s.plain);
      Row<T>(made + s.made(h) + s.plain, s.values) = ConstRow<T>(dy + s.value(h), s.values);
    }
  }
}

void add_latents(KernelTable& table) {
  table.add(program::OpKind::kLatentNorm, latent_norm<float>, latent_norm<double>);
  table.add(program::OpKind::kLatentNormBackward, latent_norm_backward<float>, latent_norm_backward<double>);
  table.add(program::OpKind::kLatentHeads, latent_heads<float>, latent_heads<double>);
  table.add(program::OpKind::kLatentHeadsBackward, latent_heads_backward<float>, latent_heads_backward<double>);
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
