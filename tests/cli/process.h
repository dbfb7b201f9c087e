// Commands run as a user would, in a folder of their own.
#pragma once

#include <filesystem>
#include <string>

namespace trivium::cli {

/// What a command left behind.
struct Outcome {
  int exit_code = 0;
  std::string out, err;
};

/// A fresh folder that lives as long as one test; `trivium` is on the path of commands run in it, the user's data
/// folder lies inside it, and colour is off.
class Workplace {
 public:
  Workplace();
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  /// Runs a line of shell in the folder. It may use functions, the first two of which hold on machines of any speed and
  /// load: `await PID CONDITION` waits until the condition holds or the child is gone, and `asked_by_signals PID` is
  /// the condition that the process takes SIGINT as a request to stop. `foreign_listeners PID...` prints the addresses
  /// on which those processes listen, each in its own network, besides loopback ones.
  Outcome run(const std::string& command) const;
  std::string read(const std::string& name) const;
  void write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path folder_;
};

/// Content of a file, or empty where there is none.
std::string content_of(const std::filesystem::path& path);

}  // namespace trivium::cli
