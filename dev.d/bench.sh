# Benchmarks, and results held against each other. Part of ./dev.

# With OpenBLAS as the reference: a training's speed is a share of this machine's fastest matrix products.
bench_training() {
  ensure "${build_packages[@]}" libbenchmark-dev -- libopenblas0-pthread
  configure release -DTRIVIUM_BENCHMARKS=ON
  build release --target bench_training
  exec build/release/bin/bench_training "$@"
}

# With transformers as the reference, where ./dev oracle has installed it.
bench_sampling() {
  ensure "${build_packages[@]}" libbenchmark-dev
  configure release -DTRIVIUM_BENCHMARKS=ON
  build release --target bench_sampling
  build/release/bin/bench_sampling "$@"
  [ -x build/oracle/venv/bin/python ] || exit 0
  exec build/oracle/venv/bin/python tests/bench/sampling.py
}

# Single ops of the CUDA backend.
bench_cuda() {
  configure release
  build release --target bench_cuda
  exec build/release/bin/bench_cuda "$@"
}

# keep_bench FILE ARGUMENT...: ten repetitions of every benchmark in one JSON file of Google Benchmark's form.
keep_bench() {
  local file=$1 parts program
  shift
  parts=$(mktemp -d)
  for program in build/release/bin/bench_*; do
    [ -x "$program" ] || continue
    case ${program##*/} in bench_cuda | bench_training | bench_sampling | bench_simgrid) continue ;; esac
    say "+ ${program##*/}"
    "$program" --benchmark_repetitions=10 --benchmark_enable_random_interleaving=true \
      --benchmark_out="$parts/${program##*/}.json" "$@" >&2
  done
  /usr/bin/python3 tests/bench/compare.py merge "$file" $(find "$parts" -name '*.json' -size +0 | sort)
  rm -r "$parts"
}

run_bench() {
  if [ "${1:-}" = cuda ]; then shift; bench_cuda "$@"; fi
  if [ "${1:-}" = training ]; then shift; bench_training "$@"; fi
  if [ "${1:-}" = sampling ]; then shift; bench_sampling "$@"; fi
  local old='' new=''
  case ${1:-} in
    --save) new=${2:?dev: bench --save wants a file}; shift 2 ;;
    --compare)
      old=${2:?dev: bench --compare wants a file}
      [ -s "$old" ] || fail "$old: there is no such result; ./dev bench --save $old makes one"
      shift 2
      ensure libbenchmark-tools python3-scipy
      if [ -s "${1:-}" ]; then exec /usr/bin/python3 tests/bench/compare.py "$old" "$1"; fi
      new=$PWD/build/bench.json
      ;;
  esac
  ensure "${build_packages[@]}" libbenchmark-dev -- "${gui_packages[@]}" libopenblas0-pthread
  configure release -DTRIVIUM_BENCHMARKS=ON -DTRIVIUM_GUI=ON
  build release
  if [ -n "$new" ]; then
    keep_bench "$new" "$@"
    [ -z "$old" ] || exec /usr/bin/python3 tests/bench/compare.py "$old" "$new"
    return
  fi
  local program found=no
  for program in build/release/bin/bench_*; do
    [ -x "$program" ] || continue
    case ${program##*/} in bench_cuda | bench_training | bench_sampling) continue ;; esac  # ./dev bench NAME
    found=yes
    printf '\n+ %s\n' "$program $*"
    "$program" "$@"
  done
  [ $found = yes ] || fail "this tree has no benchmark yet"
}
