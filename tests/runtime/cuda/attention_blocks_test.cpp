// Attention by products in blocks of heads, whose scores a launcher has room for.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runtime/cuda/ops_attention.h"
#include "tests/runtime/cuda/emulated_call.h"
#include "tests/runtime/cuda/host_threads.h"

namespace trivium::runtime::cuda {
namespace {

constexpr int kHeads = 6, kKeyHeads = 3, kDim = 5, kSequence = 7, kSamples = 2;
constexpr std::int64_t kTokens = kSamples * kSequence, kOut = kHeads * kDim, kWidth = kOut + 2 * kKeyHeads * kDim;

std::vector<float> floats(std::int64_t count, unsigned seed) {
  std::vector<float> all;
  for (const double x : uniform(count, seed)) all.push_back(static_cast<float>(x));
  return all;
}

/// y, log-sums and gradients of q|k|v with so much room for scores.
std::vector<float> both_ways(std::int64_t most_bytes) {
  std::vector<float> qkv = floats(kTokens * kWidth, 1), dy = floats(kTokens * kOut, 2);
  std::vector<float> y(dy.size(), -7), log_sums(kTokens * kHeads, -7), dqkv(qkv.size(), -7);
  program::Op op;
  op.m = kTokens, op.sequence = kSequence, op.heads = kHeads, op.kv_heads = kKeyHeads, op.head_dim = kDim;
  const auto bytes = [](std::vector<float>& of) { return reinterpret_cast<std::byte*>(of.data()); };
  HostLauncher launcher;
  KernelArguments forward, backward;
  forward.op = backward.op = &op;
  forward.in[0] = backward.in[0] = bytes(qkv);
  forward.out[0] = bytes(y), forward.out[1] = bytes(log_sums);
  batched_attention<float>(launcher, forward, most_bytes);
  backward.in[1] = bytes(y), backward.in[2] = bytes(log_sums), backward.in[3] = bytes(dy);
  backward.out[0] = bytes(dqkv);
  batched_attention_backward<float>(launcher, backward, most_bytes);
  y.insert(y.end(), log_sums.begin(), log_sums.end());
  y.insert(y.end(), dqkv.begin(), dqkv.end());
  return y;
}

// Two query heads of 7 x 7 scores to a key head are 392 bytes, and twice that backward: room for all three key heads,
// for two of them and then the third, and for none, which is one at once. The products are the same.
TEST(AttentionBlocks, ChangeNoBit) {
  const std::vector<float> whole = both_ways(1 << 20);
  EXPECT_EQ(std::count(whole.begin(), whole.end(), -7.0F), 0);
  EXPECT_EQ(both_ways(1600), whole);
  EXPECT_EQ(both_ways(800), whole);
  EXPECT_EQ(both_ways(1), whole);
}

}  // namespace
}  // namespace trivium::runtime::cuda
