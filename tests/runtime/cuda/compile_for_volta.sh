#!/usr/bin/env bash
# compile_for_volta.sh SOURCES PART TOOLKIT: every kernel of runtime/cuda/PART_operations.cu as machine code for the V100
# (sm_70), which CUDA 13 no longer supports: clang reads the source, CUDA 12's ptxas makes the code. 77: not installed.
set -euo pipefail
sources=$1 part=$2 toolkit=$3
skip() { echo "[  SKIPPED ] $*; ./dev cuda12 installs it"; exit 77; }
clang=$(command -v clang++-19 || true)
[ -n "$clang" ] || skip "no clang++-19"
[ -x "$toolkit/bin/ptxas" ] || skip "no CUDA 12 in $toolkit"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$clang" -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 --cuda-path="$toolkit" -Wno-unknown-cuda-version -std=c++20 -O3 \
  -I"$sources" -Xcuda-ptxas -v -c "$sources/runtime/cuda/${part}_operations.cu" -o "$out/code.cubin" 2>"$out/log" ||
  { cat "$out/log"; exit 1; }
kernels=$(grep -c "Compiling entry function.*sm_70" "$out/log" || true)
echo "$part: $kernels kernels for sm_70, $(stat -c %s "$out/code.cubin") bytes"
[ "$kernels" -gt 0 ]
