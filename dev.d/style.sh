# Layout of the C++ files and clang-tidy. Part of ./dev.

cxx_files() {
  local list=(find . -path ./build -prune -o -type f -print0)
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then list=(git ls-files -z); fi
  "${list[@]}" | grep -zE '\.(c|cc|cpp|h|hpp|cu|cuh)$'
}

run_format() {
  ensure clang-format
  case "${1:-}" in
    "") cxx_files | xargs -0 clang-format -i ;;
    --check) cxx_files | xargs -0 clang-format --dry-run --Werror ;;
    *) usage >&2; exit 2 ;;
  esac
}

run_lint() {
  ensure "${test_packages[@]}" clang-format clang-tidy
  run_format --check
  configure tidy
  build tidy "$@"
}
