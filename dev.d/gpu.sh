# `./dev gpu [PART...]`, read by dev: builds, tests and measures on a machine with a GPU and prints one table. What fails
# is a line of it and keeps nothing else from being tried. What there was no time for is said to be unfinished: that is
# no failure, and the parts can be called for again by their names.

gpu_bin=build/gpu/bin
gpu_all_parts=(build ops splits kills speed calibrate)
gpu_part_end=0       # of the part at hand, in seconds from the start
gpu_failures=0
gpu_cut_short=0      # whether there was too little time for something in the part at hand
gpu_unfinished=()
gpu_built=0

# What a part asks for; all of them are more than a call of ten minutes has.
gpu_seconds_of() {
  case $1 in
    build) echo 400 ;;
    ops) echo 360 ;;
    splits) echo 300 ;;
    kills) echo 150 ;;
    speed) echo 420 ;;
    calibrate) echo 200 ;;
  esac
}

gpu_whole() { echo "${TRIVIUM_GPU_SECONDS:-540}"; }

# Seconds that are left to the part at hand.
gpu_left() {
  local whole=$(($(gpu_whole) - SECONDS)) part=$((gpu_part_end - SECONDS))
  echo $((whole < part ? whole : part))
}

# within SECONDS COMMAND...: stopped when they are over (124). 75: there was no time to begin, or to come to the end.
within() {
  local seconds=$1 left status=0
  left=$(gpu_left)
  shift
  [ "$left" -ge 10 ] || return 75
  timeout -k 5 $((left < seconds ? left : seconds)) "$@" </dev/null || status=$?
  [ "$left" -ge "$seconds" ] || case $status in 124 | 137) return 75 ;; esac
  return $status
}

# Of an exit code of `within`; LOG: where the words of the command are.
how_it_ended() {
  case $1 in
    0) echo "no number came of it${2:+; $2}" ;;
    75) echo "unfinished: no time" ;;
    124 | 137) echo "stopped: it took too long${2:+; $2}" ;;
    *) echo "failed (exit $1)${2:+; $2}" ;;
  esac
}

# Whether an exit code of `within` is a failure: what there was no time for is none, but is noted.
is_failure() {
  [ "$1" -ne 75 ] || gpu_cut_short=1
  [ "$1" -ne 0 ] && [ "$1" -ne 75 ]
}

row() { printf '%-44s %s\n' "$1" "$2"; }

# gpu_part PART TITLE COMMAND...: with the time that the part asks for, or all where it is the only one.
gpu_part() {
  local part=$1
  gpu_part_end=$((SECONDS + $(gpu_seconds_of "$part")))
  [ ${#gpu_parts[@]} -gt 1 ] || gpu_part_end=$(gpu_whole)
  printf '\n%s\n' "$2"
  shift 2
  gpu_cut_short=0
  "$@" || gpu_failures=$((gpu_failures + 1))
  [ $gpu_cut_short -eq 0 ] || gpu_unfinished+=("$part")
}

# field NAME FILE: the values of a key in lines of JSON.
field() { sed -n "s/.*\"$1\":\([-+.0-9e]*\).*/\1/p" "$2"; }
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }
is_number() { [[ ${1:-} =~ ^[-+]?[0-9.]+(e[-+]?[0-9]+)?$ ]]; }

# train_on GPUs|cores NAME ARGUMENT...: a training of one or several ranks here; its steps as JSON in build/gpu/NAME.
train_on() {
  local where=(--backend cuda --cluster "$gpu_cluster") name=$2
  [ "$1" = GPUs ] || where=(--cluster this-machine)
  shift 2
  within 90 $gpu_bin/trivium run "${where[@]}" --corpus build/gpu/text.txt --timeline-steps 0 --json "$@" \
    >"build/gpu/$name" 2>"build/gpu/$name.log"
}
gpu_train() { train_on GPUs "$@"; }

# compare LABEL EXIT_CODE NAME LOSS [RELATIVE]: the last loss of a training against that of another.
compare() {
  local loss tolerance=${5:-1e-4}
  loss=$(field loss "build/gpu/$3" | tail -1)
  if [ "$2" -ne 0 ]; then
    row "$1" "$(how_it_ended "$2" "build/gpu/$3.log")"
    ! is_failure "$2"
  elif is_number "$loss" && awk -v a="$4" -v b="$loss" -v t="$tolerance" 'BEGIN { d = a > b ? a - b : b - a; exit !(d < t * a) }'; then
    row "$1" "loss $loss against $4: equal to $tolerance"
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

# The profile of the card that is here, for what fits into its memory.
gpu_cluster_of() {
  case $1 in
    *B200*) echo dgx-b200 ;;
    *H200*) echo h200 ;;
    *H100*) echo dgx-h100-80gb ;;
    *A100*40GB*) echo dgx-a100-40gb ;;
    *A100*) echo dgx-a100-80gb ;;
    *V100*32GB*) echo dgx1-v100-32gb ;;
    *V100*) echo dgx1-v100-16gb ;;
    *) echo h200 ;;
  esac
}

# need NAME WHAT: a line for what has to be there; WHAT is empty where it is not.
need() {
  row "$1" "${2:-missing}"
  [ -n "$2" ]
}
version_of() { "$1" --version 2>/dev/null | sed -n 's/.*[^0-9.]\([0-9][0-9]*\.[0-9][.0-9]*\).*/\1/p' | head -1; }
at_least() { [ -n "$1" ] && [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -1)" = "$2" ] && echo "$1" || true; }

# Before anything is built: what the parts need and is not here costs minutes otherwise.
gpu_needs() {
  local missing=0 card
  card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1 || true)
  gpu_cluster=$(gpu_cluster_of "$card")
  need "an NVIDIA GPU (nvidia-smi)" "${card:+$card; memory as in $gpu_cluster}" || missing=1
  if [[ " ${gpu_parts[*]} " == *" build "* ]]; then
    need "g++ 12 or later" "$(at_least "$(g++ -dumpfullversion 2>/dev/null)" 12)" || missing=1
    need "cmake 3.25 or later" "$(at_least "$(version_of cmake)" 3.25)" || missing=1
    need "ninja" "$(ninja --version 2>/dev/null)" || missing=1
    need "nvcc 12 or later (CUDA's toolkit)" "$(at_least "$(nvcc --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p')" 12)" || missing=1
    need "4 GB on this disk" "$(df -Pk . | awk 'NR == 2 && $4 > 4e6 { printf "%.0f GB", $4 / 1e6 }')" || missing=1
  else
    need "what \`./dev gpu build\` makes" "$(ls $gpu_bin/trivium 2>/dev/null)" || missing=1
  fi
  return $missing
}

# The exit code is of all that a machine may have.
gpu_machine() { timeout 30 $gpu_bin/trivium doctor </dev/null || true; }

gpu_ops() {
  local failed=0
  gpu_tests || failed=1
  gpu_sanitizer || failed=1
  return $failed
}

gpu_tests() {
  local status=0
  [ -x $gpu_bin/cuda_gpu_test ] || { echo "the tests could not be built"; return 1; }
  # One process: every start of CUDA costs a second or more.
  within 240 $gpu_bin/cuda_gpu_test --gtest_brief=1 >build/gpu/tests.log 2>&1 || status=$?
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

gpu_splits() {
  local failed=0
  gpu_splits_in fp32 1e-4 "--data 2" "--tensor 2" "--tensor 2 --sequence-parallel true" "--pipeline 2" \
    "--data 2 --zero-stage 1" "--data 2 --zero-stage 3" "--context 2 --attention flash" "--tensor 2 --pipeline 2" \
    "--tensor 2 --pipeline 2 --data 2" || failed=1
  # NCCL's sums in 16 bits, fused steps of a ring, master copies of shards, graphs concurrent with communication.
  gpu_splits_in bf16 1e-2 "--tensor 2 --attention flash" "--data 2 --zero-stage 3" "--context 2 --attention flash" \
    "--pipeline 2 --attention flash --cuda-graphs on" || failed=1
  gpu_checkpoints || failed=1
  return $failed
}

# gpu_splits_in PRECISION RELATIVE SPLIT...: over several ranks, all on the GPUs there are, against the loss of one rank.
gpu_splits_in() {
  local precision=$1 tolerance=$2 tiny one split name status=0 failed=0
  tiny="--model gpt-tiny --sequence 128 --global-batch 8 --precision $precision --steps 5"
  shift 2
  gpu_train "one-$precision.json" $tiny || status=$?
  one=$(field loss "build/gpu/one-$precision.json" | tail -1)
  if [ $status -ne 0 ] || ! is_number "$one"; then
    row "one rank, $precision" "$(how_it_ended $status "build/gpu/one-$precision.json.log")"
    ! is_failure $((status == 0 ? 1 : status))
    return
  fi
  for split in "$@"; do
    name=$(echo "split-$precision$split" | tr -d ' ').json
    status=0
    NCCL_DEBUG=WARN gpu_train "$name" $tiny $split || status=$?
    compare "$precision $split" $status "$name" "$one" "$tolerance" || failed=1
    if is_failure $status && [ "$split" = "$1" ]; then
      echo "the other splits in $precision are left out"
      break
    fi
  done
  return $failed
}

# A rank that is killed or stands still in the middle of thousands of launches a step, with communicators for the world,
# its transfers and two kinds of groups: the others say so within their patience and end.
# All at once: each waits more than it works.
gpu_kills() {
  local failure signal split number=0 each failed=0 status
  local -a running
  for failure in "KILL --tensor 2 --data 2" "STOP --tensor 2 --data 2" "KILL --pipeline 2 --tensor 2" \
    "STOP --pipeline 2 --tensor 2"; do
    read -r signal split <<<"$failure"
    number=$((number + 1))
    gpu_kill $number "$signal" $split >build/gpu/killed-$number.row 2>&1 &
    running+=($!)
  done
  for ((each = 1; each <= number; ++each)); do
    status=0
    wait "${running[each - 1]}" || status=$?
    cat build/gpu/killed-$each.row
    ! is_failure $status || failed=1
  done
  return $failed
}

# gpu_kill NUMBER SIGNAL SPLIT...; 75 where there was no time.
gpu_kill() {
  local number=$1 signal=$2 flight=build/gpu/flight-$1 log=build/gpu/killed-$1.json label run victim status=0
  shift 2
  label="$signal, $*"
  rm -rf "$flight" "$log"
  TRIVIUM_NCCL_TIMEOUT_S=10 gpu_train killed-$number.json --model "$(gpu_model gpt2-124m)" --sequence 128 --micro-batch 1 --global-batch 8 \
    --precision bf16 --attention flash --steps 1000000 --flight-record "$flight" "$@" &
  run=$!
  while [ -e "/proc/$run" ] && [ "$(field loss $log 2>/dev/null | wc -l)" -lt 2 ]; do sleep 0.2; done
  victim=$(od -An -t d4 -j 20 -N 4 "$(find "$flight" -name 'rank-00001.flight' 2>/dev/null)" 2>/dev/null | tr -d ' ')
  [ -z "$victim" ] || [ ! -e "/proc/$run" ] || kill -"$signal" "$victim"
  wait $run || status=$?
  [ -z "$victim" ] || kill -KILL "$victim" 2>/dev/null || true
  if [ $status -eq 1 ] && [ -n "$victim" ] && grep -q "nothing has come for 10 s" $log.log; then
    row "$label" "noticed after 10 s"
  elif [ $status -eq 1 ] && [ "$signal" = KILL ] && [ -n "$victim" ] && grep -q "NCCL: remote process exited" $log.log; then
    row "$label" "noticed at once, by its closed connection"
  elif [ $status -eq 0 ] || [ $status -eq 1 ]; then
    row "$label" "no word of the rank that is gone; $log.log"
    return 1
  else
    row "$label" "$(how_it_ended $status $log.log)"
    return $status
  fi
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

gpu_speed() {
  local failed=0
  gpu_op_times || failed=1
  gpu_benchmark || failed=1
  gpu_switches || failed=1
  return $failed
}

# Single ops, and fused attention beside cuDNN's where PyTorch is here.
gpu_op_times() {
  local status=0 table=build/gpu/ops.txt theirs=build/gpu/cudnn.txt
  [ -x $gpu_bin/bench_cuda ] || { echo "bench_cuda could not be built"; return 1; }
  within 60 $gpu_bin/bench_cuda --json build/gpu/ops.json >$table 2>build/gpu/ops.log || status=$?
  [ $status -ne 0 ] || cat $table
  [ $status -eq 0 ] || row "single ops" "$(how_it_ended $status build/gpu/ops.log)"
  is_failure $status && return 1
  within 60 python3 tests/gpu/cudnn_attention.py >$theirs 2>$theirs.log || status=$?
  case $status in
    0) ;;
    1 | 77) echo "cuDNN's attention was not timed: no PyTorch that sees a GPU"; return 0 ;;
    *) row "cuDNN's attention" "$(how_it_ended $status $theirs.log)"; ! is_failure $status; return ;;
  esac
  awk 'NR == FNR { theirs[$1 " " $2 " " $3 " " $4 " " $5] = $6; next }
    { key = $1 " " $2 " " $3 " " $4 " " $5 }
    key in theirs { printf "%-44s %8.1f us, cuDNN %8.1f us: %.2f times\n", key, $6, theirs[key], $6 / theirs[key] }' $theirs $table
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
      ! is_failure $((status == 0 ? 1 : status)) || failed=1
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
    for switch in "" "--cuda-graphs on" "--cuda-epilogues on" "--cuda-graphs on --cuda-epilogues on" \
      "--time-cuda-products build/gpu/products" "--cuda-products build/gpu/products" "--fp8 current"; do
      status=0
      gpu_train switched.json $job $switch || status=$?
      rate=$(field tokens_per_s build/gpu/switched.json | tail -n +4 | median)
      printf 'micro-batch %3d  %-44s ' "$batch" "${switch:-neither}"
      if grep -q "before sm_89 have no products in 8 bits" build/gpu/switched.json.log; then
        echo "refused: before sm_89 there are no products in 8 bits"
        continue
      fi
      if [ $status -ne 0 ] || ! is_number "$rate"; then
        how_it_ended $status
        ! is_failure $((status == 0 ? 1 : status)) || { failed=1; tail -3 build/gpu/switched.json.log >&2; }
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
  cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DTRIVIUM_REQUIRE_CUDA=ON -DTRIVIUM_GUI=OFF -DTRIVIUM_MPI=OFF \
    -DBUILD_TESTING="$1" -DCMAKE_CUDA_ARCHITECTURES="${TRIVIUM_GPU_ARCH:-native}" -DCMAKE_PREFIX_PATH="$2" -DNCCL_HOME="$3" \
    -DCUBLAS_HOME="$4" -DCUPTI_HOME="$5" >&2
}

# The tests are left out where they do not build; without the program there is nothing to do. What was compiled is kept:
# an unfinished build goes on where it stood.
gpu_build() {
  local prefix="" status=0
  [ ! -d build/gpu-packages ] || prefix=$top/build/gpu-packages/usr
  # Where there is no network, apt is to say so soon; what it lacks may be there by another name.
  [ -n "$prefix" ] || (apt_options+=(-o Acquire::Retries=0 -o Acquire::http::Timeout=5 -o Acquire::https::Timeout=5)
    ensure "${test_packages[@]}") ||
    say "dev: going on in the hope that these are here by other names; if not: ./dev gpu pack where they are, and bring build/gpu-packages along"
  gpu_configure ON "$prefix" "$@" || { say "dev: once more, without the tests"; gpu_configure OFF "$prefix" "$@"; } ||
    fail "cannot configure build/gpu"
  within 1800 cmake --build build/gpu --target trivium trivium_cuda >&2 || status=$?
  if [ $status -ne 0 ]; then
    row "trivium with its CUDA backend" "$(how_it_ended $status)"
    ! is_failure $status
    return
  fi
  gpu_built=1
  rm -f $gpu_bin/cuda_gpu_test $gpu_bin/bench_cuda
  within 1800 cmake --build build/gpu --target cuda_gpu_test bench_cuda -- -k 0 >&2 || status=$?
  row "the tests" "$([ $status -eq 0 ] && echo built || how_it_ended $status)"
  ! is_failure $status
}

run_gpu() {
  [ "${1:-}" != pack ] || { gpu_pack; return; }
  local part gpu_parts=("$@") gpu_cluster=h200 asked=0
  [ $# -gt 0 ] || gpu_parts=("${gpu_all_parts[@]}")
  for part in "${gpu_parts[@]}"; do
    [ -n "$(gpu_seconds_of "$part")" ] || { say "dev: gpu: no part \"$part\": ${gpu_all_parts[*]}"; exit 2; }
    asked=$((asked + $(gpu_seconds_of "$part")))
  done
  mkdir -p build/gpu
  # NCCL, cuBLAS and CUPTI may be there as Python packages alone.
  local nccl=${NCCL_HOME:-$(wheel_of nccl.h)} cublas=${CUBLAS_HOME:-$(wheel_of cublasLt.h)} cupti=${CUPTI_HOME:-$(wheel_of cupti.h)}
  PATH=$PATH:/usr/local/cuda/bin
  echo "needed"
  gpu_needs || fail "something that is needed is missing"
  [ $asked -le "$(gpu_whole)" ] || [ ${#gpu_parts[@]} -eq 1 ] ||
    printf '\n%s ask for up to %d s, and there are %d: what is left unfinished can be called for by its name\n' \
      "${gpu_parts[*]}" $asked "$(gpu_whole)"
  export LD_LIBRARY_PATH=${nccl:+$nccl/lib:}${cublas:+$cublas/lib:}${cupti:+$cupti/lib:}${LD_LIBRARY_PATH:-}
  if [[ " ${gpu_parts[*]} " == *" build "* ]]; then
    gpu_part build "built" gpu_build "$nccl" "$cublas" "$cupti"
    # What an earlier call built is of other sources.
    [ $gpu_built -eq 1 ] || { gpu_unfinished=("${gpu_parts[@]}"); gpu_end; return; }
  fi
  [ -f build/gpu/text.txt ] || corpus build/gpu/text.txt
  printf '\nthe machine\n'
  gpu_machine
  for part in "${gpu_parts[@]}"; do
    case $part in
      ops) gpu_part ops "every op, and trainings, against the CPU backend" gpu_ops ;;
      splits) gpu_part splits "splits over several ranks, and checkpoints" gpu_splits ;;
      kills) gpu_part kills "ranks that are gone" gpu_kills ;;
      speed) gpu_part speed "training, and what switches are worth" gpu_speed ;;
      calibrate) gpu_part calibrate "predicted and measured" gpu_calibration ;;
    esac
  done
  gpu_end
}

# 1 where something failed, else 75 where something is unfinished.
gpu_end() {
  printf '\n%d s in all; ' "$SECONDS"
  [ $gpu_failures -gt 0 ] && echo "parts in which something failed: $gpu_failures" || echo "nothing failed"
  [ ${#gpu_unfinished[@]} -eq 0 ] || echo "unfinished for want of time: ./dev gpu ${gpu_unfinished[*]}"
  [ $gpu_failures -eq 0 ] || return 1
  [ ${#gpu_unfinished[@]} -eq 0 ] || return 75
}
