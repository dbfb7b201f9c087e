#include "tests/calibration/foreign/made_trace.h"

#include "calibration/measurements/chrome_events.h"
#include "calibration/measurements/kineto.h"

namespace trivium::calibration::foreign {

MadeTrace::MadeTrace(int rank, int ranks) : ranks_(ranks) {
  document_["schemaVersion"] = 1;
  document_["distributedInfo"] = {{"backend", "nccl"}, {"rank", rank}, {"world_size", ranks}};
  document_["traceEvents"] = nlohmann::json::array();
}

MadeTrace& MadeTrace::add(const std::string& category, const std::string& name, int thread, double begin, double end,
                          nlohmann::json args) {
  document_["traceEvents"].push_back({{"ph", "X"},
                                      {"cat", category},
                                      {"name", name},
                                      {"pid", 0},
                                      {"tid", thread},
                                      {"ts", begin},
                                      {"dur", end - begin},
                                      {"args", std::move(args)}});
  return *this;
}

MadeTrace& MadeTrace::step(int number, double begin, double end) {
  return range("ProfilerStep#" + std::to_string(number), begin, end);
}

MadeTrace& MadeTrace::range(const std::string& name, double begin, double end) {
  return add("user_annotation", name, 1, begin, end, nlohmann::json::object());
}

MadeTrace& MadeTrace::op(const std::string& name, double begin, double end, const Dims& dims) {
  nlohmann::json args{{"External id", ++operators_}};
  if (!dims.empty()) {
    args["Input Dims"] = dims;
    args["Input type"] = std::vector<std::string>(dims.size(), "c10::BFloat16");
  }
  return add("cpu_op", name, 1, begin, end, std::move(args));
}

MadeTrace& MadeTrace::kernel(const std::string& name, double begin, double end) {
  return add("kernel", name, 7, begin, end, {{"External id", operators_}, {"stream", 7}, {"device", 0}});
}

MadeTrace& MadeTrace::collective(const std::string& name, double begin, double end, int elements) {
  return add("kernel", "ncclDevKernel_" + name + "_RING_LL", 20, begin, end,
             {{"External id", -1},
              {"stream", 20},
              {"Collective name", name},
              {"Group size", ranks_},
              {"In msg nelems", elements},
              {"Out msg nelems", elements},
              {"dtype", "BFloat16"},
              {"Process Group Name", "0"}});
}

imports::KernelTrace MadeTrace::read(const std::string& file) const {
  return imports::read_kineto(imports::read_chrome_trace(text(), file), imports::OnCores::kTaken);
}

}  // namespace trivium::calibration::foreign
