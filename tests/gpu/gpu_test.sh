#!/usr/bin/env bash
# ./dev gpu with straw in the place of the programs that it builds and of what builds them: whatever fails is a line of
# the table, and all the other lines come. SOURCE: the tree.
set -euo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{straw,models,tests/gpu,tests/package,docs,build/gpu/bin,build/gpu-packages}
cp "$source/dev" "$work"
cp -r "$source/dev.d" "$work"
cp "$source"/models/gpt2-*.json "$work/models"

straw() {
  cat >"$1"
  chmod +x "$1"
}
straw "$work/straw/python3" <<'END'
#!/bin/sh
exit 1
END
straw "$work/straw/dpkg-query" <<'END'
#!/bin/sh
exit 1
END
straw "$work/straw/apt-get" <<'END'
#!/bin/sh
echo "apt-get $*" >>apt.calls
exit 100
END
straw "$work/straw/sudo" <<'END'
#!/bin/sh
exec "$@"
END
straw "$work/straw/nvidia-smi" <<'END'
#!/bin/sh
echo "NVIDIA H100 80GB HBM3"
END
straw "$work/straw/nvcc" <<'END'
#!/bin/sh
[ "${STRAW:-}" != no-nvcc ] && echo "Cuda compilation tools, release 13.0, V13.0.88"
END
straw "$work/straw/g++" <<'END'
#!/bin/sh
echo 12.2.0
END
straw "$work/straw/ninja" <<'END'
#!/bin/sh
echo 1.11.1
END
straw "$work/straw/cmake" <<'END'
#!/bin/sh
[ "$*" != --version ] || { echo "cmake version 3.25.1"; exit; }
echo "cmake $*" >>cmake.calls
case "$*" in
  *-DBUILD_TESTING=ON*) [ "${STRAW:-}" != no-tests ] ;;
  *cuda_gpu_test*) [ "${STRAW:-}" != no-tests ] && cp straw/tests build/gpu/bin/cuda_gpu_test && cp straw/ops build/gpu/bin/bench_cuda ;;
esac
END
straw "$work/straw/tests" <<'END'
#!/bin/sh
echo "[  PASSED  ] 30 tests."
[ "${STRAW:-}" != all-fails ]
END
straw "$work/straw/ops" <<'END'
#!/bin/sh
[ "${STRAW:-}" != all-fails ] || exit 1
echo "attention               B8 S1024 H25/25 D64                      106.5    0.99      252"
END
straw "$work/straw/compute-sanitizer" <<'END'
#!/bin/sh
echo "========= ERROR SUMMARY: 0 errors"
[ "${STRAW:-}" != all-fails ]
END
straw "$work/build/gpu/bin/trivium" <<'END'
#!/bin/bash
[ "${STRAW:-}" != all-fails ] || exit 1
step='{"loss":2.5,"tokens_per_s":1000.5}'
# As a run of two ranks does: the second is gone, and the first says so. Where it is deaf it ends without a word.
ranks_die() {
  local state=S flight=$1
  sleep 30 &
  mkdir -p "$flight"
  { printf '%020d' 0; printf "\\x$(printf %02x $(($! & 255)))\\x$(printf %02x $(($! >> 8 & 255)))\\x$(printf %02x $(($! >> 16)))\\x00"; } \
    >"$flight/rank-00001.flight"
  printf '%s\n%s\n' "$step" "$step"
  while [ -e /proc/$! ] && [ "$state" != T ]; do
    state=$(sed 's/.*) \(.\).*/\1/' /proc/$!/stat 2>/dev/null)
    sleep 0.05
  done
  [ "$state" = T ] && signal=STOP || signal=KILL
  case "$signal${DEAF:-}" in
    STOP) echo "error: nothing has come for 10 s" >&2 ;;
    KILL*) echo "error: NCCL: remote process exited or there was a network error" >&2 ;;
  esac
  exit 1
}
[ "${STRAW:-}" != slow ] || sleep 60
case "$*" in
  doctor | profile* | plan*) echo "$1" ;;
  validate*) echo "off by 3 %" ;;
  *--flight-record*) ranks_die "$(sed 's/.*--flight-record \([^ ]*\).*/\1/' <<<"$*")" ;;
  *"--pipeline 2"*--data*) echo '{"loss":3.5,"tokens_per_s":1}' ;;  # another loss
  *"--zero-stage 3"*) exit 9 ;;
  *this-machine*--resume*) echo '{"loss":7.5}' ;;
  *gpt2-350m*"--steps 12"*) echo "diverged" >&2 ;;  # well, without a step
  *gpt2-124m*"--steps 10") echo '{"loss":null,"tokens_per_s":null}' ;;
  run*) for _ in 1 2 3 4 5; do echo "$step"; done ;;
esac
END

# table CASE EXIT_CODE PART...: what ./dev gpu prints there, and that it ends with that code.
table() {
  local code=0
  (cd "$work" && PATH="$work/straw:$PATH" STRAW=$1 ./dev gpu "${@:3}") >"$work/$1.out" 2>"$work/$1.err" || code=$?
  [ "$code" -eq "$2" ] || wrong "$1" "exit code $code instead of $2"
}
wrong() {
  echo "$1: $2"
  cat "$work/$1.out" "$work/$1.err"
  exit 1
}
# holds CASE LINE...: every line is in the table.
holds() {
  local name=$1 line
  shift
  for line in "$@"; do grep -qF -e "$line" "$work/$name.out" || wrong "$name" "no line with \"$line\""; done
}
parts=("needed" "the machine" "every op, and trainings, against the CPU backend" "splits over several ranks, and checkpoints"
  "ranks that are gone" "training, and what switches are worth" "predicted and measured" "s in all")

table some-fail 1
holds some-fail "${parts[@]}" "NVIDIA H100 80GB HBM3; memory as in dgx-h100-80gb" "the tests                                    built" \
  "[  PASSED  ] 30 tests." "memcheck                                     ========= ERROR SUMMARY: 0 errors" \
  "fp32 --data 2                                loss 2.5 against 2.5: equal to 1e-4" \
  "bf16 --context 2 --attention flash           loss 2.5 against 2.5: equal to 1e-2" \
  "fp32 --data 2 --zero-stage 3                 failed (exit 9); build/gpu/split-fp32--data2--zero-stage3.json.log" \
  "fp32 --tensor 2 --pipeline 2 --data 2        loss 3.5 against 2.5: DIFFERENT" \
  "from cores to GPUs                           loss 2.5 against 2.5: equal to 1e-4" \
  "from GPUs to cores                           loss 7.5 against 2.5: DIFFERENT" \
  "KILL, --tensor 2 --data 2                    noticed at once, by its closed connection" "STOP, --pipeline 2 --tensor 2                noticed after 10 s" \
  "attention               B8 S1024 H25/25 D64                      106.5" "cuDNN's attention was not timed: no PyTorch that sees a GPU" \
  "gpt2-124m        micro-batch  32        1000 tokens/s  loss 2.5 -> 2.5" \
  "gpt2-350m        micro-batch  16  no number came of it; build/gpu/gpt2-350m.json.log" \
  "gpt2-1.5b        micro-batch   8        1000 tokens/s" "gpt2-124m, micro-batch 16" "off by 3 %" \
  "micro-batch  32  neither                                      no number came of it" \
  "micro-batch  32  --cuda-graphs on                                   1000 tokens/s" \
  "parts in which something failed: 2" "build ops splits kills speed calibrate ask for up to 1830 s, and there are 540"
grep -q '"vocab": 50304' "$work/build/gpu/gpt2-124m.json.model.json" || wrong some-fail "the vocabulary is not padded"
grep -q 'cmake.*-DCMAKE_UNITY_BUILD=ON' "$work/cmake.calls" || wrong some-fail "not built as in the other presets"

table all-fails 1
holds all-fails "${parts[@]}" "single ops                                   failed (exit 1); build/gpu/ops.log" "one rank, fp32                               failed (exit 1)" "one rank, bf16                               failed (exit 1)" \
  "on cores                                     failed (exit 1)" "gpt2-1.5b        micro-batch   8  failed (exit 1)" \
  "KILL, --tensor 2 --data 2                    no word of the rank that is gone; build/gpu/killed-1.json.log" \
  "the profile                                  failed (exit 1)" "racecheck                                    failed (exit 1)" \
  "micro-batch  32  --cuda-graphs on --cuda-epilogues on         failed (exit 1)" "parts in which something failed: 5"

# A part alone, of what was built before; ranks that do not notice are a failure of it.
table kills-alone 0 kills
holds kills-alone "ranks that are gone" "STOP, --tensor 2 --data 2                    noticed after 10 s" "nothing failed"
! grep -q "splits over\|^built" "$work/kills-alone.out" || wrong kills-alone "other parts than the one that was named"
DEAF=1 table kills-deaf 1 kills
holds kills-deaf "no word of the rank that is gone" "parts in which something failed: 1"

# Without time nothing fails, and nothing is done.
TRIVIUM_GPU_SECONDS=0 table no-time 75 splits kills speed calibrate
holds no-time "one rank, fp32                               unfinished: no time" "gpt2-1.5b        micro-batch   8  unfinished: no time" \
  "KILL, --tensor 2 --data 2                    unfinished: no time" "the profile                                  unfinished: no time" \
  "nothing failed" "unfinished for want of time: ./dev gpu splits kills speed calibrate"
TRIVIUM_GPU_SECONDS=0 table no-time-to-build 75
holds no-time-to-build "trivium with its CUDA backend                unfinished: no time" \
  "unfinished for want of time: ./dev gpu build ops splits kills speed calibrate"
# Stopped because the part's time was over, not because it hung.
TRIVIUM_GPU_SECONDS=13 table slow 75 calibrate
holds slow "the profile                                  unfinished: no time" "nothing failed" "./dev gpu calibrate"

# With PyTorch its attention is beside ours.
straw "$work/straw/python3" <<'END'
#!/bin/sh
case "$1" in *cudnn_attention.py) echo "attention B8 S1024 H25/25 D64 71.0" ;; *) exit 1 ;; esac
END
table with-torch 1 speed
holds with-torch "attention B8 S1024 H25/25 D64                   106.5 us, cuDNN     71.0 us: 1.50 times"

rm "$work/cmake.calls"
table no-nvcc 1
holds no-nvcc "nvcc 12 or later (CUDA's toolkit)            missing" "g++ 12 or later                              12.2.0"
[ ! -e "$work/cmake.calls" ] || wrong no-nvcc "built all the same"
table unknown 2 walks
grep -q 'no part "walks": build ops splits kills speed calibrate' "$work/unknown.err" || wrong unknown "no word of the parts"

table no-tests 1
holds no-tests "${parts[@]}" "the tests could not be built" "gpt2-774m        micro-batch  16        1000 tokens/s"
grep -q 'cmake.*-DBUILD_TESTING=OFF' "$work/cmake.calls" || wrong no-tests "not configured without the tests"
# Neither a network nor packages brought along: what is here may do.
rmdir "$work/build/gpu-packages"
table no-network 1 build speed
holds no-network "gpt2-774m        micro-batch  16        1000 tokens/s"
grep -q 'apt-get.*http::Timeout=5.*install' "$work/apt.calls" || wrong no-network "apt waits for long"
grep -q './dev gpu pack' "$work/no-network.err" || wrong no-network "no word of ./dev gpu pack"
echo "what fails is in the table"
