#include "calibration/foreign/match.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "calibration/foreign/meaning.h"
#include "program/ir/op.h"

namespace trivium::calibration::foreign {
namespace {

using imports::Kernel;
using imports::KernelTrace;
using imports::Operator;

constexpr const char* kBackward = "_backward";

/// What the callers of a kernel say of it.
struct Context {
  Meaning scope = Meaning::kUnknown;  ///< the innermost that means one thing whatever runs below it
  Meaning own = Meaning::kUnknown;    ///< of the innermost operator that does work
  std::int32_t shapes = -1;           ///< of the innermost operator that tells them
  bool backward = false, recomputed = false;
};

bool is_scope(Meaning meaning) {
  using enum Meaning;
  static const std::set<Meaning> kScopes{kNorm,      kRotary, kActivation, kEmbedding,  kLoss,
                                         kOptimizer, kZero,   kAccumulate, kBucketCopy, kGradientNorm};
  return kScopes.contains(meaning);
}

/// What a meaning is called where nothing but it matters.
std::string_view name_of_meaning(Meaning meaning) {
  using enum Meaning;
  switch (meaning) {
    case kNorm:
      return "norm";
    case kRotary:
      return "rotary";
    case kActivation:
      return "activation";
    case kEmbedding:
      return "embedding";
    case kLoss:
      return "loss";
    case kFusedAttention:
    case kSoftmax:
    case kBatched:
      return "attention";
    case kOptimizer:
      return "adamw";
    case kGradientNorm:
      return "gradient_norm";
    case kZero:
      return "zero_gradients";
    case kAccumulate:
      return "add";
    case kBucketCopy:
      return "bucket_copy";
    case kRouting:
      return "route";
    default:
      return "";
  }
}

bool has_backward(Meaning meaning) {
  using enum Meaning;
  static const std::set<Meaning> kBoth{kNorm,           kRotary,  kActivation, kEmbedding, kLoss,
                                       kFusedAttention, kSoftmax, kBatched,    kRouting};
  return kBoth.contains(meaning);
}

std::string named(Meaning meaning, bool backward) {
  std::string name(name_of_meaning(meaning));
  if (!name.empty() && backward && has_backward(meaning)) name += kBackward;
  return name;
}

/// Operators that only a forward calls: what their backward calls are products and kernels of other names.
bool begins_forward(const std::string& name) {
  static const std::set<std::string> kForward{"aten::linear",   "aten::scaled_dot_product_attention",
                                              "aten::rms_norm", "aten::layer_norm",
                                              "aten::silu",     "aten::gelu",
                                              "aten::embedding"};
  return kForward.contains(name);
}

class Matcher {
 public:
  Matcher(const KernelTrace& trace, const PlanShapes& shapes) : trace_(trace), shapes_(shapes) {
    for (const std::string& name : trace.names) {
      operator_meanings_.push_back(meaning_of_operator(name));
      backward_names_.push_back(is_backward(name));
      working_names_.push_back(works(name));
    }
    for (const Operator& op : trace.operators) contexts_.push_back(context_of(op));
  }

  std::vector<Match> run() {
    std::vector<Match> matches;
    matches.reserve(trace_.kernels.size());
    for (const Kernel& kernel : trace_.kernels) matches.push_back(match(kernel, matches.size()));
    settle_choices(matches);
    return matches;
  }

 private:
  Context context_of(const Operator& op) const {
    Context context;
    if (op.parent >= 0) context = contexts_[static_cast<std::size_t>(op.parent)];
    const auto name = static_cast<std::size_t>(op.name);
    const Meaning meaning = operator_meanings_[name];
    const bool keeps = context.scope == Meaning::kOptimizer || context.scope == Meaning::kGradientNorm;
    if (is_scope(meaning) && !keeps) context.scope = meaning;
    context.own = op.is_range || !working_names_[name] ? Meaning::kNoWork : meaning;
    if (op.shapes >= 0) context.shapes = op.shapes;
    if (!op.is_range && backward_names_[name]) {
      const bool checkpoint = trace_.names[name].find("Checkpoint") != std::string::npos;
      context.backward = !checkpoint;
      context.recomputed = checkpoint;
    } else if (context.backward && begins_forward(trace_.names[name])) {
      // Checkpoints that save no function of their own recompute inside the node that needs the first tensor.
      context.backward = false;
      context.recomputed = true;
    }
    return context;
  }

  /// The kernel's own name says more than its operator's where one operator may launch several kinds.
  Meaning meaning_of(const Kernel& kernel, const Context& context) const {
    if (trace_.on_cores) return context.own;
    const Meaning own = meaning_of_kernel(trace_.name_of(kernel));
    const bool sure = own != Meaning::kUnknown && own != Meaning::kElementwise && own != Meaning::kCopy &&
                      own != Meaning::kAdd && own != Meaning::kProduct;
    if (sure || context.own == Meaning::kUnknown || context.own == Meaning::kNoWork) return own;
    return context.own;
  }

  Match match(const Kernel& kernel, std::size_t place) {
    Context context;
    if (kernel.launched_by >= 0) context = contexts_[static_cast<std::size_t>(kernel.launched_by)];
    if (!trace_.on_cores && is_backward(trace_.name_of(kernel))) context.backward = true;
    const Meaning meaning = meaning_of(kernel, context);
    Match match;
    match.recomputed = context.recomputed;
    match.backward = context.backward;
    if (kernel.kind == imports::KernelClass::kCollective || meaning == Meaning::kCollective) {
      match.kind = Match::Kind::kCollective;
      match.op = name_of_collective(kernel);
      return match;
    }
    if (trace_.on_cores && meaning == Meaning::kNoWork) {
      match.kind = Match::Kind::kHost;
      return match;
    }
    match.op = op_of(kernel, meaning, context, place);
    match.kind = match.op.empty() ? Match::Kind::kUnmatched : Match::Kind::kOp;
    const bool alone = meaning == Meaning::kBatched || meaning == Meaning::kSoftmax;
    match.unsplit = unsplit_.contains(place);
    match.unfused = alone && match.op.starts_with("attention");
    match.attends = match.unfused || meaning == Meaning::kFusedAttention;
    return match;
  }

  std::string name_of_collective(const Kernel& kernel) const {
    if (kernel.collective) return std::string(program::name_of(*kernel.collective));
    std::string name = kernel.other_collective;
    if (name.empty()) name = trace_.name_of(kernel);
    for (const char* known : {"send", "recv", "broadcast", "barrier", "reduce"}) {
      if (name.find(known) != std::string::npos) return known;
    }
    return name.find("SendRecv") != std::string::npos ? "send" : "broadcast";
  }

  std::string op_of(const Kernel& kernel, Meaning meaning, const Context& context, std::size_t place) {
    using enum Meaning;
    if (context.scope == kOptimizer || context.scope == kGradientNorm) return named(context.scope, false);
    if (meaning == kProduct || meaning == kBatched) return product(kernel, meaning, context.backward, place);
    if (meaning == kFusedAttention) return named(meaning, context.backward);
    if (context.scope != kUnknown && context.scope != kZero) return named(context.scope, context.backward);
    if (meaning == kSoftmax) return by_shape(meaning, context).value_or(named(meaning, context.backward));
    const bool by_sizes =
        meaning == kAdd || meaning == kCopy || meaning == kElementwise || meaning == kZero || meaning == kNorm;
    if (by_sizes) {
      if (const auto found = by_shape(meaning, context)) return *found;
      if (meaning == kAdd && context.shapes < 0) return context.backward ? "norm_backward" : "bias_residual";
    }
    return named(meaning, context.backward);
  }

  std::string product(const Kernel& kernel, Meaning meaning, bool backward, std::size_t place) {
    if (meaning == Meaning::kProduct && kernel.m <= 0) return kAnyProduct;
    std::vector<std::string> names = products_of_shape(kernel, shapes_.products, backward);
    if (names.empty()) {
      names = products_of_shape(kernel, shapes_.unsplit, backward);
      if (!names.empty()) unsplit_.insert(place);
    }
    if (names.empty()) return meaning == Meaning::kBatched ? named(meaning, backward) : "";
    if (names.size() > 1) choices_[place] = names;
    return names.front();
  }

  /// By the sizes of an input that only one part of a layer has.
  std::optional<std::string> by_shape(Meaning meaning, const Context& context) const {
    if (context.shapes < 0) return std::nullopt;
    for (const auto& sizes : trace_.shapes[static_cast<std::size_t>(context.shapes)]) {
      if (const std::string name = of_sizes(sizes, meaning, context.backward); !name.empty()) return name;
    }
    return std::nullopt;
  }

  std::string of_sizes(const std::vector<std::int64_t>& sizes, Meaning meaning, bool backward) const {
    using enum Meaning;
    if (sizes.size() < 2) return "";
    const std::int64_t last = sizes.back(), before = sizes[sizes.size() - 2];
    const std::int64_t rows = std::accumulate(sizes.begin(), sizes.end() - 1, std::int64_t{1}, [](auto a, auto b) {
      return b > 0 && a > (std::int64_t{1} << 40) / b ? std::int64_t{1} << 40 : a * b;
    });
    const bool tokens = shapes_.rows.contains(rows);
    if (tokens && shapes_.logits.contains(last)) return named(kLoss, backward);
    if (tokens && shapes_.inner.contains(last)) return named(kActivation, backward);
    if (tokens && (last == shapes_.hidden || last == 1)) return of_stream(meaning, backward);
    if (!tokens && shapes_.expert_inner.contains(last)) return named(kActivation, backward);
    if (!tokens && !shapes_.expert_inner.empty() && last == shapes_.hidden) return named(kRouting, backward);
    if (before == shapes_.sequence && (last == shapes_.sequence || (last == 1 && sizes.size() > 3)))
      return named(kSoftmax, backward);
    if (sizes.size() >= 3 && shapes_.head.contains(last)) return named(meaning == kCopy ? kSoftmax : kRotary, backward);
    if (!tokens) return "";
    for (const PlanProduct& product : shapes_.products) {
      if (product.n.contains(last)) return product.name + (backward ? "_wgrad" : "");
    }
    return "";
  }

  /// On the residual stream: additions are the stream's own, which going back norms take with them.
  static std::string of_stream(Meaning meaning, bool backward) {
    if (meaning == Meaning::kAdd && !backward) return "bias_residual";
    return named(Meaning::kNorm, backward);
  }

  /// Query and attention-output projections may have equal shapes: the first product after an attention is its output,
  /// in the backward the last one before it. So may two weight gradients: each runs next to its own data gradient.
  void settle_choices(std::vector<Match>& matches) {
    if (choices_.empty()) return;
    const std::vector<std::size_t> order = begins_in_order();
    bool wanted = false;
    for (const std::size_t place : order) settle(matches, place, "attention", "attention_out", wanted);
    wanted = false;
    for (auto place = order.rbegin(); place != order.rend(); ++place) {
      settle(matches, *place, "attention_backward", "attention_out_dgrad", wanted);
    }
    settle_weights(matches, order);
    std::map<std::int32_t, std::string> settled;
    for (const auto& [place, names] : choices_) {
      const Kernel& kernel = trace_.kernels[place];
      if (kernel.begins) settled[kernel.launched_by] = matches[place].op;
    }
    for (const auto& [place, names] : choices_) {
      const Kernel& kernel = trace_.kernels[place];
      if (!kernel.begins && settled.contains(kernel.launched_by)) matches[place].op = settled[kernel.launched_by];
    }
  }

  std::vector<std::size_t> begins_in_order() const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < trace_.kernels.size(); ++i) {
      if (trace_.kernels[i].begins) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return trace_.kernels[a].start_s < trace_.kernels[b].start_s;
    });
    return order;
  }

  void settle(std::vector<Match>& matches, std::size_t place, const char* anchor, const std::string& output,
              bool& wanted) {
    if (matches[place].attends && matches[place].op == anchor) wanted = true;
    const auto choice = choices_.find(place);
    if (choice == choices_.end()) return;
    const auto& names = choice->second;
    if (std::find(names.begin(), names.end(), output) == names.end()) return;
    const auto other =
        std::find_if(names.begin(), names.end(), [&](const std::string& name) { return name != output; });
    matches[place].op = wanted ? output : *other;
    wanted = false;
  }

  void settle_weights(std::vector<Match>& matches, const std::vector<std::size_t>& order) {
    std::vector<std::size_t> products;
    for (const std::size_t place : order) {
      if (trace_.kernels[place].m > 0 && matches[place].kind == Match::Kind::kOp) products.push_back(place);
    }
    for (std::size_t i = 0; i < products.size(); ++i) {
      const auto choice = choices_.find(products[i]);
      if (choice == choices_.end() || !choice->second.front().ends_with("_wgrad")) continue;
      std::vector<std::size_t> beside;
      if (i > 0) beside.push_back(products[i - 1]);
      if (i + 1 < products.size()) beside.push_back(products[i + 1]);
      std::stable_partition(beside.begin(), beside.end(),
                            [&](std::size_t other) { return caller_of(other) == caller_of(products[i]); });
      for (const std::size_t other : beside) {
        const std::string& of = matches[other].op;
        if (!of.ends_with("_dgrad")) continue;
        const std::string name = of.substr(0, of.rfind("_dgrad")) + "_wgrad";
        if (std::find(choice->second.begin(), choice->second.end(), name) == choice->second.end()) continue;
        matches[products[i]].op = name;
        break;
      }
    }
  }

  std::int32_t caller_of(std::size_t place) const {
    const std::int32_t op = trace_.kernels[place].launched_by;
    return op < 0 ? -1 : trace_.operators[static_cast<std::size_t>(op)].parent;
  }

  const KernelTrace& trace_;
  const PlanShapes& shapes_;
  std::vector<Meaning> operator_meanings_;  // by name
  std::vector<bool> backward_names_;        // by name
  std::vector<bool> working_names_;         // by name
  std::vector<Context> contexts_;           // by operator
  std::map<std::size_t, std::vector<std::string>> choices_;
  std::set<std::size_t> unsplit_;  // kernels
};

}  // namespace

std::vector<std::string> products_of_shape(const Kernel& kernel, const std::vector<PlanProduct>& products,
                                           bool backward) {
  std::vector<std::string> names;
  if (kernel.m <= 0 || kernel.batch > 1) return names;
  const auto m = static_cast<std::int64_t>(kernel.m), n = static_cast<std::int64_t>(kernel.n),
             k = static_cast<std::int64_t>(kernel.k);
  for (const PlanProduct& product : products) {
    const auto has_rows = [&](std::int64_t rows) { return product.any_rows || product.rows.contains(rows); };
    const bool forward = has_rows(m) && k == product.k && product.n.contains(n),
               dgrad = has_rows(m) && n == product.k && product.n.contains(k),
               wgrad = has_rows(k) &&
                       ((m == product.k && product.n.contains(n)) || (n == product.k && product.n.contains(m)));
    if (forward && !backward) names.push_back(product.name);
    if (dgrad && backward) names.push_back(product.name + "_dgrad");
    if (wgrad && backward) names.push_back(product.name + "_wgrad");
  }
  return names;
}

std::vector<Match> match_kernels(const KernelTrace& trace, const PlanShapes& shapes) {
  return Matcher(trace, shapes).run();
}

}  // namespace trivium::calibration::foreign
