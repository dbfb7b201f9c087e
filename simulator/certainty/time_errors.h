// How far off predicted iterations were on measured runs, and so how far one may be off that nobody has measured.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::simulator {

/// What a predicted iteration is made of, and how busy that keeps the devices.
struct Composition {
  double exposed = 0;  ///< share of the iteration in which a device waits for communication
  double bubble = 0;   ///< share in which it waits for other stages
  double mfu = 0.4;    ///< model FLOPs utilisation; of a run whose composition nobody noted, a usual one
};

inline constexpr double kBusyMfu = 0.25;
inline bool is_busy(const Composition& made_of) { return made_of.mfu >= kBusyMfu; }

/// What runs share that err alike.
struct RunLikeness {
  std::string device;   ///< family of the devices: "a100"
  std::string stack;    ///< StackTraits::name
  std::string kind;     ///< "dense", "experts" or "adapters", with " + fp8" where products have 8 bits or fewer
  std::string machine;  ///< name of the node's profile, whose constants may be fitted to its runs
};

/// Stacks of one trainer, whatever its edition: Megatron-LM, -Core, -Bridge and NeMo are one.
std::string family_of_stack(std::string_view stack);

/// Whose errors are pooled: "adapters" and "experts" in any precision, else the kind.
std::string pooled_kind(const std::string& kind);

/// Standard deviation of a run's own error: exp(base + exposed x share + bubble x share).
struct SpreadRule {
  double base = -3, exposed = 0, bubble = 0;
  double of(const Composition& made_of) const;
};

/// Standard deviations of what runs share: an error is a sum of independent parts.
struct SharedParts {
  double device = 0, stack = 0, kind = 0, machine = 0, source = 0;  ///< `stack`: its family
};

/// Measured runs of one source that are alike. Errors are log(measured / predicted).
struct RunCell {
  RunLikeness like;
  std::string source;
  int runs = 0;
  double mean = 0;      ///< in the middle, with what the machine's profile learned from these runs
  double left_out = 0;  ///< the same, had the profile learned from all but this source
  double variance = 0;  ///< mean of the runs' own, by the rule
};

/// Where of 100 errors 5, 50 and 95 lie below, in deviations from what the shared parts say.
struct ErrorQuantiles {
  double low = -1.645, middle = 0, high = 1.645;
};

/// The quantiles of runs of one kind. Empty texts: of all devices, of all kinds.
struct QuantilesOf {
  std::string kind, device;
  bool busy = true;
  int measured = 0;  ///< of machine and stack, how many were: 0 to 2
  int runs = 0;      ///< of that kind themselves
  ErrorQuantiles quantiles;
};

/// What is to be expected of the time of a run that was not measured.
struct TimeOutlook {
  double mean = 0, deviation = 0;  ///< of log(measured / predicted), by the shared parts and the rule
  ErrorQuantiles quantiles;
  int measured = 0;      ///< of machine and stack, how many were
  int runs = 0;          ///< measured runs of that device family, family of stacks and kind
  bool sisters = false;  ///< some of them of other stacks of the family
  std::vector<std::string> sources;
  int on_device = 0, of_stack = 0;  ///< measured runs of that device family, of that family of stacks
  double at(double distance) const { return mean + distance * deviation; }
};

/// Of which runs share a part, products of deviations.
double shared(const SharedParts& parts, const RunLikeness& a, const RunLikeness& b);

/// The quantiles that hold there: those of kind and device, of busy devices where need be those where
/// less was measured, else of the kind, else of all; never narrower than where more was measured.
ErrorQuantiles quantiles_at(const std::vector<QuantilesOf>& all, const RunLikeness& like, bool busy, int measured);

/// Conditional expectation of an error given all cells (best linear unbiased prediction; Robinson 1991, Statistical
/// Science 6:15), and quantiles of what is left by kind of run (Mondrian conformal prediction; Vovk, Gammerman and
/// Shafer 2005, section 4.5).
class TimeErrors {
 public:
  TimeErrors(std::vector<RunCell> cells, const SharedParts& parts, const SpreadRule& spread,
             std::vector<QuantilesOf> quantiles, double between_plans, double picked);
  TimeOutlook at(const RunLikeness& like, const Composition& made_of) const;
  const std::vector<RunCell>& cells() const { return cells_; }
  const SharedParts& parts() const { return parts_; }
  const SpreadRule& spread() const { return spread_; }
  const std::vector<QuantilesOf>& quantiles() const { return quantiles_; }
  /// What two plans of one model, batch and machine do not share.
  double between_plans() const { return between_plans_; }
  /// By how much more the plan that was predicted fastest of several exceeds its prediction than those do: the curse of
  /// the winner (Smith and Winkler 2006, Management Science 52:311).
  double picked() const { return picked_; }

 private:
  struct Factor;
  std::vector<RunCell> cells_;
  SharedParts parts_;
  SpreadRule spread_;
  std::vector<QuantilesOf> quantiles_;
  double between_plans_ = 0, picked_ = 0;
  std::shared_ptr<const Factor> factor_;
};

}  // namespace trivium::simulator
