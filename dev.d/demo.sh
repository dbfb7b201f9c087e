# The main job from end to end, and the desktop program. Part of ./dev.

# corpus FILE: real English text, one verse a line without its number; else the licences every Debian carries.
corpus() {
  if command -v bible >/dev/null && bible -f gen1:1-rev22:21 </dev/null 2>/dev/null | cut -d' ' -f2- >"$1" && [ -s "$1" ]; then
    return 0
  fi
  say "dev: no bible-kjv here; the text is that of /usr/share/common-licenses, or of docs"
  cat /usr/share/common-licenses/* >"$1" 2>/dev/null || cat "$top"/README.md $(find "$top/docs" -name "*.md" | sort) >"$1"
}

trivium() {
  say "+ trivium $*"
  "$top/build/release/bin/trivium" "$@"
}

run_demo() {
  ensure "${build_packages[@]}" -- bible-kjv
  configure release -DBUILD_TESTING=OFF -DTRIVIUM_CUDA=OFF -DTRIVIUM_GUI=OFF
  build release --target trivium
  mkdir -p build/demo
  cd build/demo
  # The profile of this machine stays in the demo's own folder.
  export XDG_DATA_HOME=$PWD/data
  corpus text.txt

  say "dev: a plan for hardware that is not here"
  trivium plan --model gpt3-175b --cluster dgx-a100-80gb:128 --global-batch 1536 --for megatron -o plan-gpt3.json >plan-gpt3.txt
  say "dev: this machine, measured"
  trivium profile --quick >profile.txt
  say "dev: a plan for it, carried out, and learned from"
  trivium plan --model gpt-tiny --cluster this-machine --ranks 2 --global-batch 8 -o plan-tiny.json >plan-tiny.txt
  trivium run plan-tiny.json --corpus text.txt --steps 20 --record run-1.json >run-1.txt
  trivium calibrate run-1.json -o this-machine.json >calibrate.txt
  say "dev: what that run taught, tried on another split"
  trivium plan --model gpt-tiny --cluster this-machine.json --ranks 2 --pipeline 2 --global-batch 8 -o plan-split.json \
    >plan-split.txt
  trivium run plan-split.json --corpus text.txt --steps 20 --record run-2.json >run-2.txt
  trivium validate plan-split.json run-2.json >validate.txt

  # One screen of it.
  printf '\n1. Planned for 1,024 GPUs that are not here:\n'
  sed '/^  expected  difference/,$d' plan-gpt3.txt
  grep '^  search ' plan-gpt3.txt
  printf '\n2. Planned for this machine, and trained on it:\n'
  sed '/^  expected  difference/,$d' plan-tiny.txt
  sed -n '1p; $p' run-1.txt
  printf '\n3. Another split, predicted from what that run taught, and held against its own:\n'
  sed -n '1p; 3,4p' validate.txt
  grep -A1 '^  noise' validate.txt || true
  printf '\nTry next, in build/demo (all that was printed is in its .txt files):\n'
  printf '  ../release/bin/trivium %s\n' 'simulate plan-gpt3.json' 'explain plan-gpt3.json' 'validate run-2.json' \
    'plan --model llama3-70b --cluster dgx-h100-80gb:16 --global-batch 512'
  printf 'The tutorial is docs/tutorial.md; ./dev gui builds the desktop program.\n'
}

# run_program FOLDER PACKAGE... -- ARGUMENT...: builds the target trivium-NAME of a folder and starts it.
run_program() {
  local folder=$1 name packages=()
  name=trivium-$(basename "$folder")
  shift
  [ -f "$folder/CMakeLists.txt" ] || fail "this tree has no $name yet ($folder/ holds no program)"
  while [ "$1" != -- ]; do packages+=("$1"); shift; done
  shift
  ensure "${build_packages[@]}" ${packages[@]+"${packages[@]}"}
  configure release
  build release --target "$name"
  exec "build/release/bin/$name" "$@"
}

run_gui() {
  ensure "${build_packages[@]}" "${gui_packages[@]}"
  configure release -DTRIVIUM_GUI=ON
  build release --target trivium-gui trivium
  exec build/release/bin/trivium-gui "$@"
}
