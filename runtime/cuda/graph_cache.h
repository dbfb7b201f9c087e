// Work recorded once and launched as a whole from then on.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace trivium::runtime::cuda {

/// `Recorder`: begin(), end() that gives what was issued in between as a Recorder::Recorded, give_up() instead of it,
/// launch(Recorded&), and generation(), a number that changes when memory moved that recorded work may name.
template <class Recorder>
class GraphCache {
 public:
  explicit GraphCache(Recorder recorder) : recorder_(std::move(recorder)) {}

  /// The first call with a number issues: that loads kernels, chooses algorithms and grows workspaces, which cannot be
  /// recorded. The second records and launches, later ones launch. Where recording fails it issues, this time and from
  /// then on; `failure` says why.
  void run(std::uint64_t number, const std::function<void()>& issue) {
    if (!failure_.empty()) return issue();
    Entry& entry = entries_[number];
    if (!std::exchange(entry.warm, true)) return issue();
    if (entry.recorded && entry.generation == recorder_.generation()) return recorder_.launch(*entry.recorded);
    entry.recorded.reset();
    try {
      recorder_.begin();
      issue();
      entry.recorded.emplace(recorder_.end());
    } catch (const std::exception& failure) {
      failure_ = failure.what();
      recorder_.give_up();
      return issue();
    }
    entry.generation = recorder_.generation();
    recorder_.launch(*entry.recorded);
  }

  void forget() { entries_.clear(); }
  bool empty() const { return entries_.empty(); }
  const std::string& failure() const { return failure_; }

 private:
  struct Entry {
    bool warm = false;
    std::uint64_t generation = 0;
    std::optional<typename Recorder::Recorded> recorded;
  };
  Recorder recorder_;
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::string failure_;
};

}  // namespace trivium::runtime::cuda
