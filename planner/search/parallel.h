// Independent pieces of work on several threads, with the caller's thread free to watch.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

namespace trivium::planner {

/// As many threads as asked for; 0: one for every core.
int threads_for(int asked);

/// Runs `work(i)` for every i in [0, count), in no order, on `threads` threads of its own, or on the calling thread
/// where one is asked for; calls `watch(done)` from the calling thread a few times a second meanwhile (between two
/// pieces on that thread). Once `stop` is requested no further piece is begun. Returns whether all pieces ran. `work`
/// must not throw; pieces must not touch what another piece writes.
bool run_parallel(std::size_t count, int threads, const std::stop_token& stop,
                  const std::function<void(std::size_t)>& work, const std::function<void(std::size_t)>& watch);

}  // namespace trivium::planner
