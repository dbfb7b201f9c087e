// The functions that launch an op's kernels (ops_*.h), for one launcher.
#pragma once

#include "runtime/kernel.h"

namespace trivium::runtime::cuda {

template <class Launcher>
using Operation = void (*)(Launcher&, const KernelArguments&);

/// A product and the activation that is done with it (epilogues.h).
template <class Launcher>
using PairOperation = void (*)(Launcher&, const KernelArguments& product, const KernelArguments& activation);

}  // namespace trivium::runtime::cuda
