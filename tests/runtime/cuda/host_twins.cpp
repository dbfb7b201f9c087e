// Twins on the host: what the twin tests compare with the CPU backend.
#include "runtime/cuda/operations.h"
#include "tests/runtime/cuda/host_threads.h"
#include "tests/runtime/cuda/twin_call.h"

namespace trivium::runtime::cuda {

using program::DType;

std::array<std::vector<double>, 3> TwinCall::on_twin(DType type) const {
  return run(type, type, [type](const KernelArguments& arguments, const Sizes&) {
    HostLauncher launcher;
    const auto find = [&]<class T>(T) -> Operation<HostLauncher> {
      if (const auto found = row_operation<T, HostLauncher>(*arguments.op)) return found;
      if (const auto found = attention_operation<T, HostLauncher>(*arguments.op)) return found;
      return state_operation<T, HostLauncher>(*arguments.op);
    };
    (type == DType::kBf16 ? find(Bf16{}) : find(float{}))(launcher, arguments);
  });
}

}  // namespace trivium::runtime::cuda
