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
constexpr double kSimuMaxPeak = 312e12;  // the peak its efficiencies are of
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

void read_simumax(const CsvTable& table, std::vector<MicroRow>& rows) {
  const hardware::Node node = hardware::load_node("a100-pcie-80gb");
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
    one.source = accumulated ? "SimuMax A100-PCIe products, accumulated" : "SimuMax A100-PCIe products";
    one.node = node;
    one.seconds = op.flops / (row.positive("efficiency_of_312TFLOPs") * kSimuMaxPeak);
    one.predict = predictor_of(op);
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
  const auto reads = header == "source,op,shape,efficiency_of_312TFLOPs"                      ? &read_simumax
                     : header == "source,workload,M,N,K,transA,transB,time_ms,tflops"         ? &read_deepbench
                     : header.starts_with("source,gpu,gpus,size_bytes,time_us_out_of_place,") ? &read_allreduce
                                                                                              : nullptr;
  if (reads == nullptr) return false;
  reads(CsvTable(text, path.string()), rows);
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
