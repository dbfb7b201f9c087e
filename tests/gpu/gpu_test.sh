#!/usr/bin/env bash
# ./dev gpu with straw in the place of the programs that it builds and of what builds them: whatever fails is a line of
# the table, and all the other lines come. SOURCE: the tree.
set -euo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{straw,models,tests/gpu,tests/package,docs,build/gpu/bin,build/gpu-packages}
cp "$source/dev" "$work"
cp "$source/tests/gpu/gpu.sh" "$work/tests/gpu"
cp "$source/tests/package/package.sh" "$work/tests/package"
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
straw "$work/straw/cmake" <<'END'
#!/bin/sh
echo "cmake $*" >>cmake.calls
case "$*" in
  *-DTRIVIUM_TESTS=ON*) [ "${STRAW:-}" != no-tests ] ;;
  *cuda_gpu_test*) [ "${STRAW:-}" != no-tests ] && cp straw/tests build/gpu/bin/cuda_gpu_test ;;
esac
END
straw "$work/straw/tests" <<'END'
#!/bin/sh
echo "[  PASSED  ] 30 tests."
[ "${STRAW:-}" != all-fails ]
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
case "$*" in
  doctor | profile* | plan*) echo "$1" ;;
  validate*) echo "off by 3 %" ;;
  *"--pipeline 2"*--data*) echo '{"loss":3.5,"tokens_per_s":1}' ;;  # another loss
  *"--zero-stage 3"*) exit 9 ;;
  *this-machine*--resume*) echo '{"loss":7.5}' ;;
  *gpt2-350m*"--steps 12"*) echo "diverged" >&2 ;;  # well, without a step
  *gpt2-124m*"--steps 10") echo '{"loss":null,"tokens_per_s":null}' ;;
  run*) for _ in 1 2 3 4 5; do echo "$step"; done ;;
esac
END

# table CASE EXIT_CODE: what ./dev gpu prints there, and that it ends with that code.
table() {
  local code=0
  (cd "$work" && PATH="$work/straw:$PATH" STRAW=$1 ./dev gpu) >"$work/$1.out" 2>"$work/$1.err" || code=$?
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
parts=("the machine" "every op, and trainings, against the CPU backend" "splits over several ranks" "checkpoints" "training"
  "predicted and measured" "compute-sanitizer" "switches" "s in all")

table some-fail 1
holds some-fail "${parts[@]}" "[  PASSED  ] 30 tests." "memcheck                                     ========= ERROR SUMMARY: 0 errors" \
  "--data 2                                     loss 2.5 against 2.5: equal to 1e-4" \
  "--data 2 --zero-stage 3                      failed (exit 9); build/gpu/split--data2--zero-stage3.json.log" \
  "--tensor 2 --pipeline 2 --data 2             loss 3.5 against 2.5: DIFFERENT" \
  "from cores to GPUs                           loss 2.5 against 2.5: equal to 1e-4" \
  "from GPUs to cores                           loss 7.5 against 2.5: DIFFERENT" \
  "gpt2-124m        micro-batch  32        1000 tokens/s  loss 2.5 -> 2.5" \
  "gpt2-350m        micro-batch  16  no number came of it; build/gpu/gpt2-350m.json.log" \
  "gpt2-1.5b        micro-batch   8        1000 tokens/s" "gpt2-124m, micro-batch 16" "off by 3 %" \
  "micro-batch  32  neither                                      no number came of it" \
  "micro-batch  32  --cuda-graphs on                                   1000 tokens/s" \
  "parts in which something failed: 4"
grep -q '"vocab": 50304' "$work/build/gpu/gpt2-124m.json.model.json" || wrong some-fail "the vocabulary is not padded"

table all-fails 1
holds all-fails "${parts[@]}" "one rank                                     failed (exit 1)" \
  "on cores                                     failed (exit 1)" "gpt2-1.5b        micro-batch   8  failed (exit 1)" \
  "the profile                                  failed (exit 1)" "racecheck                                    failed (exit 1)" \
  "micro-batch  32  --cuda-graphs on --cuda-epilogues on         failed (exit 1)" "parts in which something failed: 7"

TRIVIUM_GPU_SECONDS=0 table no-time 0
holds no-time "${parts[@]}" "one rank                                     left out: no time" "gpt2-1.5b        micro-batch   8  left out: no time" \
  "the profile                                  left out: no time" "nothing failed"

table no-tests 1
holds no-tests "${parts[@]}" "the tests could not be built" "gpt2-774m        micro-batch  16        1000 tokens/s"
grep -q 'cmake.*-DTRIVIUM_TESTS=OFF' "$work/cmake.calls" || wrong no-tests "not configured without the tests"
grep -q 'the tests did not build' "$work/no-tests.err" || wrong no-tests "no word of it"
# Neither a network nor packages brought along: what is here may do.
rmdir "$work/build/gpu-packages"
table no-network 1
holds no-network "${parts[@]}" "gpt2-774m        micro-batch  16        1000 tokens/s"
grep -q 'apt-get.*http::Timeout=5.*install' "$work/apt.calls" || wrong no-network "apt waits for long"
grep -q './dev gpu pack' "$work/no-network.err" || wrong no-network "no word of ./dev gpu pack"
echo "what fails is in the table"
