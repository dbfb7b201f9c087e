// SQLite exports of Nsight Systems (`nsys export --type sqlite`).
#pragma once

#include <filesystem>
#include <vector>

#include "calibration/measurements/file_text.h"
#include "calibration/measurements/kernel_trace.h"

namespace trivium::calibration::imports {

/// Kernels, copies and launches of the process of an export that ran most kernels. Tables and columns are looked up
/// before they are read, since they come and go with versions and with what was captured. Iterations are NVTX ranges
/// named "iteration N", "step N" or "ProfilerStep#N". Source: NVIDIA's schema pages (Nsight Systems 2021.5 and later),
/// exports of 2022.4. Errors: Failure(kInput) where the file is not such an export, is cut, or lists no kernel, with
/// what it lists instead (with CUDA graphs kernels are only listed when captured with --cuda-graph-trace=node).
KernelTrace read_nsight(const std::filesystem::path& file);

/// The same of every process that ran kernels, by their first device: ranks of one host that were captured together.
/// With operators: the NVTX ranges that a kernel was launched in, those of PyTorch's emit_nvtx with their shapes.
std::vector<KernelTrace> read_nsight_processes(const std::filesystem::path& file);

bool is_nsight(const FileText& file);

}  // namespace trivium::calibration::imports
