#include "runtime/checkpoint/agree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "runtime/told_by.h"

namespace trivium::runtime::checkpoint {
namespace {

// What one rank tells the others; of one size, so that it needs no announcement.
struct Report {
  std::int64_t bytes = 0;
  std::uint64_t checksum = 0;
  std::int32_t kind = 0;  // of the failure; 0: none
  std::array<char, 116> name{};
  std::array<char, 384> message{};
};

template <std::size_t N>
void put(std::array<char, N>& to, std::string_view text) {
  std::copy_n(text.begin(), std::min(text.size(), N - 1), to.begin());
}

Report attempt(const std::function<ShardFile()>& work) {
  Report report;
  try {
    const ShardFile file = work();
    report.bytes = file.bytes;
    report.checksum = file.checksum;
    put(report.name, file.name);
  } catch (const base::Failure& failure) {
    report.kind = static_cast<std::int32_t>(failure.error().kind);
    put(report.message, failure.error().message);
  } catch (const std::exception& error) {
    report.kind = static_cast<std::int32_t>(base::ErrorKind::kRuntime);
    put(report.message, error.what());
  }
  return report;
}

}  // namespace

std::vector<ShardFile> agree(Communicator& communicator, int everyone, const std::function<ShardFile()>& work) {
  const Report mine = attempt(work);
  std::vector<ShardFile> files;
  std::vector<Report> reports;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    Report& report = reports.emplace_back(rank == communicator.rank() ? mine : Report{});
    communicator.broadcast(everyone, &report, sizeof report, rank);
    files.push_back({report.name.data(), report.bytes, report.checksum});
  }
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    if (reports[rank].kind == 0) continue;
    throw base::Failure(static_cast<base::ErrorKind>(reports[rank].kind),
                        told_by(static_cast<int>(rank), reports[rank].message.data()));
  }
  return files;
}

}  // namespace trivium::runtime::checkpoint
