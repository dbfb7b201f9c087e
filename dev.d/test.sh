# Tests, sanitizers and coverage. Part of ./dev.

# check PRESET [CTEST ARGUMENTS]: configures, builds and tests one preset.
check() {
  local preset=$1
  shift
  say "dev: preset $preset"
  configure "$preset"
  build "$preset"
  ctest --preset "$preset" -j2 "$@"
}

# Slow tests simulate thousands of plans or train on every combination of splits; they need no backend.
run_test() {
  local preset=dev slow=(-LE slow) arguments=() argument
  for argument in "$@"; do
    case "$argument" in
      --all) preset=nocuda slow=() ;;
      --clang) preset=clang ;;
      --quick) ;;  # what a plain `test` does
      *) arguments+=("$argument") ;;
    esac
  done
  ensure "${test_packages[@]}" libopenmpi-dev openmpi-bin -- ccache "${gui_packages[@]}" xvfb xauth
  if [ $preset = clang ]; then
    ensure clang
    check clang ${slow[@]+"${slow[@]}"} ${arguments[@]+"${arguments[@]}"}
    return
  fi
  configure dev
  if grep -q '^TRIVIUM_HAS_CUDA:INTERNAL=OFF' build/dev/CMakeCache.txt; then
    preset=dev
    say "dev: nothing to build the CUDA backend with: preset dev is what preset nocuda would be"
  elif [ $preset = dev ] && [ ! -x build/cuda12/toolkit/bin/ptxas ]; then
    say "dev: kernels are not compiled for the V100 (Volta.* are skipped); ./dev cuda12 installs what that takes"
  fi
  check $preset ${slow[@]+"${slow[@]}"} ${arguments[@]+"${arguments[@]}"}
}

run_equivalence() {
  ensure "${test_packages[@]}" -- ccache
  configure nocuda
  build nocuda --target equivalence_test
  exec build/nocuda/bin/equivalence_test --gtest_brief=1 "$@"
}

run_coverage() {
  ensure "${test_packages[@]}" gcovr -- ccache
  configure coverage
  build coverage
  find build/coverage -name '*.gcda' -delete
  ctest --preset coverage -j "$(nproc)" "$@" || say "dev: some tests failed; what they ran is counted all the same"
  mkdir -p build/coverage/report
  gcovr --root . --object-directory build/coverage --gcov-ignore-parse-errors --exclude tests/ --exclude build/ \
    --json build/coverage/report/coverage.json --html-details build/coverage/report/index.html -j "$(nproc)" >&2
  /usr/bin/python3 tests/coverage.py build/coverage/report/coverage.json
}

run_sanitizer() {
  if [ "$1 ${2:-}" = "asan gui" ]; then shift 2; run_asan_gui "$@"; fi
  ensure "${test_packages[@]}" -- ccache
  check "$@"
}

# Only what the random actions need; what libraries keep as long as the program lives is no leak of ours.
run_asan_gui() {
  ensure "${test_packages[@]}" "${gui_packages[@]}" -- ccache
  configure asan-gui
  build asan-gui --target test_gui_random
  TRIVIUM_SOAK_SECONDS=${1:-300} TRIVIUM_SOAK_SEED=${TRIVIUM_SOAK_SEED:-$RANDOM} \
    ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    LSAN_OPTIONS=suppressions=$top/tests/gui/random/leaks.supp \
    exec build/asan-gui/bin/test_gui_random
}
