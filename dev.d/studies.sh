# Is the search right, do plans start, how far are predictions off? Part of ./dev.

# Whether `trivium trial` finds the fastest of six plans here; nothing else may run.
run_trials() {
  ensure "${build_packages[@]}" python3
  configure release -DTRIVIUM_GUI=OFF
  build release --target trivium
  exec python3 tests/trials/trials.py build/release/bin/trivium "$@"
}

run_proofs() {
  if [ "${1:-}" = bounds ]; then shift; run_program tests/proofs -- "$@"; fi
  ensure "${build_packages[@]}" python3
  configure release
  build release --target trivium
  exec tests/proofs/sweep.py build/release/bin/trivium "$@"
}

# Does what `plan --for` recommends start? Slurm's controller runs in a temporary folder and without hosts.
run_launchable() {
  local slurm=(slurmctld slurm-client) argument
  for argument in "$@"; do [ "$argument" != --without-slurm ] || slurm=(); done
  ensure "${build_packages[@]}" python3 ${slurm[@]+"${slurm[@]}"}
  configure release -DTRIVIUM_GUI=OFF
  build release --target trivium
  exec tests/launchable/launchable.py build/release/bin/trivium "$@"
}

# Are public launch files read, and as bash runs them?
run_corpus() {
  ensure "${build_packages[@]}" python3 git
  configure release -DTRIVIUM_GUI=OFF
  build release --target trivium
  exec tests/corpus/corpus.py build/release/bin/trivium "$@"
}

# Do the acceptance lines of the report on planning hold?
run_findings() {
  ensure "${build_packages[@]}" python3
  configure release -DTRIVIUM_GUI=OFF
  build release --target trivium
  exec tests/findings/findings.py build/release/bin/trivium "$@"
}

run_certainty() {
  ensure "${build_packages[@]}"
  configure release
  build release --target trivium-certainty
  exec build/release/bin/trivium-certainty validation/left_out.csv validation/own_runs.csv validation/micro \
    hardware_profiles/measured/errors.json validation/runs/*.csv -- validation/runs_modern/*.csv validation/runs_2026/*.csv
}

run_fidelity() {
  ensure "${build_packages[@]}" -- bible-kjv
  configure release
  build release --target trivium-fidelity
  corpus build/fidelity.txt
  exec build/release/bin/trivium-fidelity build/fidelity.txt "$@"
}
