#include "simulator/cost/compute_cost.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>

#include "program/ir/op_kinds.h"
#include "program/ir/op_views.h"
#include "simulator/cost/attention.h"
#include "simulator/cost/fp8.h"
#include "simulator/cost/gemm.h"
#include "simulator/cost/issue.h"
#include "simulator/cost/op_rate.h"
#include "simulator/cost/transformer_engine.h"

namespace trivium::simulator {
namespace {

using program::OpClass;
using program::OpKind;
using program::traits_of;

// A 16-bit product whose rows of n or k elements do not begin on 16 bytes is loaded in narrower pieces: the logits of
// 50,257 words run at 80-85 TFLOP/s on an A100 (vTrain, tensor 1), Physics::unaligned_product of an aligned product.
// Even sizes lie between (NVIDIA, Matrix Multiplication Background User's Guide, figure 2): a third of the way per
// halving.
constexpr int kAlignedHalvings = 3;       // 8 elements: 16 bytes at once
constexpr double kAccumulatedResult = 8;  // bytes per element: an fp32 gradient, read and written

/// What the alignment of n and k leaves of the rate.
double alignment_rate(const program::Op& op, const hardware::Device& device) {
  if (!program::is_half(op.dtype)) return 1;
  const int aligned = std::countr_zero(static_cast<std::uint64_t>(op.n) | static_cast<std::uint64_t>(op.k));
  const double missing = std::max(0, kAlignedHalvings - aligned);
  return std::pow(device.physics.unaligned_product, missing / kAlignedHalvings);
}

GemmRates product_rates(const program::Op& op, const hardware::Device& device, double efficiency) {
  return op.fp8 == program::Fp8::kNone ? gemm_rates(device, op.dtype, efficiency * alignment_rate(op, device))
                                       : fp8_rates(device, op.fp8, op.dtype, efficiency);
}

/// y (m,n) = x (m,k) w (k,n); dx (m,k) = dy w^T; dw (k,n) += x^T dy. Experts: `at_once` such products fill the device
/// together, then the next ones; 0: all do.
base::Seconds product_time(const program::Op& op, const hardware::Device& device, int at_once) {
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
  const double experts = std::max(1, op.experts);
  const double batch = at_once > 0 ? std::min<double>(experts, at_once) : experts, times = experts / batch;
  if (op.kind == OpKind::kMatmul || op.kind == OpKind::kExpertMatmul)
    return gemm_time({m, n, k, batch}, product_rates(op, device, 1)) * times;
  if (op.kind == OpKind::kMatmulDgrad || op.kind == OpKind::kExpertMatmulDgrad)
    return gemm_time({m, k, n, batch}, product_rates(op, device, 1)) * times;
  GemmRates rates = product_rates(op, device, device.wgrad_efficiency);
  rates.result_size = program::is_half(op.dtype) ? kAccumulatedResult : 2 * rates.result_size;
  return gemm_time({k, n, m, batch}, rates) * times;
}

/// Likewise, with what makes numbers of codes where the device has no product of them.
base::Seconds matmul_time(const program::Op& op, const hardware::Device& device, int at_once) {
  const base::Seconds time = product_time(op, device, at_once);
  return op.fp8 == program::Fp8::kNone || has_fp8(device, op.fp8) ? time : time + read_back_time(op, device);
}

/// The products of Muon's iterations, with which what they do element by element runs; then the update.
base::Seconds muon_time(const program::Op& op, const hardware::Device& device) {
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n), batch = std::max(1, op.experts);
  const GemmRates rates = gemm_rates(device, op.dtype, 1);
  const base::Seconds one =
      gemm_time({m, m, n, batch}, rates) + gemm_time({m, m, m, batch}, rates) + gemm_time({m, n, m, batch}, rates);
  return one * static_cast<double>(program::iterations_of(op)) * program::share_of_iterations(op) +
         base::Bytes(program::bytes_of_update(op)) / (device.memory_bandwidth * device.memory_efficiency);
}

bool is_wgrad(OpKind kind) { return kind == OpKind::kMatmulWgrad || kind == OpKind::kExpertMatmulWgrad; }

/// Kernels that are the same in all stacks, with byte counts as they stand: a stack's stack scale those of the layers.
bool in_all_stacks(OpClass of) { return of == OpClass::kOptimizer || of == OpClass::kLoss; }

/// Where autograd fills 16-bit gradients, a kernel of its own adds them to the wide ones: reads 2 B, reads and
/// writes 4.
base::Seconds accumulation_time(const program::Op& op, const hardware::Device& device,
                                const program::StackTraits& stack) {
  constexpr double kAdded = 10;
  if (!stack.fills_half_gradients || !is_wgrad(op.kind) || !program::is_half(op.dtype)) return base::Seconds(0);
  const double elements = static_cast<double>(op.n) * static_cast<double>(op.k) * std::max(1, op.experts);
  return base::Bytes(kAdded * elements) / (device.memory_bandwidth * device.memory_efficiency);
}

base::Seconds traffic_time(const program::Op& op, const hardware::Device& device, const program::StackTraits& stack) {
  const double traffic = in_all_stacks(traits_of(op.kind).op_class) ? 1.0 : stack.memory_traffic;
  const double bytes = (op.bytes + unfused_softmax_bytes(op, stack)) * traffic + loose_expert_bytes(op, stack, traffic);
  return base::Bytes(bytes) / (device.memory_bandwidth * device.memory_efficiency);
}

// Cores widen a 16-bit operand in memory before they compute in fp32, and round the result: for the 2 bytes that the
// counts of `bytes` have, 2 + 4 of the conversion and the fp32 kernel's 4.
constexpr double kWidenedTraffic = 5, kFp32OfHalf = 2;

/// Bytes that a core moves.
double core_bytes(const program::Op& op, const hardware::Device& device) {
  const bool iterates = traits_of(op.kind).op_class == OpClass::kMuon && program::is_half(op.dtype);
  if (iterates && device.kind == hardware::DeviceKind::kCpu) {  // in fp32, whose momentum and copy are so already
    const double update = program::bytes_of_update(op);
    return kFp32OfHalf * (op.bytes - update) + update;
  }
  const bool widens = device.kind == hardware::DeviceKind::kCpu && program::is_half(op.dtype) &&
                      !in_all_stacks(traits_of(op.kind).op_class);
  return widens ? op.bytes * kWidenedTraffic : op.bytes;
}

/// A core without measured rates: arithmetic and traffic do not overlap, and every op is dispatched.
base::Seconds core_time(const program::Op& op, const hardware::Device& device) {
  base::Seconds time =
      base::Bytes(core_bytes(op, device)) / (device.memory_bandwidth * device.memory_efficiency) + device.kernel_issue;
  if (op.flops > 0) {
    const double efficiency =
        device.gemm_efficiency * device.sustained_scale() * (is_wgrad(op.kind) ? device.wgrad_efficiency : 1.0);
    time += base::Flops(op.flops) / (peak_of(device, op.dtype) * efficiency);
  }
  return time;
}

const hardware::OpRate* rate_of(const program::Op& op, const hardware::Device& device) {
  return find_rate(device, program::rate_kind_of(op));
}

/// Rates of a GPU's products are measured in 16 bits: one in 8 bits takes of that time what it would take of it by the
/// model of both.
base::Seconds measured_time(const program::Op& op, const hardware::Device& device, const hardware::OpRate& rate) {
  const base::Seconds time = time_at(rate, op, core_bytes(op, device));
  const bool is_product = traits_of(op.kind).op_class == OpClass::kProduct;
  if (op.fp8 == program::Fp8::kNone || !is_product || device.kind != hardware::DeviceKind::kGpu) return time;
  program::Op wide = op;
  wide.fp8 = program::Fp8::kNone;
  return time * (matmul_time(op, device, 0) / matmul_time(wide, device, 0));
}

/// Whether the host issues the op apart from the device: not on cores, and not in rates measured end to end.
bool issued_by_host(const program::Op& op, const hardware::Device& device) {
  return device.kind == hardware::DeviceKind::kGpu && rate_of(op, device) == nullptr;
}

/// Whether kernels wait while a collective runs: on their stream, or of the forward, where each product needs what one
/// gathers. A host that is late catches up meanwhile.
bool holds_kernels(const program::Op& op) {
  return op.lane == program::Lane::kCompute ||
         (op.lane == program::Lane::kTensor && op.pass != program::Pass::kBackward);
}

/// An optimizer whose state is offloaded and that the stack runs where the state is.
bool runs_on_host(const program::Op& op, const program::StackTraits& stack) {
  return op.kind == OpKind::kAdamW && op.in[1] != program::kNoBuffer && stack.host_adam > 0;
}

}  // namespace

base::Seconds device_cost(const program::Op& op, const hardware::Device& device, const program::StackTraits& stack) {
  if (const hardware::OpRate* rate = rate_of(op, device)) return measured_time(op, device, *rate);
  if (device.kind == hardware::DeviceKind::kCpu) return core_time(op, device);
  if (runs_on_host(op, stack)) return base::Seconds(static_cast<double>(op.elements) / stack.host_adam);
  if (traits_of(op.kind).op_class == OpClass::kProduct) {
    return matmul_time(op, device, experts_at_once(stack)) + accumulation_time(op, device, stack);
  }
  if (traits_of(op.kind).op_class == OpClass::kMuon) return muon_time(op, device);
  const bool measured_casts = !device.fp8.products.empty();  // elsewhere a cast moves its bytes as any kernel
  if (traits_of(op.kind).op_class == OpClass::kQuantize && measured_casts) return cast_time(op, device);
  const base::Seconds traffic = traffic_time(op, device, stack);
  if (traits_of(op.kind).op_class != OpClass::kAttention) return traffic;
  return attention_products(op, device, stack.flash_rate) + traffic;
}

base::Seconds compute_cost(const program::Op& op, const hardware::Device& device, const program::StackTraits& stack) {
  assert(!program::is_communication(op.kind));
  const base::Seconds time = device_cost(op, device, stack);
  if (!issued_by_host(op, device)) return time;
  const base::Seconds issue = issue_cost(op, device, stack);
  return traits_of(op.kind).synchronises ? time + issue : combine(time, issue, device.physics.issue_exponent);
}

std::vector<OpWork> segment_work(std::span<const program::Op> ops, const hardware::Device& device,
                                 const program::StackTraits& stack) {
  std::vector<OpWork> work(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const program::Op& op = ops[i];
    OpWork& of = work[i];
    of.elsewhere = program::is_communication(op.kind) || program::is_copy(op.kind);
    of.holds_kernels = holds_kernels(op);
    of.issued = issued_by_host(op, device);
    of.synchronises = traits_of(op.kind).synchronises;
    const bool of_tensor_ranks = op.group == program::Group::kTensor || op.group == program::Group::kExpertTensor;
    of.tensor_collective = of_tensor_ranks && program::is_communication(op.kind);
    if (!of.elsewhere) of.device = device_cost(op, device, stack);
    if (of.issued) of.issue = issue_cost(op, device, stack);
  }
  return work;
}

std::vector<base::Seconds> segment_costs(std::span<const program::Op> ops, const hardware::Device& device,
                                         const program::StackTraits& stack,
                                         std::span<const base::Seconds> communication, base::Seconds collective_issue) {
  return segment_costs(segment_work(ops, device, stack), device, communication, collective_issue);
}

std::vector<base::Seconds> segment_costs(std::span<const OpWork> work, const hardware::Device& device,
                                         std::span<const base::Seconds> communication, base::Seconds collective_issue) {
  assert(communication.empty() || communication.size() == work.size());
  std::vector<base::Seconds> costs(work.size());
  // Of the ops whose issue the host can run ahead with: kernels, and what else fills the same stream meanwhile.
  base::Seconds on_device, on_host, beside;
  for (std::size_t i = 0; i < work.size(); ++i) {
    const OpWork& op = work[i];
    if (!op.elsewhere) {
      costs[i] = op.device;
    } else if (!communication.empty()) {
      costs[i] = communication[i];
      if (op.holds_kernels) beside += costs[i];
    }
    if (!op.issued) continue;
    if (op.synchronises) {
      costs[i] += op.issue;
      continue;
    }
    if (!op.elsewhere) on_device += costs[i];
    on_host += op.issue;
    if (op.tensor_collective) on_host += collective_issue;
  }
  if (on_device.value() <= 0) return costs;
  const base::Seconds both = combine(on_device + beside, on_host, device.physics.issue_exponent);
  const double stretch = (both - beside) / on_device;
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (!work[i].elsewhere && work[i].issued && !work[i].synchronises) costs[i] = costs[i] * stretch;
  }
  return costs;
}

}  // namespace trivium::simulator
