// trivium tokenize: text as a token file that `run --corpus` reads.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/quote.h"
#include "base/say.h"
#include "cli/options/command.h"
#include "cli/render/output.h"
#include "runtime/text/tokenizer.h"

namespace trivium::cli {
namespace {

struct TokenizeOptions {
  std::string text, output, vocabulary, merges;
};

// llm.c's header: 256 int32 {magic, version, tokens, 0 …}; tokens are uint16 or, beyond 65,536 of them, uint32.
constexpr std::size_t kHeaderWords = 256;

template <class Token>
std::string packed(const std::vector<std::int32_t>& tokens, std::int32_t magic, std::int32_t version) {
  std::array<std::int32_t, kHeaderWords> header{magic, version, static_cast<std::int32_t>(tokens.size())};
  std::string content(sizeof header + tokens.size() * sizeof(Token), '\0');
  std::memcpy(content.data(), header.data(), sizeof header);
  char* at = content.data() + sizeof header;
  for (const std::int32_t token : tokens) {
    const auto narrow = static_cast<Token>(token);
    std::memcpy(at, &narrow, sizeof narrow);
    at += sizeof narrow;
  }
  return content;
}

void tokenize(const TokenizeOptions& options) {
  const auto tokenizer = options.vocabulary.empty() ? runtime::text::bytes_tokenizer()
                                                    : runtime::text::open_bpe(options.vocabulary, options.merges);
  const std::string text = base::read_file(options.text);
  const std::vector<std::int32_t> tokens = tokenizer->encode(text);
  if (tokens.size() > std::numeric_limits<std::int32_t>::max()) {
    throw base::Failure(base::ErrorKind::kInput, fmt::format("{}: more tokens than the format counts; cut the text",
                                                             base::one_line(options.text)));
  }
  constexpr std::int64_t kNarrow = std::int64_t{1} << 16;
  base::write_file_atomically(options.output, tokenizer->vocabulary() <= kNarrow
                                                  ? packed<std::uint16_t>(tokens, 20240520, 1)
                                                  : packed<std::uint32_t>(tokens, 20240801, 7));
  base::say("{}: {} tokens of {} bytes\n", base::one_line(options.output), tokens.size(), text.size());
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "Write a text as a token file for `run --corpus`");
  command->add_option("TEXT", options->text, "The text")->required()->type_name("FILE");
  add_output(*command, "-o,--output", options->output, "Token file (.bin, llm.c's form)", OutputKind::kTokens)
      ->required();
  CLI::Option* vocabulary = command->add_option("--vocabulary", options->vocabulary, "GPT-2's vocab.json; else bytes");
  CLI::Option* merges = command->add_option("--merges", options->merges, "GPT-2's merges.txt");
  vocabulary->type_name("FILE")->needs(merges);
  merges->type_name("FILE")->needs(vocabulary);
  command->callback([options, &exit_code] {
    tokenize(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
