// The backend's kernels on the fake GPU: the files that nvcc compiles for a device, with another Launcher::run.
#include <climits>

#include "runtime/cuda/launcher.h"
#include "tests/runtime/cuda/host_threads.h"
#include "tests/runtime/fake_gpu/machine.h"

namespace trivium::runtime::cuda {

namespace {

/// What a kernel is known by.
template <class Kernel>
void entry() {}

template <class Kernel>
const bool kIsListed = KernelList::get().add(reinterpret_cast<const void*>(entry<Kernel>));

}  // namespace

// A kernel's arguments are copied when it is launched.
template <class Kernel>
void Launcher::run(const Kernel& kernel, std::int64_t blocks, int threads, int shared_bytes) {
  constexpr int kMostThreads = 384, kMostShared = 227 * 1024;  // __launch_bounds__ of simt_device.cuh; Hopper's
  static_cast<void>(kIsListed<Kernel>);
  if (blocks <= 0) return;
  count(1);
  fake_gpu::Machine& machine = fake_gpu::Machine::get();
  const std::lock_guard lock(machine.mutex);
  if (blocks > INT_MAX || threads < 1 || threads > kMostThreads || shared_bytes > kMostShared)
    machine.refuse("a kernel of more blocks, threads or shared memory than a device has");
  machine.load(reinterpret_cast<const void*>(entry<Kernel>));
  machine.issue(stream_, [=] {
    if (!fake_gpu::Machine::get().computes()) return true;
    HostLauncher host;
    host.turns = Turns::kShuffled;
    host.run(kernel, blocks, threads, shared_bytes);
    return true;
  });
}

}  // namespace trivium::runtime::cuda

// Included after the launcher that they are for.
#include "runtime/cuda/attention_operations.cu"
#include "runtime/cuda/row_operations.cu"
#include "runtime/cuda/state_operations.cu"
