// One rank of a foreign run: its kernels, what they were matched to, its whole iterations, and its clock.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibration/foreign/intervals.h"
#include "calibration/foreign/match.h"
#include "calibration/measurements/kernel_trace.h"

namespace trivium::calibration::foreign {

/// Iterations that are marked, else those that what repeats tells: between the ends of runs of the optimizer's kernels,
/// or between returns of the rarest kernel that comes back. Empty: nothing repeats.
std::vector<TimeSpan> whole_steps(const imports::KernelTrace& trace, const std::vector<Match>& matches);

struct RankRun {
  int rank = 0;
  const imports::KernelTrace* trace = nullptr;
  std::vector<Match> matches;   ///< by kernel
  std::vector<TimeSpan> steps;  ///< on the trace's own clock
  double shift_s = 0;           ///< added to it: the clock that all ranks share

  /// The iteration that begins a kernel's work; -1: none of the whole ones.
  int step_at(double time_s) const;
  double mean_step_s() const;
};

/// A collective that several of the ranks took part in. Times on the clock that they share.
struct Rendezvous {
  struct Member {
    std::size_t run = 0, kernel = 0;  ///< places in the runs, and among its kernels
    double begin_s = 0, end_s = 0;
  };
  std::string op;
  std::vector<Member> members;
};

/// Collectives of whole iterations that all members among `runs` took part in, matched by what they are, their group
/// and size, and their place in the iteration. Such that only one rank shows are left out.
std::vector<Rendezvous> rendezvous_of(const std::vector<RankRun>& runs);

/// Sets `shift_s` of every run so that common collectives end at one time, at the median, since they end together on
/// all members. Runs without any are set by their hosts' clocks where they are told, else by their first iteration.
void align(std::vector<RankRun>& runs);

}  // namespace trivium::calibration::foreign
