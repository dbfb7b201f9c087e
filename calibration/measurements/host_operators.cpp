#include "calibration/measurements/host_operators.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace trivium::calibration::imports {

std::int32_t Interner::name(const std::string& text) {
  const auto [at, fresh] = names_.try_emplace(text, static_cast<std::int32_t>(trace_.names.size()));
  if (fresh) trace_.names.push_back(text);
  return at->second;
}

std::int32_t Interner::shapes(const Shapes& shapes) {
  const auto [at, fresh] = shapes_.try_emplace(shapes, static_cast<std::int32_t>(trace_.shapes.size()));
  if (fresh) trace_.shapes.push_back(shapes);
  return at->second;
}

/// An operator that has not returned yet.
struct HostOperators::Open {
  std::size_t event;
  double worked_until_s;
  bool silent = false;  ///< a collective, or part of one
  bool began = false;   ///< a stretch of it was emitted
};

void HostOperators::add(HostEvent event) {
  const bool possible = std::isfinite(event.begin_s) && std::isfinite(event.end_s) && event.end_s >= event.begin_s;
  if (possible) events_.push_back(std::move(event));
}

Kernel HostOperators::kernel_of(const KernelTrace& trace, std::size_t event, double begin_s, double end_s) const {
  Kernel kernel;
  const Operator& op = events_[event].op;
  kernel.kind = class_of_kernel(trace.name_of(op));
  kernel.name = op.name;
  kernel.launched_by = static_cast<std::int32_t>(event);
  kernel.start_s = begin_s;
  kernel.seconds = end_s - begin_s;
  return kernel;
}

namespace {

/// Operators that only hand work on, whatever they stand above.
bool hands_on(const std::string& name) {
  return name.starts_with("c10d::") || name.starts_with("_c10d_functional") || name.starts_with("c10d_functional") ||
         name == "PythonSubclass" || name == "Redistribute" || name.starts_with("_ToTorchTensor") ||
         name.starts_with("_FromTorchTensor");
}

}  // namespace

/// By nesting in time. What outlasts its caller, which clocks may say, ends with it.
void HostOperators::set_parents() {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    HostEvent& event = events_[i];
    if (i > 0 && events_[i - 1].thread != event.thread) open.clear();
    threads_.try_emplace(event.thread, i, i).first->second.second = i + 1;
    if (event.is_detached) continue;
    while (!open.empty() && events_[open.back()].end_s <= event.begin_s) open.pop_back();
    if (!open.empty()) {
      event.op.parent = static_cast<std::int32_t>(open.back());
      event.end_s = std::min(event.end_s, events_[open.back()].end_s);
    }
    open.push_back(i);
  }
}

void HostOperators::mark_wrappers(const KernelTrace& trace) {
  std::vector<bool> hands(trace.names.size());
  for (std::size_t i = 0; i < hands.size(); ++i) hands[i] = hands_on(trace.names[i]);
  for (HostEvent& event : events_) {
    const bool passes = hands[static_cast<std::size_t>(event.op.name)];
    if (passes) event.op.is_wrapper = true;
    for (std::int32_t at = event.op.parent; at >= 0;) {
      Operator& above = events_[static_cast<std::size_t>(at)].op;
      if (passes ? above.is_wrapper && !hands[static_cast<std::size_t>(above.name)] : above.is_range) break;
      if (passes || above.name == event.op.name) above.is_wrapper = true;
      at = above.parent;
    }
  }
}

void HostOperators::place_in(KernelTrace& trace, bool work) {
  std::stable_sort(events_.begin(), events_.end(), [](const HostEvent& a, const HostEvent& b) {
    return std::tuple(a.thread, a.begin_s, -a.end_s) < std::tuple(b.thread, b.begin_s, -b.end_s);
  });
  set_parents();
  mark_wrappers(trace);
  std::vector<Open> open;
  const auto emit = [&](Open& of, double until) {
    const HostEvent& event = events_[of.event];
    if (work && !event.op.is_range && !event.op.is_wrapper && !of.silent && until > of.worked_until_s) {
      trace.kernels.push_back(kernel_of(trace, of.event, of.worked_until_s, until));
      trace.kernels.back().begins = !of.began;
      of.began = true;
    }
    of.worked_until_s = std::max(of.worked_until_s, until);
  };
  const auto close = [&](double time) {
    while (!open.empty() && events_[open.back().event].end_s <= time) {
      const double end = events_[open.back().event].end_s;
      emit(open.back(), end);
      open.pop_back();
      if (!open.empty()) open.back().worked_until_s = std::max(open.back().worked_until_s, end);
    }
  };
  for (std::size_t i = 0; i < events_.size(); ++i) {
    HostEvent& event = events_[i];
    if (i > 0 && events_[i - 1].thread != event.thread) close(std::numeric_limits<double>::infinity());
    if (!event.is_detached) close(event.begin_s);
    if (!open.empty() && !event.is_detached) emit(open.back(), event.begin_s);
    if (event.id >= 0) by_id_[event.id] = static_cast<std::int32_t>(i);
    const bool within = !open.empty() && open.back().silent && !event.is_detached;
    if (work && event.op.is_collective && !within) {
      trace.kernels.push_back(kernel_of(trace, i, event.begin_s, event.end_s));
      trace.kernels.back().kind = KernelClass::kCollective;
    }
    if (!event.is_detached) open.push_back({i, event.begin_s, within || event.op.is_collective});
  }
  close(std::numeric_limits<double>::infinity());
  trace.operators.reserve(events_.size());
  for (const HostEvent& event : events_) {
    trace.operators.push_back(event.op);
    trace.operators.back().begin_s = event.begin_s;
    trace.operators.back().end_s = event.end_s;
  }
}

std::int32_t HostOperators::of_id(std::int64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? -1 : found->second;
}

std::int32_t HostOperators::at(std::int64_t thread, double time_s) const {
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return -1;
  const auto first = events_.begin() + static_cast<std::ptrdiff_t>(found->second.first),
             last = events_.begin() + static_cast<std::ptrdiff_t>(found->second.second);
  const auto behind =
      std::upper_bound(first, last, time_s, [](double time, const HostEvent& event) { return time < event.begin_s; });
  if (behind == first) return -1;
  auto at = static_cast<std::int32_t>(std::prev(behind) - events_.begin());
  while (at >= 0 && events_[static_cast<std::size_t>(at)].end_s < time_s) {
    at = events_[static_cast<std::size_t>(at)].op.parent;
  }
  return at;
}

}  // namespace trivium::calibration::imports
