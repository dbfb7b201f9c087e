// When work is issued, recorded and launched as recorded.
#include "runtime/cuda/graph_cache.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace trivium::runtime::cuda {
namespace {

/// A stream in words: what was issued, recorded and launched.
struct Stream {
  std::string done, tape;
  bool recording = false, refuses = false;
  std::uint64_t generation = 0;
  void issue(const std::string& word) { (recording ? tape : done) += word; }
};

struct Recorder {
  Stream* stream;
  using Recorded = std::string;
  void begin() {
    if (stream->refuses) throw std::runtime_error("this stream does not record");
    stream->recording = true, stream->tape.clear();
  }
  Recorded end() { return stream->recording = false, "[" + stream->tape + "]"; }
  void give_up() { stream->recording = false; }
  void launch(const Recorded& recorded) { stream->done += recorded; }
  std::uint64_t generation() const { return stream->generation; }
};

TEST(GraphCache, IssuesThenRecordsThenLaunches) {
  Stream stream;
  GraphCache<Recorder> cache(Recorder{&stream});
  for (int i = 0; i < 3; ++i) cache.run(1, [&] { stream.issue("a"); });
  EXPECT_EQ(stream.done, "a[a][a]");
  cache.run(2, [&] { stream.issue("b"); });
  cache.run(1, [] { FAIL() << "issued, though it is recorded"; });
  EXPECT_EQ(stream.done, "a[a][a]b[a]");
}

TEST(GraphCache, RecordsAnewWhenMemoryMovedAndIssuesWhenItForgot) {
  Stream stream;
  GraphCache<Recorder> cache(Recorder{&stream});
  const auto run = [&](const char* word) { cache.run(1, [&] { stream.issue(word); }); };
  run("a"), run("a");
  stream.generation = 1;
  run("b"), run("c");
  EXPECT_EQ(stream.done, "a[a][b][b]");
  cache.forget();
  EXPECT_TRUE(cache.empty());
  run("d"), run("e"), run("f");
  EXPECT_EQ(stream.done, "a[a][b][b]d[e][e]");
}

// A call that a stream cannot record throws: the work is done all the same, and nothing is recorded any more.
TEST(GraphCache, IssuesFromThenOnWhereRecordingFails) {
  Stream stream;
  GraphCache<Recorder> cache(Recorder{&stream});
  for (const std::uint64_t number : {1, 1, 1, 2, 2}) {
    cache.run(number, [&] {
      stream.issue("x");
      if (stream.recording) throw std::runtime_error("not while recording");
    });
  }
  EXPECT_EQ(stream.done, "xxxxx");
  EXPECT_EQ(cache.failure(), "not while recording");
}

TEST(GraphCache, IssuesWhereAStreamRefusesToRecord) {
  Stream stream;
  stream.refuses = true;
  GraphCache<Recorder> cache(Recorder{&stream});
  for (int i = 0; i < 3; ++i) cache.run(1, [&] { stream.issue("a"); });
  EXPECT_EQ(stream.done, "aaa");
  EXPECT_EQ(cache.failure(), "this stream does not record");
}

}  // namespace
}  // namespace trivium::runtime::cuda
