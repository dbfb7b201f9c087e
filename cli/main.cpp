#include "cli/parse.h"
#include "cli/standard_streams.h"

int main(int argc, char** argv) {
  trivium::cli::settle_standard_streams();
  return trivium::cli::parse_and_run(argc, argv);
}
