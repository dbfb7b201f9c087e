#include "hardware_profiles/this_machine.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

namespace trivium::hardware {

int machine_cores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

base::Bytes machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_size <= 0) {
    throw base::Failure(base::ErrorKind::kHardware, "the system does not tell how much memory this machine has");
  }
  return base::Bytes(static_cast<double>(pages) * static_cast<double>(page_size));
}

}  // namespace trivium::hardware
