#include "cli/parse.h"

int main(int argc, char** argv) { return trivium::cli::parse_and_run(argc, argv); }
