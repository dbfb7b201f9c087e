# Random splits, kills, faults, damaged files and noise. Part of ./dev.

run_soak_kill() {
  ensure "${build_packages[@]}" libopenmpi-dev openmpi-bin
  configure release -DTRIVIUM_GUI=OFF
  build release --target trivium trivium_mpi
  exec tests/soak/kill.sh build/release/bin/trivium "$@"
}

run_soak_checkpoints() {
  ensure "${build_packages[@]}" python3
  configure release -DTRIVIUM_GUI=OFF
  build release --target trivium trivium_faults
  exec tests/soak/checkpoints.py build/release/bin/trivium "$@"
}

run_soak() {
  if [ "${1:-}" = checkpoints ]; then shift; run_soak_checkpoints "$@"; fi
  if [ "${1:-}" = kill ]; then shift; run_soak_kill "$@"; fi
  [ "${1:-}" = gui ] || run_program tests/soak -- "$@"
  ensure "${test_packages[@]}" "${gui_packages[@]}" -- ccache
  configure dev -DTRIVIUM_GUI=ON
  build dev --target test_gui_random
  TRIVIUM_SOAK_SECONDS=${2:-3600} TRIVIUM_SOAK_SEED=${TRIVIUM_SOAK_SEED:-$RANDOM} exec build/dev/bin/test_gui_random
}

# What is wrong with how the program takes what nobody means it to take. `--help` tells the options.
run_hostile() {
  ensure "${build_packages[@]}" libopenmpi-dev openmpi-bin python3
  configure release -DTRIVIUM_GUI=OFF
  build release --target trivium trivium_mpi
  exec tests/hostile/hostile.py build/release/bin/trivium "$@"
}

# Every reader for a while; what is new goes to build/fuzz/corpus, what breaks one is kept in build/fuzz.
run_fuzz() {
  ensure "${build_packages[@]}" clang
  configure fuzz
  build fuzz
  local seeds reader
  for seeds in tests/fuzz/corpus/*; do
    reader=$(basename "$seeds")
    say "dev: fuzzing the reader of $reader"
    mkdir -p "build/fuzz/corpus/$reader"
    TRIVIUM_FUZZ_READER=$reader build/fuzz/bin/trivium-fuzz -max_total_time="${1:-60}" -max_len=32768 -timeout=10 \
      -print_final_stats=1 -verbosity=0 -artifact_prefix="build/fuzz/$reader-" "build/fuzz/corpus/$reader" "$seeds" 2>&1 |
      grep -E 'number_of_executed_units|ERROR|SUMMARY|Test unit' || true
    [ -z "$(compgen -G "build/fuzz/$reader-*")" ] || fail "the reader of $reader broke: $(compgen -G "build/fuzz/$reader-*")"
  done
}
