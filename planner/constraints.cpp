#include "planner/constraints.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "edge/error.h"
#include "edge/json_reader.h"
#include "edge/quote.h"
#include "planner/bounds.h"
#include "planner/plan_fields.h"
#include "program/job_json.h"

namespace trivium::planner {
namespace {

using program::Plan;
using Kind = Constraint::Kind;

constexpr const char* kNumbers[] = {"tensor",     "context", "pipeline",    "virtual_stages", "data",
                                    "zero_stage", "expert",  "micro_batch", "bucket_bytes",   "shard_group"};

[[noreturn]] void fail(const std::string& message) { throw edge::Failure(edge::ErrorKind::kUsage, message); }

std::string_view option_of(Kind kind) {
  return kind == Kind::kMin ? "--min" : kind == Kind::kMax ? "--max" : "--forbid";
}

bool is_number(const std::string& field) {
  return std::any_of(std::begin(kNumbers), std::end(kNumbers), [&](const char* name) { return field == name; });
}

/// Lists that stand beside a field that holds for all: left out, they are empty.
bool is_left_out_when_empty(const std::string& field) {
  return field == "stage_nodes" || field == "stage_recompute" || field == "replica_micro_batch";
}

bool is_group(const std::string& field) { return field == "offload" || field == "overlap"; }

std::int64_t number_of(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// The field's value when the feature is not used.
std::string unused(const std::string& field) {
  if (field.starts_with("overlap.") || field == "sequence_parallel") return "false";
  if (field.starts_with("offload.") || field == "compression" || field == "recompute") return "none";
  if (field == "zero_stage" || field == "bucket_bytes" || field == "shard_group") return "0";
  if (is_number(field)) return "1";
  return "";
}

void check_field(const std::string& option, const std::string& field) {
  std::vector<std::string> known = program::plan_fields();
  known.insert(known.end(), {"offload", "overlap"});
  if (std::find(known.begin(), known.end(), field) != known.end()) return;
  const std::string near = edge::nearest(field, known);
  fail(fmt::format(
      "{}: unknown plan field {}; {}", option, edge::quote(field),
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
    Check check{constraint.kind, text_of_field(name), constraint.value, number_of(constraint.value), false};
    check.alone = constraint.kind == Kind::kForbid && constraint.value.empty();
    if (check.alone) check.value = unused(name);
    checks_.push_back(std::move(check));
  }
}

bool Bounds::allow(const Plan& plan) const {
  return std::all_of(checks_.begin(), checks_.end(), [&](const Check& check) {
    const std::string text = check.text(plan);
    if (check.kind == Kind::kMin) return number_of(text) >= check.number;
    if (check.kind == Kind::kMax) return number_of(text) <= check.number;
    return (text == check.value) == check.alone;
  });
}

std::pair<std::string, std::string> parse_assignment(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    fail(fmt::format("{}: write FIELD=VALUE, not {}", option, edge::quote(text)));
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
    const bool has_none = !unused(constraint.field).empty() || is_left_out_when_empty(constraint.field);
    if (is_group(constraint.field) || has_none) return constraint;
    fail(fmt::format("{}: {} cannot be left out; forbid one of its values, like {}={}", option, constraint.field,
                     constraint.field, text_of(Plan{}, constraint.field)));
  }
  std::tie(constraint.field, constraint.value) = parse_assignment(option, text);
  if (kind != Kind::kForbid && !is_number(constraint.field)) {
    fail(fmt::format("{}: {} is not a number; use --fix or --forbid {}=VALUE", option, constraint.field,
                     constraint.field));
  }
  // Whatever the field does not take is an error, and what it takes is written as plans write it.
  Plan plan;
  program::Training training;
  try {
    program::set_field(plan, training, constraint.field, constraint.value);
  } catch (const edge::Failure& failure) {
    fail(fmt::format("{} {}: {}", option, edge::quote(text), failure.error().message));
  }
  constraint.value = text_of(plan, constraint.field);
  return constraint;
}

std::vector<Constraint> closed_unless_allowed(const std::vector<std::string>& allowed,
                                              const std::set<std::string>& fixed) {
  const std::vector<std::string> closed{"compression", "overlap.tensor"};
  for (const std::string& feature : allowed) {
    const bool is_closed = std::find(closed.begin(), closed.end(), feature) != closed.end();
    if (is_closed || feature == "offload") continue;  // open anyway
    fail(fmt::format("--allow {}: the search leaves out only {}; all else is open", edge::quote(feature),
                     fmt::join(closed, ", ")));
  }
  std::vector<Constraint> constraints;
  for (const std::string& feature : closed) {
    const std::vector<std::string> fields = members(feature);
    if (std::find(allowed.begin(), allowed.end(), feature) != allowed.end()) continue;
    if (std::any_of(fields.begin(), fields.end(), [&](const std::string& name) { return fixed.contains(name); })) {
      continue;
    }
    constraints.push_back({Kind::kForbid, feature, "", true});
  }
  return constraints;
}

const Constraint* broken_by(const std::vector<Constraint>& constraints, const Plan& plan) {
  const auto broken = std::find_if(constraints.begin(), constraints.end(),
                                   [&](const Constraint& constraint) { return !constraint.allows(plan); });
  return broken == constraints.end() ? nullptr : &*broken;
}

}  // namespace trivium::planner
