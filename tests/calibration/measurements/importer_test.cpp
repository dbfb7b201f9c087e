#include "calibration/measurements/importer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "tests/calibration/samples.h"
#include "tests/input_error.h"

namespace trivium::calibration {
namespace {

using testing::HasSubstr;

constexpr const char* kLogs = "logs of Megatron-LM, DeepSpeed or torchtitan";

TEST(Importers, TellAFileByWhatItHolds) {
  const std::pair<const char*, const char*> samples[] = {{"nccl_all_reduce.txt", "nccl-tests"},
                                                         {"nccl_all_gather_2019.txt", "nccl-tests"},
                                                         {"nccl_reduce_scatter.json", "nccl-tests"},
                                                         {"topo_h100.txt", "nvidia-smi topo -m"},
                                                         {"topo_pcie.txt", "nvidia-smi topo -m"},
                                                         {"topo_v100.txt", "nvidia-smi topo -m"},
                                                         {"kineto.pt.trace.json", "Chrome traces"},
                                                         {"nsight.sqlite", "Nsight Systems exports (SQLite)"},
                                                         {"megatron.log", kLogs},
                                                         {"megatron_2021.log", kLogs},
                                                         {"torchtitan.log", kLogs},
                                                         {"deepspeed.log", kLogs},
                                                         {"deepspeed_cpu.log", kLogs},
                                                         {"deepspeed_pipeline.log", kLogs}};
  for (const auto& [name, kind] : samples) EXPECT_EQ(importer_of(sample(name), "any-name").name, kind) << name;
  EXPECT_EQ(importer_of("case,measured_iteration_s\n", "t").name, "tables of published runs");
  EXPECT_EQ(importer_of(R"({"plan": {"schema": "trivium.plan/1"}, "schema": "trivium.run/1"})", "r").name,
            "run records");
  EXPECT_EQ(importer_of(R"({"model": {"schema": "trivium.model/1"}, "schema": "trivium.plan/1"})", "p").name, "plans");
  EXPECT_EQ(importer_of(R"({"schema": "trivium.plan-result/1"})", "p").name, "plans");
  EXPECT_EQ(importer_of(R"({"schema": "trivium.hardware/1"})", "h").name, "profiles");
}

// What starts a training often prints the topology first, and traces name NCCL's version.
TEST(Importers, TakeAFileForWhatItIsMainly) {
  EXPECT_EQ(importer_of(sample("topo_h100.txt") + sample("megatron.log"), "f").name, kLogs);
  EXPECT_EQ(importer_of(R"({"distributedInfo": {"nccl_version": "2.21.5"}, "traceEvents": []})", "f").name,
            "Chrome traces");
  EXPECT_EQ(importer_of(R"({"traceEvents": [], "otherData": {"schema": "trivium.run/1"}})", "f").name, "Chrome traces");
}

TEST(Importers, RefuseWhatNoneKnowsAndSayWhatTheyDo) {
  EXPECT_EQ(input_error([] { importer_of("hello", "a.txt"); }),
            "a.txt: is nothing that is known: run records, profiles, tables of published runs, nccl-tests, nvidia-smi "
            "topo -m, Chrome traces, Nsight Systems exports (SQLite), logs of Megatron-LM, DeepSpeed or torchtitan");
  EXPECT_THAT(input_error([] { importer_of(" \n", "e"); }), HasSubstr("is empty"));
  EXPECT_THAT(input_error([] { importer_of(R"({"schema": "trivium.model/1"})", "m"); }),
              HasSubstr("nothing is learnt"));
  EXPECT_THAT(input_error([] { importer_of(R"({"steps": []})", "m"); }),
              HasSubstr("no record, profile or plan of ours"));
  EXPECT_THAT(input_error([] { importer_of(R"({"schema": "trivium.run/1", "steps": [)", "r"); }),
              HasSubstr("ends early"));
}

TEST(Importers, AreToldByTheirContentOrTheirSchemaAndHaveOneNameEach) {
  std::set<std::string_view> names, schemas;
  for (const Importer& importer : importers()) {
    EXPECT_TRUE(names.insert(importer.name).second) << importer.name;
    EXPECT_EQ(importer.sniff != nullptr, importer.schemas.front().empty()) << importer.name;
    EXPECT_NE(importer.read, nullptr) << importer.name;
    for (const std::string_view schema : importer.schemas) {
      EXPECT_TRUE(schema.empty() || schemas.insert(schema).second) << schema;
    }
    EXPECT_THAT(importers_help(), HasSubstr(std::string(importer.help)));
  }
}

}  // namespace
}  // namespace trivium::calibration
