// trivium-oracle FOLDER: replays every case in it and prints how far apart we are.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "tests/oracle/replay.h"

int main(int argc, char** argv) {
  constexpr double kTolerance = 1e-4;  // relative, fp32
  if (argc != 2) {
    fmt::print(stderr, "usage: trivium-oracle FOLDER\n");
    return 2;
  }
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  fmt::print("case,logits,gradients,gradient_norms,losses,losses_tp2_pp2\n");
  bool agrees = !folders.empty();
  try {
    for (const auto& folder : folders) {
      const trivium::oracle::Agreement a = trivium::oracle::replay(folder);
      fmt::print("{},{:.1e},{:.1e},{:.1e},{:.1e},{:.1e}\n", a.name, a.logits, a.gradients, a.gradient_norms, a.losses,
                 a.split_losses);
      agrees = agrees && a.worst() <= kTolerance;
    }
  } catch (const trivium::base::Failure& failure) {
    fmt::print(stderr, "error: {}\n", failure.what());
    return 1;
  }
  return agrees ? 0 : 1;
}
