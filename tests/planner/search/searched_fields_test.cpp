// Fields that searches open where they are allowed alone.
#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/search/one_space.h"
#include "planner/space/constraints.h"

namespace trivium::planner {
namespace {

// Both are searched where they are allowed, and what they take is in the bounds.
TEST(SearchedFields, FindParametersInEightBitsAndDispatchesThatAreFaster) {
  SearchRequest request;
  request.job.training.sequence = 4096;
  request.job.training.global_batch = 64;
  request.job.plan.precision = program::DType::kBf16;
  request.job.plan.fp8 = program::Fp8::kCurrent;
  request.job.plan.stack = "megatron-core";
  request.fixed = {"precision", "fp8", "stack"};
  request.best = 1;
  const auto found = [&](const std::vector<std::string>& allowed) {
    request.constraints = closed_unless_allowed(allowed, {});
    const SearchResult result = search_as_given(request, 2, {}, {});
    EXPECT_TRUE(result.proved);
    return result.best.empty() ? program::Plan{} : result.best.front().plan;
  };
  request.job.model = models::load_model("llama3-8b");
  request.cluster = hardware::load_cluster("dgx-h100:4");
  EXPECT_EQ(found({}).fp8_parameter_gather, program::Fp8Gather::kStack);
  const program::Plan narrow = found({"fp8_parameter_gather"});
  EXPECT_EQ(narrow.fp8_parameter_gather, program::Fp8Gather::kOn) << program::summary(narrow);
  request.job.model = models::load_model("qwen3-30b-a3b");
  request.job.model.layers = 4;
  request.cluster = hardware::load_cluster("dgx-h100:1");
  request.job.plan.expert = 8;
  request.fixed.insert("expert");
  const program::Plan once = found({"expert_dispatch"});
  EXPECT_TRUE(sends_once(once.expert_dispatch)) << program::summary(once);
}

}  // namespace
}  // namespace trivium::planner
