# Packages of Debian and Ubuntu: what commands need, installed where it is missing. Part of ./dev.

apt_options=(-o DPkg::Lock::Timeout=300)
build_packages=(g++ cmake ninja-build libeigen3-dev nlohmann-json3-dev libcli11-dev libfmt-dev libpcre2-dev libsqlite3-dev zlib1g-dev libyaml-cpp-dev)
test_packages=("${build_packages[@]}" libgtest-dev libgmock-dev python3)
# With fonts: without one, text has no glyphs.
gui_packages=(qt6-base-dev qt6-svg-dev libsimdjson-dev fonts-dejavu-core)

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]; }

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get "${apt_options[@]}" install -y -qq --no-install-recommends "$@" >&2
}

# ensure PACKAGE... [-- OPTIONAL...]: installs what is missing; a missing optional package is only mentioned.
ensure() {
  local needed=() wanted=() list=needed package
  for package in "$@"; do
    if [ "$package" = -- ]; then
      list=wanted
    elif ! command -v dpkg-query >/dev/null || ! is_installed "$package"; then
      if [ $list = needed ]; then needed+=("$package"); else wanted+=("$package"); fi
    fi
  done
  [ $((${#needed[@]} + ${#wanted[@]})) -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    say "dev: no apt here; going on in the hope that these, or their like, are installed: ${needed[*]}"
    return 0
  fi
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    [ ${#needed[@]} -eq 0 ] || fail "neither root nor sudo here; ask for: apt-get install ${needed[*]} ${wanted[*]}"
    say "dev: going on without ${wanted[*]} (neither root nor sudo here)"
    return 0
  fi
  say "dev: installing ${needed[*]} ${wanted[*]}"
  as_root apt-get "${apt_options[@]}" update -qq >&2 || say "dev: the package lists could not be refreshed"
  if [ ${#needed[@]} -gt 0 ]; then
    apt_install "${needed[@]}" || fail "could not install: ${needed[*]}"
  fi
  for package in ${wanted[@]+"${wanted[@]}"}; do
    apt_install "$package" || say "dev: going on without $package"
  done
}

# What a machine without apt lacks: headers and static libraries of the build's packages, as installed here.
gpu_pack() {
  ensure "${build_packages[@]}" libgtest-dev libgmock-dev
  rm -rf build/gpu-packages
  mkdir -p build/gpu-packages
  dpkg -L libeigen3-dev nlohmann-json3-dev libcli11-dev libfmt-dev libfmt9 libgtest-dev libgmock-dev googletest \
    libpcre2-dev libpcre2-8-0 libsqlite3-dev libsqlite3-0 zlib1g-dev zlib1g libyaml-cpp-dev libyaml-cpp0.7 |
    grep -E '^/usr/(include|lib|share/(eigen3|cmake|nlohmann_json)|src)' | sort -u >build/gpu-packages.list
  tar -C / --no-recursion -cf - -T build/gpu-packages.list 2>/dev/null | tar -C build/gpu-packages -xf -
  rm build/gpu-packages.list
  say "dev: $(du -sh build/gpu-packages | cut -f1) in build/gpu-packages; take the folder along with the sources"
}
