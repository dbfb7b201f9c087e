// Reductions of numbers that travel in another type than they are kept in (Plan::reduce_dtype).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/plan/dtype.h"
#include "runtime/communicator.h"

namespace trivium::runtime {

/// One rank's copies on the wire: what is kept is converted (to nearest even where it narrows), reduced in the wire's
/// type and converted back. Memory of the host. The copies outlive the calls, as partners may read them until all ranks
/// know of a failure.
class Wire {
 public:
  void all_reduce(Communicator& communicator, int group, std::byte* data, std::int64_t count, program::DType kept,
                  program::DType on_wire);
  /// `members`: of the group. `part` may lie inside `whole`.
  void reduce_scatter(Communicator& communicator, int group, int members, const std::byte* whole, std::byte* part,
                      std::int64_t count, program::DType kept, program::DType on_wire);

 private:
  std::vector<double> whole_, part_;  // room, aligned for every type
};

}  // namespace trivium::runtime
