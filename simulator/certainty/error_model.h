// How far off predictions were on measured runs, and so how far one may be off that nobody has measured.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace trivium::simulator {

/// What runs share that err alike.
struct Likeness {
  std::string device;   ///< family of the devices: "a100"
  std::string stack;    ///< StackTraits::name
  std::string kind;     ///< of plan: "dense", "experts + fp8 + long context"
  std::string machine;  ///< name of the node's profile, whose constants may be fitted to its runs
  int ease = 0;         ///< class of the model FLOPs utilisation, see ease_of()
};

inline constexpr int kEases = 3;
/// 0: MFU of 30 % and more · 1: of 10 % and more · 2: below. What is far from busy depends on more that is not
/// modelled.
int ease_of(double mfu);

/// What matters for memory: neither how busy devices are nor whose machine it is, as trainers allocate the same on all.
inline Likeness of_memory(Likeness like) {
  like.machine.clear();
  like.ease = 0;
  return like;
}

/// Measured runs of one source that are alike. Errors are log(measured / predicted).
struct ErrorCell {
  Likeness like;
  std::string source;
  int runs = 0;
  double mean = 0;      ///< with what the machine's profile learned from these runs
  double left_out = 0;  ///< the same mean, had the profile learned from all but this source
  double spread = 0;    ///< standard deviation within the cell
};

/// How many standard deviations the 90 % interval reaches down and up: 5 of 100 errors lie beyond either end.
struct Reach {
  double low = 1.645, high = 1.645;
};

/// An error is a sum of independent normal parts, each shared by the runs that are alike in it: a mixed model. Standard
/// deviations.
struct ErrorParts {
  double device = 0, stack = 0, kind = 0, machine = 0;
  std::array<double, kEases> run{};  ///< of a run's own
  double between_plans = 0;          ///< of `run`, what two plans of one model, batch and machine do not share
  Reach known, unknown;              ///< of runs whose machine and stack were measured, and of others
};

/// What is to be expected of an error that was not measured.
struct ErrorOutlook {
  double mean = 0, deviation = 0;  ///< of log(measured / predicted)
  Reach reach;
  int runs = 0;  ///< measured runs of that device family, stack and kind
  std::vector<std::string> sources;
  int on_device = 0, of_stack = 0;  ///< measured runs of that device family, of that stack
};

/// Conditional expectation of an error given all cells (best linear unbiased prediction; Robinson 1991, Statistical
/// Science 6:15).
class ErrorModel {
 public:
  ErrorModel(std::vector<ErrorCell> cells, const ErrorParts& parts);
  ErrorOutlook at(const Likeness& like) const;
  const std::vector<ErrorCell>& cells() const { return cells_; }
  const ErrorParts& parts() const { return parts_; }
  /// Log of the density of the cells' `left_out` means: what the parts are chosen by.
  double log_likelihood() const;

 private:
  struct Factor;
  double shared(const Likeness& a, const Likeness& b) const;
  /// Of a run alone, by the cells' spreads and the usual one.
  double own_variance(const std::vector<const ErrorCell*>& cells, int ease) const;

  std::vector<ErrorCell> cells_;
  ErrorParts parts_;
  std::shared_ptr<const Factor> factor_;
};

}  // namespace trivium::simulator
