// The readers of files from outside, each fed with any bytes at all.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace trivium::fuzz {

/// Takes the bytes as that kind of file. A reader may refuse (base::Failure) and nothing else: whatever else happens,
/// an exception, an access out of bounds, an endless loop, is a bug.
using Reader = void (*)(std::span<const std::byte>);

void read_plan(std::span<const std::byte> bytes);  ///< and lowers and verifies what is small enough
void read_model(std::span<const std::byte> bytes);
void read_cluster(std::span<const std::byte> bytes);
void read_run_record(std::span<const std::byte> bytes);
void read_checkpoint(std::span<const std::byte> bytes);   ///< checkpoint.json
void read_tensor_file(std::span<const std::byte> bytes);  ///< safetensors, as a shard and as GPT-2's weights
void read_tokens(std::span<const std::byte> bytes);       ///< as .bin and as text
void read_vocabulary(std::span<const std::byte> bytes);   ///< vocab.json, a zero byte, merges.txt
void read_flight_record(std::span<const std::byte> bytes);
void read_node(std::span<const std::byte> bytes);            ///< a hardware profile
void read_json(std::span<const std::byte> bytes);            ///< the parser that is before all documents
void read_measurements(std::span<const std::byte> bytes);    ///< whatever `calibrate` reads as text, packed or not
void read_nsight_export(std::span<const std::byte> bytes);   ///< SQLite
void read_published_runs(std::span<const std::byte> bytes);  ///< a table of runs
void read_micro_rows(std::span<const std::byte> bytes);      ///< a table of kernels or collectives
void read_launch(std::span<const std::byte> bytes);          ///< a script, a log or JSON of another trainer
void read_yaml(std::span<const std::byte> bytes);            ///< YAML of another trainer, in every form

struct NamedReader {
  std::string_view name;
  Reader read;
};
std::span<const NamedReader> readers();

}  // namespace trivium::fuzz
