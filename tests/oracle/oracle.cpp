// trivium-oracle FOLDER: replays every case in it and prints how far apart we are.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "tests/oracle/replay.h"

namespace {

/// Relative, in fp32. Ten steps of AdamW divide by what early gradients of rounding leave, and a token may choose
/// another expert: norms of later steps drift, while the first step's gradients and all losses do not.
constexpr double kLogits = 1e-5, kGradients = 5e-5, kLosses = 2e-5, kNorms = 2e-3;

bool agrees(const trivium::oracle::Agreement& a) {
  return a.logits <= kLogits && a.gradients <= kGradients && a.losses <= kLosses && a.split_losses <= kLosses &&
         a.gradient_norms <= kNorms;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: trivium-oracle FOLDER\n");
    return 2;
  }
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  fmt::print("case,logits,gradients,gradient_norms,losses,losses_tp2_pp2\n");
  bool all_agree = !folders.empty();
  try {
    for (const auto& folder : folders) {
      const trivium::oracle::Agreement a = trivium::oracle::replay(folder);
      fmt::print("{},{:.1e},{:.1e},{:.1e},{:.1e},{:.1e}\n", a.name, a.logits, a.gradients, a.gradient_norms, a.losses,
                 a.split_losses);
      if (agrees(a)) continue;
      fmt::print(stderr, "{} differs: at most {:.0e} logits, {:.0e} gradients, {:.0e} norms, {:.0e} losses\n", a.name,
                 kLogits, kGradients, kNorms, kLosses);
      all_agree = false;
    }
  } catch (const trivium::base::Failure& failure) {
    fmt::print(stderr, "error: {}\n", failure.what());
    return 1;
  }
  return all_agree ? 0 : 1;
}
