// What a search refused, told by family and rule.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/bound/tree.h"
#include "planner/search/result.h"

namespace trivium::planner {

/// Counts refusals as they come.
class RejectionLog {
 public:
  void enter(Rejection refusal);
  std::int64_t plans() const { return plans_; }

  /// By family and rule in the order in which they came, each with the reason of its first plan; memory that was only
  /// bounded is worked out for those.
  std::vector<Rejected> rejections(const SearchRequest& request, int threads) &&;

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> known_;  // family and rule -> place
  std::vector<Rejected> rejected_;
  std::vector<program::Plan> examples_;
  std::int64_t plans_ = 0;
};

}  // namespace trivium::planner
