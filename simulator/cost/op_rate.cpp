#include "simulator/cost/op_rate.h"

#include <string>

#include "program/ir/op_views.h"

namespace trivium::simulator {

const hardware::OpRate* find_rate(const hardware::Device& device, program::RateKind kind) {
  if (device.op_rates.empty()) return nullptr;
  auto found = device.op_rates.find(std::string(program::name_of(kind)));
  if (found == device.op_rates.end()) {
    found = device.op_rates.find(std::string(program::name_of(program::other_kernels(kind))));
  }
  return found == device.op_rates.end() ? nullptr : &found->second;
}

base::Seconds time_at(const hardware::OpRate& rate, const program::Op& op, double bytes) {
  return rate.overhead + base::Seconds(op.flops * rate.seconds_per_flop + bytes * rate.seconds_per_byte +
                                       program::query_blocks(op) * rate.seconds_per_block);
}

}  // namespace trivium::simulator
