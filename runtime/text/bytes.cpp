#include "runtime/text/tokenizer.h"

namespace trivium::runtime::text {
namespace {

constexpr std::int64_t kByteTokens = 256;

class Bytes final : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens) {
      if (token >= 0 && token < kByteTokens) {
        text += static_cast<char>(token);
      } else {
        text += "\xEF\xBF\xBD";
      }
    }
    return text;
  }
  std::int64_t vocabulary() const override { return kByteTokens; }
};

}  // namespace

std::unique_ptr<Tokenizer> bytes_tokenizer() { return std::make_unique<Bytes>(); }

}  // namespace trivium::runtime::text
