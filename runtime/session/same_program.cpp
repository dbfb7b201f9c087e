#include "runtime/session/same_program.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "program/record/run_record.h"

namespace trivium::runtime::session {

void check_same_program(Communicator& communicator, const program::Program& program) {
  std::array<int, 1> alone{communicator.rank()};
  std::vector<int> everyone(static_cast<std::size_t>(communicator.size()));
  for (std::size_t i = 0; i < everyone.size(); ++i) everyone[i] = static_cast<int>(i);
  const int world = communicator.make_group(everyone.size() == 1 ? std::span<const int>(alone) : everyone);
  std::string mine = program::hash_of(program);
  std::string first = mine;
  communicator.broadcast(world, first.data(), static_cast<std::int64_t>(first.size()), 0);
  if (first != mine) communicator.abort(fmt::format("rank {} lowered another program than rank 0", alone[0]));
}

}  // namespace trivium::runtime::session
