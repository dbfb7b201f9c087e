#include "planner/search/search.h"

#include <utility>

#include "planner/search/fewer_nodes.h"
#include "planner/search/mixed.h"

namespace trivium::planner {

SearchResult search(const SearchRequest& request, int threads, std::stop_token stop, const Progress& progress) {
  SearchRequest settled = with_fields_settled(request);
  const bool choose_nodes = !settled.cluster.homogeneous() && settled.ranks == 0;
  if (choose_nodes) settled.on_bound = nullptr;  // of several spaces
  return choose_nodes ? search_mixed(settled, threads, std::move(stop), progress)
                      : search_with_idle_nodes(settled, threads, stop, progress);
}

}  // namespace trivium::planner
