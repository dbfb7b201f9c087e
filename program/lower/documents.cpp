#include "program/lower/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace trivium::program {
namespace {

/// Keys that the queries of a sample see together: with r tokens left, and a document of length l drawn,
///   W(r) = sum over l of P(l) (seen(min(l, r)) + W(r - l)),  seen(l) = l keys_seen(l).
double whole_sample(const Documents& documents, std::int64_t sequence, std::int64_t window) {
  const auto seen = [&](std::int64_t tokens) {
    return static_cast<double>(tokens) * models::keys_seen(tokens, window);
  };
  const std::size_t count = documents.lengths.size();
  double weights = 0;
  for (std::size_t i = 0; i < count; ++i) weights += static_cast<double>(documents.weight(i));
  std::vector<double> share, area, left(static_cast<std::size_t>(sequence) + 1, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    share.push_back(static_cast<double>(documents.weight(i)) / weights);
    area.push_back(seen(documents.lengths[i]));
  }
  for (std::int64_t r = 1; r <= sequence; ++r) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t length = documents.lengths[i];
      sum += share[i] * (length < r ? area[i] + left[static_cast<std::size_t>(r - length)] : seen(r));
    }
    left[static_cast<std::size_t>(r)] = sum;
  }
  return left.back();
}

}  // namespace

double keys_seen(const Documents& documents, std::int64_t sequence, std::int64_t window) {
  struct Known {
    Documents documents;
    std::int64_t sequence = 0;
    std::map<std::int64_t, double> keys;  // by window
  };
  thread_local Known known;  // searches lower the same training again and again
  if (!(known.documents == documents) || known.sequence != sequence) known = {documents, sequence, {}};
  const auto [at, is_new] = known.keys.try_emplace(window, 0);
  if (is_new) at->second = whole_sample(documents, sequence, window) / static_cast<double>(sequence);
  return at->second;
}

std::optional<Infeasible> check_documents(const Job& job) {
  const Documents& documents = job.training.documents;
  if (!documents.used()) {
    if (documents.weights.empty()) return std::nullopt;
    return Infeasible{"document-weights-need-lengths",
                      "document_weights without document_lengths; give both, or neither"};
  }
  if (!documents.weights.empty() && documents.weights.size() != documents.lengths.size()) {
    return Infeasible{"document-weights-count", fmt::format("document_weights has {} entries; document_lengths has {}",
                                                            documents.weights.size(), documents.lengths.size())};
  }
  const auto without = [](const char* what) {
    return Infeasible{"documents-supported", fmt::format("document_lengths is not implemented: {}", what)};
  };
  if (job.model.mtp) return without("targets of multi-token prediction reach into the next document; use mtp 0");
  if (job.model.window && job.model.window->chunked) {
    return without("chunks of attention (Llama 4) that begin anew in every document; leave document_lengths out");
  }
  return std::nullopt;
}

}  // namespace trivium::program
