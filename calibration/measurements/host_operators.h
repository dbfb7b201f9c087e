// What hosts did, from events that only tell thread, begin and end: who called whom, and how long each itself worked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "calibration/measurements/kernel_trace.h"

namespace trivium::calibration::imports {

/// Gives every text and every list of shapes one number.
class Interner {
 public:
  explicit Interner(KernelTrace& trace) : trace_(trace) {}
  std::int32_t name(const std::string& text);
  std::int32_t shapes(const Shapes& shapes);

 private:
  KernelTrace& trace_;
  std::map<std::string, std::int32_t> names_;
  std::map<Shapes, std::int32_t> shapes_;
};

struct HostEvent {
  std::int64_t thread = 0;
  double begin_s = 0, end_s = 0;
  std::int64_t id = -1;  ///< by which kernels name it; -1: they do not
  Operator op{};
  bool is_detached =
      false;  ///< lasts from a call to its end elsewhere: what runs meanwhile on its thread is no part of it
};

/// Operators of all threads, with their parents by nesting in time.
class HostOperators {
 public:
  void add(HostEvent event);  ///< left out where its times cannot have been measured

  /// Fills in `trace.operators`. With `work` also `trace.kernels`: the stretches that each operator itself worked, and
  /// collectives as a whole.
  void place_in(KernelTrace& trace, bool work);

  /// After that: the operator of an id, and the innermost one on a thread at a time; -1: none.
  std::int32_t of_id(std::int64_t id) const;
  std::int32_t at(std::int64_t thread, double time_s) const;

 private:
  struct Open;
  void set_parents();
  void mark_wrappers(const KernelTrace& trace);
  Kernel kernel_of(const KernelTrace& trace, std::size_t event, double begin_s, double end_s) const;
  std::vector<HostEvent> events_;  // sorted, in the order of `operators`
  std::map<std::int64_t, std::int32_t> by_id_;
  std::map<std::int64_t, std::pair<std::size_t, std::size_t>> threads_;  // first event and one past the last
};

}  // namespace trivium::calibration::imports
