#include "program/plan/document_lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "program/plan/fields.h"

namespace trivium::program {
namespace {

std::map<std::int64_t, std::int64_t> counted_lengths(const std::string& text, const std::string& file) {
  constexpr const char* kBetween = " \t\r\n,[]";
  std::map<std::int64_t, std::int64_t> counted;
  for (std::size_t at = text.find_first_not_of(kBetween); at != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    std::int64_t length = 0;
    const auto [last, error] = std::from_chars(text.data() + at, text.data() + end, length);
    if (error != std::errc() || last != text.data() + end || length < 1 || length > kMostCount) {
      throw base::Failure(base::ErrorKind::kInput,
                          fmt::format("{}: \"{}\" is no length of a document; lengths are whole tokens from 1 to {}",
                                      file, text.substr(at, std::min<std::size_t>(end - at, 20)), kMostCount));
    }
    ++counted[length];
    at = text.find_first_not_of(kBetween, end);
  }
  if (counted.empty()) throw base::Failure(base::ErrorKind::kInput, file + ": has no lengths of documents");
  return counted;
}

}  // namespace

Documents documents_of(const std::map<std::int64_t, std::int64_t>& counted) {
  const std::size_t group = (counted.size() + kMostLengths - 1) / kMostLengths;
  Documents documents;
  for (auto at = counted.begin(); at != counted.end();) {
    double tokens = 0;
    std::int64_t weight = 0;
    for (std::size_t i = 0; i < group && at != counted.end(); ++i, ++at) {
      tokens += static_cast<double>(at->first) * static_cast<double>(at->second), weight += at->second;
    }
    documents.lengths.push_back(std::llround(tokens / static_cast<double>(weight)));
    documents.weights.push_back(weight);
  }
  const std::int64_t most = std::ranges::max(documents.weights);
  for (std::int64_t& weight : documents.weights) {
    if (most <= kMostCount) break;
    const double share = static_cast<double>(weight) / static_cast<double>(most);
    weight = std::max<std::int64_t>(1, std::llround(share * static_cast<double>(kMostCount)));
  }
  return documents;
}

Documents read_document_lengths(const std::filesystem::path& path) {
  return documents_of(counted_lengths(base::read_file(path), path.string()));
}

}  // namespace trivium::program
