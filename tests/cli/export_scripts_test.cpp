// Exported scripts, started as clusters start them; Slurm and torchrun are made of straw.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* kStraw = R"(mkdir -p bin
printf '#!/bin/sh\necho host0\necho host1\n' >bin/scontrol
printf '#!/bin/sh\necho "$*" >>started\n' >bin/torchrun
cat >bin/srun <<'SH'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
for node in 0 1; do SLURM_JOB_ID=1 SLURM_JOB_NODELIST='host[0-1]' SLURM_STEP_ID=0 "$@"; done
SH
chmod +x bin/*
trivium plan --model gpt2-124m --cluster dgx-a100-80gb:2 --global-batch 16 -o p.json >/dev/null
export PATH=$PWD/bin:$PATH
)";

class ExportedScripts : public ::testing::TestWithParam<const char*> {
 protected:
  /// How often torchrun was started.
  int started(const std::string& command) {
    place_.run("rm -f started");
    const Outcome outcome =
        place_.run(kStraw + ("trivium export p.json --to " + std::string(GetParam()) + " --force -o s.sh\n") + command);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string lines = place_.read("started");
    EXPECT_THAT(lines, HasSubstr("--rdzv-endpoint host0:29500"));
    return static_cast<int>(std::count(lines.begin(), lines.end(), '\n'));
  }

 private:
  Workplace place_;
};

TEST_P(ExportedScripts, StartOnceOnEachNode) {
  EXPECT_EQ(started("HEAD=host0 bash s.sh"), 1);                                     // by hand, on each of the two
  EXPECT_EQ(started("SLURM_JOB_ID=1 SLURM_JOB_NODELIST='host[0-1]' bash s.sh"), 2);  // sbatch
  EXPECT_EQ(started("SLURM_JOB_ID=1 SLURM_JOB_NODELIST='host[0-1]' SLURM_STEP_ID=4294967290 bash s.sh"), 2);  // salloc
  EXPECT_EQ(started("srun -N2 bash s.sh"), 2);
}

INSTANTIATE_TEST_SUITE_P(, ExportedScripts, ::testing::Values("megatron", "torchtitan"),
                         [](const auto& trainer) { return std::string(trainer.param); });

}  // namespace
}  // namespace trivium::cli
