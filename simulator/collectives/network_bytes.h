// What communication puts on the links.
#pragma once

#include "program/ir/mesh.h"
#include "program/ir/op.h"

namespace trivium::simulator {

/// Bytes that each member of an op's group sends: to the next of a ring (n-1)/n of the buffer, in an all-reduce twice
/// that; in an all-to-all as many, to all others together. Of a transfer or a ring's shift all there is.
double wire_bytes(const program::Mesh& mesh, const program::Op& op);
double wire_bytes(const program::Mesh& mesh, program::OpKind kind, program::Group group, double bytes);

}  // namespace trivium::simulator
