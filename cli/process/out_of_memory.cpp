#include "cli/process/out_of_memory.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/say.h"

namespace trivium::cli {
namespace {

constexpr std::size_t kReserve = std::size_t{64} << 20;  // of addresses: nothing is ever written there

void* reserve = nullptr;

void give_back_and_fail() {
  std::set_new_handler(nullptr);
  std::free(reserve);
  throw std::bad_alloc();
}

[[noreturn]] void end() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    base::say_text("error: out of memory on this machine; try a smaller job\n");
    ::_exit(static_cast<int>(base::ErrorKind::kRuntime));
  } catch (...) {
  }
  base::say_text("error: a mistake of the program itself; please report the command and its files\n");
  std::abort();
}

}  // namespace

void prepare_for_lack_of_memory() {
  std::set_terminate(end);
  reserve = std::malloc(kReserve);
  if (reserve != nullptr) std::set_new_handler(give_back_and_fail);
}

}  // namespace trivium::cli
