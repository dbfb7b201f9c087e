#include "program/lower/body_builder.h"

#include <algorithm>
#include <utility>

#include "program/ir/alignment.h"
#include "program/ir/op_kinds.h"

namespace trivium::program {
namespace {

std::size_t index(Space space) { return static_cast<std::size_t>(space); }

bool share_memory(const Buffer& a, const Buffer& b) {
  return a.space == b.space && a.offset < b.offset + b.bytes() && b.offset < a.offset + a.bytes();
}

/// The last op that used each buffer.
struct LastUses {
  explicit LastUses(std::size_t all) : last(all, -1) {}

  int of(int b) const { return last[static_cast<std::size_t>(b)]; }
  void note(int b, int op) {
    int& known = last[static_cast<std::size_t>(b)];
    if (known < 0) buffers.push_back(b);
    known = std::max(known, op);
  }

  std::vector<int> last;     // by buffer; -1: none
  std::vector<int> buffers;  // that were used
};

}  // namespace

BodyBuilder::BodyBuilder(ChunkTemplate& kind, int kind_index) : kind_(kind), kind_index_(kind_index) {
  kind_.buffers.reserve(256);  // of a layer
  body_.ops.reserve(256);
}

int BodyBuilder::place(std::string name, Space space, DType dtype, std::int64_t elements) {
  const int id = view(std::move(name), space, dtype, elements, kind_.bytes[index(space)]);
  kind_.bytes[index(space)] += aligned(buffer(id).bytes());
  return id;
}

int BodyBuilder::view(std::string name, Space space, DType dtype, std::int64_t elements, std::int64_t offset) {
  kind_.buffers.push_back({std::move(name), space, dtype, elements, offset});
  return static_cast<int>(kind_.buffers.size()) - 1;
}

int BodyBuilder::temporary(std::string name, DType dtype, std::int64_t elements) {
  const int id = view(std::move(name), workspace_, dtype, elements, 0);
  temporaries_.push_back(id);
  return id;
}

void BodyBuilder::begin(const std::string& name, Space workspace) {
  body_.ops.clear();
  body_.segments.clear();
  workspace_ = workspace;
  body_.name = name;
  body_.chunk_kind = static_cast<std::int16_t>(kind_index_);
  temporaries_.clear();
}

void BodyBuilder::segment(const std::string& name) { segment(name, body_.parts()); }

void BodyBuilder::segment(const std::string& name, int part) {
  close_segment();
  const auto here = static_cast<std::int32_t>(body_.ops.size());
  body_.segments.push_back({name, here, here, static_cast<std::int16_t>(part)});
}

void BodyBuilder::cut(const std::string& name) {
  close_segment();
  const auto here = static_cast<std::int32_t>(body_.ops.size());
  Segment& last = body_.segments.back();
  if (last.begin == here) {  // nothing since the last cut
    last.name = name;
  } else {
    body_.segments.push_back({name, here, here, last.part});
  }
}

void BodyBuilder::close_segment() {
  if (!body_.segments.empty()) body_.segments.back().end = static_cast<std::int32_t>(body_.ops.size());
}

Op& BodyBuilder::add(OpKind kind, Pass pass, std::initializer_list<int> in, std::initializer_list<int> out) {
  Op op;
  op.kind = kind;
  op.pass = pass;
  std::copy(in.begin(), in.end(), op.in.begin());
  std::copy(out.begin(), out.end(), op.out.begin());
  body_.ops.push_back(op);
  return body_.ops.back();
}

Body BodyBuilder::finish() {
  close_segment();
  for (Op& op : body_.ops) fill_work(op);
  link_lanes();
  const std::vector<int> released = releases();
  place_temporaries(released);
  link_reused_memory(released);
  find_turns();
  return {std::move(body_.name), body_.chunk_kind, std::move(body_.segments), body_.ops};
}

// Where what is computed waits for an exchange with the experts that began in an earlier segment, another pass may use
// it meanwhile.
void BodyBuilder::find_turns() {
  for (Segment& segment : body_.segments) {
    for (int i = segment.begin; i < segment.end; ++i) {
      const Op& op = body_.ops[static_cast<std::size_t>(i)];
      segment.turn = segment.turn || std::any_of(op.after.begin(), op.after.end(), [&](std::int32_t before) {
                       const bool earlier = before >= 0 && before < segment.begin && op.lane != Lane::kExpert;
                       return earlier && body_.ops[static_cast<std::size_t>(before)].lane == Lane::kExpert;
                     });
    }
  }
}

// An op waits for the last op of every other lane that wrote what it touches, or read what it writes. Gradients go by
// several names, one by one and as buckets: there the memory counts, not the name.
void BodyBuilder::link_lanes() {
  const auto one_lane = [&](const Op& op) { return op.lane == body_.ops.front().lane; };
  if (std::all_of(body_.ops.begin(), body_.ops.end(), one_lane)) return;  // in order as it is
  struct Touch {
    std::array<int, kLanes> writer, reader;
    Touch() { writer.fill(-1), reader.fill(-1); }
  };
  std::vector<Touch> touches;
  std::vector<int> touch_of(kind_.buffers.size(), -1);  // by buffer
  std::vector<int> by_several_names;                    // touched buffers
  const auto goes_by_several_names = [&](int b) {
    const Space space = buffer(b).space;
    return space == Space::kGradient || space == Space::kGathered || space == Space::kStaging;
  };
  const auto touch = [&](int b) -> Touch& {
    int& known = touch_of[static_cast<std::size_t>(b)];
    if (known < 0) {
      known = static_cast<int>(touches.size());
      touches.emplace_back();
      if (goes_by_several_names(b)) by_several_names.push_back(b);
    }
    return touches[static_cast<std::size_t>(known)];
  };
  for (std::size_t i = 0; i < body_.ops.size(); ++i) {
    Op& op = body_.ops[i];
    const auto lane = static_cast<std::size_t>(op.lane);
    std::array<int, kLanes> latest;
    latest.fill(-1);
    const auto wait_for = [&](const std::array<int, kLanes>& last) {
      for (std::size_t l = 0; l < kLanes; ++l) latest[l] = std::max(latest[l], last[l]);
    };
    const auto wait_for_users = [&](int b, bool readers_too) {
      const auto wait_for_touch = [&](int of) {
        const Touch& last = touches[static_cast<std::size_t>(of)];
        wait_for(last.writer);
        if (readers_too) wait_for(last.reader);
      };
      if (const int own = touch_of[static_cast<std::size_t>(b)]; own >= 0) wait_for_touch(own);
      if (!goes_by_several_names(b)) return;
      for (const int other : by_several_names) {
        if (other != b && share_memory(buffer(other), buffer(b))) {
          wait_for_touch(touch_of[static_cast<std::size_t>(other)]);
        }
      }
    };
    for (const int b : op.in) {
      if (b != kNoBuffer) wait_for_users(b, false);
    }
    for (const int b : op.out) {
      if (b != kNoBuffer) wait_for_users(b, true);
    }
    std::size_t used = 0;
    for (std::size_t l = 0; l < kLanes; ++l) {
      if (l != lane && latest[l] >= 0) op.after.at(used++) = latest[l];
    }
    for (const int b : op.in) {
      if (b != kNoBuffer) touch(b).reader[lane] = static_cast<int>(i);
    }
    for (const int b : op.out) {
      if (b != kNoBuffer) touch(b).writer[lane] = static_cast<int>(i);
    }
  }
}

// By op: at which op its memory is free again. Of an op on another lane that is where the compute lane waits for it, be
// it by way of further lanes: experts' rows are gathered on one lane and exchanged on the next.
std::vector<int> BodyBuilder::releases() const {
  const auto computes = [&](int i) { return body_.ops[static_cast<std::size_t>(i)].lane == Lane::kCompute; };
  const int count = static_cast<int>(body_.ops.size());
  std::vector<int> released(body_.ops.size(), -1), awaited;
  for (int i = 0; i < count; ++i) {
    if (!computes(i)) continue;
    released[static_cast<std::size_t>(i)] = i;
    awaited.assign({i});
    while (!awaited.empty()) {
      const Op& op = body_.ops[static_cast<std::size_t>(awaited.back())];
      awaited.pop_back();
      for (const std::int32_t before : op.after) {
        if (before < 0 || released[static_cast<std::size_t>(before)] >= 0 || computes(before)) continue;
        released[static_cast<std::size_t>(before)] = i;
        awaited.push_back(before);
      }
    }
  }
  std::replace(released.begin(), released.end(), -1, count - 1);
  return released;
}

// First fit over lifetimes in op order. What another lane touches lives on until an op of the compute lane has waited
// for it, so memory is not handed on while a collective still runs.
void BodyBuilder::place_temporaries(const std::vector<int>& released) {
  struct Life {
    int id, first, last;
    std::int64_t offset = 0, bytes = 0;
  };
  std::vector<Life> order;
  std::vector<int> life_of(kind_.buffers.size(), -1);  // by buffer
  const int count = static_cast<int>(body_.ops.size());
  for (int i = 0; i < count; ++i) {
    const Op& op = body_.ops[static_cast<std::size_t>(i)];
    const auto touch = [&](int b) {
      if (!is_temporary(b)) return;
      int& known = life_of[static_cast<std::size_t>(b)];
      if (known < 0) {
        known = static_cast<int>(order.size());
        order.push_back({b, i, i, 0, aligned(buffer(b).bytes())});
      }
      int& last = order[static_cast<std::size_t>(known)].last;
      last = std::max(last, released[static_cast<std::size_t>(i)]);
    };
    for (const int b : op.in) touch(b);
    for (const int b : op.out) touch(b);
  }
  std::sort(order.begin(), order.end(),
            [](const Life& a, const Life& b) { return a.first != b.first ? a.first < b.first : a.id < b.id; });
  std::vector<Life> placed;  // alive at the current op, by offset
  std::int64_t peak = 0;
  for (Life& life : order) {
    std::erase_if(placed, [&](const Life& other) { return other.last < life.first; });
    std::int64_t offset = 0;
    for (const Life& other : placed) {
      if (other.offset - offset >= life.bytes) break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    life.offset = offset;
    const auto at =
        std::find_if(placed.begin(), placed.end(), [&](const Life& other) { return other.offset > offset; });
    placed.insert(at, life);
    kind_.buffers[static_cast<std::size_t>(life.id)].offset = offset;
    peak = std::max(peak, offset + life.bytes);
  }
  auto& workspace = kind_.bytes[index(workspace_)];
  workspace = std::max(workspace, peak);
}

// A collective on a lane of its own may start long before the compute lane gets there: where it writes a temporary
// whose memory served another before, it waits for the last op of the compute lane that used that memory, or waited for
// another lane to have done so.
void BodyBuilder::link_reused_memory(const std::vector<int>& released) {
  const Lane first = body_.ops.empty() ? Lane::kCompute : body_.ops.front().lane;
  if (std::all_of(body_.ops.begin(), body_.ops.end(), [&](const Op& op) { return op.lane == first; })) return;
  LastUses last_use(kind_.buffers.size());      // on the compute lane
  LastUses last_release(kind_.buffers.size());  // by that lane, of what another used
  for (std::size_t i = 0; i < body_.ops.size(); ++i) {
    Op& op = body_.ops[i];
    const bool computes = op.lane == Lane::kCompute;
    int wait = -1;
    for (const int b : op.out) {
      if (computes || !is_temporary(b)) continue;
      for (const int other : last_use.buffers) {
        if (share_memory(buffer(other), buffer(b))) wait = std::max(wait, last_use.of(other));
      }
      for (const int other : last_release.buffers) {
        const int release = last_release.of(other);
        const bool over = other != b && release < static_cast<int>(i);
        if (over && share_memory(buffer(other), buffer(b))) wait = std::max(wait, release);
      }
    }
    const auto of_compute = [&](std::int32_t a) {
      return a >= 0 && body_.ops[static_cast<std::size_t>(a)].lane == Lane::kCompute;
    };
    auto slot = std::find_if(op.after.begin(), op.after.end(), of_compute);
    if (slot == op.after.end()) slot = std::find(op.after.begin(), op.after.end(), -1);
    if (wait >= 0) *slot = std::max(*slot, wait);
    const auto use = [&](int b) {
      if (is_temporary(b)) (computes ? last_use : last_release).note(b, released[i]);
    };
    for (const int b : op.in) use(b);
    for (const int b : op.out) use(b);
  }
}

}  // namespace trivium::program
