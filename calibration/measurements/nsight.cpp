#include "calibration/measurements/nsight.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <system_error>

#include "base/files.h"
#include "base/quote.h"
#include "base/refuse.h"
#include "calibration/measurements/host_operators.h"
#include "calibration/measurements/operator_shapes.h"
#include "calibration/measurements/statistics.h"

namespace trivium::calibration::imports {
namespace {

using base::refuse;

constexpr double kNano = 1e-9;

/// A database that is only read. Every error names the file.
class Database {
 public:
  explicit Database(std::filesystem::path file) : file_(std::move(file)) {
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(file_.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    handle_.reset(opened);
    if (code != SQLITE_OK) fail();
    distrust();
  }

  /// Calls `row` for every row of the answer.
  void each(const std::string& query, const std::function<void(sqlite3_stmt*)>& row) const {
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_prepare_v2(handle_.get(), query.c_str(), -1, &prepared, nullptr) != SQLITE_OK) fail();
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(prepared, sqlite3_finalize);
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) row(statement.get());
    if (code != SQLITE_DONE) fail();
  }

  /// Names of a table's columns; empty where there is no such table.
  std::set<std::string> columns(const std::string& table) const {
    std::set<std::string> names;
    each("PRAGMA table_info(" + table + ")", [&](sqlite3_stmt* row) { names.insert(text(row, 1)); });
    return names;
  }

  static std::string text(sqlite3_stmt* row, int column) {
    const unsigned char* found = sqlite3_column_text(row, column);
    return found == nullptr ? "" : std::string(reinterpret_cast<const char*>(found));
  }

  [[noreturn]] void fail() const {
    const int code = handle_ ? sqlite3_errcode(handle_.get()) : SQLITE_CANTOPEN;
    refuse(file_, fmt::format("{}; export it again with nsys export --type sqlite", words_of(code)));
  }

 private:
  /// Nothing of the file's own may run: views, triggers and functions in its schema could take for ever, or all memory.
  void distrust() {
    sqlite3* const handle = handle_.get();
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    constexpr int kLongestText = 1 << 20;
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kLongestText);
    sqlite3_hard_heap_limit64(static_cast<sqlite3_int64>(base::input_limit()));
    std::error_code ignored;
    const auto bytes = std::filesystem::file_size(file_, ignored);
    constexpr std::int64_t kStepsAtLeast = 20'000'000, kStepsByByte = 100;
    steps_left_ = kStepsAtLeast + (ignored ? 0 : static_cast<std::int64_t>(bytes) * kStepsByByte);
    sqlite3_progress_handler(handle, kStepsBetweenLooks, count_steps, this);
    each("SELECT name FROM sqlite_master WHERE type = 'view'", [&](sqlite3_stmt* row) {
      refuse(file_,
             fmt::format("{} is a view, where exports of Nsight Systems have tables", base::quote(text(row, 0))));
    });
  }

  /// Every answer is read in steps by the file's size; one that takes far more was made to.
  static int count_steps(void* self) {
    auto& left = static_cast<Database*>(self)->steps_left_;
    left -= kStepsBetweenLooks;
    return left < 0 ? 1 : 0;
  }

  static std::string words_of(int code) {
    switch (code) {
      case SQLITE_CORRUPT:
      case SQLITE_NOTADB:
        return "is cut or damaged";
      case SQLITE_INTERRUPT:
        return "takes far longer to read than a file of its size";
      case SQLITE_NOMEM:
      case SQLITE_TOOBIG:
        return "takes more memory than " + base::input_limit_text();
      case SQLITE_CANTOPEN:
        return "cannot be opened";
      default:
        return "is no export of Nsight Systems, or its tables have other columns";
    }
  }

  static constexpr int kStepsBetweenLooks = 10'000;
  std::int64_t steps_left_ = 0;
  std::filesystem::path file_;
  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> handle_{nullptr, sqlite3_close};
};

class NsightReader {
 public:
  explicit NsightReader(const std::filesystem::path& file, std::optional<std::int64_t> process = std::nullopt)
      : file_(file), database_(file), wanted_(process) {
    result_.file = file.string();
    result_.tool = "Nsight Systems";
  }

  KernelTrace read() {
    const std::set<std::string> kernels = database_.columns("CUPTI_ACTIVITY_KIND_KERNEL");
    if (kernels.empty() || database_.columns("StringIds").empty()) {
      const bool graphs = !database_.columns("CUPTI_ACTIVITY_KIND_GRAPH_TRACE").empty();
      refuse(file_, graphs ? "lists CUDA graphs, not their kernels; capture again with --cuda-graph-trace=node"
                           : "has no table CUPTI_ACTIVITY_KIND_KERNEL" + what_is_there());
    }
    by_process_ = kernels.contains("globalPid");
    choose_process();
    read_names();
    read_ranges();
    read_kernels(kernels);
    read_copies();
    read_launches();
    read_steps();
    return std::move(result_);
  }

  /// Those that ran kernels, by their lowest device, but for such that ran next to none; empty where exports do not
  /// tell them.
  std::vector<std::int64_t> processes() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> all;  // with how many kernels
    if (!database_.columns("CUPTI_ACTIVITY_KIND_KERNEL").contains("globalPid")) return {};
    database_.each(
        "SELECT globalPid, COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL GROUP BY globalPid ORDER BY MIN(deviceId), "
        "globalPid",
        [&](sqlite3_stmt* row) { all.emplace_back(sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)); });
    std::int64_t most = 0;
    for (const auto& [process, kernels] : all) most = std::max(most, kernels);
    std::vector<std::int64_t> ranks;
    constexpr std::int64_t kHelpers = 100;
    for (const auto& [process, kernels] : all) {
      if (kernels * kHelpers >= most) ranks.push_back(process);
    }
    return ranks;
  }

 private:
  std::string where(const std::string& more = "") const {
    std::string text = by_process_ ? fmt::format(" WHERE globalPid = {}", process_) : "";
    if (!more.empty()) text += (text.empty() ? " WHERE " : " AND ") + more;
    return text;
  }

  void choose_process() {
    if (!by_process_) return;
    if (wanted_) {
      process_ = *wanted_;
      return;
    }
    database_.each(
        "SELECT globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL GROUP BY globalPid ORDER BY COUNT(*) DESC, "
        "globalPid LIMIT 1",
        [&](sqlite3_stmt* row) { process_ = sqlite3_column_int64(row, 0); });
  }

  void read_names() {
    if (database_.columns("TARGET_INFO_GPU").contains("name")) {
      database_.each("SELECT name FROM TARGET_INFO_GPU ORDER BY id LIMIT 1",
                     [&](sqlite3_stmt* row) { result_.device = Database::text(row, 0); });
    }
    for (const char* table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {  // the second until 2022 at least
      if (!database_.columns(table).contains("value")) continue;
      database_.each(fmt::format("SELECT value FROM {} WHERE name = 'EXPORT_SCHEMA_VERSION'", table),
                     [&](sqlite3_stmt* row) { result_.tool += ", schema " + Database::text(row, 0); });
    }
  }

  static constexpr std::int64_t kThreads = std::int64_t{1} << 24;  ///< thread ids below a process's

  bool is_ours(std::int64_t thread) const { return !by_process_ || thread / kThreads == process_ / kThreads; }

  /// Ranges of the process as operators, and where each kernel was launched.
  void read_ranges() {
    if (!database_.columns("NVTX_EVENTS").contains("globalTid")) return;
    each_range([&](double begin, double end, const std::string& text, std::int64_t thread) {
      if (is_ours(thread)) add_range(begin, end, text, thread);
    });
    operators_.place_in(result_, false);
    const std::set<std::string> columns = database_.columns("CUPTI_ACTIVITY_KIND_RUNTIME");
    if (!columns.contains("correlationId") || !columns.contains("globalTid") || result_.operators.empty()) return;
    database_.each("SELECT correlationId, globalTid, start FROM CUPTI_ACTIVITY_KIND_RUNTIME", [&](sqlite3_stmt* row) {
      const std::int64_t thread = sqlite3_column_int64(row, 1);
      if (!is_ours(thread)) return;
      const std::int32_t range = operators_.at(thread, sqlite3_column_double(row, 2) * kNano);
      if (range >= 0) launched_in_[sqlite3_column_int64(row, 0)] = range;
    });
  }

  /// PyTorch's emit_nvtx writes "aten::mm, seq = 5, sizes = [[8, 4], [4, 2]]"; other texts are names.
  void add_range(double begin, double end, const std::string& text, std::int64_t thread) {
    HostEvent event{thread, begin, end, static_cast<std::int64_t>(ranges_++), {}};
    const bool is_operator = text.find("::") != std::string::npos;
    event.op.name = intern_.name(is_operator ? text.substr(0, text.find(", ")) : text);
    event.op.is_range = !is_operator;
    constexpr std::string_view kSizes = "sizes = ";
    if (const std::size_t at = text.find(kSizes); is_operator && at != std::string::npos) {
      const auto sizes = nlohmann::json::parse(text.substr(at + kSizes.size()), nullptr, false);
      if (!sizes.is_discarded()) event.op.shapes = intern_.shapes(shapes_from(sizes));
    }
    operators_.add(std::move(event));
  }

  void read_kernels(const std::set<std::string>& columns) {
    const char* name = columns.contains("demangledName") ? "demangledName" : "shortName";
    const char* correlation = columns.contains("correlationId") ? "k.correlationId" : "-1";
    const char* stream = columns.contains("streamId") ? "k.streamId" : "0";
    database_.each(fmt::format("SELECT k.start, k.end, k.deviceId, s.value, {}, {} FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                               "JOIN StringIds s ON s.id = k.{}{} ORDER BY k.start",
                               correlation, stream, name, where()),
                   [&](sqlite3_stmt* row) { add_kernel(row); });
    if (result_.kernels.empty()) refuse(file_, "lists no kernel of a GPU" + what_is_there());
  }

  void add_kernel(sqlite3_stmt* row) {
    const std::string full = Database::text(row, 3);
    Kernel kernel;
    kernel.kind = class_of_kernel(full);
    kernel.name = intern_.name(full);
    kernel.device = sqlite3_column_int(row, 2);
    kernel.start_s = static_cast<double>(sqlite3_column_int64(row, 0)) * kNano;
    kernel.seconds = static_cast<double>(sqlite3_column_int64(row, 1)) * kNano - kernel.start_s;
    kernel.stream = sqlite3_column_int64(row, 5);
    if (const auto range = launched_in_.find(sqlite3_column_int64(row, 4)); range != launched_in_.end()) {
      kernel.launched_by = range->second;
      if (kernel.kind == KernelClass::kProduct) add_product(kernel);
    }
    if (kernel.kind == KernelClass::kCollective) kernel.collective = collective_named(full);
    result_.kernels.push_back(std::move(kernel));
  }

  void add_product(Kernel& kernel) const {
    const Operator& op = result_.operators[static_cast<std::size_t>(kernel.launched_by)];
    if (op.shapes < 0) return;
    const auto product = product_of(result_.name_of(op), result_.shapes[static_cast<std::size_t>(op.shapes)]);
    if (!product) return;
    kernel.m = product->m, kernel.n = product->n, kernel.k = product->k, kernel.batch = product->batch;
  }

  void read_copies() {
    const std::set<std::string> columns = database_.columns("CUPTI_ACTIVITY_KIND_MEMCPY");
    if (!columns.contains("copyKind") || !columns.contains("bytes")) return;
    const std::string between_host_and_device = "copyKind IN (1, 2)";
    database_.each("SELECT bytes, end - start FROM CUPTI_ACTIVITY_KIND_MEMCPY" + where(between_host_and_device),
                   [&](sqlite3_stmt* row) {
                     const double bytes = sqlite3_column_double(row, 0), time = sqlite3_column_double(row, 1) * kNano;
                     if (is_plausible({bytes, time})) result_.copies.push_back({bytes, time});
                   });
  }

  void read_launches() {
    const std::set<std::string> columns = database_.columns("CUPTI_ACTIVITY_KIND_RUNTIME");
    if (!columns.contains("nameId") || !columns.contains("globalTid")) return;
    const std::string ours =
        by_process_ ? fmt::format(" AND r.globalTid / {0} = {1} / {0}", kThreads, process_) : std::string();
    std::int64_t thread = -1;
    double before = 0;
    database_.each(
        "SELECT r.globalTid, r.start FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId "
        "WHERE s.value LIKE '%LaunchKernel%'" +
            ours + " ORDER BY r.globalTid, r.start",
        [&](sqlite3_stmt* row) {
          const std::int64_t of = sqlite3_column_int64(row, 0);
          const double start = static_cast<double>(sqlite3_column_int64(row, 1)) * kNano;
          if (of == thread) result_.launch_gaps_s.push_back(start - before);
          thread = of;
          before = start;
        });
  }

  /// Calls `range` with begin and end in seconds, the text and the thread of every NVTX range that was closed.
  void each_range(const std::function<void(double, double, const std::string&, std::int64_t)>& range) const {
    const std::set<std::string> columns = database_.columns("NVTX_EVENTS");
    if (!columns.contains("text") || !columns.contains("end")) return;
    const bool registered = columns.contains("textId");
    const char* thread = columns.contains("globalTid") ? "n.globalTid" : "0";
    const char* text = registered ? "COALESCE(n.text, s.value)" : "n.text";
    const char* strings = registered ? "LEFT JOIN StringIds s ON s.id = n.textId" : "";
    database_.each(fmt::format("SELECT n.start, n.end, {}, {} FROM NVTX_EVENTS n {} WHERE n.end IS NOT NULL", text,
                               thread, strings),
                   [&](sqlite3_stmt* row) {
                     range(sqlite3_column_double(row, 0) * kNano, sqlite3_column_double(row, 1) * kNano,
                           Database::text(row, 2), sqlite3_column_int64(row, 3));
                   });
  }

  static bool is_step(const std::string& text) {
    static const std::regex kStep("(iteration|step|ProfilerStep)[ _#]*[0-9]+", std::regex::icase);
    return std::regex_match(text, kStep);
  }

  /// The rest of a refusal: what an export without kernels holds instead, and what to do.
  std::string what_is_there() const {
    int ranges = 0;
    std::vector<double> steps;
    if (!database_.columns("StringIds").empty()) {
      each_range([&](double begin, double end, const std::string& text, std::int64_t /*thread*/) {
        ++ranges;
        if (is_step(text)) steps.push_back(end - begin);
      });
    }
    std::string what;
    if (ranges > 0) what = fmt::format(", only {} NVTX ranges on the host", ranges);
    if (!steps.empty())
      what += fmt::format(" ({} iterations, {:.3g} ms at the median)", steps.size(), 1e3 * median(steps));
    return what +
           "; nothing ran on a GPU while it was captured, or it was not asked for: capture again with "
           "--trace=cuda,nvtx";
  }

  void read_steps() {
    std::map<double, double> steps;
    each_range([&](double begin, double end, const std::string& text, std::int64_t thread) {
      if (is_step(text) && (!wanted_ || is_ours(thread))) steps[begin] = end;
    });
    auto first = steps.begin(), last = steps.end();
    if (steps.size() >= 3) {  // a warm-up, and what may be cut
      ++first;
      --last;
    }
    result_.steps = static_cast<int>(std::distance(first, last));
    if (result_.steps == 0) return;
    result_.steps_begin_s = first->first;
    result_.steps_end_s = std::prev(last)->second;
    for (auto step = first; step != last; ++step) result_.marked.push_back({step->first, step->second});
  }

  std::filesystem::path file_;
  Database database_;
  std::optional<std::int64_t> wanted_;  ///< none: the one that ran most kernels
  KernelTrace result_;
  Interner intern_{result_};
  HostOperators operators_;
  std::map<std::int64_t, std::int32_t> launched_in_;  ///< operators by the launch that a kernel names
  std::size_t ranges_ = 0;
  bool by_process_ = false;
  std::int64_t process_ = 0;
};

}  // namespace

KernelTrace read_nsight(const std::filesystem::path& file) { return NsightReader(file).read(); }

std::vector<KernelTrace> read_nsight_processes(const std::filesystem::path& file) {
  std::vector<KernelTrace> traces;
  for (const std::int64_t process : NsightReader(file).processes())
    traces.push_back(NsightReader(file, process).read());
  if (traces.empty()) traces.push_back(read_nsight(file));
  return traces;
}

bool is_nsight(const FileText& file) { return file.form() == FileText::Form::kSqlite; }

}  // namespace trivium::calibration::imports
