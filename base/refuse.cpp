#include "base/refuse.h"

#include "base/error.h"
#include "base/quote.h"

namespace trivium::base {

void refuse(const std::string& file, const std::string& what) {
  throw Failure(ErrorKind::kInput, one_line(file) + ": " + what);
}

}  // namespace trivium::base
