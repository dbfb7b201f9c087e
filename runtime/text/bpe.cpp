#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/files.h"
#include "base/json_reader.h"
#include "base/quote.h"
#include "base/refuse.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/words.h"

namespace trivium::runtime::text {
namespace {

using base::refuse;

constexpr int kBytes = 256;
constexpr std::int64_t kMostTokens = 10'000'000;

std::string utf8(int code) {  // below U+0800, where the stand-ins of bytes are
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

/// The printable stand-in of every byte: itself where it is printable, else the next free character from U+0100 on.
std::array<std::string, kBytes> stand_ins() {
  std::array<std::string, kBytes> table;
  int next = kBytes;
  for (int byte = 0; byte < kBytes; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    table[static_cast<std::size_t>(byte)] = utf8(printable ? byte : next++);
  }
  return table;
}

class Bpe final : public Tokenizer {
 public:
  Bpe(const std::filesystem::path& vocabulary, const std::filesystem::path& merges) {
    read_vocabulary(vocabulary);
    read_merges(merges, vocabulary);
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> tokens;
    for (const std::string_view word : words_of(text)) encode_word(word, tokens);
    return tokens;
  }

  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens) {
      const bool known = token >= 0 && static_cast<std::size_t>(token) < bytes_of_.size();
      text += known ? bytes_of_[static_cast<std::size_t>(token)] : "\xEF\xBF\xBD";
    }
    return text;
  }

  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(bytes_of_.size()); }

 private:
  struct Merge {
    int rank = 0;
    std::int32_t result = 0;
  };

  void read_vocabulary(const std::filesystem::path& path) {
    const nlohmann::json json = base::read_json_file(path);
    const base::JsonReader reader(json, path.string());
    const auto table = stand_ins();
    std::unordered_map<std::string, char> byte_of;
    for (int byte = 0; byte < kBytes; ++byte) byte_of[table[static_cast<std::size_t>(byte)]] = static_cast<char>(byte);
    const auto members = reader.members();
    bytes_of_.resize(members.size());
    std::vector<bool> seen(members.size());
    for (const auto& [token, number] : members) {
      const std::int64_t id = number.integer(0, std::min<std::int64_t>(kMostTokens, std::ssize(members) - 1));
      if (seen[static_cast<std::size_t>(id)]) number.fail(fmt::format("two tokens have the number {}", id));
      seen[static_cast<std::size_t>(id)] = true;
      bytes_of_[static_cast<std::size_t>(id)] = bytes(token, byte_of);
      ids_[token] = static_cast<std::int32_t>(id);
    }
    for (int byte = 0; byte < kBytes; ++byte) {
      const auto found = ids_.find(table[static_cast<std::size_t>(byte)]);
      if (found == ids_.end()) {
        refuse(path, fmt::format("no token for the byte {:#04x} ({}); is this a byte-level vocabulary?", byte,
                                 table[static_cast<std::size_t>(byte)]));
      }
      single_[static_cast<std::size_t>(byte)] = found->second;
    }
  }

  // Special tokens ("<|endoftext|>") are their own text.
  static std::string bytes(const std::string& token, const std::unordered_map<std::string, char>& byte_of) {
    std::string result;
    for (std::size_t i = 0; i < token.size();) {
      const std::size_t length = (static_cast<unsigned char>(token[i]) & 0xE0) == 0xC0 ? 2 : 1;
      const auto found = byte_of.find(token.substr(i, length));
      if (found == byte_of.end()) return token;
      result += found->second;
      i += length;
    }
    return result;
  }

  void read_merges(const std::filesystem::path& path, const std::filesystem::path& vocabulary) {
    const std::string content = base::read_file(path);
    std::size_t at = 0;
    for (int number = 1; at < content.size(); ++number) {
      const std::size_t end = std::min(content.find('\n', at), content.size());
      std::string line = content.substr(at, end - at);
      at = end + 1;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
      const std::size_t space = line.find(' ');
      if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
        refuse(path,
               fmt::format("line {}: a merge is two tokens with a space between, not {}", number, base::quote(line)));
      }
      const auto id = [&](const std::string& token) {
        const auto found = ids_.find(token);
        if (found == ids_.end()) {
          refuse(path, fmt::format("line {}: {} is no token of the vocabulary {}", number, base::quote(token),
                                   base::one_line(vocabulary.string())));
        }
        return found->second;
      };
      const std::string left = line.substr(0, space), right = line.substr(space + 1);
      const int rank = static_cast<int>(merges_.size());
      merges_.emplace(std::pair(id(left), id(right)), Merge{rank, id(left + right)});
    }
  }

  // The most frequent pair is merged wherever it stands, then the next, until no pair is known.
  void encode_word(std::string_view word, std::vector<std::int32_t>& out) const {
    std::vector<std::int32_t> parts;
    for (const char c : word) parts.push_back(single_[static_cast<unsigned char>(c)]);
    while (parts.size() > 1) {
      const Merge* best = nullptr;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = merges_.find({parts[i], parts[i + 1]});
        if (found != merges_.end() && (best == nullptr || found->second.rank < best->rank)) best = &found->second;
      }
      if (best == nullptr) break;
      std::vector<std::int32_t> merged;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto found = i + 1 < parts.size() ? merges_.find({parts[i], parts[i + 1]}) : merges_.end();
        const bool joins = found != merges_.end() && found->second.rank == best->rank;
        merged.push_back(joins ? found->second.result : parts[i]);
        if (joins) ++i;
      }
      parts = std::move(merged);
    }
    out.insert(out.end(), parts.begin(), parts.end());
  }

  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<std::string> bytes_of_;  // by token
  std::array<std::int32_t, kBytes> single_{};
  std::map<std::pair<std::int32_t, std::int32_t>, Merge> merges_;
};

}  // namespace

std::unique_ptr<Tokenizer> open_bpe(const std::filesystem::path& vocabulary, const std::filesystem::path& merges) {
  return std::make_unique<Bpe>(vocabulary, merges);
}

}  // namespace trivium::runtime::text
