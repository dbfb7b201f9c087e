# `./dev gpu`, read by dev: builds, tests and measures on a machine with a GPU and prints one table. What fails is a line
# of it and keeps nothing else from being tried; all of it takes nine minutes at most.

gpu_bin=build/gpu/bin
gpu_part_end=0  # of the part at hand, in seconds from the start
gpu_failures=0

# Seconds that are left to the part at hand.
gpu_left() {
  local whole=$((${TRIVIUM_GPU_SECONDS:-530} - SECONDS)) part=$((gpu_part_end - SECONDS))
  echo $((whole < part ? whole : part))
}

# within SECONDS COMMAND...: stopped when they, or those of the part, are over (124). 75: there was no time to begin.
within() {
  local seconds=$1 left
  left=$(gpu_left)
  shift
  [ "$left" -ge 10 ] || return 75
  timeout -k 5 $((left < seconds ? left : seconds)) "$@" </dev/null
}

# Of an exit code of `within`; LOG: where the words of the command are.
how_it_ended() {
  case $1 in
    0) echo "no number came of it${2:+; $2}" ;;
    75) echo "left out: no time" ;;
    124 | 137) echo "stopped: it took too long${2:+; $2}" ;;
    *) echo "failed (exit $1)${2:+; $2}" ;;
  esac
}

# Whether an exit code of `within` is a failure: what there was no time for is none.
is_failure() { [ "$1" -ne 0 ] && [ "$1" -ne 75 ]; }

row() { printf '%-44s %s\n' "$1" "$2"; }

# gpu_part SECONDS TITLE COMMAND...
gpu_part() {
  gpu_part_end=$((SECONDS + $1))
  printf '\n%s\n' "$2"
  shift 2
  "$@" || gpu_failures=$((gpu_failures + 1))
}

# field NAME FILE: the values of a key in lines of JSON.
field() { sed -n "s/.*\"$1\":\([-+.0-9e]*\).*/\1/p" "$2"; }
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }
is_number() { [[ ${1:-} =~ ^[-+]?[0-9.]+(e[-+]?[0-9]+)?$ ]]; }

# train_on GPUs|cores NAME ARGUMENT...: a training of one or several ranks here; its steps as JSON in build/gpu/NAME.
train_on() {
  local where=(--backend cuda --cluster h200) name=$2
  [ "$1" = GPUs ] || where=(--cluster this-machine)
  shift 2
  within 90 $gpu_bin/trivium run "${where[@]}" --corpus build/gpu/text.txt --timeline-steps 0 --json "$@" \
    >"build/gpu/$name" 2>"build/gpu/$name.log"
}
gpu_train() { train_on GPUs "$@"; }

# compare LABEL EXIT_CODE NAME LOSS: the last loss of a training against that of another.
compare() {
  local loss
  loss=$(field loss "build/gpu/$3" | tail -1)
  if [ "$2" -ne 0 ]; then
    row "$1" "$(how_it_ended "$2" "build/gpu/$3.log")"
    ! is_failure "$2"
  elif is_number "$loss" && awk -v a="$4" -v b="$loss" 'BEGIN { d = a > b ? a - b : b - a; exit !(d < 1e-4 * a) }'; then
    row "$1" "loss $loss against $4: equal to 1e-4"
  else
    row "$1" "loss ${loss:-none} against $4: DIFFERENT"
    return 1
  fi
}

# GPT-2 as it is trained on GPUs: rows of 50,257 logits are aligned to nothing, and the products that read and write
# them slow; 50,304 is the vocabulary of llm.c and nanoGPT.
gpu_model() {
  sed 's/"vocab": 50257/"vocab": 50304/' "models/$1.json" >"build/gpu/$1.json.model.json"
  echo "build/gpu/$1.json.model.json"
}

# The exit code is of all that a machine may have.
gpu_machine() { within 30 $gpu_bin/trivium doctor || true; }

gpu_tests() {
  local status=0
  [ -x $gpu_bin/cuda_gpu_test ] || { echo "the tests could not be built"; return 1; }
  # One process: every start of CUDA costs a second or more.
  within 150 $gpu_bin/cuda_gpu_test --gtest_brief=1 >build/gpu/tests.log 2>&1 || status=$?
  [ $status -eq 75 ] || tail -40 build/gpu/tests.log
  [ $status -eq 0 ] || how_it_ended $status build/gpu/tests.log
  ! is_failure $status
}

# The small cases: under the tools a kernel takes a hundred times as long.
gpu_sanitizer() {
  local tool status failed=0
  command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not here"; return 0; }
  [ -x $gpu_bin/cuda_gpu_test ] || { echo "the tests could not be built"; return 1; }
  for tool in memcheck racecheck; do
    status=0
    within 60 compute-sanitizer --tool "$tool" --error-exitcode 1 $gpu_bin/cuda_gpu_test --gtest_brief=1 \
      --gtest_filter='*Attention*:*Dropped*:Mixture*:Norm*:Loss*:Embedding*:Largest*:-Gpu*' \
      >"build/gpu/$tool.log" 2>&1 || status=$?
    if [ $status -eq 0 ]; then
      row "$tool" "$(grep -E 'SUMMARY' "build/gpu/$tool.log" | tail -1)"
    else
      row "$tool" "$(how_it_ended $status "build/gpu/$tool.log")"
    fi
    ! is_failure $status || failed=1
  done
  return $failed
}

# Splits over several ranks, all on the GPUs there are, must come to the loss of one rank.
gpu_splits() {
  local tiny="--model gpt-tiny --sequence 128 --global-batch 8 --precision fp32 --steps 5"
  local one split name status=0 failed=0
  gpu_train one.json $tiny || status=$?
  one=$(field loss build/gpu/one.json | tail -1)
  if [ $status -ne 0 ] || ! is_number "$one"; then
    row "one rank" "$(how_it_ended $status build/gpu/one.json.log)"
    ! is_failure $((status == 0 ? 1 : status))
    return
  fi
  for split in "--data 2" "--tensor 2" "--tensor 2 --sequence-parallel true" "--pipeline 2" "--data 2 --zero-stage 1" \
    "--data 2 --zero-stage 3" "--context 2 --attention flash" "--tensor 2 --pipeline 2" "--tensor 2 --pipeline 2 --data 2"; do
    name=$(echo "split$split" | tr -d ' ').json
    status=0
    NCCL_DEBUG=WARN gpu_train "$name" $tiny $split || status=$?
    compare "$split" $status "$name" "$one" || failed=1
    if is_failure $status && [ "$split" = "--data 2" ]; then
      echo "the other splits are left out"
      break
    fi
  done
  return $failed
}

# Three steps here and three there come to the loss of six on cores.
gpu_checkpoints() {
  local job="--model gpt-tiny --ranks 1 --sequence 128 --global-batch 8 --precision fp32 --decay-steps 6"
  local kept="--checkpoint build/gpu/checkpoint" whole from to status=0 failed=0
  train_on cores whole.json $job --steps 6 || status=$?
  whole=$(field loss build/gpu/whole.json | tail -1)
  if [ $status -ne 0 ] || ! is_number "$whole"; then
    row "on cores" "$(how_it_ended $status build/gpu/whole.json.log)"
    ! is_failure $((status == 0 ? 1 : status))
    return
  fi
  while read -r from to; do
    rm -rf build/gpu/checkpoint
    status=0
    {
      train_on "$from" resumed.json $job --steps 3 $kept && train_on "$to" resumed.json $job --steps 6 $kept --resume
    } || status=$?
    compare "from $from to $to" $status resumed.json "$whole" || failed=1
  done <<<'cores GPUs
GPUs cores'
  return $failed
}

# Tokens a second of one GPU: GPT-2 of four sizes in bf16 with fused attention.
gpu_benchmark() {
  local model batch rate status failed=0
  while read -r model batch; do
    status=0
    gpu_train "$model.json" --model "$(gpu_model "$model")" --sequence 1024 --micro-batch "$batch" \
      --global-batch $((batch * 4)) --attention flash --precision bf16 --steps 12 || status=$?
    rate=$(field tokens_per_s "build/gpu/$model.json" | tail -n +3 | median)
    if [ $status -eq 0 ] && is_number "$rate"; then
      printf '%-16s micro-batch %3d  %10.0f tokens/s  loss %s -> %s\n' "$model" "$batch" "$rate" \
        "$(field loss "build/gpu/$model.json" | sed -n 1p)" "$(field loss "build/gpu/$model.json" | tail -1)"
    else
      printf '%-16s micro-batch %3d  %s\n' "$model" "$batch" "$(how_it_ended $status "build/gpu/$model.json.log")"
      [ $status -eq 75 ] || failed=1
    fi
  done <<<'gpt2-124m 32
gpt2-350m 16
gpt2-774m 16
gpt2-1.5b 8'
  return $failed
}

# What switches of the backend are worth: GPT-2 124M in small micro-batches, where launching kernels takes its share,
# and in large ones, each in tokens/s against the same run without the switch.
gpu_switches() {
  local batch switch plain rate job status failed=0
  for batch in 4 32; do
    job="--model $(gpu_model gpt2-124m) --sequence 1024 --micro-batch $batch --global-batch $((batch * 4)) --attention flash"
    job="$job --precision bf16 --steps 10"
    plain=""
    for switch in "" "--cuda-graphs on" "--cuda-epilogues on" "--cuda-graphs on --cuda-epilogues on"; do
      status=0
      gpu_train switched.json $job $switch || status=$?
      rate=$(field tokens_per_s build/gpu/switched.json | tail -n +4 | median)
      printf 'micro-batch %3d  %-44s ' "$batch" "${switch:-neither}"
      if [ $status -ne 0 ] || ! is_number "$rate"; then
        how_it_ended $status
        [ $status -eq 75 ] || { failed=1; tail -3 build/gpu/switched.json.log >&2; }
        continue
      fi
      [ -n "$switch" ] || plain=$rate
      awk -v r="$rate" -v p="$plain" 'BEGIN { printf "%10.0f tokens/s", r; if (p > 0) printf ", %.3f times", r / p; print "" }'
      sed -n 's/^note: /                 /p' build/gpu/switched.json.log
    done
  done
  return $failed
}

# The profile that was measured, and runs of other models than those it measured: what it predicts and what was.
gpu_calibration() {
  local model batch status=0 failed=0 plan log=build/gpu/calibration.log
  within 90 $gpu_bin/trivium profile --device cuda --quick -o build/gpu/profile.json >$log 2>&1 || status=$?
  if [ $status -ne 0 ]; then
    row "the profile" "$(how_it_ended $status $log)"
    ! is_failure $status
    return
  fi
  while read -r model batch; do
    plan=(--model "$(gpu_model "$model")" --cluster build/gpu/profile.json --ranks 1 --sequence 1024 --micro-batch "$batch"
      --global-batch $((batch * 2)) --attention flash --precision bf16)
    printf '%s, micro-batch %s\n' "$model" "$batch"
    status=0
    {
      within 20 $gpu_bin/trivium plan "${plan[@]}" -o build/gpu/plan.json >$log 2>&1 &&
        within 60 $gpu_bin/trivium run build/gpu/plan.json --backend cuda --corpus build/gpu/text.txt --steps 6 \
          --record build/gpu/run.json >$log 2>&1 &&
        within 20 $gpu_bin/trivium validate build/gpu/plan.json build/gpu/run.json
    } || status=$?
    [ $status -eq 0 ] || how_it_ended $status $log
    ! is_failure $status || failed=1
  done <<<'gpt2-350m 8
gpt2-124m 16'
  return $failed
}

# wheel_of HEADER: the folder of the Python package that holds a library's header; nothing where there is none.
wheel_of() {
  python3 -c 'import glob, os, sys, sysconfig
found = glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "*", "include", sys.argv[1]))
print(os.path.dirname(os.path.dirname(found[0])) if found else "")' "$1" 2>/dev/null || true
}

# gpu_configure TESTS PREFIX NCCL CUBLAS CUPTI
gpu_configure() {
  cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DTRIVIUM_REQUIRE_CUDA=ON -DTRIVIUM_GUI=OFF -DTRIVIUM_MPI=OFF \
    -DTRIVIUM_TESTS="$1" -DCMAKE_CUDA_ARCHITECTURES="${TRIVIUM_GPU_ARCH:-native}" -DCMAKE_PREFIX_PATH="$2" -DNCCL_HOME="$3" \
    -DCUBLAS_HOME="$4" -DCUPTI_HOME="$5" >&2
}

# The tests are left out where they do not build; without the program there is nothing to do.
gpu_build() {
  local prefix=""
  [ ! -d build/gpu-packages ] || prefix=$top/build/gpu-packages/usr
  # Where there is no network, apt is to say so soon; what it lacks may be there by another name.
  [ -n "$prefix" ] || (apt_options+=(-o Acquire::Retries=0 -o Acquire::http::Timeout=5 -o Acquire::https::Timeout=5)
    ensure "${test_packages[@]}") ||
    say "dev: going on in the hope that these are here by other names; if not: ./dev gpu pack where they are, and bring build/gpu-packages along"
  gpu_configure ON "$prefix" "$@" || { say "dev: once more, without the tests"; gpu_configure OFF "$prefix" "$@"; } ||
    fail "cannot configure build/gpu"
  rm -f $gpu_bin/cuda_gpu_test
  cmake --build build/gpu --target trivium trivium_cuda cuda_gpu_test -- -k 0 >&2 && return
  cmake --build build/gpu --target trivium trivium_cuda >&2 || fail "cannot build trivium with its CUDA backend"
  say "dev: the tests did not build"
}

run_gpu() {
  [ "${1:-}" != pack ] || { gpu_pack; return; }
  # NCCL, cuBLAS and CUPTI may be there as Python packages alone.
  local nccl=${NCCL_HOME:-$(wheel_of nccl.h)} cublas=${CUBLAS_HOME:-$(wheel_of cublasLt.h)} cupti=${CUPTI_HOME:-$(wheel_of cupti.h)}
  PATH=$PATH:/usr/local/cuda/bin
  gpu_build "$nccl" "$cublas" "$cupti"
  export LD_LIBRARY_PATH=${nccl:+$nccl/lib:}${cublas:+$cublas/lib:}${cupti:+$cupti/lib:}${LD_LIBRARY_PATH:-}
  corpus build/gpu/text.txt
  printf '\nbuilt in %d s\n' "$SECONDS"
  gpu_part 30 "the machine" gpu_machine
  gpu_part 150 "every op, and trainings, against the CPU backend" gpu_tests
  gpu_part 150 "splits over several ranks" gpu_splits
  gpu_part 60 "checkpoints" gpu_checkpoints
  gpu_part 150 "training" gpu_benchmark
  gpu_part 200 "predicted and measured" gpu_calibration
  gpu_part 120 "compute-sanitizer" gpu_sanitizer
  gpu_part 200 "switches" gpu_switches
  printf '\n%d s in all; ' "$SECONDS"
  [ $gpu_failures -gt 0 ] || { echo "nothing failed"; return 0; }
  echo "parts in which something failed: $gpu_failures"
  return 1
}
