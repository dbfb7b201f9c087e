// Kernels and collectives measured by themselves: what the device and link curves are fitted by and held to.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"

namespace trivium::calibration {

/// One measurement.
struct MicroRow {
  std::string name;    ///< "4096 x 1536 x 5120 accumulated"
  std::string source;  ///< rows of one source are judged together
  hardware::Node node;
  double seconds = 0;
  std::function<double(const hardware::Node&)> predict;  ///< seconds on such a node; safe from several threads
  bool fitted = true;    ///< false: judged only (the profiles hold these curves as they were measured)
  bool product = false;  ///< of matrices; else a collective
};

/// Reads a table, or every table (`*.csv`) of a folder, in name order. Known by their columns are
/// * products: source,op,shape,efficiency_of_312TFLOPs (A100-PCIe, bf16; op "matmul" is read, others are not modelled)
///   or efficiency_of_2250TFLOPs (B200 of `simumax-b200-8x`, likewise; judged only);
/// * products: source,workload,M,N,K,transA,transB,time_ms,tflops (V100, fp16; of 10 GFLOP and more: the others are
///   skinny products of recurrent networks);
/// * all-reduce inside a node: source,gpu,gpus,size_bytes,time_us_out_of_place,… (A100 and V100 nodes of eight).
/// Tables with other columns are passed over. Errors: Failure(kInput) as `FILE:LINE: column: …`, and where a path holds
/// no known table.
std::vector<MicroRow> read_micro_rows(const std::filesystem::path& path);

}  // namespace trivium::calibration
