#!/usr/bin/env bash
# Run as root in a bare root, with packages and archive in the folder that is named: installs the packages, uses them,
# removes them, and unpacks the archive. `./dev package check` makes such a root.
set -euo pipefail
packages=$1
export DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 HOME=/root
work=$(mktemp -d)
cd "$work"

say() { printf '%s\n' "$*"; }
fail() { say "package check: $*"; exit 1; }
files() { find / -xdev -path "$packages" -prune -o -path "$work" -prune -o -path /proc -prune -o \
  -path /var/cache -prune -o -path /var/lib/apt -prune -o -path /var/lib/dpkg -prune -o -path /var/log -prune -o \
  -path /root -prune -o -path /tmp -prune -o -name '*trivium*' -print | sort; }

# use PROGRAM: the main job, small.
use() {
  "$1" --version | sed -n 1p
  "$1" doctor | grep -E '^ *data'
  "$1" plan --model llama3-8b --cluster dgx-h100-80gb:2 --global-batch 256 -o plan.json | sed -n 1,4p
  "$1" simulate plan.json --json >simulation.json
  grep -q '"schema": "trivium.simulation/1"' simulation.json
  printf 'in the beginning was the word %.0s' $(seq 200) >text.txt
  "$1" run --model gpt-tiny --global-batch 8 --corpus text.txt --steps 3 | tail -1
}

[ -z "$(files)" ] || fail "something of ours is here before it is installed: $(files)"

say "== trivium.deb"
apt-get update -qq
apt-get install -y -qq --no-install-recommends "$packages"/trivium_*.deb >apt.log 2>&1 || { cat apt.log; exit 1; }
dpkg-query -W -f='${Package} ${Version}, installed ${Installed-Size} KiB, needs ${Depends}\n' trivium
use trivium
ls /usr/share/man/man1/trivium*.1.gz | wc -l | sed 's/$/ manual pages/'

if ls "$packages"/trivium-gui_*.deb >/dev/null 2>&1; then
  say "== trivium-gui.deb"
  apt-get install -y -qq --no-install-recommends "$packages"/trivium-gui_*.deb fonts-dejavu-core >apt.log 2>&1 || { cat apt.log; exit 1; }
  dpkg-query -W -f='${Package} ${Version}, installed ${Installed-Size} KiB\n' trivium-gui
  QT_QPA_PLATFORM=offscreen XDG_RUNTIME_DIR=$work trivium-gui plan.json --screenshot timeline timeline.png
  say "a picture of $(stat -c %s timeline.png) bytes"
fi
if ls "$packages"/trivium-mpi_*.deb >/dev/null 2>&1 && [ -n "${TRIVIUM_CHECK_MPI:-}" ]; then
  say "== trivium-mpi.deb"
  apt-get install -y -qq --no-install-recommends "$packages"/trivium-mpi_*.deb >apt.log 2>&1 || { cat apt.log; exit 1; }
  trivium doctor | grep -E '^ *MPI'
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 trivium run --model gpt-tiny --data 2 --global-batch 8 \
    --corpus text.txt --steps 3 --processes 2 | tail -1
fi

say "== removed"
apt-get purge -y -qq 'trivium*' >apt.log 2>&1 || { cat apt.log; exit 1; }
[ -z "$(files)" ] || fail "left behind: $(files)"
hash -r
if command -v trivium; then fail "trivium is still on the path"; fi
say "nothing is left"

say "== archive"
mkdir -p "$work/unpacked" && tar -C "$work/unpacked" -xf "$packages"/trivium-*-linux-*.tar.gz
moved=$(echo "$work"/unpacked/trivium-*)
ldd "$moved/bin/trivium" 2>/dev/null || true
use "$moved/bin/trivium"
rm -rf "$work"
say "package check: all is well"
