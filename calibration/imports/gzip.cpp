#include "calibration/imports/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <stdexcept>

#include "edge/error.h"
#include "edge/files.h"

namespace trivium::calibration::imports {
namespace {

constexpr std::size_t kLargestPiece = std::size_t{1} << 30;  // zlib counts in 32 bits
constexpr std::size_t kLeastRoom = std::size_t{1} << 16;

/// zlib's state of one file, released at the end.
class Inflater {
 public:
  Inflater() {
    constexpr int kGzipWithLargestWindow = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipWithLargestWindow) != Z_OK) throw std::runtime_error("zlib does not start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  static constexpr int kTooLarge = 100;  ///< none of zlib's codes

  /// Unpacks one member behind `text` and takes what it used off the front of `bytes`. The code that it ended with, or
  /// kTooLarge as soon as the text has more than `most` bytes.
  int member(std::string_view& bytes, std::string& text, std::size_t most) {
    inflateReset(&stream_);
    int code = Z_OK;
    while (code == Z_OK) {
      const std::size_t before = text.size(), given = std::min(bytes.size(), kLargestPiece),
                        room =
                            std::clamp(std::min(before, most + 1 - std::min(before, most)), kLeastRoom, kLargestPiece);
      text.resize(before + room);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib only reads it
      stream_.avail_in = static_cast<uInt>(given);
      stream_.next_out = reinterpret_cast<Bytef*>(text.data() + before);
      stream_.avail_out = static_cast<uInt>(room);
      code = inflate(&stream_, Z_NO_FLUSH);
      bytes.remove_prefix(given - stream_.avail_in);
      text.resize(before + room - stream_.avail_out);
      if (text.size() > most) return kTooLarge;
    }
    return code;
  }

 private:
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string unpacked(std::string_view bytes, const std::string& file) {
  const auto refuse = [&](const std::string& what) {
    throw edge::Failure(edge::ErrorKind::kInput, file + ": " + what);
  };
  std::string text;
  Inflater inflater;
  while (!bytes.empty()) {
    const int code = inflater.member(bytes, text, edge::input_limit());
    if (code == Inflater::kTooLarge) refuse("unpacks to more than " + edge::input_limit_text());
    // Without room or input left zlib makes no progress (Z_BUF_ERROR): the room is never what is missing.
    if (code == Z_BUF_ERROR) {
      refuse(
          fmt::format("is compressed and ends early, behind {} bytes of what it holds; copy it again, or unpack what "
                      "is there (zcat FILE > PART) and give that",
                      text.size()));
    }
    if (code != Z_STREAM_END) refuse("is compressed and cannot be unpacked; it is damaged, copy it again");
    if (bytes.find_first_not_of('\0') == std::string_view::npos) break;  // tapes fill blocks up with zeros
    if (!is_gzip(bytes))
      refuse("is compressed, and something else stands behind its end; was it put together by hand?");
  }
  return text;
}

}  // namespace trivium::calibration::imports
