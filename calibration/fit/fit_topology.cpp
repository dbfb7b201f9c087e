// What `nvidia-smi topo -m` says of a node.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "calibration/fit/fit_parts.h"
#include "calibration/fit/gpu_models.h"

namespace trivium::calibration {
namespace {

hardware::Topology topology_of(const imports::GpuTopology& matrix) {
  const int least = matrix.least_nvlinks(), most = matrix.most_nvlinks();
  if (most == 0) return hardware::Topology::kPcie;
  // With a switch every pair shows all links of a GPU; with direct links, numbers differ or some pairs have none.
  return least == most ? hardware::Topology::kNvswitch : hardware::Topology::kCubeMesh;
}

template <class Table>
void cut_table(Table& table, int devices) {
  table.erase(table.upper_bound(devices), table.end());
}

}  // namespace

void fit_topology(Fit& fit, const imports::GpuTopology& matrix) {
  hardware::Node& node = fit.node;
  const std::string from = fmt::format("trivium calibrate: nvidia-smi topo -m in {}", matrix.file);
  const auto number = [&](const char* pointer, double before, double after) {
    note(fit, {pointer, before, after, 0, 1, true, from});
  };
  number("/devices", node.devices, matrix.gpus);
  node.devices = matrix.gpus;
  cut_table(node.allreduce_bus, node.devices);
  cut_table(node.gather_bus, node.devices);
  cut_table(node.allreduce_latency, node.devices);
  node.topology = topology_of(matrix);
  static constexpr std::array<const char*, 4> kNames{"nvswitch", "cube-mesh", "pcie", "shared-memory"};
  fit.report.push_back(fmt::format("topology: {} GPUs, {}, {} network adapters listed", matrix.gpus,
                                   kNames[static_cast<std::size_t>(node.topology)], matrix.adapters));
  if (matrix.adapters > 0 && node.adapters > 0) {
    number("/adapters", node.adapters, matrix.adapters);
    node.adapters = matrix.adapters;
  } else if (matrix.adapters > 0) {
    fit.report.push_back("adapters: the base has no network, whose speed the matrix does not tell; kept at 0");
  }
  if (matrix.most_nvlinks() == 0) return;
  const GpuModel* model = gpu_model_in(node.device.name);
  if (model == nullptr || node.topology != hardware::Topology::kNvswitch) {
    note(fit, {"/intra/bandwidth", node.intra.bandwidth.value(), node.intra.bandwidth.value(), 0, 0, false,
               model == nullptr ? "kept from the base: the matrix does not tell the generation of NVLink, nor does \"" +
                                      node.device.name + "\""
                                : "kept from the base: links of different pairs have no common bandwidth"});
    return;
  }
  const double bandwidth = model->nvlink_rate * matrix.least_nvlinks();
  number("/intra/bandwidth", node.intra.bandwidth.value(), bandwidth);
  node.intra.bandwidth = base::BytesPerSecond(bandwidth);
  if (!node.allreduce_bus.empty()) {
    fit.report.push_back("intra: the base's measured table of all-reduces goes before the links' nominal bandwidth");
  }
}

}  // namespace trivium::calibration
