// What a search does not try, and why: the claim that no plan is faster is about the rest.
#pragma once

#include <string>
#include <vector>

#include "planner/space/request.h"

namespace trivium::planner {

/// A plan field that keeps one value.
struct Held {
  std::string field;
  std::string value;  ///< as text_of() writes it
  std::string why;
};

/// In the order of program::plan_fields. Fields that mean nothing for the model and cluster (experts of a dense model)
/// are left out.
std::vector<Held> held_fields(const SearchRequest& request);

/// One line for all of them, grouped by their reasons: "fixed: tensor 8; they change the arithmetic: precision bf16".
std::string text_of(const std::vector<Held>& held);

/// "plans may use 68.6 of the 80.0 GiB", where they must leave devices room (with_fit_probability); else empty.
std::string room_text(const SearchRequest& request);

}  // namespace trivium::planner
