# What ./dev package and ./dev package check do; dev includes this file.

# The packages and the archive, in build/package.
run_package() {
  if [ "${1:-}" = check ]; then shift; check_packages "$@"; return; fi
  ensure "${build_packages[@]}" libopenmpi-dev dpkg-dev file -- "${gui_packages[@]}" ccache
  rm -f build/package/*.deb build/package/*.tar.gz
  configure package
  build package
  configure package-archive
  build package-archive --target trivium trivium_manuals
  local preset
  for preset in package package-archive; do
    cpack --config build/$preset/CPackConfig.cmake -B "$top/build/package" >build/package/cpack.log 2>&1 ||
      { cat build/package/cpack.log >&2; fail "cpack failed"; }
  done
  rm -rf build/package/_CPack_Packages
  (cd build/package && for file in *.deb *.tar.gz; do
    printf '%10d bytes  build/package/%s\n' "$(stat -c %s "$file")" "$file"
  done)
}

# unmount_root FOLDER: whatever check_packages mounted there.
unmount_root() {
  local place
  for place in proc packages; do
    if mountpoint -q "$1/$place"; then umount -l "$1/$place"; fi
  done
}

# A bare root of this distribution in which nothing is but what it cannot do without.
check_packages() {
  root=${TRIVIUM_ROOT:-$top/build/bare-root}  # known to the trap, too
  local suite mirror
  compgen -G 'build/package/trivium_*.deb' >/dev/null || fail "no packages; make them with ./dev package"
  [ "$(id -u)" -eq 0 ] || fail "a bare root is made with debootstrap and chroot, for which one has to be root"
  ensure debootstrap
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=${TRIVIUM_MIRROR:-$(grep -rhE '^(URIs:|deb )' /etc/apt/sources.list.d /etc/apt/sources.list 2>/dev/null |
    grep -oE 'https?://[^ ]+' | grep -E '/(debian|ubuntu)/?$' | head -1 || true)}
  [ -n "$mirror" ] || fail "no mirror in apt's lists; name one in TRIVIUM_MIRROR"
  unmount_root "$root"
  rm -rf --one-file-system "$root"
  mkdir -p "$root"
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror" >build/package/debootstrap.log 2>&1 ||
    { tail -5 build/package/debootstrap.log >&2; fail "debootstrap failed"; }
  # apt there as here: its options, its lists, names of hosts.
  cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  mkdir -p "$root/packages"
  mount -t proc proc "$root/proc"
  mount --bind "$top/build/package" "$root/packages"
  trap 'unmount_root "$root"' EXIT
  cp tests/package/in_root.sh "$root/tmp/in_root.sh"
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin TRIVIUM_CHECK_MPI="${TRIVIUM_CHECK_MPI:-}" \
    bash /tmp/in_root.sh /packages
  unmount_root "$root"
  trap - EXIT
  [ -n "${TRIVIUM_KEEP_ROOT:-}" ] || rm -rf --one-file-system "$root"
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
