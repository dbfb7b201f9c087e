// A readable text form of a Program, one line an op, so that two can be compared with diff.
#pragma once

#include <cstddef>
#include <string>

#include "program/ir/program.h"

namespace trivium::program {

/// The whole program of one rank: memory by space, chunks, tasks in host order (or as lowered where not ordered yet)
/// and the bodies they run. Precondition: rank within the mesh.
std::string text_of(const Program& program, int rank);

/// One op: "matmul  m=512 n=384 k=128 fp32  x, w -> y".
std::string text_of(const Program& program, const Body& body, const Op& op);

/// A task in a few words: "forward chunk 0 micro-batch 3".
std::string describe(const Task& task);

/// One of the role's tasks, with its place: "stage 1 task 5 (forward chunk 0 micro-batch 3)".
std::string name_task(const Role& role, std::size_t task);

}  // namespace trivium::program
