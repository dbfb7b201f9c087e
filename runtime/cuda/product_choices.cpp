#include "runtime/cuda/product_choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <sstream>
#include <system_error>

#include "base/files.h"
#include "runtime/communicator.h"

namespace trivium::runtime::cuda {
namespace {

constexpr std::string_view kForm = "trivium products 1, ";

}  // namespace

ProductChoices ProductChoices::read(const std::filesystem::path& folder, const std::string& machine) {
  ProductChoices choices(machine);
  std::map<std::string, std::filesystem::path> files;  // ranks in their order
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    if (entry.path().extension() == ".products") files[entry.path().filename().string()] = entry.path();
  }
  if (files.empty()) {
    throw Aborted(fmt::format("no timed products in {}; a run with --time-cuda-products makes them", folder.string()));
  }
  for (const auto& [name, file] : files) choices.read_file(file);
  return choices;
}

void ProductChoices::read_file(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  const std::string wanted = std::string(kForm) + machine_;
  if (!std::getline(in, line) || line != wanted) {
    throw Aborted(fmt::format("{} is not of this device and library: it begins with \"{}\", not \"{}\"", file.string(),
                              line, wanted));
  }
  while (std::getline(in, line)) {
    const std::size_t end = line.find(" | ");
    Choice choice;
    std::istringstream rest(end == std::string::npos ? "" : line.substr(end + 3));
    rest >> std::hex;
    for (std::uint64_t& word : choice.algorithm) rest >> word;
    rest >> choice.microseconds >> choice.first_microseconds;
    if (!rest) throw Aborted(fmt::format("{} has a line that is none of a timed product: {}", file.string(), line));
    all_.emplace(line.substr(0, end), choice);  // what an earlier rank has stands
  }
}

const ProductChoices::Choice* ProductChoices::find(const std::string& shape) const {
  const auto found = all_.find(shape);
  return found == all_.end() ? nullptr : &found->second;
}

void ProductChoices::write(const std::filesystem::path& folder, int rank) const {
  std::string text = std::string(kForm) + machine_ + "\n";
  for (const auto& [shape, choice] : all_) {
    text += fmt::format("{} | {:x} {:.2f} {:.2f}\n", shape, fmt::join(choice.algorithm, " "), choice.microseconds,
                        choice.first_microseconds);
  }
  base::write_file_atomically(folder / fmt::format("rank-{:05}.products", rank), text);
}

}  // namespace trivium::runtime::cuda
