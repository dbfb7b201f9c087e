#include "simulator/certainty/measured_errors.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "base/json_reader.h"

namespace trivium::simulator {
namespace {

constexpr const char* kSchema = "trivium.measured-errors/2";
constexpr double kMostDeviation = 10, kMostReach = 1000;
constexpr int kMostRuns = 1 << 24;
constexpr int kDigits = 4;

double rounded(double value) {
  const double scale = std::pow(10.0, kDigits);
  return std::round(value * scale) / scale;
}

nlohmann::json model_json(const ErrorModel& model) {
  const ErrorParts& p = model.parts();
  nlohmann::json json;
  json["parts"] = {{"device", rounded(p.device)},
                   {"stack", rounded(p.stack)},
                   {"kind", rounded(p.kind)},
                   {"machine", rounded(p.machine)},
                   {"between_plans", rounded(p.between_plans)},
                   {"known_reach", {rounded(p.known.low), rounded(p.known.high)}},
                   {"unknown_reach", {rounded(p.unknown.low), rounded(p.unknown.high)}}};
  for (const double run : p.run) json["parts"]["run"].push_back(rounded(run));
  json["cells"] = nlohmann::json::array();
  for (const ErrorCell& cell : model.cells()) {
    json["cells"].push_back({{"source", cell.source},
                             {"device", cell.like.device},
                             {"stack", cell.like.stack},
                             {"kind", cell.like.kind},
                             {"machine", cell.like.machine},
                             {"ease", cell.like.ease},
                             {"runs", cell.runs},
                             {"mean", rounded(cell.mean)},
                             {"left_out", rounded(cell.left_out)},
                             {"spread", rounded(cell.spread)}});
  }
  return json;
}

nlohmann::json time_json(const TimeErrors& model) {
  const SharedParts& p = model.parts();
  const SpreadRule& s = model.spread();
  nlohmann::json json{
      {"parts",
       {{"device", rounded(p.device)},
        {"stack", rounded(p.stack)},
        {"kind", rounded(p.kind)},
        {"machine", rounded(p.machine)},
        {"source", rounded(p.source)}}},
      {"spread", {{"base", rounded(s.base)}, {"exposed", rounded(s.exposed)}, {"bubble", rounded(s.bubble)}}},
      {"between_plans", rounded(model.between_plans())},
      {"picked", rounded(model.picked())},
      {"cells", nlohmann::json::array()},
      {"quantiles", nlohmann::json::array()}};
  for (const RunCell& cell : model.cells()) {
    json["cells"].push_back({{"source", cell.source},
                             {"device", cell.like.device},
                             {"stack", cell.like.stack},
                             {"kind", cell.like.kind},
                             {"machine", cell.like.machine},
                             {"runs", cell.runs},
                             {"mean", rounded(cell.mean)},
                             {"left_out", rounded(cell.left_out)},
                             {"variance", rounded(cell.variance)}});
  }
  for (const QuantilesOf& of : model.quantiles()) {
    json["quantiles"].push_back({{"kind", of.kind},
                                 {"device", of.device},
                                 {"busy", of.busy},
                                 {"measured", of.measured},
                                 {"runs", of.runs},
                                 {"low", rounded(of.quantiles.low)},
                                 {"middle", rounded(of.quantiles.middle)},
                                 {"high", rounded(of.quantiles.high)}});
  }
  return json;
}

double number(const base::JsonReader& reader, double low, double high) {
  const double value = reader.number();
  if (!(value >= low && value <= high)) reader.fail("is out of range");
  return value;
}

ErrorParts parts_of(const base::JsonReader& json) {
  const auto deviation = [&](const char* key) { return number(json.at(key), 0, kMostDeviation); };
  ErrorParts parts;
  parts.device = deviation("device");
  parts.stack = deviation("stack");
  parts.kind = deviation("kind");
  parts.machine = deviation("machine");
  parts.between_plans = deviation(json.has("between_plans") ? "between_plans" : "twin");
  const auto reach = [&](const char* key) {
    const auto ends = json.at(key).elements();
    if (ends.size() != 2) json.at(key).fail("must have two numbers: how far down and up");
    return Reach{number(ends[0], 0, kMostDeviation), number(ends[1], 0, kMostDeviation)};
  };
  parts.known = reach("known_reach");
  parts.unknown = reach("unknown_reach");
  const auto runs = json.at("run").elements();
  if (runs.size() != parts.run.size()) json.at("run").fail("must have a number for each class of utilisation");
  for (std::size_t i = 0; i < runs.size(); ++i) parts.run[i] = number(runs[i], 1e-6, kMostDeviation);
  return parts;
}

ErrorCell cell_of(const base::JsonReader& json) {
  ErrorCell cell;
  cell.source = json.at("source").text();
  cell.like = {json.at("device").text(), json.at("stack").text(), json.at("kind").text(), json.at("machine").text(),
               static_cast<int>(json.at("ease").integer(0, kEases - 1))};
  cell.runs = static_cast<int>(json.at("runs").integer(1, kMostRuns));
  cell.mean = number(json.at("mean"), -kMostDeviation, kMostDeviation);
  cell.left_out = number(json.at("left_out"), -kMostDeviation, kMostDeviation);
  cell.spread = number(json.at("spread"), 0, kMostDeviation);
  return cell;
}

ErrorModel model_of(const base::JsonReader& json) {
  std::vector<ErrorCell> cells;
  for (const base::JsonReader& cell : json.at("cells").elements()) cells.push_back(cell_of(cell));
  return {std::move(cells), parts_of(json.at("parts"))};
}

RunCell run_cell_of(const base::JsonReader& json) {
  RunCell cell;
  cell.source = json.at("source").text();
  cell.like = {json.at("device").text(), json.at("stack").text(), json.at("kind").text(), json.at("machine").text()};
  cell.runs = static_cast<int>(json.at("runs").integer(1, kMostRuns));
  cell.mean = number(json.at("mean"), -kMostDeviation, kMostDeviation);
  cell.left_out = number(json.at("left_out"), -kMostDeviation, kMostDeviation);
  cell.variance = number(json.at("variance"), 0, kMostDeviation * kMostDeviation);
  return cell;
}

QuantilesOf quantiles_of(const base::JsonReader& json) {
  QuantilesOf of;
  of.kind = json.at("kind").text();
  of.device = json.at("device").text();
  of.busy = json.at("busy").boolean();
  of.measured = static_cast<int>(json.at("measured").integer(0, 2));
  of.runs = static_cast<int>(json.at("runs").integer(0, kMostRuns));
  of.quantiles.low = number(json.at("low"), -kMostReach, kMostReach);
  of.quantiles.middle = number(json.at("middle"), of.quantiles.low, kMostReach);
  of.quantiles.high = number(json.at("high"), of.quantiles.middle, kMostReach);
  return of;
}

TimeErrors times_of(const base::JsonReader& json) {
  std::vector<RunCell> cells;
  for (const base::JsonReader& cell : json.at("cells").elements()) cells.push_back(run_cell_of(cell));
  std::vector<QuantilesOf> quantiles;
  for (const base::JsonReader& of : json.at("quantiles").elements()) quantiles.push_back(quantiles_of(of));
  const base::JsonReader parts = json.at("parts"), spread = json.at("spread");
  const auto deviation = [&](const char* key) { return number(parts.at(key), 0, kMostDeviation); };
  const auto factor = [&](const char* key) { return number(spread.at(key), -kMostReach, kMostReach); };
  return {std::move(cells),
          {deviation("device"), deviation("stack"), deviation("kind"), deviation("machine"), deviation("source")},
          {factor("base"), factor("exposed"), factor("bubble")},
          std::move(quantiles),
          number(json.at("between_plans"), 0, kMostDeviation),
          number(json.at("picked"), 0, kMostDeviation)};
}

}  // namespace

nlohmann::json to_json(const TimeErrors& time, const ErrorModel& memory) {
  return {{"schema", kSchema}, {"time", time_json(time)}, {"memory", model_json(memory)}};
}

MeasuredErrors measured_errors_from_json(const nlohmann::json& json, const std::string& where) {
  const base::JsonReader file(json, where);
  if (file.at("schema").text() != kSchema) file.at("schema").fail(std::string("must be ") + kSchema);
  return {times_of(file.at("time")), model_of(file.at("memory"))};
}

const MeasuredErrors& measured_errors() {
  static const MeasuredErrors kErrors = [] {
    const auto path = base::shipped_data("hardware_profiles") / "measured" / "errors.json";
    return measured_errors_from_json(base::read_json_file(path), path.string());
  }();
  return kErrors;
}

}  // namespace trivium::simulator
