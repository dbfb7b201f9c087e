#include "program/ir/rate_kind.h"

namespace trivium::program {

std::string_view name_of(RateKind kind) {
  if (!kind.flash) return name_of(kind.kind);
  return kind.kind == OpKind::kAttention ? "flash_attention" : "flash_attention_backward";
}

}  // namespace trivium::program
