// Kernels over rows against the CPU backend.
#include <array>
#include <utility>

#include "tests/runtime/cuda/emulated_call.h"

namespace trivium::runtime::cuda {
namespace {

using program::OpKind;

// Vocabulary of 20 over two ranks: ids of the other rank give zeros. Rows of 36 (packs of four, more than a warp)
// and 7.
TEST(EmbeddingEmulation, LooksUpAndAddsBack) {
  for (const std::int64_t n : {36, 7}) {
    EmulatedCall look(OpKind::kEmbedding, 9, n, 10);
    look.a.tensor_rank = 1;
    look.with_in(0, Form::kInts, indices(9, 1, 20)).with_in(1, Form::kTyped, uniform(10 * n, 2));
    expect_equal_to_emulation(look.with_out(0, Form::kTyped, uniform(9 * n, 3)));
    EmulatedCall back(OpKind::kEmbeddingBackward, 300, n, 10);
    back.a.tensor_rank = 1;
    back.with_in(0, Form::kInts, indices(300, 4, 20)).with_in(1, Form::kTyped, uniform(300 * n, 5));
    expect_equal_to_emulation(back.with_out(0, Form::kWide, uniform(10 * n, 6)), 3e-6);  // sums are fp32 in both
  }
}

// Of 1,300 tokens, which are ordered in tiles of 512 and summed in chunks of 64: one id; three, whose borders lie at
// the ends of chunks, within them and next to each other; one for every other token, and ids that come once between.
TEST(EmbeddingEmulation, AddsTheRowsOfIdsThatComeOftenOrOnce) {
  constexpr std::int64_t kTokens = 1300, kColumns = 3, kRows = 700;
  const auto add = [](const auto& id_of) {
    std::vector<double> ids;
    for (int i = 0; i < kTokens; ++i) ids.push_back(id_of(i));
    EmulatedCall back(OpKind::kEmbeddingBackward, kTokens, kColumns, kRows);
    back.with_in(0, Form::kInts, ids).with_in(1, Form::kTyped, uniform(kTokens * kColumns, 5));
    expect_equal_to_emulation(back.with_out(0, Form::kWide, uniform(kRows * kColumns, 6)), 3e-6);
  };
  add([](int) { return 2.0; });
  add([](int i) { return i < 128 ? 699.0 : i < 129 ? 1.0 : i < 200 ? 2.0 : 0.0; });
  add([](int i) { return i % 2 == 0 ? 300.0 : i / 2; });
}

// Three samples of 16 positions, whole, as the second of two tensor ranks, and as each rank of a context group.
TEST(PositionEmulation, FindsThePositionsOfEverySplit) {
  struct Split {
    std::int64_t m;
    bool sharded;
    int context, rank;
    program::ContextMethod method;
  };
  using program::ContextMethod;
  for (const Split& s : {Split{48, false, 1, 0, ContextMethod::kRing}, Split{24, true, 1, 0, ContextMethod::kRing},
                         Split{24, false, 2, 0, ContextMethod::kRing}, Split{24, false, 2, 1, ContextMethod::kRing},
                         Split{24, false, 2, 1, ContextMethod::kAllToAll}}) {
    for (const OpKind kind : {OpKind::kPosition, OpKind::kPositionBackward}) {
      EmulatedCall call(kind, s.m, 12, 16);
      call.op.token_sharded = s.sharded;
      call.a.tensor_rank = s.sharded ? 1 : 0;
      call.a.context_ranks = s.context, call.a.context_rank = s.rank, call.a.context_method = s.method;
      call.with_in(0, Form::kTyped, uniform(s.m * 12, 1));
      if (kind == OpKind::kPosition) {
        call.with_in(1, Form::kTyped, uniform(16 * 12, 2)).with_out(0, Form::kTyped, uniform(s.m * 12, 3));
      } else {
        call.with_out(0, Form::kWide, uniform(16 * 12, 3));
      }
      expect_equal_to_emulation(call);
    }
  }
}

TEST(ResidualEmulation, AddsSkipAndBiasesAndSumsTheirGradients) {
  for (const std::int64_t n : {20, 9}) {
    EmulatedCall call(OpKind::kBiasResidual, 11, n, 0);
    call.with_in(0, Form::kTyped, uniform(11 * n, 1)).with_in(1, Form::kTyped, uniform(n, 2));
    call.with_in(2, Form::kTyped, uniform(11 * n, 3)).with_in(3, Form::kTyped, uniform(n, 4));
    expect_equal_to_emulation(call.with_out(0, Form::kTyped, uniform(11 * n, 5)));
    EmulatedCall back(OpKind::kBiasResidualBackward, 700, n, 0);
    back.with_in(0, Form::kTyped, uniform(700 * n, 1)).with_out(0, Form::kWide, uniform(n, 2));
    expect_equal_to_emulation(back.with_out(1, Form::kWide, uniform(n, 3)), 3e-6);
  }
  EmulatedCall sum(OpKind::kAdd, 0, 0, 0);
  sum.op.elements = 1030;
  expect_equal_to_emulation(sum.with_in(0, Form::kTyped, uniform(1030, 1)).with_out(0, Form::kTyped, uniform(1030, 2)));
}

// Two samples of six tokens; the second of two tensor ranks has the second.
TEST(DroppedRowsEmulation, DropsWhatTheCpuDrops) {
  for (const std::int64_t n : {20, 9}) {
    for (const bool sharded : {false, true}) {
      const auto prepared = [&](OpKind kind, std::int64_t k) {
        EmulatedCall call(kind, sharded ? 6 : 12, n, k);
        call.op.token_sharded = sharded;
        call.a.tensor_rank = sharded ? 1 : 0;
        drop_a_quarter(call, 6);
        call.a.dropout.first_head = 0;
        return call;
      };
      EmulatedCall residual = prepared(OpKind::kBiasResidual, 1);
      const std::int64_t m = residual.op.m;
      residual.with_in(0, Form::kTyped, uniform(m * n, 1)).with_in(1, Form::kTyped, uniform(n, 2));
      residual.with_in(2, Form::kTyped, uniform(m * n, 3)).with_in(3, Form::kTyped, uniform(n, 4));
      expect_equal_to_emulation(residual.with_out(0, Form::kTyped, uniform(m * n, 5))
                                    .with_out(1, Form::kBytes, std::vector<double>(static_cast<std::size_t>(m * n))));
      EmulatedCall back = prepared(OpKind::kBiasResidualBackward, 0);
      back.with_in(0, Form::kTyped, uniform(m * n, 1));
      back.with_in(1, Form::kBytes, residual.on_cpu(program::DType::kFp32)[1]);
      back.with_out(0, Form::kWide, uniform(n, 2)).with_out(1, Form::kWide, uniform(n, 3));
      expect_equal_to_emulation(back.with_out(2, Form::kTyped, uniform(m * n, 4)));
      EmulatedCall add = prepared(OpKind::kPosition, 6), taught = prepared(OpKind::kPositionBackward, 6);
      add.with_in(0, Form::kTyped, uniform(m * n, 1)).with_in(1, Form::kTyped, uniform(6 * n, 2));
      expect_equal_to_emulation(add.with_out(0, Form::kTyped, uniform(m * n, 3)));
      taught.with_in(0, Form::kTyped, uniform(m * n, 1));
      expect_equal_to_emulation(taught.with_out(0, Form::kWide, uniform(6 * n, 2)), 3e-6);
      if (sharded) continue;  // looked up are all tokens
      EmulatedCall look = prepared(OpKind::kEmbedding, 4), found = prepared(OpKind::kEmbeddingBackward, 4);
      look.with_in(0, Form::kInts, indices(m, 1, 4)).with_in(1, Form::kTyped, uniform(4 * n, 2));
      expect_equal_to_emulation(look.with_out(0, Form::kTyped, uniform(m * n, 3)));
      found.with_in(0, Form::kInts, indices(m, 1, 4)).with_in(1, Form::kTyped, uniform(m * n, 2));
      expect_equal_to_emulation(found.with_out(0, Form::kWide, uniform(4 * n, 3)), 3e-6);
    }
  }
}

// Three heads of queries, one of keys and one of values.
TEST(HeadNormEmulation, NormalisesQueriesAndKeysAndLeavesValues) {
  constexpr std::int64_t kRows = 7, kHeads = 3;
  for (const std::int64_t dim : {64, 9}) {
    const std::int64_t width = (kHeads + 2) * dim;
    const auto called = [&](OpKind kind) {
      EmulatedCall call(kind, kRows, dim, 0);
      call.op.heads = kHeads, call.op.kv_heads = 1, call.op.head_dim = static_cast<std::int32_t>(dim);
      call.op.epsilon = 1e-3;
      call.with_in(0, Form::kTyped, uniform(kRows * width, 1)).with_in(1, Form::kTyped, uniform(dim, 2));
      call.with_in(2, Form::kTyped, uniform(dim, 3));
      return call;
    };
    EmulatedCall call = called(OpKind::kHeadNorm);
    const std::int64_t statistics = kRows * (kHeads + 1);
    call.with_out(0, Form::kTyped, uniform(kRows * width, 4)).with_out(1, Form::kWide, uniform(statistics, 5));
    expect_equal_to_emulation(call);
    EmulatedCall back = called(OpKind::kHeadNormBackward);
    back.with_in(3, Form::kWide, call.on_cpu(program::DType::kFp32)[1]);
    back.with_in(4, Form::kTyped, uniform(kRows * width, 6)).with_out(0, Form::kTyped, uniform(kRows * width, 7));
    back.with_out(1, Form::kWide, uniform(dim, 8)).with_out(2, Form::kWide, uniform(dim, 9));
    expect_equal_to_emulation(back, 0.006);  // column sums of rounded gradients
  }
}

// Rows that a warp holds in one to eight packs a thread, whole and with threads that have fewer; that a block holds;
// that are read again for every pass, as are all of 301, whose packs are single elements. Eleven or more rows are those
// of several blocks, the last of which have fewer, and of the backward's blocks, whose threads have one to eight packs.
TEST(NormEmulation, NormalisesWithAndWithoutMean) {
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{5, 64},
                             {11, 200},
                             {11, 264},
                             {21, 768},
                             {6, 1000},
                             {9, 1600},
                             {20, 301},
                             {11, 2056},
                             {5, 4096},
                             {20, 4100},
                             {3, 8200},
                             {2, 16400}}) {
    for (const bool has_bias : {true, false}) {
      EmulatedCall call(OpKind::kNorm, m, n, 0);
      call.with_in(0, Form::kTyped, uniform(m * n, 1)).with_in(1, Form::kTyped, uniform(n, 2));
      if (has_bias) call.with_in(2, Form::kTyped, uniform(n, 3));
      expect_equal_to_emulation(
          call.with_out(0, Form::kTyped, uniform(m * n, 4)).with_out(1, Form::kWide, uniform(2 * m, 5)));
      const auto stats = call.on_cpu(program::DType::kFp32)[1];
      for (const bool has_skip : {true, false}) {
        EmulatedCall back(OpKind::kNormBackward, m, n, 0);
        back.in_place = !has_skip;
        back.with_in(0, Form::kTyped, uniform(m * n, 1)).with_in(1, Form::kTyped, uniform(n, 2));
        back.with_in(2, Form::kWide, stats).with_in(3, Form::kTyped, uniform(m * n, 6));
        if (has_skip) back.with_in(4, Form::kTyped, uniform(m * n, 7));
        back.with_out(0, Form::kTyped, uniform(m * n, 8)).with_out(1, Form::kWide, uniform(n, 9));
        if (has_bias) back.with_out(2, Form::kWide, uniform(n, 10));
        expect_equal_to_emulation(back);
      }
    }
  }
}

// More rows than a block has at once, and 272 columns, more than it has.
TEST(ActivationEmulation, FollowsEveryCurve) {
  constexpr std::int64_t kRows = 37;
  for (const std::int64_t n : {24, 5, 272}) {
    for (std::int64_t curve = 0; curve < 6; ++curve) {
      for (const bool has_bias : {true, false}) {
        const std::int64_t width = curve == 2 || curve == 3 ? 2 * n : n;
        EmulatedCall call(OpKind::kActivation, kRows, n, curve), back(OpKind::kActivationBackward, kRows, n, curve);
        for (EmulatedCall* each : {&call, &back}) {
          each->with_in(0, Form::kTyped, uniform(kRows * width, 1));
          if (has_bias) each->with_in(1, Form::kTyped, uniform(width, 2));
        }
        expect_equal_to_emulation(call.with_out(0, Form::kTyped, uniform(kRows * n, 3)));
        back.with_in(2, Form::kTyped, uniform(kRows * n, 4)).with_out(0, Form::kTyped, uniform(kRows * width, 5));
        if (has_bias) back.with_out(1, Form::kWide, uniform(width, 6));
        expect_equal_to_emulation(back, 0.006);  // column sums of rounded gradients
      }
    }
  }
}

TEST(RotaryEmulation, TurnsQueriesAndKeysAndBack) {
  const program::RotaryTable whole{{1, 0.1, 0.01, 0.001}, 1}, part{{1, 0.1, 0.01}, 1.25};  // of eight components
  for (const auto& [kind, rotary] : {std::pair(OpKind::kRotary, &whole), std::pair(OpKind::kRotaryBackward, &whole),
                                     std::pair(OpKind::kRotary, &part), std::pair(OpKind::kRotaryBackward, &part)}) {
    EmulatedCall call(kind, 24, 0, 0);  // three heads' queries on one of keys and values, eight components
    call.op.heads = 3, call.op.kv_heads = 1, call.op.head_dim = 8, call.op.sequence = 12;
    call.a.rotary = rotary;
    call.in_place = true;
    call.with_in(0, Form::kTyped, uniform(24 * 40, 1));
    expect_equal_to_emulation(call.with_out(0, Form::kTyped, uniform(24 * 40, 1)));
  }
}

// A vocabulary of 2,100 over two ranks of 1,080 columns: the second has 60 columns of padding. A token has no label.
TEST(LossEmulation, ReducesAndDifferentiatesASplitVocabulary) {
  constexpr std::int64_t kTokens = 6, kColumns = 1080;
  for (const int rank : {0, 1}) {
    const auto prepared = [&](OpKind kind, std::int64_t n) {
      EmulatedCall call(kind, kTokens, n, 0);
      call.a.tensor_rank = rank, call.a.tensor_ranks = 2, call.a.vocabulary = 2100;
      call.values.loss_weight = 0.125;
      return call;
    };
    const auto logits = uniform(kTokens * kColumns, 1);
    auto labels = indices(kTokens, 2, 2100);
    labels[4] = -1;
    EmulatedCall most = prepared(OpKind::kLossMax, kColumns);
    expect_equal_to_emulation(most.with_in(0, Form::kWide, logits).with_out(0, Form::kWide, uniform(kTokens, 3)), 3e-6);
    const auto highest = most.on_cpu(program::DType::kFp32)[0];
    EmulatedCall sums = prepared(OpKind::kLossSums, kColumns);
    sums.with_in(0, Form::kWide, logits).with_in(1, Form::kWide, highest).with_in(2, Form::kInts, labels);
    expect_equal_to_emulation(sums.with_out(0, Form::kWide, uniform(2 * kTokens, 3)), 3e-6);
    const auto summed = sums.on_cpu(program::DType::kFp32)[0];
    EmulatedCall total = prepared(OpKind::kLoss, 1);
    total.with_in(0, Form::kWide, highest).with_in(1, Form::kWide, summed);
    expect_equal_to_emulation(total.with_out(0, Form::kPair, {0.5}), 3e-6);
    total.op.loss_share = 0.3;
    expect_equal_to_emulation(total.with_in(2, Form::kInts, labels), 3e-6);
    for (const bool in_place : {false, true}) {
      EmulatedCall back = prepared(OpKind::kLossBackward, kColumns);
      back.in_place = in_place, back.packs_rows = true, back.op.loss_share = 0.3;
      back.with_in(0, Form::kWide, logits).with_in(1, Form::kWide, highest).with_in(2, Form::kWide, summed);
      expect_equal_to_emulation(back.with_in(3, Form::kInts, labels).with_out(0, Form::kWide, logits));
    }
  }
}

TEST(MatmulEmulation, MultipliesAsStored) {
  for (const bool transposed : {false, true}) {
    EmulatedCall call(OpKind::kMatmul, 7, 6, 5), dgrad(OpKind::kMatmulDgrad, 7, 6, 5),
        wgrad(OpKind::kMatmulWgrad, 7, 6, 5);
    call.op.weight_transposed = dgrad.op.weight_transposed = wgrad.op.weight_transposed = transposed;
    call.with_in(0, Form::kTyped, uniform(35, 1)).with_in(1, Form::kTyped, uniform(30, 2));
    expect_equal_to_emulation(call.with_in(2, Form::kTyped, uniform(6, 3)).with_out(0, Form::kTyped, uniform(42, 4)));
    dgrad.with_in(0, Form::kTyped, uniform(42, 1)).with_in(1, Form::kTyped, uniform(30, 2));
    expect_equal_to_emulation(dgrad.with_out(0, Form::kTyped, uniform(35, 4)));
    wgrad.with_in(0, Form::kTyped, uniform(35, 1)).with_in(1, Form::kTyped, uniform(42, 2));
    expect_equal_to_emulation(wgrad.with_out(0, Form::kWide, uniform(30, 3)).with_out(1, Form::kWide, uniform(6, 4)),
                              3e-6);
  }
}

TEST(CompressEmulation, RoundsTheSameBits) {
  EmulatedCall pack(OpKind::kDecompress, 0, 0, 0);
  pack.op.elements = 400;
  EmulatedCall half(OpKind::kCompress, 0, 0, 0);
  half.op.elements = 400;
  half.with_in(0, Form::kWide, uniform(400, 1)).with_out(0, Form::kInts, std::vector<double>(200, 0));
  expect_equal_to_emulation(half, program::DType::kFp32, 0);
  const auto wire = half.on_cpu(program::DType::kFp32)[0];
  expect_equal_to_emulation(pack.with_in(0, Form::kInts, wire).with_out(0, Form::kWide, uniform(400, 2)),
                            program::DType::kFp32, 0);
}

}  // namespace
}  // namespace trivium::runtime::cuda
