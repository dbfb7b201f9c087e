#include "runtime/checkpoint/whole.h"

#include <fmt/format.h>

#include "base/refuse.h"
#include "program/lower/layout.h"

namespace trivium::runtime::checkpoint {

WholeTensors whole_values(const StoredTensors& stored) {
  WholeTensors tensors;
  for (const auto& [name, tensor] : stored.of(State::kValue)) {
    WholeTensor& whole = tensors[name];
    whole = {tensor.rows, tensor.columns, std::vector<float>(static_cast<std::size_t>(tensor.rows * tensor.columns))};
    stored.fill({.state = State::kValue,
                 .name = name,
                 .rows = tensor.rows,
                 .columns = tensor.columns,
                 .box = {0, 0, tensor.rows, tensor.columns},
                 .first = reinterpret_cast<std::byte*>(whole.values.data()),
                 .stride = tensor.columns,
                 .type = program::DType::kFp32});
  }
  return tensors;
}

void merge_adapters(WholeTensors& tensors, double scale) {
  for (const auto& [name, first] : tensors) {
    if (!name.ends_with(".lora_a")) continue;
    const std::string target = name.substr(0, name.rfind('.') + 1);
    const WholeTensor& second = tensors.at(target + "lora_b");
    WholeTensor& weight = tensors.at(target + "weight");
    const std::int64_t rank = first.columns, experts = rank > 0 ? second.rows / rank : 0;
    const bool fits = experts > 0 && second.rows == experts * rank && first.rows == weight.rows &&
                      second.columns == weight.columns && weight.rows % experts == 0;
    if (!fits)
      base::refuse(name, fmt::format("{} x {} and {} x {} are no adapter of {} x {} weights", first.rows, rank,
                                     second.rows, second.columns, weight.rows, weight.columns));
    const std::int64_t in = weight.rows / experts;
    for (std::int64_t i = 0; i < weight.rows * weight.columns; ++i) {
      const std::int64_t row = i / weight.columns, column = i % weight.columns;
      const std::int64_t above = row / in * rank;  // the second factors of the experts before this one
      double sum = 0;
      for (std::int64_t r = 0; r < rank; ++r) {
        sum += static_cast<double>(first.values[static_cast<std::size_t>(row * rank + r)]) *
               second.values[static_cast<std::size_t>((above + r) * second.columns + column)];
      }
      float& value = weight.values[static_cast<std::size_t>(i)];
      value = static_cast<float>(value + scale * sum);
    }
  }
  std::erase_if(tensors, [](const auto& entry) { return program::is_adapter(entry.first); });
}

}  // namespace trivium::runtime::checkpoint
