// The engine knows streams by role and links, never a plan or a model: had one of its headers seen them, the types
// below would be defined twice and this file would not compile.
#include "simulator/replay/flows.h"
#include "simulator/replay/instructions.h"
#include "simulator/replay/replay_engine.h"
#include "simulator/replay/topology.h"
#include "simulator/replay/variation.h"
#include "simulator/sharing/max_min.h"
#include "simulator/sharing/shared_links.h"

namespace trivium::program {
struct Plan {
  int unseen = 0;
};
struct Training {
  int unseen = 0;
};
struct Job {
  int unseen = 0;
};
struct Program {
  int unseen = 0;
};
}  // namespace trivium::program

namespace trivium::models {
struct Model {
  int unseen = 0;
};
}  // namespace trivium::models

namespace trivium::simulator {

static_assert(sizeof(program::Plan) == sizeof(int) && sizeof(models::Model) == sizeof(int));
static_assert(sizeof(Instruction) <= 32, "streams of a million instructions are read once per rank");

}  // namespace trivium::simulator
