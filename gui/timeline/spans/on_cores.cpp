#include "gui/timeline/spans/on_cores.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace trivium::gui {
namespace {

constexpr std::size_t kWorthThreads = 100'000;  // cells: below, starting threads takes longer than filling them
constexpr unsigned kMostThreads = 8;

}  // namespace

void on_cores(std::size_t count, std::size_t cells, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  const unsigned cores = std::min(kMostThreads, std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; cells >= kWorthThreads && i < cores && i < count; ++i) helpers.emplace_back(take);
  take();
}

}  // namespace trivium::gui
