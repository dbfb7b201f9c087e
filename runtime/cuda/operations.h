// All functions that launch an op's kernels, each found by its op kind at the end of its file.
#pragma once

#include "runtime/cuda/ops_attention.h"
#include "runtime/cuda/ops_coded.h"
#include "runtime/cuda/ops_epilogue.h"
#include "runtime/cuda/ops_rows.h"
#include "runtime/cuda/ops_state.h"
#include "runtime/cuda/ops_wire.h"
