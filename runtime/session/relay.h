// Passing on what another process prints.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace trivium::runtime::session {

/// A pipe whose content goes on to one of this process's streams. Where that stream is closed or full, the writer hears
/// nothing of it: the content is read and left out.
class Relay {
 public:
  /// Errors: Failure(kRuntime) where no pipe can be had.
  explicit Relay(int stream);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int writing_end() const { return writing_; }
  /// At the end. Errors: Failure(kRuntime) where content was left out.
  void require_whole() const;

 private:
  friend void pass_on(Relay& out, Relay& err, std::chrono::milliseconds patience);
  friend void pass_on_rest(Relay& out, Relay& err);
  bool pass();  ///< what is there now; false where there is nothing
  void write(std::string_view text);
  /// What of the text goes on: of the lines in which mpirun tells of a stranger's bytes at its ports, the first alone,
  /// and an error that several ranks tell once.
  std::string sifted(std::string_view text);
  void close_writing_end();

  int stream_, reading_ = -1, writing_ = -1;
  std::string lost_;     ///< why the first content was left out; empty: none was
  std::string held_;     ///< the beginning of a line of mpirun's
  std::string error_;    ///< the latest
  bool warned_ = false;  ///< of strangers
};

/// Waits for content of either, for so long at most, and passes it on.
void pass_on(Relay& out, Relay& err, std::chrono::milliseconds patience);
/// What is left when the writer has ended.
void pass_on_rest(Relay& out, Relay& err);

}  // namespace trivium::runtime::session
