// Collectives and transfers between threads.
#include "runtime/inproc/thread_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "runtime/reduction/reduce.h"

namespace trivium::runtime::inproc {
namespace {

using program::DType;
using program::Reduction;
using reduction::Call;
using reduction::CallKind;

// memcpy of nothing may have null pointers by our contract, not by C's.
void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<Shared> shared, int rank)
    : shared_(std::move(shared)), rank_(rank) {}

ThreadCommunicator::~ThreadCommunicator() {
  const std::size_t unfinished = sends_.size() + receives_.size();
  if (unfinished > 0) abort(fmt::format("rank {} ended with {} transfers unfinished", rank_, unfinished));
}

int ThreadCommunicator::make_group(std::span<const int> ranks) {
  const auto me = std::find(ranks.begin(), ranks.end(), rank_);
  const bool is_ascending = std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
  if (me == ranks.end() || !is_ascending || ranks.front() < 0 || ranks.back() >= size()) {
    fail(fmt::format("a group of ranks [{}] is not ascending within 0 … {} or lacks rank {}", fmt::join(ranks, ", "),
                     size() - 1, rank_));
  }
  const int occurrence = occurrences_[std::vector<int>(ranks.begin(), ranks.end())]++;
  memberships_.push_back(
      {shared_->groups.find_or_make(shared_->hub, ranks, occurrence), static_cast<int>(me - ranks.begin())});
  return static_cast<int>(memberships_.size()) - 1;
}

void ThreadCommunicator::barrier(int group) {
  enter(membership(group), {.kind = CallKind::kBarrier}, nullptr, nullptr);
}

void ThreadCommunicator::all_reduce(int group, void* data, std::int64_t count, DType type, Reduction how) {
  Membership& mine = membership(group);
  const int members = mine.group->members();
  const Call call{.kind = CallKind::kAllReduce, .type = type, .how = how, .count = count};
  const std::int64_t element = reduction::element_bytes(type, how);
  const bool is_small = count >= 0 && count <= static_cast<std::int64_t>(kSmallBytes) / element;
  const std::span<Entry> entries =
      enter(mine, call, data, data, is_small ? static_cast<std::size_t>(count * element) : 0);

  std::vector<const std::byte*> parts(static_cast<std::size_t>(members));
  if (is_small) {
    // Everyone reduces everything from the group's own memory; nobody has to wait for anybody again.
    std::transform(entries.begin(), entries.end(), parts.begin(),
                   [](const Entry& entry) { return entry.small.data(); });
    std::byte* const result = static_cast<std::byte*>(data);
    return reduction::reduce_in_order(parts, std::span(&result, 1), count, type, how);
  }
  {
    // Slice i of every buffer is read and written by member i alone, so results go straight where they belong.
    const Hub::Access access(shared_->hub, rank_);
    const reduction::Slice slice = reduction::slice_of(count, members, mine.index);
    std::vector<std::byte*> results(static_cast<std::size_t>(members));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      results[i] = entries[i].target + slice.begin * element;
      parts[i] = results[i];
    }
    reduction::reduce_in_order(parts, results, slice.size(), type, how);
  }
  meet(mine);
}

void ThreadCommunicator::reduce_scatter(int group, const void* whole, void* part, std::int64_t count, DType type) {
  Membership& mine = membership(group);
  const int members = mine.group->members();
  const std::int64_t part_count = count / members, part_bytes = part_count * program::size_of(type);
  if (const auto fault = reduction::misplaced_part(part, whole, part_bytes, members, mine.index)) fail(*fault);
  const std::span<Entry> entries =
      enter(mine, {.kind = CallKind::kReduceScatter, .type = type, .count = count}, whole, nullptr);
  {
    const Hub::Access access(shared_->hub, rank_);
    std::vector<const std::byte*> parts;
    for (const Entry& entry : entries) parts.push_back(entry.source + mine.index * part_bytes);
    std::byte* const result = static_cast<std::byte*>(part);
    reduction::reduce_in_order(parts, std::span(&result, 1), part_count, type, Reduction::kSum);
  }
  meet(mine);
}

void ThreadCommunicator::all_gather(int group, const void* part, void* whole, std::int64_t count, DType type) {
  Membership& mine = membership(group);
  const int members = mine.group->members();
  const std::int64_t part_bytes = count / members * program::size_of(type);
  if (const auto fault = reduction::misplaced_part(part, whole, part_bytes, members, mine.index)) fail(*fault);
  const std::span<Entry> entries =
      enter(mine, {.kind = CallKind::kAllGather, .type = type, .count = count}, part, nullptr);
  {
    const Hub::Access access(shared_->hub, rank_);
    std::byte* place = static_cast<std::byte*>(whole);
    for (const Entry& entry : entries) {
      copy_bytes(place, entry.source, part_bytes);
      place += part_bytes;
    }
  }
  meet(mine);
}

void ThreadCommunicator::broadcast(int group, void* data, std::int64_t bytes, int root) {
  Membership& mine = membership(group);
  const std::span<Entry> entries =
      enter(mine, {.kind = CallKind::kBroadcast, .root = root, .count = bytes}, data, nullptr);
  if (rank_ != root) {
    const Hub::Access access(shared_->hub, rank_);
    const std::vector<int>& ranks = mine.group->ranks();
    const auto place = std::find(ranks.begin(), ranks.end(), root) - ranks.begin();
    copy_bytes(static_cast<std::byte*>(data), entries[static_cast<std::size_t>(place)].source, bytes);
  }
  meet(mine);
}

void ThreadCommunicator::post_send(int to, std::int64_t number, const void* data, std::int64_t bytes) {
  const TransferKey key{rank_, to, number};
  TransferEnd& end = new_end(sends_, key, to, bytes);
  end.is_send = true;
  end.data = const_cast<std::byte*>(static_cast<const std::byte*>(data));  // only read: see TransferEnd
  post(key, to, end);
}

void ThreadCommunicator::post_recv(int from, std::int64_t number, void* data, std::int64_t bytes) {
  const TransferKey key{from, rank_, number};
  TransferEnd& end = new_end(receives_, key, from, bytes);
  end.data = static_cast<std::byte*>(data);
  post(key, from, end);
}

void ThreadCommunicator::wait_send(int to, std::int64_t number) { wait(sends_, {rank_, to, number}); }

void ThreadCommunicator::wait_recv(int from, std::int64_t number) { wait(receives_, {from, rank_, number}); }

bool ThreadCommunicator::has_sent(int to, std::int64_t number) {
  const auto place = sends_.find({rank_, to, number});
  return place != sends_.end() && place->second.done.load(std::memory_order_acquire);
}

ThreadCommunicator::Membership& ThreadCommunicator::membership(int handle) {
  if (handle < 0 || handle >= static_cast<int>(memberships_.size())) {
    fail(fmt::format("rank {} has no group {}", rank_, handle));
  }
  return memberships_[static_cast<std::size_t>(handle)];
}

void ThreadCommunicator::meet(Membership& mine) { mine.group->meet(rank_, ++mine.meetings); }

std::span<Entry> ThreadCommunicator::enter(Membership& mine, const Call& call, const void* source, void* target,
                                           std::size_t small_bytes) {
  const std::span<Entry> entries = mine.group->entries(++mine.calls);
  Entry& entry = entries[static_cast<std::size_t>(mine.index)];
  entry.call = call;
  entry.source = static_cast<const std::byte*>(source);
  entry.target = static_cast<std::byte*>(target);
  if (small_bytes > 0) std::memcpy(entry.small.data(), source, small_bytes);
  meet(mine);
  std::vector<Call> calls(entries.size());
  std::transform(entries.begin(), entries.end(), calls.begin(), [](const Entry& each) { return each.call; });
  if (const auto fault = reduction::disagreement(mine.group->ranks(), calls)) fail(*fault);
  return entries;
}

TransferEnd& ThreadCommunicator::new_end(Ends& own, const TransferKey& key, int peer, std::int64_t bytes) {
  if (peer < 0 || peer >= size()) fail(fmt::format("rank {} has no peer {}", rank_, peer));
  const auto [place, is_new] = own.try_emplace(key);
  if (!is_new) {
    fail(fmt::format("rank {}: transfer {} from rank {} to rank {} is already in flight", rank_, key.number, key.source,
                     key.destination));
  }
  place->second.bytes = bytes;
  return place->second;
}

void ThreadCommunicator::post(const TransferKey& key, int peer, TransferEnd& end) {
  std::int64_t other_bytes = 0;
  {
    const Hub::Access access(shared_->hub, rank_);
    TransferEnd* const other = shared_->transfers.match_or_leave(key, end);
    if (other == nullptr) return;
    other_bytes = other->bytes;
    if (other_bytes == end.bytes) {
      copy_bytes(end.is_send ? other->data : end.data, end.is_send ? end.data : other->data, end.bytes);
      end.done.store(true, std::memory_order_relaxed);
      other->done.store(true, std::memory_order_release);  // the last touch: its owner may forget it at once
    }
  }
  if (other_bytes != end.bytes) {
    fail(fmt::format("transfer {} from rank {} to rank {}: {} bytes sent, {} expected", key.number, key.source,
                     key.destination, end.is_send ? end.bytes : other_bytes, end.is_send ? other_bytes : end.bytes));
  }
  if (peer != rank_) shared_->hub.ring(peer);
}

void ThreadCommunicator::wait(Ends& own, const TransferKey& key) {
  const auto place = own.find(key);
  if (place == own.end()) {
    fail(fmt::format("rank {} waits for transfer {} from rank {} to rank {}, which it never posted", rank_, key.number,
                     key.source, key.destination));
  }
  shared_->hub.wait_until(rank_, [&] { return place->second.done.load(std::memory_order_acquire); });
  own.erase(place);
}

void ThreadCommunicator::fail(const std::string& reason) {
  abort(reason);
  shared_->hub.raise();
}

}  // namespace trivium::runtime::inproc
