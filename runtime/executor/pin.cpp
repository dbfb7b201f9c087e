#include "runtime/executor/pin.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace trivium::runtime {

#ifdef __linux__
void pin_to_core(int rank, int ranks) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < ranks) return;
  int seen = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || seen++ != rank) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    (void)sched_setaffinity(0, sizeof one, &one);  // a refusal costs speed, nothing else
    return;
  }
}
#else
void pin_to_core(int, int) {}
#endif

}  // namespace trivium::runtime
