# What ./dev package and ./dev package check do. Part of ./dev.

# The packages and the archive, in build/package; `debs`: the packages alone.
run_package() {
  local presets=(package package-archive) preset
  case ${1:-} in
    check) shift; check_packages "$@"; return ;;
    in) shift; package_in "$@"; return ;;
    container) shift; package_container "$@"; return ;;
    debs) presets=(package) ;;
  esac
  ensure "${build_packages[@]}" libopenmpi-dev dpkg-dev file -- "${gui_packages[@]}" ccache
  rm -f build/package/*.deb build/package/*.tar.gz
  configure package
  build package
  if [ ${#presets[@]} -gt 1 ]; then
    configure package-archive
    build package-archive --target trivium trivium_manuals
  fi
  mkdir -p build/package
  for preset in "${presets[@]}"; do
    cpack --config build/$preset/CPackConfig.cmake -B "$top/build/package" >build/package/cpack.log 2>&1 ||
      { cat build/package/cpack.log >&2; fail "cpack failed"; }
  done
  rm -rf build/package/_CPack_Packages
  (cd build/package && for file in *.deb $(compgen -G '*.tar.gz'); do
    printf '%10d bytes  build/package/%s\n' "$(stat -c %s "$file")" "$file"
  done)
}

# unmount_root FOLDER: whatever was mounted there.
unmount_root() {
  local place
  for place in proc packages; do
    if mountpoint -q "$1/$place"; then umount -l "$1/$place"; fi
  done
}

# mirror_of SUITE: where its packages are.
mirror_of() {
  if [ -n "${TRIVIUM_MIRROR:-}" ]; then echo "$TRIVIUM_MIRROR"; return; fi
  if [ "$1" = "$(. /etc/os-release && echo "$VERSION_CODENAME")" ]; then
    grep -rhE '^(URIs:|deb )' /etc/apt/sources.list.d /etc/apt/sources.list 2>/dev/null |
      grep -oE 'https?://[^ ]+' | grep -E '/(debian|ubuntu)/?$' | head -1 || true
    return
  fi
  case $1 in
    jammy | noble | plucky | questing) echo http://archive.ubuntu.com/ubuntu ;;
    *) echo http://deb.debian.org/debian ;;
  esac
}

# ubuntu_keys MIRROR: the file of Ubuntu's keys, where this distribution has none from its package, whose sum is known.
ubuntu_keys() {
  local installed=/usr/share/keyrings/ubuntu-archive-keyring.gpg place=$top/build/package/keys
  local deb=ubuntu-keyring_2023.11.28.1_all.deb sum=36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8
  if [ -e $installed ]; then echo $installed; return; fi
  if [ ! -e "$place$installed" ]; then
    ensure curl
    mkdir -p "$place"
    curl -fsSL -o "$place/$deb" "$1/pool/main/u/ubuntu-keyring/$deb" || fail "$1 has no $deb"
    echo "$sum  $place/$deb" | sha256sum -c --quiet >&2 || fail "$deb is not the package that is known"
    dpkg-deb -x "$place/$deb" "$place"
  fi
  echo "$place$installed"
}

# make_root FOLDER SUITE: a bare root of a distribution in which nothing is but what it cannot do without.
make_root() {
  local mirror options=(--variant=minbase --include=ca-certificates) script=()
  [ "$(id -u)" -eq 0 ] || fail "a bare root is made with debootstrap and chroot, for which one has to be root"
  ensure debootstrap
  mirror=$(mirror_of "$2")
  [ -n "$mirror" ] || fail "no mirror in apt's lists; name one in TRIVIUM_MIRROR"
  if [[ $mirror == */ubuntu* ]]; then
    options+=(--components=main,universe)
    # Debian's debootstrap does not know the newest suites of Ubuntu, which are made as all before.
    [ -e "/usr/share/debootstrap/scripts/$2" ] || script=(/usr/share/debootstrap/scripts/gutsy)
    options+=(--keyring="$(ubuntu_keys "$mirror")")
  fi
  unmount_root "$1"
  rm -rf --one-file-system "$1"
  mkdir -p "$1" "$top/build/package"
  debootstrap "${options[@]}" "$2" "$1" "$mirror" ${script[@]+"${script[@]}"} >"$top/build/package/debootstrap.log" 2>&1 ||
    { tail -5 "$top/build/package/debootstrap.log" >&2; fail "debootstrap failed"; }
  # apt there as here: its options, names of hosts.
  cp -a /etc/apt/apt.conf.d/. "$1/etc/apt/apt.conf.d/"
  cp /etc/resolv.conf /etc/hosts "$1/etc/"
}

# check_in ROOT PACKAGES: the packages of a folder, and the archive next to them, in a bare root.
check_in() {
  root=$1  # known to the trap, too
  mkdir -p "$root/packages"
  mount -t proc proc "$root/proc"
  mount --bind "$2" "$root/packages"
  trap 'unmount_root "$root"' EXIT
  cp tests/package/in_root.sh "$root/tmp/in_root.sh"
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin TRIVIUM_CHECK_MPI="${TRIVIUM_CHECK_MPI:-}" \
    bash /tmp/in_root.sh /packages
  unmount_root "$root"
  trap - EXIT
}

check_packages() {
  local place=${TRIVIUM_ROOT:-$top/build/bare-root}
  compgen -G 'build/package/trivium_*.deb' >/dev/null || fail "no packages; make them with ./dev package"
  make_root "$place" "$(. /etc/os-release && echo "$VERSION_CODENAME")"
  check_in "$place" "$top/build/package"
  [ -n "${TRIVIUM_KEEP_ROOT:-}" ] || rm -rf --one-file-system "$place"
}

# Packages of another distribution, from the files that git knows: built in one root of it, checked in another. The
# archive that is checked is the one built here: it runs on both.
package_in() {
  local suite=${1:?dev: package in wants a suite, like noble} bare=$top/build/roots/${1} work=$top/build/roots/${1}-build
  local folder=$top/build/package/$suite
  make_root "$bare" "$suite"
  unmount_root "$work"
  rm -rf --one-file-system "$work"
  cp -a "$bare" "$work"
  mkdir -p "$work/src" "$folder"
  git ls-files -z | tar --null -T - -cf - | tar -C "$work/src" -xf -
  root=$work
  trap 'unmount_root "$root"' EXIT
  mount -t proc proc "$work/proc"
  chroot "$work" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    CMAKE_BUILD_PARALLEL_LEVEL="$CMAKE_BUILD_PARALLEL_LEVEL" /src/dev package debs
  unmount_root "$work"
  trap - EXIT
  rm -f "$folder"/*.deb "$folder"/*.tar.gz
  cp "$work"/src/build/package/*.deb "$folder/"
  cp build/package/trivium-*-linux-*.tar.gz "$folder/" 2>/dev/null || fail "no archive; make it with ./dev package"
  check_in "$bare" "$folder"
  [ -n "${TRIVIUM_KEEP_ROOT:-}" ] || rm -rf --one-file-system "$bare" "$work"
}

# The image of the Containerfile, built and asked for a plan. Where no registry can be reached, the base image is one
# that debootstrap makes here, by the same name.
package_container() {
  local base=docker.io/library/debian:12-slim place=$top/build/roots/container container
  ensure buildah
  export BUILDAH_ISOLATION=chroot
  if ! buildah pull -q "$base" >/dev/null 2>&1; then
    say "dev: $base cannot be had; debootstrap makes one"
    make_root "$place" bookworm
    container=$(buildah from scratch)
    buildah add -q "$container" "$place" / >/dev/null
    buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
    buildah commit -q "$container" "$base" >/dev/null
    buildah rm "$container" >/dev/null
    rm -rf --one-file-system "$place"
  fi
  buildah bud --pull-never -t trivium .
  buildah images trivium
  container=$(buildah from --pull-never trivium)
  buildah run "$container" -- trivium --version
  buildah run "$container" -- sh -c \
    'id -un; cd && trivium plan --model llama3-8b --cluster dgx-h100-80gb:2 --global-batch 128 -o plan.json | head -4'
  buildah rm "$container" >/dev/null
}

# The wheel in a fresh environment. Its tests hold the module, and every document of the program against its schema.
run_python() {
  ensure "${build_packages[@]}" python3-venv -- ccache
  rm -rf build/python/wheel build/python/venv
  python3 -m venv build/python/venv
  build/python/venv/bin/pip install -q --upgrade pip >&2
  # The compiler by the name that the other build folders call it: ccache knows their objects.
  CC=${CC:-cc} CXX=${CXX:-c++} build/python/venv/bin/pip wheel -q --no-deps -w build/python/wheel . >&2
  printf '%10d bytes  %s\n' "$(stat -c %s build/python/wheel/*.whl)" build/python/wheel/*.whl
  build/python/venv/bin/pip install -q build/python/wheel/*.whl pandas jsonschema >&2
  # From elsewhere: the tests see what was installed, not the folder of the sources.
  (cd build/python && venv/bin/python -m unittest discover -s "$top/python/tests" -t "$top/python/tests" "$@")
}
