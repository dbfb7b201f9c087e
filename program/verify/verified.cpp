#include "program/verify/verified.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "program/verify/verify.h"

namespace trivium::program {

base::Result<VerifiedProgram> VerifiedProgram::of(std::shared_ptr<const Program> program) {
  if (const std::vector<std::string> problems = verify(*program); !problems.empty()) {
    return base::Error{base::ErrorKind::kRuntime,
                       fmt::format("the program is not sound ({} problems): {}", problems.size(), problems.front())};
  }
  return VerifiedProgram(std::move(program));
}

base::Result<VerifiedProgram> VerifiedProgram::of(Program program) {
  return of(std::make_shared<const Program>(std::move(program)));
}

}  // namespace trivium::program
