#include "calibration/measurements/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <regex>
#include <set>

#include "base/quote.h"
#include "base/refuse.h"
#include "calibration/measurements/text_lines.h"
#include "calibration/measurements/training_log.h"

namespace trivium::calibration::imports {
namespace {

using base::refuse;

bool is_gpu(const std::string& name) {
  return name.starts_with("GPU") && name.size() > 3 && std::all_of(name.begin() + 3, name.end(), ::isdigit);
}

bool is_adapter(const std::string& name) {
  static const std::regex kAdapter(R"((NIC\d+|mlx\d+_\d+|hfi\d+_\d+|bnxt_re\d+|irdma\d+|efa_?\d+))");
  return std::regex_match(name, kAdapter);
}

bool is_cell(const std::string& text) {
  static const std::regex kCell("(X|NV[1-9]\\d?|PIX|PXB|PHB|NODE|SYS|SOC|PSB|N/A)");  // no GPU has a hundred links
  return std::regex_match(text, kCell);
}

/// Devices that the header names, before the affinity columns.
std::vector<std::string> devices_of(const std::string& line) {
  std::vector<std::string> names;
  for (const std::string& word : words_of(line)) {
    if (!is_gpu(word) && !is_adapter(word)) break;
    names.push_back(word);
  }
  return names;
}

int links_of(const std::string& cell) {
  int links = 0;
  if (cell.starts_with("NV")) std::from_chars(cell.data() + 2, cell.data() + cell.size(), links);
  return links;
}

}  // namespace

int GpuTopology::least_nvlinks() const {
  int least = gpus > 1 ? 1 << 20 : 0;
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < gpus; ++b) {
      if (a != b) least = std::min(least, links_of(cells[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]));
    }
  }
  return least;
}

int GpuTopology::most_nvlinks() const {
  int most = 0;
  for (const auto& row : cells) {
    for (const std::string& cell : row) most = std::max(most, links_of(cell));
  }
  return most;
}

GpuTopology read_topology(std::string_view text, const std::string& file) {
  GpuTopology topology;
  topology.file = file;
  std::vector<std::string> devices;
  for (const std::string& line : lines_of(text).lines) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (devices.empty()) {
      devices = devices_of(line);
      continue;
    }
    if (!is_gpu(words.front())) continue;  // adapters' rows and the legend
    std::vector<std::string> row(words.begin() + 1, words.end());
    const auto glued = std::find_if_not(
        row.begin(), row.begin() + static_cast<std::ptrdiff_t>(std::min(row.size(), devices.size())), is_cell);
    if (row.size() < devices.size() || glued - row.begin() < static_cast<std::ptrdiff_t>(devices.size())) {
      const auto good = glued - row.begin();
      if (row.size() >= devices.size()) {
        refuse(file, fmt::format("the row of {} has {}, which says nothing of a connection", words.front(),
                                 base::quote(row[static_cast<std::size_t>(good)])));
      }
      refuse(file, fmt::format("the row of {} has {} cells of {}; the file was cut, or copied without its tabs",
                               words.front(), good, devices.size()));
    }
    topology.cells.push_back(std::move(row));
  }
  topology.gpus = static_cast<int>(std::count_if(devices.begin(), devices.end(), is_gpu));
  topology.adapters = static_cast<int>(devices.size()) - topology.gpus;
  const auto gpus = static_cast<std::size_t>(topology.gpus);
  if (gpus == 0 || topology.cells.size() != gpus) {
    refuse(file,
           fmt::format("the header names {} GPUs, {} rows follow; the file was cut", gpus, topology.cells.size()));
  }
  for (std::size_t a = 0; a < gpus; ++a) {
    topology.cells[a].resize(gpus);
    if (topology.cells[a][a] != "X")
      refuse(file, fmt::format("{} is {} from itself", devices[a], topology.cells[a][a]));
  }
  for (std::size_t a = 0; a < gpus; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (topology.cells[a][b] == topology.cells[b][a]) continue;
      refuse(file, fmt::format("{} to {} is {}, the way back {}", devices[a], devices[b], topology.cells[a][b],
                               topology.cells[b][a]));
    }
  }
  return topology;
}

bool is_topology(const FileText& file) {
  return file.form() == FileText::Form::kText && has(file.head(), "GPU0") &&
         (has(file.head(), "CPU Affinity") || has(file.head(), "Legend:")) && !is_training_log(file);
}

}  // namespace trivium::calibration::imports
