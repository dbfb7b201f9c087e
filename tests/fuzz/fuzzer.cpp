// libFuzzer's entry: one program, the reader chosen by TRIVIUM_FUZZ_READER.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/readers.h"

namespace {

trivium::fuzz::Reader chosen() {
  const char* name = std::getenv("TRIVIUM_FUZZ_READER");
  for (const trivium::fuzz::NamedReader& reader : trivium::fuzz::readers()) {
    if (name != nullptr && reader.name == name) return reader.read;
  }
  std::fputs("TRIVIUM_FUZZ_READER must be the name of a folder in tests/fuzz/corpus\n", stderr);
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const trivium::fuzz::Reader kRead = chosen();
  kRead({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
