// Emulations on the host: what the emulation tests compare with the CPU backend.
#include "tests/runtime/cuda/host_emulations.h"

#include "runtime/cuda/operations.h"
#include "tests/runtime/cuda/emulated_call.h"
#include "tests/runtime/cuda/host_threads.h"

namespace trivium::runtime::cuda {

using program::DType;

void run_emulation(const KernelArguments& a, DType precision, Turns turns, bool warpgroups, ScaledProducts scaled) {
  HostLauncher launcher;
  launcher.turns = turns;
  launcher.warpgroups = warpgroups;
  launcher.scaled = scaled;
  const auto find = [&]<class T>(T) -> Operation<HostLauncher> {
    if (const auto found = coded_operation<T, HostLauncher>(*a.op)) return found;
    if (const auto found = row_operation<T, HostLauncher>(*a.op)) return found;
    if (const auto found = attention_operation<T, HostLauncher>(*a.op)) return found;
    if (const auto found = state_operation<T, HostLauncher>(*a.op)) return found;
    return wire_operation<HostLauncher>(*a.op);
  };
  const auto found = precision == DType::kBf16   ? find(Bf16{})
                     : precision == DType::kFp16 ? find(Fp16{})
                                                 : find(float{});
  found(launcher, a);
}

void run_emulation_epilogue(EpiloguePart part, const KernelArguments& product, const KernelArguments& activated,
                            DType precision, bool fuses) {
  HostLauncher launcher;
  launcher.fuses = fuses;
  const auto run = [&]<class T>(T) {
    if (part == EpiloguePart::kGradientAlone) return unbiased_activation_backward<T>(launcher, activated);
    pair_operation<T, HostLauncher> (*activated.op)(launcher, product, activated);
  };
  precision == DType::kBf16 ? run(Bf16{}) : run(Fp16{});
}

std::array<std::vector<double>, 3> EmulatedCall::on_emulation(DType type) const {
  const auto with = [&](Turns turns) {
    return run(type, type, [&](const KernelArguments& arguments, const Sizes&) {
      run_emulation(arguments, type, turns, warpgroups, scaled);
    });
  };
  const auto result = with(Turns::kAscending);
  for (const Turns turns : {Turns::kDescending, Turns::kShuffled}) {
    EXPECT_EQ(with(turns), result) << name_of(op.kind) << " in " << name_of(type)
                                   << " depends on which thread is first";
  }
  return result;
}

}  // namespace trivium::runtime::cuda
