#include "edge/refuse.h"

#include "edge/error.h"
#include "edge/quote.h"

namespace trivium::edge {

void refuse(const std::string& file, const std::string& what) {
  throw Failure(ErrorKind::kInput, one_line(file) + ": " + what);
}

}  // namespace trivium::edge
