// A Program that the verifier found sound: what a backend runs.
#pragma once

#include <memory>
#include <utility>

#include "base/error.h"
#include "program/ir/program.h"

namespace trivium::program {

/// A Program that nothing changes any more, in which verify() found nothing wrong. Copies share it. It converts to the
/// Program for everything that only reads.
class VerifiedProgram {
 public:
  /// Errors: kRuntime with how many problems there are, and the first.
  static base::Result<VerifiedProgram> of(Program program);
  static base::Result<VerifiedProgram> of(std::shared_ptr<const Program> program);

  const Program& get() const { return *program_; }
  operator const Program&() const { return *program_; }  // NOLINT(google-explicit-constructor): it is one
  const Program* operator->() const { return program_.get(); }
  const std::shared_ptr<const Program>& shared() const { return program_; }

 private:
  explicit VerifiedProgram(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

}  // namespace trivium::program
