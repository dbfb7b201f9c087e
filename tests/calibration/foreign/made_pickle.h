// A snapshot of PyTorch's allocator as `torch.cuda.memory._dump_snapshot` writes it, made by hand.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace trivium::calibration::foreign {

class MadeSnapshot {
 public:
  struct Call {
    std::string function, file;
  };

  std::int64_t before(std::int64_t bytes, Call call);  ///< allocated before the recording began; its address
  std::int64_t alloc(std::int64_t bytes, Call call);
  void free(std::int64_t address);
  std::string pickled() const;

 private:
  struct Event {
    std::string action;
    std::int64_t address = 0, bytes = 0;
    Call call;
  };
  std::int64_t next_ = 4096;
  std::map<std::int64_t, std::pair<std::int64_t, Call>> live_;
  std::vector<Event> events_;
};

}  // namespace trivium::calibration::foreign
