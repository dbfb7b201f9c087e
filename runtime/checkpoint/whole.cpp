#include "runtime/checkpoint/whole.h"

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

}  // namespace trivium::runtime::checkpoint
