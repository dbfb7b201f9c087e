// Failures that a user can cause, as values and, at the parse and start-up edge only, as an exception.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <variant>

namespace trivium::base {

/// What went wrong, as the exit code the command line reports for it.
enum class ErrorKind : int {
  kRuntime = 1,       ///< failed while running
  kUsage = 2,         ///< the command line itself is wrong
  kInput = 3,         ///< a file or value given by the user is wrong
  kNoPlan = 4,        ///< no plan fits
  kHardware = 5,      ///< hardware, driver or library missing
  kInterrupted = 130  ///< SIGINT or SIGTERM
};

/// One failure, told in one line: where (file and JSON pointer), what is wrong, what to do.
/// Example: `cluster.json#/nodes/0/gpu: unknown device "A100-90GB"; did you mean "A100-80GB"?`
struct Error {
  ErrorKind kind = ErrorKind::kRuntime;
  std::string message;
  std::string rule{};  ///< of kNoPlan: what stands against the plan, a stable short name ("tensor-divides-heads")
};

/// Carries an Error out of parsing and start-up code; the command line's main prints it and exits with its kind.
class Failure : public std::exception {
 public:
  explicit Failure(Error error) : error_(std::move(error)) {}
  Failure(ErrorKind kind, std::string message) : error_{kind, std::move(message), {}} {}
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

/// A value or the reason why there is none. Access to the value of a failed Result is a programmer error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}
  Result(Error error) : content_(std::move(error)) {}

  bool ok() const { return content_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const T& value() const& { return std::get<0>(content_); }
  T& value() & { return std::get<0>(content_); }
  T&& value() && { return std::get<0>(std::move(content_)); }
  const Error& error() const { return std::get<1>(content_); }
  /// The value, or the error thrown as Failure: for the edges where exceptions are the project rule.
  T value_or_throw() && {
    if (!ok()) throw Failure(error());
    return std::get<0>(std::move(content_));
  }

 private:
  std::variant<T, Error> content_;
};

}  // namespace trivium::base
