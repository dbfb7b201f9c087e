// MPI_Issend and MPI_Irecv by number.
#include "runtime/mpi/mpi_transfers.h"

#include <fmt/format.h>

#include <limits>

#include "runtime/communicator.h"
#include "runtime/mpi/mpi_check.h"

namespace trivium::runtime::mpi {
namespace {

constexpr std::int64_t kLargestTransfer = std::numeric_limits<int>::max();  // MPI counts are ints

}  // namespace

MpiTransfers::MpiTransfers(MPI_Comm communicator, Side side) : communicator_(communicator), side_(side) {
  TRIVIUM_CHECK_MPI(MPI_Comm_size(communicator, &size_));
  int* largest_tag = nullptr;
  int is_known = 0;
  TRIVIUM_CHECK_MPI(MPI_Comm_get_attr(communicator, MPI_TAG_UB, &largest_tag, &is_known));
  tags_ = is_known != 0 ? std::int64_t{*largest_tag} + 1 : 32768;  // the least that MPI guarantees
}

void MpiTransfers::post(int peer, std::int64_t number, void* data, std::int64_t bytes) {
  if (peer < 0 || peer >= size_) throw Aborted(fmt::format("{}: there are {} ranks", text_of(peer, number), size_));
  if (number < 0) throw Aborted(fmt::format("{}: the number is negative", text_of(peer, number)));
  if (bytes < 0 || bytes > kLargestTransfer) {
    throw Aborted(
        fmt::format("{}: {} bytes are outside 0 … 2 GiB, what MPI moves at once", text_of(peer, number), bytes));
  }
  const int tag = tag_of(number);
  const auto [place, is_new] = in_flight_.try_emplace({peer, tag});
  if (!is_new) {
    throw Aborted(fmt::format("{} is already in flight, as number {}", text_of(peer, number), place->second.number));
  }
  Transfer& transfer = place->second;
  transfer.number = number;
  transfer.bytes = bytes;
  const int count = static_cast<int>(bytes);
  if (side_ == Side::kSend) {
    TRIVIUM_CHECK_MPI(MPI_Issend(data, count, MPI_BYTE, peer, tag, communicator_, &transfer.request));
  } else {
    TRIVIUM_CHECK_MPI(MPI_Irecv(data, count, MPI_BYTE, peer, tag, communicator_, &transfer.request));
  }
}

void MpiTransfers::wait(int peer, std::int64_t number) {
  const auto place = number < 0 ? in_flight_.end() : in_flight_.find({peer, tag_of(number)});
  if (place == in_flight_.end() || place->second.number != number) {
    throw Aborted(fmt::format("{} is waited for but was never posted", text_of(peer, number)));
  }
  Transfer transfer = place->second;
  in_flight_.erase(place);
  MPI_Status status;
  const int code = MPI_Wait(&transfer.request, &status);
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  if (error_class == MPI_ERR_TRUNCATE) {
    throw Aborted(fmt::format("{}: more than the {} bytes expected were sent", text_of(peer, number), transfer.bytes));
  }
  TRIVIUM_CHECK_MPI(code);
  if (side_ == Side::kReceive) {
    int received = 0;
    TRIVIUM_CHECK_MPI(MPI_Get_count(&status, MPI_BYTE, &received));
    if (received != transfer.bytes) {
      throw Aborted(fmt::format("{}: {} bytes sent, {} expected", text_of(peer, number), received, transfer.bytes));
    }
  }
}

bool MpiTransfers::is_over(int peer, std::int64_t number) const {
  const auto place = number < 0 ? in_flight_.end() : in_flight_.find({peer, tag_of(number)});
  if (place == in_flight_.end() || place->second.number != number) return false;
  int flag = 0;
  TRIVIUM_CHECK_MPI(MPI_Request_get_status(place->second.request, &flag, MPI_STATUS_IGNORE));
  return flag != 0;
}

int MpiTransfers::tag_of(std::int64_t number) const { return static_cast<int>(number % tags_); }

std::string MpiTransfers::text_of(int peer, std::int64_t number) const {
  int rank = 0;
  MPI_Comm_rank(communicator_, &rank);
  const bool is_send = side_ == Side::kSend;
  return fmt::format("transfer {} from rank {} to rank {}", number, is_send ? rank : peer, is_send ? peer : rank);
}

}  // namespace trivium::runtime::mpi
