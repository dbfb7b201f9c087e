// A complete, small profile for tests that break one thing in it, and what a failing call says.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "hardware_profiles/load.h"
#include "tests/input_error.h"

namespace trivium::hardware {

/// A node of two GPUs and one adapter with round numbers, every constant sourced.
inline nlohmann::json small_node() {
  return nlohmann::json::parse(R"({
    "schema": "trivium.hardware/1",
    "name": "small",
    "device": {
      "name": "toy", "kind": "gpu", "peak": {"fp32": "10 TFLOP/s"}, "memory": "8 GiB", "reserved": "1 GiB",
      "memory_bandwidth": "100 GB/s", "multiprocessors": 4, "flash_attention": false, "idle_power": "10 W",
      "peak_power": "100 W", "compute_scale": 1.0, "gemm_efficiency": 0.5, "wgrad_efficiency": 1.0,
      "memory_efficiency": 0.5, "kernel_issue": "10 us"
    },
    "devices": 2,
    "topology": "pcie",
    "intra": {"bandwidth": "10 GB/s", "latency": "5 us", "efficiency": 0.5},
    "allreduce_bus": {"2": "4 GB/s"},
    "adapters": 1,
    "network": {"bandwidth": "8 Gb/s", "latency": "20 us", "efficiency": 0.5},
    "collective_skew": "10 us",
    "asynchronous_lanes": true,
    "host_memory": "16 GiB",
    "host_link": "5 GB/s",
    "overhead_power": "50 W",
    "price": "1.5 $/h",
    "sources": {
      "/device": "test", "/devices": "test", "/intra": "test", "/allreduce_bus/2": "test", "/adapters": "test",
      "/network": "test", "/collective_skew": "test", "/host_memory": "test", "/host_link": "test",
      "/overhead_power": "test", "/price": "test"
    }
  })");
}

/// What is wrong with a node's profile; "" if nothing is.
inline std::string node_complaint(const nlohmann::json& node) {
  return input_error([&] { node_from_json(node, "node.json"); });
}

/// A folder of its own for a test, removed afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "trivium-hardware-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  /// Writes a JSON file and returns its path.
  std::string write(const std::string& name, const nlohmann::json& json) const {
    base::write_file_atomically(path_ / name, json.dump());
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace trivium::hardware
