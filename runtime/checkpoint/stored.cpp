#include "runtime/checkpoint/stored.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/quote.h"
#include "base/refuse.h"
#include "runtime/reduction/half.h"

namespace trivium::runtime::checkpoint {
namespace {

using base::refuse;
using program::DType;

struct PieceName {
  State state{};
  std::string tensor;
  Box box;
};

std::optional<PieceName> parse_piece_name(std::string_view name) {
  PieceName parsed;
  const std::size_t slash = name.find('/'), at = name.rfind('@');
  if (slash == std::string_view::npos || at == std::string_view::npos || at < slash) return std::nullopt;
  int state = 0;
  while (state < kStates && name_of(static_cast<State>(state)) != name.substr(0, slash)) ++state;
  if (state == kStates) return std::nullopt;
  parsed.state = static_cast<State>(state);
  parsed.tensor = name.substr(slash + 1, at - slash - 1);
  const char* next = name.data() + at + 1;
  const char* const end = name.data() + name.size();
  const auto number = [&](std::int64_t& value, char behind) {
    const auto [stop, error] = std::from_chars(next, end, value);
    const bool good =
        error == std::errc() && value >= 0 && (behind == 0 ? stop == end : stop != end && *stop == behind);
    next = good && behind != 0 ? stop + 1 : stop;
    return good;
  };
  const bool read = number(parsed.box.row, '+') && number(parsed.box.rows, ',') && number(parsed.box.column, '+') &&
                    number(parsed.box.columns, 0);
  if (!read || parsed.tensor.empty()) return std::nullopt;
  return parsed;
}

// Parts that meet share rows, so only those whose rows overlap are compared.
void check_cover(const std::string& where, const std::string& name, StoredTensor& tensor) {
  auto& parts = tensor.parts;
  std::sort(parts.begin(), parts.end(), [](const StoredTensor::Part& a, const StoredTensor::Part& b) {
    return std::pair(a.box.row, a.box.column) < std::pair(b.box.row, b.box.column);
  });
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    covered += parts[i].box.elements();
    for (std::size_t j = i + 1; j < parts.size() && parts[j].box.row < parts[i].box.row + parts[i].box.rows; ++j) {
      if (intersection(parts[i].box, parts[j].box).elements() > 0) {
        refuse(where, fmt::format("{} has two pieces for the same elements", base::quote(name)));
      }
    }
  }
  if (covered != tensor.rows * tensor.columns) {
    refuse(where, fmt::format("{} is incomplete: {} of {} elements are there", base::quote(name), covered,
                              tensor.rows * tensor.columns));
  }
}

void put(std::byte* to, std::int64_t index, DType type, double value) {
  switch (type) {
    case DType::kFp64:
      std::memcpy(to + index * 8, &value, 8);
      return;
    case DType::kBf16:
    case DType::kFp16: {
      const auto narrow = static_cast<float>(value);
      const std::uint16_t bits =
          type == DType::kBf16 ? reduction::bf16_of_float(narrow) : reduction::fp16_of_float(narrow);
      std::memcpy(to + index * 2, &bits, 2);
      return;
    }
    default: {
      const auto narrow = static_cast<float>(value);
      std::memcpy(to + index * 4, &narrow, 4);
    }
  }
}

void copy(const StoredTensor::Part& part, const Box& shared, const Piece& piece) {
  const bool same = number_of(piece.type) == part.number;
  const std::int64_t width = program::size_of(piece.type);
  for (std::int64_t r = 0; r < shared.rows; ++r) {
    const std::int64_t from = (shared.row + r - part.box.row) * part.box.columns + shared.column - part.box.column;
    const std::int64_t to = (shared.row + r - piece.box.row) * piece.stride + shared.column - piece.box.column;
    if (same) {
      std::memcpy(piece.first + to * width, part.values + from * width,
                  static_cast<std::size_t>(shared.columns * width));
      continue;
    }
    for (std::int64_t c = 0; c < shared.columns; ++c) {
      put(piece.first, to + c, piece.type, element(part.values, from + c, part.number));
    }
  }
}

double get(const std::byte* from, std::int64_t index, DType type) { return element(from, index, number_of(type)); }

void add(const StoredTensor::Part& part, const Box& shared, const Piece& piece) {
  for (std::int64_t r = 0; r < shared.rows; ++r) {
    const std::int64_t from = (shared.row + r - part.box.row) * part.box.columns + shared.column - part.box.column;
    const std::int64_t to = (shared.row + r - piece.box.row) * piece.stride + shared.column - piece.box.column;
    for (std::int64_t c = 0; c < shared.columns; ++c) {
      const double sum = get(piece.first, to + c, piece.type) + element(part.values, from + c, part.number);
      put(piece.first, to + c, piece.type, sum);
    }
  }
}

template <class Take>
void take_parts(const StoredTensor& tensor, const Piece& piece, Take take) {
  for (const StoredTensor::Part& part : tensor.parts) {
    if (part.box.row >= piece.box.row + piece.box.rows) break;  // they are sorted by row
    const Box shared = intersection(part.box, piece.box);
    if (shared.elements() > 0) take(part, shared, piece);
  }
}

void clear(const Piece& piece) {
  const std::int64_t width = program::size_of(piece.type);
  for (std::int64_t r = 0; r < piece.box.rows; ++r) {
    std::memset(piece.first + r * piece.stride * width, 0, static_cast<std::size_t>(piece.box.columns * width));
  }
}

}  // namespace

std::string stored_name(const Piece& piece) {
  return piece.state == State::kResidual ? fmt::format("{}:{}", piece.replica, piece.name) : piece.name;
}

std::string piece_name(State state, const std::string& tensor, const Box& box) {
  return fmt::format("{}/{}@{}+{},{}+{}", name_of(state), tensor, box.row, box.rows, box.column, box.columns);
}

Number number_of(DType type) {
  switch (type) {
    case DType::kFp64:
      return Number::kF64;
    case DType::kBf16:
      return Number::kBf16;
    case DType::kFp16:
      return Number::kF16;
    default:
      return Number::kF32;
  }
}

StoredTensors::StoredTensors(const std::vector<std::filesystem::path>& files) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  for (const std::filesystem::path& path : files) {
    where_ = path.parent_path().empty() ? path.string() : path.parent_path().string();
    const SafetensorsFile& file = *files_.emplace_back(std::make_unique<SafetensorsFile>(path));
    for (const TensorEntry& entry : file.header().tensors) {
      const auto name = parse_piece_name(entry.name);
      const auto complain = [&](const char* what) {
        refuse(path.string(), fmt::format("{}: {}", base::quote(entry.name), what));
      };
      if (!name) complain("not the name of a piece of a checkpoint");
      const Box& box = name->box;
      if (entry.shape != std::vector{box.rows, box.columns}) complain("the shape is not that of the box in the name");
      if (!is_float(entry.number)) complain("weights must be floating-point numbers");
      if (box.row > kLargest || box.column > kLargest) complain("the box lies outside any tensor");
      StoredTensor& tensor = tensors_[static_cast<std::size_t>(name->state)][name->tensor];
      tensor.rows = std::max(tensor.rows, box.row + box.rows);
      tensor.columns = std::max(tensor.columns, box.column + box.columns);
      if (box.elements() > 0) tensor.parts.push_back({box, entry.number, file.bytes_of(entry).data()});
    }
  }
  for (auto& state : tensors_) {
    for (auto& [name, tensor] : state) check_cover(where_, name, tensor);
  }
}

StoredTensors::StoredTensors(const std::map<std::string, Borrowed>& values, std::string where)
    : where_(std::move(where)) {
  for (const auto& [name, tensor] : values) {
    const Box all{0, 0, tensor.rows, tensor.columns};
    tensors_[static_cast<std::size_t>(State::kValue)][name] = {
        tensor.rows, tensor.columns, {{all, Number::kF32, reinterpret_cast<const std::byte*>(tensor.values)}}};
  }
}

const StoredTensor& StoredTensors::find(const Piece& piece, const std::string& name) const {
  const auto& tensors = of(piece.state);
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    refuse(where_, fmt::format("it has no {} of {}", name_of(piece.state), base::quote(name)));
  }
  const StoredTensor& tensor = found->second;
  if (tensor.rows != piece.rows || tensor.columns != piece.columns) {
    refuse(where_, fmt::format("{} is {} x {}, the model's is {} x {}", base::quote(name), tensor.rows, tensor.columns,
                               piece.rows, piece.columns));
  }
  return tensor;
}

void StoredTensors::fill(const Piece& piece) const {
  if (piece.state == State::kResidual) return fill_residual(piece);
  if (piece.added && !of(State::kValue).contains(piece.name)) {
    if (piece.state != State::kValue) clear(piece);
    return;
  }
  if (piece.state != State::kValue && of(piece.state).empty()) return clear(piece);
  take_parts(find(piece, piece.name), piece, copy);
}

void StoredTensors::fill_residual(const Piece& piece) const {
  clear(piece);
  Piece saved = piece;
  while (of(State::kResidual).contains(stored_name(saved))) {
    take_parts(find(piece, stored_name(saved)), piece, add);
    saved.replica += piece.replicas;
  }
}

void write_piece(const Piece& piece, SafetensorsWriter& writer) {
  const std::int64_t width = program::size_of(piece.type);
  for (std::int64_t r = 0; r < piece.box.rows; ++r) {
    writer.write({piece.first + r * piece.stride * width, static_cast<std::size_t>(piece.box.columns * width)});
  }
}

}  // namespace trivium::runtime::checkpoint
