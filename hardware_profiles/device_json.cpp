#include "hardware_profiles/device_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "hardware_profiles/fp8_json.h"
#include "hardware_profiles/profile_names.h"
#include "hardware_profiles/profile_store.h"
#include "hardware_profiles/quantity_text.h"
#include "hardware_profiles/this_machine.h"

namespace trivium::hardware {
namespace {

constexpr const char* kDeviceSchema = "trivium.device/1";
constexpr const char* kScalePointer = "/compute_scale";

const std::vector<std::string> kKindNames = {"gpu", "cpu"};  // in the order of DeviceKind
const std::vector<std::string> kArithmeticNames = {"fp64", "fp32", "tf32", "bf16",
                                                   "fp16", "fp8",  "fp4"};  // order of Arithmetic

void allow_device_members(const base::JsonReader& device) {
  device.allow_only({"schema",
                     "sources",
                     "base",
                     "name",
                     "kind",
                     "peak",
                     "memory",
                     "reserved",
                     "memory_bandwidth",
                     "multiprocessors",
                     "flash_attention",
                     "idle_power",
                     "peak_power",
                     "power_limit",
                     "compute_scale",
                     "gemm_efficiency",
                     "wgrad_efficiency",
                     "memory_efficiency",
                     "kernel_issue",
                     "physics",
                     "fp8",
                     "op_rates"});
}

class DeviceReader {
 public:
  DeviceReader(const base::SourcedReader& from, Device& into) : from_(from), to_(into) {}

  void read() {
    allow_device_members(from_.plain());
    read_names();
    read_vendor_data();
    read_calibrated();
    if (to_.reserved >= to_.memory) from_.plain().fail("reserved is not below memory; nothing would be left");
    if (to_.peak_power < to_.idle_power) from_.plain().fail("peak_power is below idle_power");
    if (!from_.has("power_limit")) return;
    if (to_.power_limit <= to_.idle_power) from_.plain().at("power_limit").fail("must be above idle_power");
    if (to_.power_limit > to_.peak_power) from_.plain().at("power_limit").fail("must not be above peak_power");
  }

 private:
  void read_names() {
    to_.name = from_.plain().at("name").text();
    const std::string kind = from_.plain().at("kind").one_of(kKindNames);
    to_.kind = kind == "gpu" ? DeviceKind::kGpu : DeviceKind::kCpu;
    to_.flash_attention = from_.plain().at("flash_attention").boolean();
  }

  void read_vendor_data() {
    read_peak(from_.section("peak"));
    to_.memory = memory(from_.constant("memory"));
    to_.reserved = from_.constant("reserved").bytes();
    const base::JsonReader bandwidth = from_.constant("memory_bandwidth");
    to_.memory_bandwidth = base::positive(bandwidth, bandwidth.bandwidth());
    to_.multiprocessors = static_cast<int>(from_.constant("multiprocessors").integer(1, 100000));
    to_.idle_power = from_.constant("idle_power").watts();
    to_.peak_power = from_.constant("peak_power").watts();
    if (from_.has("power_limit")) to_.power_limit = from_.constant("power_limit").watts();
  }

  void read_calibrated() {
    constexpr double kSmallest = 1e-3;  // a factor of zero would make a time infinite
    const auto factor = [&](std::string_view key, double high) {
      return base::number_within(from_.constant(key), kSmallest, high);
    };
    if (from_.has("compute_scale")) to_.compute_scale = factor("compute_scale", 10);
    to_.gemm_efficiency = factor("gemm_efficiency", 1);
    to_.wgrad_efficiency = factor("wgrad_efficiency", 2);
    to_.memory_efficiency = factor("memory_efficiency", 1);
    to_.kernel_issue = from_.constant("kernel_issue").seconds();
    if (from_.has("physics")) read_physics(from_.section("physics"));
    if (from_.has("fp8")) to_.fp8 = read_fp8(from_.section("fp8"));
    if (from_.has("op_rates")) read_op_rates(from_.section("op_rates"));
  }

  /// A CPU profile may leave the size to the machine it is read on: an equal share of memory for each core.
  static base::Bytes memory(const base::JsonReader& at) {
    if (is_detect(at)) return machine_memory() / machine_cores();
    return base::positive(at, at.bytes());
  }

  void read_peak(const base::SourcedReader& peak) {
    for (const auto& [name, at] : peak.constants()) {
      const auto known = std::find(kArithmeticNames.begin(), kArithmeticNames.end(), name);
      if (known == kArithmeticNames.end()) {
        at.fail(unknown_name("arithmetic", name, kArithmeticNames));
      }
      to_.peak[static_cast<Arithmetic>(known - kArithmeticNames.begin())] = base::positive(at, at.flop_rate());
    }
  }

  /// Members left out keep their defaults.
  void read_physics(const base::SourcedReader& physics) {
    std::vector<std::string> names;
    for (const PhysicsField& field : physics_fields()) names.emplace_back(field.name);
    for (const auto& [name, at] : physics.constants()) {
      const auto known = std::find(names.begin(), names.end(), name);
      if (known == names.end()) at.fail(unknown_name("member", name, names));
      const PhysicsField& field = physics_fields()[static_cast<std::size_t>(known - names.begin())];
      to_.physics.*field.value = base::number_within(at, field.low, field.high);
    }
  }

  void read_op_rates(const base::SourcedReader& rates) {
    for (const auto& [kind, at] : rates.sections()) {
      at.plain().allow_only({"overhead", "seconds_per_flop", "seconds_per_byte", "seconds_per_block", "spread"});
      OpRate rate;
      rate.overhead = at.constant("overhead").seconds();
      rate.seconds_per_flop = base::number_within(at.constant("seconds_per_flop"), 0, 1);
      rate.seconds_per_byte = base::number_within(at.constant("seconds_per_byte"), 0, 1);
      if (at.has("seconds_per_block"))
        rate.seconds_per_block = base::number_within(at.constant("seconds_per_block"), 0, 1);
      rate.spread = base::number_within(at.constant("spread"), 0, 1000);
      to_.op_rates[kind] = rate;
    }
  }

  const base::SourcedReader& from_;
  Device& to_;
};

/// The device that `asked` names, written out and found to be whole. `chain`: the files on the way to it.
WrittenOut load_device(const base::JsonReader& asked, const BaseChain& chain) {
  const StoredProfile stored = stored_profile(ProfileKind::kDevice, asked);
  const BaseChain here = chain.with(stored, asked);
  const base::JsonReader file(stored.json, stored.label);
  base::check_schema(file, kDeviceSchema);
  allow_device_members(file);
  base::Sources::of(file);
  WrittenOut device{stored.json, {}, {}};
  if (const auto base = file.find("base")) {
    device.json.erase("base");
    device = over_base(std::move(device.json), load_device(*base, here), base->text());
  }
  const base::JsonReader whole(device.json, stored.label);
  std::vector<std::string> members = device_members();
  std::erase(members, kScalePointer);  // the machine's, which the file may not know
  demand_members(whole, members);
  const base::Sources sources = base::Sources::of(whole, device.inherited);
  base::demand_sources(whole, sources, {"/name", "/kind", "/flash_attention"});
  read_device(base::SourcedReader(whole, sources));
  return device;
}

}  // namespace

const std::vector<std::string>& device_members() {
  static const std::vector<std::string> kMembers = {"/name",
                                                    "/kind",
                                                    "/peak",
                                                    "/memory",
                                                    "/reserved",
                                                    "/memory_bandwidth",
                                                    "/multiprocessors",
                                                    "/flash_attention",
                                                    "/idle_power",
                                                    "/peak_power",
                                                    kScalePointer,
                                                    "/gemm_efficiency",
                                                    "/wgrad_efficiency",
                                                    "/memory_efficiency",
                                                    "/kernel_issue"};
  return kMembers;
}

std::optional<WrittenOut> device_elsewhere(const base::JsonReader& node) {
  const auto given = node.find("device");
  if (!given) return std::nullopt;
  if (given->json().is_string()) {
    WrittenOut device = load_device(*given, {});
    device.json["sources"].update(device_sources(node.json()));
    return device;
  }
  if (const auto sources = given->find("sources")) sources->fail("move it to the sources of the node");
  const auto base = given->find("base");
  if (!base) return std::nullopt;
  allow_device_members(*given);
  nlohmann::json own = given->json();
  own.erase("base");
  own["sources"] = device_sources(node.json());
  return over_base(std::move(own), load_device(*base, {}), base->text());
}

Device read_device(const base::SourcedReader& from) {
  Device device;
  DeviceReader(from, device).read();
  return device;
}

nlohmann::json device_to_json(const Device& device) {
  nlohmann::json json = {{"name", device.name},
                         {"kind", kKindNames[static_cast<std::size_t>(device.kind)]},
                         {"memory", exact_text(device.memory)},
                         {"reserved", exact_text(device.reserved)},
                         {"memory_bandwidth", exact_text(device.memory_bandwidth)},
                         {"multiprocessors", device.multiprocessors},
                         {"flash_attention", device.flash_attention},
                         {"idle_power", exact_text(device.idle_power)},
                         {"peak_power", exact_text(device.peak_power)},
                         {"compute_scale", device.compute_scale},
                         {"gemm_efficiency", device.gemm_efficiency},
                         {"wgrad_efficiency", device.wgrad_efficiency},
                         {"memory_efficiency", device.memory_efficiency},
                         {"kernel_issue", exact_text(device.kernel_issue)}};
  if (device.power_limit.value() > 0) json["power_limit"] = exact_text(device.power_limit);
  json["peak"] = nlohmann::json::object();
  for (const auto& [arithmetic, rate] : device.peak) {
    json["peak"][kArithmeticNames[static_cast<std::size_t>(arithmetic)]] = exact_text(rate);
  }
  for (const PhysicsField& field : physics_fields()) {  // defaults need no source
    const double value = device.physics.*field.value;
    if (value != Physics{}.*field.value) json["physics"][std::string(field.name)] = value;
  }
  if (!device.fp8.products.empty()) json["fp8"] = fp8_to_json(device.fp8);
  for (const auto& [kind, rate] : device.op_rates) {
    json["op_rates"][kind] = {{"overhead", exact_text(rate.overhead)},
                              {"seconds_per_flop", rate.seconds_per_flop},
                              {"seconds_per_byte", rate.seconds_per_byte},
                              {"spread", rate.spread}};
    if (rate.seconds_per_block > 0) json["op_rates"][kind]["seconds_per_block"] = rate.seconds_per_block;
  }
  return json;
}

}  // namespace trivium::hardware
