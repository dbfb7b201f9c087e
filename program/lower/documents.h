// What samples that are packed of documents (Training::documents) mean for a job.
#pragma once

#include <cstdint>
#include <optional>

#include "program/lower/lower.h"

namespace trivium::program {

/// Why a job's documents cannot be lowered, with what to change.
std::optional<Infeasible> check_documents(const Job& job);

/// Keys that a query sees on average, counted as models::keys_seen does (half a document's length of a document), in
/// samples of `sequence` tokens that are packed of those documents; `window`: sliding, 0: none. Exact: the mean over
/// all ways to draw, with the document that the sample's end cuts. Takes time in proportion to sequence and lengths,
/// the first time that a thread asks.
double keys_seen(const Documents& documents, std::int64_t sequence, std::int64_t window);

}  // namespace trivium::program
