#include "program/plan/differences.h"

#include <string_view>
#include <utility>

#include "program/plan/fields.h"

namespace trivium::program {

std::vector<Difference> differences(const Plan& before, const Plan& after) {
  std::vector<Difference> found;
  const bool by_replica = !before.replica_micro_batch.empty() && !after.replica_micro_batch.empty();
  for (const PlanField& field : plan_field_table()) {
    if (by_replica && std::string_view(field.name) == "micro_batch") continue;  // which the lists stand for
    std::string a = field.text(before), b = field.text(after);
    if (a != b) found.push_back({field.name, std::move(a), std::move(b)});
  }
  return found;
}

}  // namespace trivium::program
