#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "base/units.h"

namespace trivium::base {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kInputLimit = std::size_t{1} << 30;
std::atomic<std::size_t> chosen_limit = kInputLimit;

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  /// Closes now and says whether that worked: some file systems report a full disk only here.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

[[noreturn]] void fail_reading(const fs::path& path, std::string_view why) {
  throw Failure(ErrorKind::kInput, fmt::format("{}: cannot read: {}", one_line(path.string()), why));
}

[[noreturn]] void fail_writing(const fs::path& path, std::string_view why) {
  throw Failure(ErrorKind::kRuntime, fmt::format("{}: cannot write: {}", one_line(path.string()), why));
}

bool write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Pipes and devices (`-o /dev/stdout`) are written as they are: a rename would replace the device by a file.
void write_in_place(const fs::path& path, std::string_view content) {
  Descriptor out(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (out.number() < 0 || !write_all(out.number(), content) || !out.close()) fail_writing(path, std::strerror(errno));
}

fs::path temporary_beside(const fs::path& path) {
  static std::atomic<unsigned> count = 0;
  return path.parent_path() / fmt::format(".{}.{}-{}.tmp", path.filename().string(), ::getpid(), ++count);
}

/// After a rename the folder itself must reach the disk too. Not every file system can do it, so failing is no error.
void flush_folder(const fs::path& folder) {
  const Descriptor descriptor(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.number() >= 0) ::fsync(descriptor.number());
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

}  // namespace

std::size_t input_limit() { return chosen_limit; }
void set_input_limit(std::size_t bytes) { chosen_limit = bytes; }

std::string input_limit_text() {
  return fmt::format("{}; --max-input SIZE allows more", to_text(Bytes(static_cast<double>(input_limit()))));
}

std::string read_file(const fs::path& path) {
  const bool is_stdin = path == "-";
  // Not blocking, so that a pipe nobody writes to is refused at once.
  const Descriptor in(is_stdin ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                               : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (in.number() < 0) fail_reading(path, errno == ENOENT ? "there is no such file" : std::strerror(errno));
  struct stat status {};
  if (::fstat(in.number(), &status) != 0) fail_reading(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail_reading(path, "it is a folder; name a file");
  if (!is_stdin && !S_ISREG(status.st_mode)) {
    fail_reading(path, "it is a pipe or a device; save it to a file first, or name - and give it as standard input");
  }
  const auto too_large = [&] { fail_reading(path, "it is larger than " + input_limit_text()); };
  const std::size_t limit = input_limit(),
                    size = S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) : 0;
  if (size > limit) too_large();
  std::string content;
  content.reserve(size);
  std::array<char, 1 << 16> block;
  while (true) {
    const ssize_t got = ::read(in.number(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_reading(path, std::strerror(errno));
    if (got == 0) return content;
    content.append(block.data(), static_cast<std::size_t>(got));
    if (content.size() > limit) too_large();
  }
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  std::error_code error;
  if (is_folder(path) || !path.has_filename()) fail_writing(path, "it is a folder; name a file");
  // A symbolic link stays; the file that it points to is replaced.
  const fs::path target = fs::is_symlink(path, error) && fs::exists(path, error) ? fs::canonical(path, error) : path;
  if (fs::exists(target, error) && !fs::is_regular_file(target, error)) return write_in_place(target, content);
  if (const fs::path folder = target.parent_path(); !folder.empty()) {
    fs::create_directories(folder, error);
    if (error && !is_folder(folder)) fail_writing(path, error.message());
  }

  const fs::path temporary = temporary_beside(target);
  Descriptor out(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (out.number() < 0) fail_writing(path, std::strerror(errno));
  struct stat old {};
  const bool keeps_mode = ::stat(target.c_str(), &old) == 0;
  const bool written = (!keeps_mode || ::fchmod(out.number(), old.st_mode & 07777) == 0) &&
                       write_all(out.number(), content) && ::fsync(out.number()) == 0 && out.close() &&
                       ::rename(temporary.c_str(), target.c_str()) == 0;
  if (!written) {
    const int why = errno;
    ::unlink(temporary.c_str());
    fail_writing(path, std::strerror(why));
  }
  flush_folder(target.parent_path());
}

fs::path shipped_data(std::string_view name) {
  std::error_code ignored;
  if (const char* folder = std::getenv("TRIVIUM_DATA_DIR"); folder != nullptr && *folder != '\0') {
    if (const fs::path chosen = fs::path(folder) / name; is_folder(chosen)) return chosen;
  }
  if (const fs::path program = fs::read_symlink("/proc/self/exe", ignored); !program.empty()) {
    const fs::path installed = (program.parent_path() / TRIVIUM_DATA_FROM_PROGRAM / name).lexically_normal();
    if (is_folder(installed)) return installed;
  }
  for (const std::string_view folder : {TRIVIUM_SOURCE_DIR, TRIVIUM_INSTALLED_DATA}) {
    if (const fs::path known = fs::path(folder) / name; !folder.empty() && is_folder(known)) return known;
  }
  throw Failure(
      ErrorKind::kRuntime,
      fmt::format("shipped data {} not found; set TRIVIUM_DATA_DIR to the folder that holds it", quote(name)));
}

std::vector<std::string> module_files(std::string_view name) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (ignored) return {};
  const fs::path here = program.parent_path(), libraries = here.parent_path() / "lib";
  std::vector<std::string> found;
  for (const fs::path& folder : {here, libraries, libraries / "trivium"}) {
    if (fs::exists(folder / name, ignored)) found.push_back((folder / name).string());
  }
  return found;
}

fs::path user_data() {
  // The XDG specification asks to ignore relative paths.
  if (const char* folder = std::getenv("XDG_DATA_HOME"); folder != nullptr && *folder == '/') {
    return fs::path(folder) / "trivium";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    const passwd* entry = ::getpwuid(::getuid());
    home = entry == nullptr ? nullptr : entry->pw_dir;
  }
  if (home == nullptr) throw Failure(ErrorKind::kRuntime, "no home folder; set HOME or XDG_DATA_HOME");
  return fs::path(home) / ".local" / "share" / "trivium";
}

}  // namespace trivium::base
