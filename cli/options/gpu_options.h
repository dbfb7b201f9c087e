// Options of commands that run on GPUs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "program/ir/program.h"
#include "runtime/session/gpu_ranks.h"

namespace trivium::cli {

struct GpuOptions {
  int gpus = 0;                    ///< of this host; 0: all
  std::string timing = "events";   ///< how ops are timed: by "events" around them, by "cupti", its records of their
                                   ///< kernels, or "auto": by the latter where they can be had
  std::string epilogues = "off";   ///< products and GELU in one: "on", "off"
  std::string products = "";       ///< folder of the algorithms to use
  std::string time_products = "";  ///< folder to which they are timed
  std::string graphs = "off";      ///< CUDA graphs: "on", "off", or "auto": where they can be
};

void add_gpu_options(CLI::App& command, GpuOptions& options);

runtime::session::GpuRankOptions rank_options(const GpuOptions& options);

/// Whether segments of the rank's passes are to be replayed as graphs. `speaks`: says on stderr which are not, and why.
/// Errors: Failure(kUsage) where graphs are on and there is nothing that could be one.
bool use_graphs(const GpuOptions& options, const program::Program& program, int rank, bool keeps_timeline, bool speaks);

/// Errors: Failure(kUsage) where cores are asked for what only a GPU has.
void require_gpu(const GpuOptions& options, const std::string& backend);

}  // namespace trivium::cli
