#include "calibration/published/micro_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/quote.h"
#include "calibration/measurements/csv.h"
#include "calibration/measurements/quantities.h"
#include "hardware_profiles/load.h"
#include "program/ir/op_kinds.h"
#include "program/plan/stack.h"
#include "simulator/collectives/node_curve.h"
#include "simulator/cost/compute_cost.h"

namespace trivium::calibration {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr double kLeastFlops = 10e9;

program::Op product(program::OpKind kind, program::DType type, std::int64_t m, std::int64_t n, std::int64_t k) {
  program::Op op;
  op.kind = kind;
  op.dtype = type;
  op.m = m;
  op.n = n;
  op.k = k;
  program::fill_work(op);
  return op;
}

std::function<double(const hardware::Node&)> predictor_of(const program::Op& op) {
  return [op](const hardware::Node& node) {
    return simulator::device_cost(op, node.device, *program::find_stack("trivium")).value();
  };
}

/// The number after "NAME=" in "b=1, m=4096, k=5120, …".
std::int64_t number_in(const CsvTable::Row& row, const std::string& name) {
  const std::string& shape = row.text("shape");
  const auto at = (" " + shape).find(" " + name + "=");
  const std::int64_t value = at == std::string::npos ? 0 : std::atoll(shape.c_str() + at + name.size() + 1);
  if (value < 1) row.fail("shape", fmt::format("has no \"{}=\" with a number above zero", name));
  return value;
}

/// Products that SimuMax measured on one of its machines, as shares of the device's peak.
struct SimuMaxTable {
  const char* machine;     ///< profile
  const char* name;        ///< for people
  const char* efficiency;  ///< column
  double peak;             ///< FLOP/s that the shares are of
  bool fitted;
};
constexpr SimuMaxTable kSimuMaxA100{"a100-pcie-80gb", "A100-PCIe", "efficiency_of_312TFLOPs", 312e12, true};
constexpr SimuMaxTable kSimuMaxB200{"simumax-b200-8x", "B200", "efficiency_of_2250TFLOPs", 2250e12, false};

void read_simumax(const CsvTable& table, const SimuMaxTable& of, std::vector<MicroRow>& rows) {
  const hardware::Node node = hardware::load_node(of.machine);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const CsvTable::Row row = table.row(i);
    if (row.text("op") != "matmul") continue;
    const std::int64_t m = number_in(row, "m"), n = number_in(row, "n"), k = number_in(row, "k");
    const bool accumulated = row.text("shape").find("accumulate=True") != std::string::npos;
    // A weight gradient (m, n) of k tokens is, as an op, that of the product (k, m) x (m, n).
    const program::Op op = accumulated ? product(program::OpKind::kMatmulWgrad, program::DType::kBf16, k, n, m)
                                       : product(program::OpKind::kMatmul, program::DType::kBf16, m, n, k);
    MicroRow one;
    one.name = fmt::format("{} x {} x {}{}", m, n, k, accumulated ? " accumulated" : "");
    one.source = fmt::format("SimuMax {} products{}", of.name, accumulated ? ", accumulated" : "");
    one.node = node;
    one.seconds = op.flops / (row.positive(of.efficiency) * of.peak);
    one.predict = predictor_of(op);
    one.product = true;
    one.fitted = of.fitted;
    rows.push_back(std::move(one));
  }
}

void read_deepbench(const CsvTable& table, std::vector<MicroRow>& rows) {
  const hardware::Node node = hardware::load_node("dgx1-v100-16gb");
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const CsvTable::Row row = table.row(i);
    // The benchmark pads to multiples of 8.
    const auto size = [&](const char* column) { return (row.integer(column, 1, kMost) + 7) / 8 * 8; };
    const program::Op op = product(program::OpKind::kMatmul, program::DType::kFp16, size("M"), size("N"), size("K"));
    if (op.flops < kLeastFlops) continue;
    MicroRow one;
    one.name = fmt::format("{} x {} x {}", op.m, op.n, op.k);
    one.source = "DeepBench V100 products";
    one.node = node;
    one.seconds = row.positive("time_ms") * kMilli;
    one.predict = predictor_of(op);
    one.product = true;
    rows.push_back(std::move(one));
  }
}

void read_allreduce(const CsvTable& table, std::vector<MicroRow>& rows) {
  const hardware::Node a100 = hardware::load_node("vtrain-hgx-a100"), v100 = hardware::load_node("dgx1-v100-32gb");
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const CsvTable::Row row = table.row(i);
    static const std::vector<std::string> kGpus = {"A100", "V100"};
    const bool ampere = row.one_of("gpu", kGpus) == 0;
    const int ranks = static_cast<int>(row.integer("gpus", 2, 16));
    const auto bytes = static_cast<double>(row.integer("size_bytes", 1, kMost));
    MicroRow one;
    one.name = fmt::format("{} of {} bytes over {}", kGpus[ampere ? 0 : 1], bytes, ranks);
    one.source = fmt::format("nccl-tests all-reduce, {} node", kGpus[ampere ? 0 : 1]);
    one.node = ampere ? a100 : v100;
    one.seconds = row.positive("time_us_out_of_place") * kMicro;
    one.fitted = false;
    one.predict = [bytes, ranks](const hardware::Node& node) {
      return simulator::node_curve(node, ranks).all_reduce(base::Bytes(bytes), ranks).value();
    };
    rows.push_back(std::move(one));
  }
}

bool read_table(const fs::path& path, std::vector<MicroRow>& rows) {
  const std::string text = base::read_file(path);
  const std::string header = text.substr(0, text.find_first_of("\r\n"));
  const auto table = [&] { return CsvTable(text, path.string()); };
  for (const SimuMaxTable* of : {&kSimuMaxA100, &kSimuMaxB200}) {
    if (header != fmt::format("source,op,shape,{}", of->efficiency)) continue;
    read_simumax(table(), *of, rows);
    return true;
  }
  if (header == "source,workload,M,N,K,transA,transB,time_ms,tflops") {
    read_deepbench(table(), rows);
    return true;
  }
  if (!header.starts_with("source,gpu,gpus,size_bytes,time_us_out_of_place,")) return false;
  read_allreduce(table(), rows);
  return true;
}

}  // namespace

std::vector<MicroRow> read_micro_rows(const fs::path& path) {
  std::vector<fs::path> tables{path};
  std::error_code error;
  if (fs::is_directory(path, error)) {
    tables.clear();
    for (const auto& entry : fs::directory_iterator(path, error)) {
      if (entry.path().extension() == ".csv") tables.push_back(entry.path());
    }
    if (error) {
      throw base::Failure(base::ErrorKind::kInput,
                          fmt::format("{}: cannot read: {}", base::one_line(path.string()), error.message()));
    }
    std::sort(tables.begin(), tables.end());
  }
  std::vector<MicroRow> rows;
  bool known = false;
  for (const fs::path& table : tables) known = read_table(table, rows) || known;
  if (!known) {
    throw base::Failure(
        base::ErrorKind::kInput,
        fmt::format("{}: no table of products or all-reduces; docs/explanation/cost-model.md names their columns",
                    base::one_line(path.string())));
  }
  return rows;
}

}  // namespace trivium::calibration
