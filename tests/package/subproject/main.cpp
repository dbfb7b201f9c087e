// Counts the parameters of a shipped model with the libraries of a subproject.
#include <cstdio>

#include "models/load.h"

int main() {
  const trivium::models::Model model = trivium::models::load_model("gpt2-124m");
  std::printf("%lld parameters\n", static_cast<long long>(trivium::models::count_parameters(model).total));
  return 0;
}
