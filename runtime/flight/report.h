// Who failed, at which instruction, and what the others waited for.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"
#include "runtime/flight/log.h"

namespace trivium::runtime::flight {

/// An entry in words: "step 12, forward chunk 0 micro-batch 3, layer 2: matmul (task 5, op 17)".
std::string describe(const program::Program& program, int rank, const Entry& entry);

/// The ranks without which the entry cannot end, that is members of its group, or the other end of its transfer, that
/// have not reached it. Empty where the rank waits for nobody.
std::vector<int> waits_for(const program::Program& program, int rank, const Entry& entry, const std::vector<Log>& logs);

struct Finding {
  std::vector<int> culprits;  ///< ranks that died or stand still; empty where the records do not tell
  std::string text;           ///< one line a rank, the culprits first
};

/// What the records of a run that ended tell: ranks that did not say how they ended were killed.
Finding explain_death(const program::Program& program, const std::vector<Log>& logs);

/// What the records of a run that stands still tell: who is stopped, who computes, who waits for whom.
Finding explain_hang(const program::Program& program, const std::vector<Log>& logs);

}  // namespace trivium::runtime::flight
