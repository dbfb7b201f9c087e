#include "cli/parse.h"
#include "cli/process/out_of_memory.h"
#include "cli/process/standard_streams.h"

int main(int argc, char** argv) {
  trivium::cli::settle_standard_streams();
  trivium::cli::prepare_for_lack_of_memory();
  return trivium::cli::parse_and_run(argc, argv);
}
