#include "planner/space/constraints.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/quote.h"
#include "planner/space/bounds.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"

namespace trivium::planner {
namespace {

using program::Plan;
using Kind = Constraint::Kind;

[[noreturn]] void fail(const std::string& message) { throw base::Failure(base::ErrorKind::kUsage, message); }

std::string_view option_of(Kind kind) {
  return kind == Kind::kMin ? "--min" : kind == Kind::kMax ? "--max" : "--forbid";
}

bool is_group(const std::string& field) { return field == "offload" || field == "overlap"; }

std::int64_t number_of(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void check_field(const std::string& option, const std::string& field) {
  std::vector<std::string> known = program::plan_fields();
  known.insert(known.end(), {"offload", "overlap"});
  if (std::find(known.begin(), known.end(), field) != known.end()) return;
  const std::string near = base::nearest(field, known);
  fail(fmt::format(
      "{}: unknown plan field {}; {}", option, base::quote(field),
      near.empty() ? "they are listed by `trivium plan --help`" : fmt::format("did you mean \"{}\"?", near)));
}

std::vector<std::string> members(const std::string& field) {
  std::vector<std::string> found;
  for (const std::string& name : program::plan_fields()) {
    if (name == field || (is_group(field) && name.starts_with(field + "."))) found.push_back(name);
  }
  return found;
}

}  // namespace

std::string Constraint::text() const {
  return fmt::format("{} {}{}{}", option_of(kind), field, value.empty() ? "" : "=", value);
}

std::string Constraint::lifted() const {
  return by_default ? fmt::format("with --allow {}", field) : fmt::format("without {}", text());
}

bool Constraint::allows(const Plan& plan) const {
  Bounds bounds;
  bounds.add(*this);
  return bounds.allow(plan);
}

void Bounds::add(const Constraint& constraint) {
  for (const std::string& name : members(constraint.field)) {
    const program::PlanField& field = *program::find_plan_field(name);
    Check check{constraint.kind, field.text, constraint.value, number_of(constraint.value), false};
    check.alone = constraint.kind == Kind::kForbid && constraint.value.empty();
    if (check.alone) check.value = field.unused == nullptr ? "" : field.unused;
    checks_.push_back(std::move(check));
  }
}

bool Bounds::allow(const Plan& plan) const {
  const auto holds = [&](const TrainerRule* rule) { return rule->holds(plan, *job_); };
  return std::ranges::all_of(rules_, holds) && std::all_of(checks_.begin(), checks_.end(), [&](const Check& check) {
           const std::string text = check.text(plan);
           if (check.kind == Kind::kMin) return number_of(text) >= check.number;
           if (check.kind == Kind::kMax) return number_of(text) <= check.number;
           return (text == check.value) == check.alone;
         });
}

std::pair<std::string, std::string> parse_assignment(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    fail(fmt::format("{}: write FIELD=VALUE, not {}", option, base::quote(text)));
  }
  std::string field = text.substr(0, equals);
  std::replace(field.begin(), field.end(), '-', '_');
  check_field(option, field);
  if (is_group(field))
    fail(fmt::format("{}: {} is a group of fields; name one, like {}", option, field, members(field).front()));
  return {std::move(field), text.substr(equals + 1)};
}

Constraint parse_constraint(Kind kind, const std::string& text) {
  const std::string option(option_of(kind));
  Constraint constraint{kind, text, ""};
  if (kind == Kind::kForbid && text.find('=') == std::string::npos) {
    std::replace(constraint.field.begin(), constraint.field.end(), '-', '_');
    check_field(option, constraint.field);
    if (is_group(constraint.field) || program::find_plan_field(constraint.field)->unused != nullptr) return constraint;
    fail(fmt::format("{}: {} cannot be left out; forbid one of its values, like {}={}", option, constraint.field,
                     constraint.field, text_of(Plan{}, constraint.field)));
  }
  std::tie(constraint.field, constraint.value) = parse_assignment(option, text);
  if (kind != Kind::kForbid && !program::find_plan_field(constraint.field)->is_number()) {
    fail(fmt::format("{}: {} is not a number; use --fix or --forbid {}=VALUE", option, constraint.field,
                     constraint.field));
  }
  // Whatever the field does not take is an error, and what it takes is written as plans write it.
  Plan plan;
  program::Training training;
  try {
    program::set_field(plan, training, constraint.field, constraint.value);
  } catch (const base::Failure& failure) {
    fail(fmt::format("{} {}: {}", option, base::quote(text), failure.error().message));
  }
  constraint.value = text_of(plan, constraint.field);
  return constraint;
}

std::vector<Constraint> closed_unless_allowed(const std::vector<std::string>& allowed,
                                              const std::set<std::string>& fixed) {
  const std::vector<std::string> closed{"compression",   "overlap.tensor",  "overlap.expert", "recompute_modules",
                                        "context_heads", "expert_dispatch", "expert_tensor",  "fp8_parameter_gather"};
  for (const std::string& feature : allowed) {
    const bool is_closed = std::find(closed.begin(), closed.end(), feature) != closed.end();
    if (is_closed || feature == "offload") continue;  // open anyway
    const std::string near = base::nearest(feature, closed);
    fail(fmt::format("--allow {}: the search leaves out only {}; {}", base::quote(feature), fmt::join(closed, ", "),
                     near.empty() ? "all else is open" : fmt::format("did you mean \"{}\"?", near)));
  }
  std::vector<Constraint> constraints;
  for (const std::string& feature : closed) {
    const std::vector<std::string> fields = members(feature);
    if (std::find(allowed.begin(), allowed.end(), feature) != allowed.end()) continue;
    if (std::any_of(fields.begin(), fields.end(), [&](const std::string& name) { return fixed.contains(name); })) {
      continue;
    }
    const bool beyond_one = feature == "expert_tensor";  // whole experts are searched, and those that all ranks split
    constraints.push_back({beyond_one ? Kind::kMax : Kind::kForbid, feature, beyond_one ? "1" : "", true});
  }
  return constraints;
}

const Constraint* broken_by(const std::vector<Constraint>& constraints, const Plan& plan) {
  const auto broken = std::find_if(constraints.begin(), constraints.end(),
                                   [&](const Constraint& constraint) { return !constraint.allows(plan); });
  return broken == constraints.end() ? nullptr : &*broken;
}

}  // namespace trivium::planner
