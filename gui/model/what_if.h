// What if: the best plan on other counts of devices, for other batches or sequences, by a date, in less memory, for
// less money.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/scenario.h"
#include "simulator/studies/whole_training.h"

namespace trivium::gui {

enum class Question { kDevices, kDevicesAndBatch, kBatch, kSequence, kDeadline, kMemory, kPrice };

struct QuestionTraits {
  Question question{};
  const char* words = "";   ///< "more or fewer devices"
  const char* takes = "";   ///< the input it needs: "counts of devices"; empty: none
  const char* option = "";  ///< of the command that answers it; with "=" where the value follows
  const char* axis = "";    ///< what lies along the picture
  bool doubles = false;     ///< along it values double
};
std::span<const QuestionTraits> question_table();
const QuestionTraits& traits_of(Question question);

struct WhatIfRequest {
  Question question{};
  std::string value;
  Scenario scenario;
};

/// What a question takes where nothing else is said: "128,256,512,1024,2048", "384:6144", "30 days".
std::string usual_value(Question question, const Scenario& scenario);

/// Whether it varies how many nodes there are: those of a mixed cluster are as they are.
bool needs_like_nodes(Question question);

/// Why it cannot be asked: a value that cannot be read, tokens or a price that are not known, a cluster of different
/// nodes; empty: it can.
std::string why_not_asked(const WhatIfRequest& request);

/// The same question on the command line.
std::string command_line(const WhatIfRequest& request);

struct WhatIfRow {
  std::string change;  ///< "512 devices"
  double at = 0;       ///< along the picture: devices, samples, tokens, bytes or dollars
  Scenario scenario;   ///< with the best plan, where there is one
  std::optional<planner::Candidate> best;
  std::string refused;    ///< where there is none
  double efficiency = 0;  ///< of devices: tokens per second of each, over the most of any row
  std::optional<simulator::WholeTraining> training;
};

struct WhatIfAnswer {
  WhatIfRequest request;
  std::vector<WhatIfRow> rows;
  std::string sentence;  ///< what is to be learnt of them
  bool whole = true;     ///< false: it was stopped, and these are the rows so far
};

/// The searches of the question, one after the other; `says` is told of each. Precondition: `why_not_asked` is empty.
WhatIfAnswer answer_of(const WhatIfRequest& request, const std::stop_token& stop,
                       const std::function<void(const std::string&)>& says);

/// With a header.
std::string what_if_csv(const WhatIfAnswer& answer);

}  // namespace trivium::gui
