#include "program/plan/expert_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "program/plan/fields.h"

namespace trivium::program {

double ExpertLoad::imbalance(std::int64_t experts, std::int64_t ranks) const {
  if (!used() || ranks <= 1) return 1;
  const std::int64_t own = experts / ranks;
  double most = 0, all = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    double of_rank = 0;
    for (std::int64_t i = 0; i < own; ++i) {
      of_rank += choices.empty() ? std::pow(static_cast<double>(1 + rank + i * ranks), -zipf)
                                 : static_cast<double>(choices[static_cast<std::size_t>(rank * own + i)]);
    }
    most = std::max(most, of_rank);
    all += of_rank;
  }
  return most * static_cast<double>(ranks) / all;
}

std::vector<std::int64_t> read_expert_load(const std::filesystem::path& path) {
  constexpr const char* kBetween = " \t\r\n,[]";
  const std::string text = base::read_file(path), file = path.string();
  std::vector<std::int64_t> counts;
  for (std::size_t at = text.find_first_not_of(kBetween); at != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    std::int64_t count = 0;
    const auto [last, error] = std::from_chars(text.data() + at, text.data() + end, count);
    if (error != std::errc() || last != text.data() + end || count < 0 || count > kMostChoices) {
      throw base::Failure(base::ErrorKind::kInput,
                          fmt::format("{}: \"{}\" does not say how often an expert was chosen; that is a whole number "
                                      "from 0 to {}",
                                      file, text.substr(at, std::min<std::size_t>(end - at, 20)), kMostChoices));
    }
    counts.push_back(count);
    if (counts.size() > kMostLengths) {
      throw base::Failure(base::ErrorKind::kInput,
                          fmt::format("{}: has more than {} entries, one for every expert", file, kMostLengths));
    }
    at = text.find_first_not_of(kBetween, end);
  }
  if (std::ranges::all_of(counts, [](std::int64_t count) { return count == 0; })) {  // none, too
    throw base::Failure(base::ErrorKind::kInput, file + ": does not say how often experts were chosen");
  }
  return counts;
}

std::string without_expert_load(const Job& job) {
  const ExpertLoad& load = job.training.expert_load;
  if (!load.used()) return "";
  const char* field = load.choices.empty() ? "expert_zipf" : "expert_load";
  if (!load.choices.empty() && load.zipf > 0) return "expert_load and expert_zipf exclude each other; leave one out";
  if (!job.model.experts) return fmt::format("{}: {} has no experts; leave it out", field, job.model.name);
  if (!job.model.experts->dropless) {
    return fmt::format(
        "{}: {} pads its experts to a capacity, whatever is chosen; use a model with dropless experts, or leave it out",
        field, job.model.name);
  }
  const auto count = static_cast<std::size_t>(job.model.experts->count);
  if (!load.choices.empty() && load.choices.size() != count) {
    return fmt::format("expert_load has {} entries; {} has {} experts", load.choices.size(), job.model.name, count);
  }
  return "";
}

}  // namespace trivium::program
