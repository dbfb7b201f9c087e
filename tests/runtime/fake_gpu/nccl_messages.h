// What ranks tell each other in the fake NCCL: files of a folder that they share.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/runtime/fake_gpu/machine.h"

namespace trivium::fake_gpu {

/// What all members must agree on.
struct Header {
  char name[16] = {};
  std::uint64_t count = 0;  // elements
  std::int32_t type = 0, how = 0, root = 0;
  std::int32_t unused = 0;
  bool operator==(const Header&) const = default;
};

/// A file that is there whole or not at all.
inline void put(const std::filesystem::path& path, const void* head, std::size_t head_bytes, const void* data,
                std::size_t bytes) {
  const std::filesystem::path partly = path.string() + ".partly";
  {
    std::ofstream out(partly, std::ios::binary);
    out.write(static_cast<const char*>(head), static_cast<std::streamsize>(head_bytes));
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    if (!out) Machine::get().refuse("NCCL: cannot write " + partly.string());
  }
  std::filesystem::rename(partly, path);
}

inline bool is_there(const std::filesystem::path& path) { return ::access(path.c_str(), F_OK) == 0; }

struct Message {
  Header header;
  std::vector<std::byte> data;
};

inline std::optional<Message> get(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return std::nullopt;
  const auto bytes = static_cast<std::size_t>(in.tellg());
  Message message;
  message.data.resize(bytes - sizeof message.header);
  in.seekg(0);
  in.read(reinterpret_cast<char*>(&message.header), sizeof message.header);
  in.read(reinterpret_cast<char*>(message.data.data()), static_cast<std::streamsize>(message.data.size()));
  return message;
}

}  // namespace trivium::fake_gpu
