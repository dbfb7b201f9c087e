// Long work off the GUI thread: the newest request wins, stale results are dropped.
#pragma once

#include <QObject>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace trivium::gui {

/// Requests of all threads that are worked on now, those included whose results will be dropped.
inline std::atomic<int> work_under_way = 0;

/// One thread that turns requests into results. A request that is not begun when the next one comes is forgotten; one
/// that is under way is asked to stop, and its result is dropped. Results arrive on the thread that made this object,
/// through its event loop. Destroying it asks the work to stop and waits for it.
template <class Request, class Result>
class Background {
 public:
  using Work = std::function<Result(const Request&, const std::stop_token&)>;
  using Done = std::function<void(Result)>;

  /// `work` runs on the thread and must not throw; `done` on the owner's.
  Background(Work work, Done done) : work_(std::move(work)), done_(std::move(done)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { loop(stop); });
  }
  ~Background() {
    cancel();
    thread_.request_stop();
    thread_.join();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  void post(Request request) {
    {
      const std::lock_guard lock(mutex_);
      ++ticket_;
      pending_ = std::move(request);
      early_ = false;
      current_.request_stop();
    }
    wake_.notify_all();
  }

  /// Forgets what is asked and asks what is under way to stop; no result will come of it.
  void cancel() {
    const std::lock_guard lock(mutex_);
    ++ticket_;
    pending_.reset();
    current_.request_stop();
  }

  /// Asks what is under way, or about to begin, to end early and give what it has.
  void finish_early() {
    const std::lock_guard lock(mutex_);
    early_ = pending_.has_value();
    current_.request_stop();
  }

 private:
  void loop(const std::stop_token& stop) {
    while (true) {
      std::optional<Request> request;
      std::uint64_t ticket = 0;
      std::stop_token current;
      {
        std::unique_lock lock(mutex_);
        if (!wake_.wait(lock, stop, [&] { return pending_.has_value(); })) return;
        request = std::exchange(pending_, std::nullopt);
        ticket = ticket_;
        current_ = std::stop_source();
        if (early_) current_.request_stop();
        current = current_.get_token();
      }
      ++work_under_way;
      auto result = std::make_shared<Result>(work_(*request, current));
      request.reset();
      --work_under_way;
      QMetaObject::invokeMethod(
          &receiver_,
          [this, result, ticket] {
            if (ticket == ticket_) done_(std::move(*result));
          },
          Qt::QueuedConnection);
    }
  }

  Work work_;
  Done done_;
  QObject receiver_;  // what is queued for it dies with it
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::optional<Request> pending_;
  bool early_ = false;        // the pending request is to end as soon as it begins
  std::uint64_t ticket_ = 0;  // written by the owner's thread only
  std::stop_source current_;
  std::jthread thread_;
};

}  // namespace trivium::gui
