// What a stretch of a timeline is made of, op by op.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gui/timeline/named_timeline.h"

namespace trivium::gui {

/// A stretch of time over the rows below `row`, that row included, or over several that lie apart; none: over all.
struct Stretch {
  std::int64_t begin_ps = 0, end_ps = 0;
  std::optional<std::int32_t> row;
  std::vector<std::int32_t> rows{};  ///< instead of `row`: none of them below another
  bool operator==(const Stretch&) const = default;
};

/// Tracks of its rows, each once.
std::vector<std::uint32_t> tracks_of(const SpanStore& store, const Stretch& stretch);

/// What the op of an event calculates, and the least time that its device's peak and memory bandwidth allow: the
/// roofline. Zero where neither is known, as of communication.
struct OpWork {
  double flops = 0, roofline_s = 0;
};
using WorkOf = std::function<OpWork(std::uint32_t event)>;

/// The work of a timeline's ops: of those that are simulated one by one. Empty where there is no program or cluster.
WorkOf work_of(const NamedTimeline& timeline);

/// Spans of one op: of every micro-batch and layer.
struct OpTotal {
  std::string name;  ///< "forward matmul", or a kernel's
  int category = 0;
  std::uint64_t spans = 0;  ///< that touch the stretch
  std::int64_t ps = 0;      ///< within it
  std::int64_t whole_ps = 0;
  std::uint32_t first = kNoSpan;  ///< the earliest of them
  double flops = 0;               ///< of whole spans
  double roofline_s = 0;          ///< of whole spans; 0: not known
  double mean_s() const { return static_cast<double>(whole_ps) * 1e-12 / static_cast<double>(spans); }
  double tflops() const { return whole_ps > 0 ? flops / static_cast<double>(whole_ps) : 0; }  ///< 10^12 a second
  double roofline_share() const { return whole_ps > 0 ? roofline_s / (static_cast<double>(whole_ps) * 1e-12) : 0; }
};

/// Which op every span belongs to. Holds on to the store's names.
class OpNames {
 public:
  explicit OpNames(const SpanStore& store);
  std::uint64_t of(std::uint32_t span) const;  ///< equal for spans of one op
  std::string name(std::uint32_t span) const;

 private:
  const SpanStore& store_;
  std::vector<std::uint32_t> title_, detail_;  // of the store's, by what is left without numbers
};

/// The longest first. Errors: Failure(kInterrupted) where `stop` was requested.
std::vector<OpTotal> op_totals(const SpanStore& store, const Stretch& stretch, const WorkOf& work,
                               const std::stop_token& stop = {});

/// The next span of the same op as `like` that starts after `after` (none: the first), wrapping around to the first;
/// within the stretch.
std::uint32_t next_of_op(const SpanStore& store, const Stretch& stretch, std::uint32_t like,
                         std::optional<std::uint32_t> after);

/// With a header: op,kind,count,total_s,share,mean_s,tflop_per_s,roofline_share.
std::string csv_of(const std::vector<OpTotal>& ops, const SpanStore& store);

}  // namespace trivium::gui
