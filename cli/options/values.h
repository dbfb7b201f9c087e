// What options take, checked where the command line is read: one of some names, counts with suffixes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace trivium::cli {

/// One of these names; what is none is refused with the nearest of them, or all.
CLI::Validator one_of(std::vector<std::string> names);

/// Makes "2B" of an option that takes a number of tokens the number that it means, before it is read as one.
CLI::Validator token_suffixes();

/// The same for the tokens of one sample, where "8K" is refused: it is 8,000 to some and 8,192 to others. "8Ki" is not.
CLI::Validator sequence_suffixes();

/// The values that an option takes, where they are few and have names: of `one_of`, or of "none|host|disk".
std::vector<std::string> values_of(const CLI::Option& option);

/// What help shows after an option: "N", "FILE", "op|segment"; empty for a flag.
std::string value_name(const CLI::Option& option);

}  // namespace trivium::cli
