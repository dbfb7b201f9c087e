// Mapped reading and streamed writing.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/reduction/half.h"

namespace trivium::runtime::checkpoint {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;  // a multiple of the checksum's word
constexpr std::size_t kAlignment = 8;  // of the data after the header, as the format's library does

template <class T>
T load(const std::byte* values, std::int64_t index) {
  T value;
  std::memcpy(&value, values + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(std::make_unique<data::MappedFile>(path, "tensor file")),
      header_(parse_safetensors(file_->bytes(), path.string())) {}

std::span<const std::byte> SafetensorsFile::bytes_of(const TensorEntry& tensor) const {
  return file_->bytes().subspan(static_cast<std::size_t>(header_.data_begin + tensor.begin),
                                static_cast<std::size_t>(tensor.end - tensor.begin));
}

std::uint64_t SafetensorsFile::checksum() const {
  Checksum sum;
  sum.add(file_->bytes());
  return sum.value();
}

double element(const std::byte* values, std::int64_t index, Number number) {
  switch (number) {
    case Number::kF64:
      return load<double>(values, index);
    case Number::kF32:
      return load<float>(values, index);
    case Number::kBf16:
      return reduction::float_of_bf16(load<std::uint16_t>(values, index));
    case Number::kF16:
      return reduction::float_of_fp16(load<std::uint16_t>(values, index));
    default:
      throw base::Failure(base::ErrorKind::kInput, fmt::format("{} numbers are no weights", name_of(number)));
  }
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorEntry> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : path_(path) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t reached = 0;
  for (const TensorEntry& tensor : tensors) {
    std::int64_t bytes = size_of(tensor.number);
    for (const std::int64_t extent : tensor.shape) bytes *= extent;
    header[tensor.name] = {
        {"dtype", name_of(tensor.number)}, {"shape", tensor.shape}, {"data_offsets", {reached, reached + bytes}}};
    reached += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const std::uint64_t length = text.size();
  expected_ = static_cast<std::int64_t>(sizeof length + text.size()) + reached;
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file_ < 0) fail(errno);
  buffer_.reserve(kBufferBytes);
  write(std::as_bytes(std::span(&length, 1)));
  write(std::as_bytes(std::span(text)));
}

SafetensorsWriter::~SafetensorsWriter() {
  if (file_ >= 0) ::close(file_);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t now = std::min(bytes.size(), kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(now));
    bytes = bytes.subspan(now);
    if (buffer_.size() == kBufferBytes) flush();
  }
}

void SafetensorsWriter::flush() {
  checksum_.add(buffer_);
  std::span<const std::byte> rest = buffer_;
  while (!rest.empty()) {
    const ssize_t done = ::write(file_, rest.data(), rest.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(errno);
    rest = rest.subspan(static_cast<std::size_t>(done));
  }
  written_ += static_cast<std::int64_t>(buffer_.size());
  buffer_.clear();
}

void SafetensorsWriter::finish() {
  flush();
  if (written_ != expected_) {
    throw base::Failure(base::ErrorKind::kRuntime, fmt::format("{}: {} bytes came, {} were declared",
                                                               base::one_line(path_.string()), written_, expected_));
  }
  if (::fsync(file_) != 0) fail(errno);
  if (::close(std::exchange(file_, -1)) != 0) fail(errno);
}

void SafetensorsWriter::fail(int error_number) {
  throw base::Failure(base::ErrorKind::kRuntime, fmt::format("{}: cannot write: {}", base::one_line(path_.string()),
                                                             std::generic_category().message(error_number)));
}

}  // namespace trivium::runtime::checkpoint
