#include "runtime/checkpoint/weight_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/quote.h"

namespace trivium::runtime::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModel = "model";  // what transformers calls files of weights

bool is_index(const fs::path& path) { return path.filename().string().ends_with(kIndexEnd); }

fs::path made(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code ignored;  // told by who cannot write there
  fs::create_directories(folder, ignored);
  return folder;
}

std::int64_t bytes_of(const TensorEntry& entry) {
  std::int64_t bytes = size_of(entry.number);
  for (const std::int64_t length : entry.shape) bytes *= length;
  return bytes;
}

bool is_name_of_file(const std::string& name) {
  return name.ends_with(kWeightsEnd) && name.find('/') == std::string::npos && name.front() != '.';
}

std::vector<SafetensorsFile> open_shards(const fs::path& index) {
  const nlohmann::json json = base::read_json_file(index);
  std::map<std::string, std::set<std::string>> tensors_of;
  const base::JsonReader map = base::JsonReader(json, index.string()).at("weight_map");
  for (const auto& [tensor, place] : map.members()) {
    const std::string name = place.text();
    if (!is_name_of_file(name)) place.fail("must be the name of a .safetensors file next to the index");
    tensors_of[name].insert(tensor);
  }
  if (tensors_of.empty()) map.fail("names no tensor");
  std::vector<SafetensorsFile> files;
  for (auto& [name, tensors] : tensors_of) {
    const SafetensorsFile& file = files.emplace_back(index.parent_path() / name);
    for (const TensorEntry& entry : file.header().tensors) tensors.erase(entry.name);
    if (tensors.empty()) continue;
    map.at(*tensors.begin()).fail(fmt::format("{} has no such tensor", base::quote(name)));
  }
  return files;
}

}  // namespace

bool holds_weights(const fs::path& path) {
  if (path.extension() == kWeightsEnd || is_index(path)) return true;
  std::error_code ignored;
  const auto has = [&](const char* end) { return fs::exists(path / (std::string(kModel) + end), ignored); };
  const bool checkpoints = fs::exists(path / "latest", ignored) || fs::exists(path / "checkpoint.json", ignored);
  return !checkpoints && (has(kWeightsEnd) || has(kIndexEnd));
}

fs::path folder_of_weights(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? path : path.parent_path();
}

std::vector<SafetensorsFile> open_weights(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    const fs::path whole = path / (std::string(kModel) + kWeightsEnd);
    return open_weights(fs::exists(whole, ignored) ? whole : path / (std::string(kModel) + kIndexEnd));
  }
  if (is_index(path)) return open_shards(path);
  std::vector<SafetensorsFile> files;
  files.emplace_back(path);
  return files;
}

WeightsWriter::WeightsWriter(fs::path path, std::vector<TensorEntry> tensors, std::int64_t shard_bytes)
    : path_(std::move(path)), folder_(made(path_)), unfinished_(folder_, ".trivium-weights-"), shards_(1) {
  std::int64_t filled = 0;
  for (TensorEntry& tensor : tensors) {
    const std::int64_t bytes = bytes_of(tensor);
    if (shard_bytes > 0 && filled > 0 && filled + bytes > shard_bytes) {
      shards_.emplace_back();
      filled = 0;
    }
    filled += bytes;
    bytes_ += bytes;
    shards_.back().tensors.push_back(std::move(tensor));
  }
  if (shards_.size() == 1) {
    shards_.front().name = path_.filename().string();
    return;
  }
  std::error_code ignored;
  if (fs::exists(path_, ignored)) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("{} is there already, and would be read instead of shards; name another folder",
                                    base::one_line(path_.string())));
  }
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    shards_[i].name = fmt::format("{}-{:05}-of-{:05}{}", path_.stem().string(), i + 1, shards_.size(), kWeightsEnd);
  }
}

void WeightsWriter::write(std::span<const std::byte> bytes) {
  const Shard& shard = shards_[shard_];
  if (!writer_)
    writer_.emplace(unfinished_.path() / shard.name, shard.tensors,
                    std::map<std::string, std::string>{{"format", "pt"}});
  writer_->write(bytes);
  if (++written_ < shard.tensors.size()) return;
  writer_->finish();
  writer_.reset();
  written_ = 0;
  ++shard_;
}

void WeightsWriter::write_index() const {
  nlohmann::json index = {{"metadata", {{"total_size", bytes_}}}};
  for (const Shard& shard : shards_) {
    for (const TensorEntry& tensor : shard.tensors) index["weight_map"][tensor.name] = shard.name;
  }
  base::write_file_atomically(folder_ / (path_.stem().string() + kIndexEnd), base::json_text(index, 2) + "\n");
}

void WeightsWriter::finish() {
  for (const Shard& shard : shards_) {
    const fs::path to = folder_ / shard.name;
    std::error_code error;
    fs::rename(unfinished_.path() / shard.name, to, error);
    if (!error) continue;
    throw base::Failure(base::ErrorKind::kRuntime,
                        fmt::format("{}: cannot write: {}", base::one_line(to.string()), error.message()));
  }
  if (shards_.size() > 1) write_index();
}

}  // namespace trivium::runtime::checkpoint
