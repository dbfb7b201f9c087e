// Layouts of context parallelism by hand.
#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

/// Two query heads and `kv_heads` key heads of one number each, two parts.
void heads(Call& call, int kv_heads) {
  call.op.heads = 2, call.op.kv_heads = kv_heads, call.op.head_dim = 1, call.op.parts = 2;
}

// Tokens (q0 q1 k0 k1 v0 v1): part 0 gets q0 k0 v0 of both tokens, part 1 the others; and back.
TEST(PackHeads, GivesEveryPartItsHeads) {
  const std::vector<double> x{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};
  std::vector<double> packed(12), back(12);
  Call pack(OpKind::kPackHeads, 2, 6);
  heads(pack, 2);
  pack.in(0, x).out(0, packed).run<double>();
  EXPECT_EQ(packed, (std::vector<double>{1, 3, 5, 11, 13, 15, 2, 4, 6, 12, 14, 16}));
  Call unpack(OpKind::kUnpackHeads, 2, 6);
  heads(unpack, 2);
  unpack.in(0, packed).out(0, back).run<double>();
  EXPECT_EQ(back, x);
}

// One key head for both parts: each gets a copy, and the gradients of the copies add up.
TEST(PackHeads, SharesKeyHeadsAndAddsTheirGradients) {
  const std::vector<double> x{1, 2, 3, 4};  // q0 q1 k v
  std::vector<double> packed(6), back(4);
  Call pack(OpKind::kPackHeads, 1, 6);
  heads(pack, 1);
  pack.in(0, x).out(0, packed).run<double>();
  EXPECT_EQ(packed, (std::vector<double>{1, 3, 4, 2, 3, 4}));
  Call unpack(OpKind::kUnpackHeads, 1, 6);
  heads(unpack, 1);
  unpack.in(0, packed).out(0, back).run<double>();
  EXPECT_EQ(back, (std::vector<double>{1, 2, 6, 8}));
}

// Two samples of two tokens over two parts: part 0 has the first token of both samples.
TEST(PackTokens, OrdersTokensByTheirRank) {
  const std::vector<double> x{1, 2, 11, 12};
  std::vector<double> packed(4), back(4);
  Call pack(OpKind::kPackTokens, 4, 1), unpack(OpKind::kUnpackTokens, 4, 1);
  pack.op.parts = unpack.op.parts = pack.op.sequence = unpack.op.sequence = 2;
  pack.arguments.context_method = unpack.arguments.context_method = program::ContextMethod::kAllToAll;
  pack.in(0, x).out(0, packed).run<double>();
  EXPECT_EQ(packed, (std::vector<double>{1, 11, 2, 12}));
  unpack.in(0, packed).out(0, back).run<double>();
  EXPECT_EQ(back, x);
}

// In a ring of two, part 0 holds the outer chunks of a sample and part 1 the inner ones.
TEST(PackTokens, FollowsTheChunksOfARing) {
  const std::vector<double> x{1, 2, 3, 4, 11, 12, 13, 14};
  std::vector<double> packed(8);
  Call pack(OpKind::kPackTokens, 8, 1);
  pack.op.parts = 2, pack.op.sequence = 4;
  pack.in(0, x).out(0, packed).run<double>();
  EXPECT_EQ(packed, (std::vector<double>{1, 4, 11, 14, 2, 3, 12, 13}));
}

}  // namespace
}  // namespace trivium::runtime::cpu
