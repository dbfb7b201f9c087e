#include "tests/structure/code_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/structure/made_up_tree.h"

namespace trivium::structure {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(MadeUpTree, InterpretersKnowNoJob) {
  write("simulator/schedule/engine.cpp", "int a;\nint b = program.job.plan.tensor;\n");
  write("runtime/executor/train.cpp", "auto x = program->job;\nint jobs = my.jobs;\n");
  write("simulator/predict/prepare.cpp", "lower(prepared.job);\n");
  EXPECT_THAT(jobs_in_interpreters(root()),
              ElementsAre("runtime/executor/train.cpp:1", "simulator/schedule/engine.cpp:2"));
}

TEST_F(MadeUpTree, NothingIsDecidedByAStacksName) {
  write("stacks/megatron.json", "{}");
  write("stacks/fsdp.json", "{}");
  write("simulator/cost/a.cpp", "if (stack.name == \"fsdp\") {\nif (name.starts_with(\"mega\")) {\n");
  write("cli/b.cpp", "add(\"fsdp\");\nif (text == \"other\")\nreturn stack != \"megatron\";\n");
  EXPECT_THAT(stacks_in_branches(root()),
              ElementsAre("cli/b.cpp:3: megatron", "simulator/cost/a.cpp:1: fsdp", "simulator/cost/a.cpp:2: mega"));
}

TEST_F(MadeUpTree, NamesFilesThatIncludeEachOther) {
  write("base/a.h", "#include \"base/b.h\"\n#include \"base/c.h\"\n");
  write("base/b.h", "#include \"base/c.h\"\n");
  write("base/c.h", "#include \"base/b.h\"\n");
  EXPECT_THAT(include_circles(root()), ElementsAre("base/b.h -> base/c.h -> base/b.h"));
}

TEST_F(MadeUpTree, NamesFunctionsThatAreTooLong) {
  write("base/a.cpp",
        "int kTable[] = {\n  1,\n  2,\n  3,\n};\nint f(int a,\n      int b) {\n  return a + b;\n}\nint g(int a) {\n"
        "  return a;\n}\nclass C {\n  void m() {\n    f();\n    g();\n  }\n};\n");
  write("base/kernel.cu", "void k() {\n  a();\n  b();\n  c();\n}\n");
  EXPECT_THAT(long_functions(root(), 3), ElementsAre("base/a.cpp:6: 4", "base/a.cpp:14: 4"));
}

TEST(SourceTree, HasNoFunctionOverEightyLines) { EXPECT_THAT(long_functions(TRIVIUM_SOURCE_DIR, 80), IsEmpty()); }

TEST(SourceTree, HasInterpretersThatKnowNoJob) { EXPECT_THAT(jobs_in_interpreters(TRIVIUM_SOURCE_DIR), IsEmpty()); }

TEST(SourceTree, DecidesNothingByAStacksName) { EXPECT_THAT(stacks_in_branches(TRIVIUM_SOURCE_DIR), IsEmpty()); }

TEST(SourceTree, HasNoCircleOfIncludes) { EXPECT_THAT(include_circles(TRIVIUM_SOURCE_DIR), IsEmpty()); }

}  // namespace
}  // namespace trivium::structure
