// Collectives over MPI.
#include "runtime/mpi/mpi_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>

#include "base/say.h"
#include "runtime/mpi/mpi_check.h"
#include "runtime/reduction/reduce.h"
#include "runtime/told_by.h"

namespace trivium::runtime::mpi {
namespace {

using program::DType;
using program::Reduction;
using reduction::Call;
using reduction::CallKind;

constexpr std::int64_t kLargestMessage = std::int64_t{1} << 30;  // MPI counts are ints
constexpr int kFailedExit = 1;
constexpr int kGroupTag = 0;

/// Ranks that are all on one host communicate through its memory. Open MPI would also open ports on every interface,
/// which a user who wants them can still ask for.
void keep_to_this_host() {
  const char* const ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
  const char* const here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (ranks != nullptr && here != nullptr && std::string_view(ranks) == here) {
    ::setenv("OMPI_MCA_btl", "self,vader", 0);
  }
}

}  // namespace

MpiCommunicator::MpiCommunicator() {
  int was_started = 0;
  MPI_Initialized(&was_started);
  if (was_started != 0) throw Aborted("it was already started in this process");
  keep_to_this_host();
  int provided = 0;
  // Serialized rather than funneled: a watchdog thread may call abort.
  TRIVIUM_CHECK_MPI(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
  TRIVIUM_CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  TRIVIUM_CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  TRIVIUM_CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  // Inherits the error handler, as do the groups' communicators.
  TRIVIUM_CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &transfers_communicator_));
  sends_.emplace(transfers_communicator_, MpiTransfers::Side::kSend);
  receives_.emplace(transfers_communicator_, MpiTransfers::Side::kReceive);
}

MpiCommunicator::~MpiCommunicator() {
  const std::size_t unfinished = sends_->unfinished() + receives_->unfinished();
  if (failed_) MPI_Abort(MPI_COMM_WORLD, kFailedExit);  // the failure itself was thrown, and is told by who caught it
  if (unfinished > 0) abort(fmt::format("ended with {} transfers unfinished", unfinished));
  for (Group& group : groups_) MPI_Comm_free(&group.communicator);
  MPI_Comm_free(&transfers_communicator_);
  MPI_Finalize();
}

void MpiCommunicator::abort(const std::string& reason) {
  base::say("error: {}\n", told_by(rank_, reason));
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, kFailedExit);
  std::abort();  // MPI_Abort does not return
}

template <class Work>
void MpiCommunicator::guarded(const Work& work) {
  try {
    work();
  } catch (...) {
    failed_ = true;
    throw;
  }
}

int MpiCommunicator::make_group(std::span<const int> ranks) {
  guarded([&] {
    const auto me = std::find(ranks.begin(), ranks.end(), rank_);
    const bool is_ascending = std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
    if (me == ranks.end() || !is_ascending || ranks.front() < 0 || ranks.back() >= size_) {
      throw Aborted(fmt::format("a group of ranks [{}] is not ascending within 0 … {} or lacks rank {}",
                                fmt::join(ranks, ", "), size_ - 1, rank_));
    }
    Group& group = groups_.emplace_back();
    group.ranks.assign(ranks.begin(), ranks.end());
    group.index = static_cast<int>(me - ranks.begin());
    group.openings.resize(ranks.size());
    MPI_Group world = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
    TRIVIUM_CHECK_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
    TRIVIUM_CHECK_MPI(MPI_Group_incl(world, group.members(), ranks.data(), &members));
    TRIVIUM_CHECK_MPI(MPI_Comm_create_group(MPI_COMM_WORLD, members, kGroupTag, &group.communicator));
    TRIVIUM_CHECK_MPI(MPI_Group_free(&members));
    TRIVIUM_CHECK_MPI(MPI_Group_free(&world));
  });
  return static_cast<int>(groups_.size()) - 1;
}

void MpiCommunicator::barrier(int group) {
  guarded([&] { open(group_of(group), {.kind = CallKind::kBarrier}); });
}

void MpiCommunicator::all_reduce(int handle, void* data, std::int64_t count, DType type, Reduction how) {
  guarded([&] {
    Group& group = group_of(handle);
    const auto members = static_cast<std::size_t>(group.members()), me = static_cast<std::size_t>(group.index);
    const Call call{.kind = CallKind::kAllReduce, .type = type, .how = how, .count = count};
    const std::int64_t element = reduction::element_bytes(type, how);
    std::byte* const own = static_cast<std::byte*>(data);
    if (count >= 0 && count <= static_cast<std::int64_t>(sizeof(Opening::payload)) / element) {
      open(group, call, data, static_cast<std::size_t>(count * element));
      std::vector<const std::byte*> parts;
      for (const Opening& opening : group.openings) parts.push_back(opening.payload.data());
      return reduction::reduce_in_order(parts, std::span(&own, 1), count, type, how);
    }
    open(group, call);
    std::vector<std::int64_t> begins(members), bytes(members);
    for (std::size_t i = 0; i < members; ++i) {
      const reduction::Slice slice = reduction::slice_of(count, group.members(), static_cast<int>(i));
      begins[i] = slice.begin * element;
      bytes[i] = slice.size() * element;
    }
    const auto parts = collect(group, own, begins, bytes);
    std::byte* const result = own + begins[me];
    reduction::reduce_in_order(parts, std::span(&result, 1), bytes[me] / element, type, how);
    std::vector<Piece> outgoing, incoming;
    for (std::size_t i = 0; i < members; ++i) {
      if (i == me) continue;
      outgoing.push_back({static_cast<int>(i), result, bytes[me]});
      incoming.push_back({static_cast<int>(i), own + begins[i], bytes[i]});
    }
    exchange(group, outgoing, incoming);
  });
}

void MpiCommunicator::reduce_scatter(int handle, const void* whole, void* part, std::int64_t count, DType type) {
  guarded([&] {
    Group& group = group_of(handle);
    const auto members = static_cast<std::size_t>(group.members());
    const std::int64_t part_count = count / group.members(), part_bytes = part_count * program::size_of(type);
    if (const auto fault = reduction::misplaced_part(part, whole, part_bytes, group.members(), group.index)) {
      throw Aborted(*fault);
    }
    open(group, {.kind = CallKind::kReduceScatter, .type = type, .count = count});
    std::vector<std::int64_t> begins(members), bytes(members, part_bytes);
    for (std::size_t i = 0; i < members; ++i) begins[i] = static_cast<std::int64_t>(i) * part_bytes;
    const auto parts = collect(group, static_cast<const std::byte*>(whole), begins, bytes);
    std::byte* const result = static_cast<std::byte*>(part);
    reduction::reduce_in_order(parts, std::span(&result, 1), part_count, type, Reduction::kSum);
  });
}

void MpiCommunicator::all_gather(int handle, const void* part, void* whole, std::int64_t count, DType type) {
  guarded([&] {
    Group& group = group_of(handle);
    const std::int64_t part_bytes = count / group.members() * program::size_of(type);
    if (const auto fault = reduction::misplaced_part(part, whole, part_bytes, group.members(), group.index)) {
      throw Aborted(*fault);
    }
    open(group, {.kind = CallKind::kAllGather, .type = type, .count = count});
    std::byte* const own = const_cast<std::byte*>(static_cast<const std::byte*>(part));  // only read: see Piece
    std::vector<Piece> outgoing, incoming;
    for (int member = 0; member < group.members(); ++member) {
      std::byte* const place = static_cast<std::byte*>(whole) + member * part_bytes;
      if (member == group.index) {
        if (place != own && part_bytes > 0) std::memcpy(place, own, static_cast<std::size_t>(part_bytes));
        continue;
      }
      outgoing.push_back({member, own, part_bytes});
      incoming.push_back({member, place, part_bytes});
    }
    exchange(group, outgoing, incoming);
  });
}

void MpiCommunicator::broadcast(int handle, void* data, std::int64_t bytes, int root) {
  guarded([&] {
    Group& group = group_of(handle);
    open(group, {.kind = CallKind::kBroadcast, .root = root, .count = bytes});
    const auto place = std::find(group.ranks.begin(), group.ranks.end(), root) - group.ranks.begin();
    for (std::int64_t begin = 0; begin < bytes; begin += kLargestMessage) {
      const int size = static_cast<int>(std::min(kLargestMessage, bytes - begin));
      TRIVIUM_CHECK_MPI(MPI_Bcast(static_cast<std::byte*>(data) + begin, size, MPI_BYTE, static_cast<int>(place),
                                  group.communicator));
    }
  });
}

void MpiCommunicator::post_send(int to, std::int64_t number, const void* data, std::int64_t bytes) {
  guarded([&] { sends_->post(to, number, const_cast<void*>(data), bytes); });  // MPI_Issend only reads
}

void MpiCommunicator::post_recv(int from, std::int64_t number, void* data, std::int64_t bytes) {
  guarded([&] { receives_->post(from, number, data, bytes); });
}

void MpiCommunicator::wait_send(int to, std::int64_t number) {
  guarded([&] { sends_->wait(to, number); });
}

void MpiCommunicator::wait_recv(int from, std::int64_t number) {
  guarded([&] { receives_->wait(from, number); });
}

bool MpiCommunicator::has_sent(int to, std::int64_t number) {
  bool is_over = false;
  guarded([&] { is_over = sends_->is_over(to, number); });
  return is_over;
}

MpiCommunicator::Group& MpiCommunicator::group_of(int handle) {
  if (handle < 0 || handle >= static_cast<int>(groups_.size()))
    throw Aborted(fmt::format("there is no group {}", handle));
  return groups_[static_cast<std::size_t>(handle)];
}

void MpiCommunicator::open(Group& group, const Call& call, const void* payload, std::size_t payload_bytes) {
  Opening& own = group.openings[static_cast<std::size_t>(group.index)];
  own.call = call;
  if (payload_bytes > 0) std::memcpy(own.payload.data(), payload, payload_bytes);
  TRIVIUM_CHECK_MPI(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, group.openings.data(), sizeof(Opening), MPI_BYTE,
                                  group.communicator));
  std::vector<Call> calls;
  for (const Opening& opening : group.openings) calls.push_back(opening.call);
  if (const auto fault = reduction::disagreement(group.ranks, calls)) throw Aborted(*fault);
}

void MpiCommunicator::exchange(const Group& group, std::span<const Piece> outgoing, std::span<const Piece> incoming) {
  std::vector<MPI_Request> requests;
  const auto in_messages = [&](const Piece& piece, const auto& start) {
    for (std::int64_t begin = 0; begin < piece.bytes; begin += kLargestMessage) {
      const int size = static_cast<int>(std::min(kLargestMessage, piece.bytes - begin));
      start(piece.data + begin, size, &requests.emplace_back());
    }
  };
  // Receives first, so that data that arrives finds its place.
  for (const Piece& piece : incoming) {
    in_messages(piece, [&](std::byte* data, int size, MPI_Request* request) {
      TRIVIUM_CHECK_MPI(MPI_Irecv(data, size, MPI_BYTE, piece.member, 0, group.communicator, request));
    });
  }
  for (const Piece& piece : outgoing) {
    in_messages(piece, [&](std::byte* data, int size, MPI_Request* request) {
      TRIVIUM_CHECK_MPI(MPI_Isend(data, size, MPI_BYTE, piece.member, 0, group.communicator, request));
    });
  }
  TRIVIUM_CHECK_MPI(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
}

std::vector<const std::byte*> MpiCommunicator::collect(const Group& group, const std::byte* data,
                                                       std::span<const std::int64_t> begins,
                                                       std::span<const std::int64_t> bytes) {
  const auto members = static_cast<std::size_t>(group.members()), me = static_cast<std::size_t>(group.index);
  scratch_.resize(std::max(scratch_.size(), (members - 1) * static_cast<std::size_t>(bytes[me])));
  std::byte* free_place = scratch_.data();
  std::vector<const std::byte*> parts(members);
  std::vector<Piece> outgoing, incoming;
  for (std::size_t i = 0; i < members; ++i) {
    std::byte* const slice = const_cast<std::byte*>(data) + begins[i];  // only read: see Piece
    if (i == me) {
      parts[i] = slice;
      continue;
    }
    parts[i] = free_place;
    outgoing.push_back({static_cast<int>(i), slice, bytes[i]});
    incoming.push_back({static_cast<int>(i), free_place, bytes[me]});
    free_place += bytes[me];
  }
  exchange(group, outgoing, incoming);
  return parts;
}

}  // namespace trivium::runtime::mpi
