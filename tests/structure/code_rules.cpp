#include "tests/structure/code_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <functional>
#include <map>
#include <regex>

#include "tests/structure/source_tree.h"

namespace trivium::structure {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStacks = "stacks";

/// What simulates a Program: its files know a Program, and no job. The others prepare programs or describe runs.
constexpr std::array kInterpreters{"simulator/collectives/", "simulator/cost/",    "simulator/iteration/",
                                   "simulator/memory/",      "simulator/replay/",  "simulator/schedule/",
                                   "simulator/sharing/",     "runtime/cpu/",       "runtime/cuda/",
                                   "runtime/executor/",      "runtime/generate/",  "runtime/inproc/",
                                   "runtime/mpi/",           "runtime/reduction/", "runtime/checkpoint/pieces"};

/// Calls `visit(number, line)` for every line of a file.
void each_line(const fs::path& path, const std::function<void(int, const std::string&)>& visit) {
  std::ifstream stream(path);
  int number = 0;
  for (std::string line; std::getline(stream, line);) visit(++number, line);
}

std::string at(const fs::path& file, int number) { return file.generic_string() + ":" + std::to_string(number); }

/// The files of the tree that a file includes by their path from the root.
std::map<std::string, std::vector<std::string>> include_graph(const fs::path& root) {
  static const std::regex kInclude(R"re(\s*#\s*include\s*"([^"]+)".*)re");
  std::map<std::string, std::vector<std::string>> graph;
  for (const fs::path& file : source_files(root)) {
    auto& reached = graph[file.generic_string()];
    each_line(root / file, [&](int, const std::string& line) {
      std::smatch match;
      if (line.find("include") != std::string::npos && std::regex_match(line, match, kInclude) &&
          fs::exists(root / match[1].str()))
        reached.push_back(match[1]);
    });
  }
  return graph;
}

/// Depth first; a file that is met again on the way to it closes a circle.
class Circles {
 public:
  explicit Circles(std::map<std::string, std::vector<std::string>> graph) : graph_(std::move(graph)) {
    for (const auto& [file, included] : graph_) visit(file);
  }
  std::vector<std::string> found;

 private:
  enum class State { kNew, kOpen, kDone };

  void visit(const std::string& file) {
    if (state_[file] == State::kDone) return;
    if (state_[file] == State::kOpen) {
      std::string circle;
      for (auto step = std::find(way_.begin(), way_.end(), file); step != way_.end(); ++step) circle += *step + " -> ";
      found.push_back(circle + file);
      return;
    }
    state_[file] = State::kOpen;
    way_.push_back(file);
    for (const std::string& next : graph_[file]) visit(next);
    way_.pop_back();
    state_[file] = State::kDone;
  }

  std::map<std::string, std::vector<std::string>> graph_;
  std::map<std::string, State> state_;
  std::vector<std::string> way_;
};

}  // namespace

std::vector<std::string> jobs_in_interpreters(const fs::path& root) {
  static const std::regex kJob(R"re((\.|->)job\b)re");
  std::vector<std::string> places;
  for (const fs::path& file : source_files(root)) {
    const std::string name = file.generic_string();
    const auto holds = [&](const char* folder) { return name.starts_with(folder); };
    if (std::none_of(kInterpreters.begin(), kInterpreters.end(), holds)) continue;
    each_line(root / file, [&](int number, const std::string& line) {
      if (line.find("job") != std::string::npos && std::regex_search(line, kJob)) places.push_back(at(file, number));
    });
  }
  return places;
}

std::vector<std::string> stacks_in_branches(const fs::path& root) {
  static const std::regex kCompared(R"re((==|!=|starts_with\(|ends_with\(|contains\(|compare\(|find\()\s*"([^"]+)")re");
  std::vector<std::string> stacks;
  for (const auto& entry : fs::directory_iterator(root / kStacks)) stacks.push_back(entry.path().stem().string());
  std::vector<std::string> places;
  for (const fs::path& file : source_files(root)) {
    if (file.begin()->string() == "tests") continue;
    each_line(root / file, [&](int number, const std::string& line) {
      if (line.find('"') == std::string::npos) return;
      for (std::sregex_iterator match(line.begin(), line.end(), kCompared), end; match != end; ++match) {
        const std::string word = (*match)[2];
        const bool begins_one =
            (*match)[1] == "starts_with(" &&
            std::any_of(stacks.begin(), stacks.end(), [&](auto& s) { return word.size() >= 4 && s.starts_with(word); });
        if (begins_one || std::find(stacks.begin(), stacks.end(), word) != stacks.end()) {
          places.push_back(at(file, number) + ": " + word);
        }
      }
    });
  }
  return places;
}

// As the formatter writes them: what begins with a letter in some column ends with a brace in that column. A function
// has a parenthesis before its first brace at the end of a line.
std::vector<std::string> long_functions(const fs::path& root, int most) {
  static const std::regex kType(R"( *(namespace|class|struct|enum|union|template|using|extern)\b.*)");
  std::vector<std::string> found;
  for (const fs::path& file : source_files(root)) {
    if (file.extension() != ".cpp" && file.extension() != ".h") continue;
    if (file.generic_string().starts_with("runtime/cuda/kernels/")) continue;
    for (const std::size_t indent : {0, 2}) {  // functions; members written in their class
      int begin = 0;
      bool is_open = false, is_function = false;
      each_line(root / file, [&](int number, const std::string& line) {
        const std::size_t column = line.find_first_not_of(' ');
        if (column == std::string::npos) return;
        if (column == indent && line[column] == '}') {
          if (is_open && is_function && number - begin >= most) {
            found.push_back(at(file, begin) + ": " + std::to_string(number - begin + 1));
          }
          is_open = false;
        } else if (column == indent && std::isalpha(static_cast<unsigned char>(line[column])) != 0) {
          begin = number;
          is_open = is_function = false;
          if (std::regex_match(line, kType)) begin = 0;
        }
        if (begin == 0 || is_open) return;
        is_function = is_function || line.find('(') != std::string::npos;
        is_open = line.back() == '{';
      });
    }
  }
  return found;
}

std::vector<std::string> include_circles(const fs::path& root) { return Circles(include_graph(root)).found; }

}  // namespace trivium::structure
