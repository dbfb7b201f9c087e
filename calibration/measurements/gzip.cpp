#include "calibration/measurements/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <functional>
#include <new>

#include "base/error.h"
#include "base/files.h"

namespace trivium::calibration::imports {
namespace {

constexpr std::size_t kRoom = std::size_t{1} << 20;
constexpr std::size_t kLargestPiece = std::size_t{1} << 30;  // zlib counts in 32 bits

using Sink = std::function<void(std::string_view)>;

/// zlib's state of one file, released at the end.
class Inflater {
 public:
  Inflater() : room_(kRoom, '\0') {
    constexpr int kGzipWithLargestWindow = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipWithLargestWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Unpacks one member piece by piece and takes what it used off the front of `bytes`. The code that it ended with.
  int member(std::string_view& bytes, const Sink& sink) {
    inflateReset(&stream_);
    int code = Z_OK;
    while (code == Z_OK) {
      const std::size_t given = std::min(bytes.size(), kLargestPiece);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib only reads it
      stream_.avail_in = static_cast<uInt>(given);
      stream_.next_out = reinterpret_cast<Bytef*>(room_.data());
      stream_.avail_out = static_cast<uInt>(room_.size());
      code = inflate(&stream_, Z_NO_FLUSH);
      bytes.remove_prefix(given - stream_.avail_in);
      sink(std::string_view(room_).substr(0, room_.size() - stream_.avail_out));
    }
    return code;
  }

 private:
  z_stream stream_{};
  std::string room_;
};

/// All members, one after another.
void unpack(std::string_view bytes, const std::string& file, const Sink& sink) {
  const auto refuse = [&](const std::string& what) {
    throw base::Failure(base::ErrorKind::kInput, file + ": " + what);
  };
  std::size_t size = 0;
  const Sink counted = [&](std::string_view piece) {
    size += piece.size();
    if (size > base::input_limit()) refuse("unpacks to more than " + base::input_limit_text());
    sink(piece);
  };
  Inflater inflater;
  while (!bytes.empty()) {
    const int code = inflater.member(bytes, counted);
    // Without room or input left zlib makes no progress (Z_BUF_ERROR): the room is never what is missing.
    if (code == Z_BUF_ERROR) {
      refuse(
          fmt::format("is compressed and ends early, after {} bytes of what it holds; copy it again, or unpack what "
                      "is there (zcat FILE > PART) and give that",
                      size));
    }
    if (code != Z_STREAM_END) refuse("is compressed and cannot be unpacked; it is damaged, copy it again");
    if (bytes.find_first_not_of('\0') == std::string_view::npos) break;  // tapes fill blocks up with zeros
    if (!is_gzip(bytes)) refuse("is compressed, and something else follows its end; was it put together by hand?");
  }
}

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string unpacked(std::string_view bytes, const std::string& file) {
  // Twice, so that a text of the largest size takes that much memory and not twice as much while it grows.
  std::size_t size = 0;
  unpack(bytes, file, [&](std::string_view piece) { size += piece.size(); });
  std::string text;
  text.reserve(size);
  unpack(bytes, file, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace trivium::calibration::imports
