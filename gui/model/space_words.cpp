#include "gui/model/space_words.h"

#include <fmt/format.h>

#include "base/readable.h"
#include "gui/model/axis.h"
#include "gui/model/plan_controls.h"
#include "planner/space/held.h"

namespace trivium::gui {
namespace {

constexpr const char* kByName = "fixed";  // what planner::Held says of a field that the user named

}  // namespace

std::string space_words(const Scenario& scenario) {
  std::string words = scenario.trainer.empty() ? "" : fmt::format(" for {}", trainer_words(scenario.trainer));
  bool any = false;
  for (const planner::Held& held : planner::held_fields(search_request(scenario, 1))) {
    if (held.why != kByName || !scenario.fixed.contains(held.field)) continue;
    words += fmt::format("{}{} {}", any ? ", " : " with ", words_of(held.field), shown(held.field, held.value));
    any = true;
  }
  if (any) words += " held";
  if (scenario.ranks > 0)
    words += fmt::format(", on {} device{}", base::integer(scenario.ranks), scenario.ranks == 1 ? "" : "s");
  if (scenario.ignore_memory) words += ", also those that do not fit";
  return words;
}

std::string progress_words(const SearchProgress& progress) {
  std::string words = fmt::format("{} of {} plans", base::integer(static_cast<double>(progress.done)),
                                  base::integer(static_cast<double>(progress.all)));
  if (progress.best_s > 0) words += fmt::format(", best so far {}", seconds_words(progress.best_s));
  if (progress.bound_s > 0 && (progress.best_s <= 0 || progress.bound_s <= progress.best_s)) {
    words += fmt::format(", none can be faster than {}", seconds_words(progress.bound_s));
    if (progress.best_s > 0) words += fmt::format(" ({} below)", base::percent(1 - progress.bound_s / progress.best_s));
  }
  return words + fmt::format(", {}", seconds_words(progress.seconds));
}

}  // namespace trivium::gui
