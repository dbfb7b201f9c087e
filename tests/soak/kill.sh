#!/usr/bin/env bash
# Kills a random rank again and again while it trains; the losses must be those of a run that was left alone.
#   kill.sh TRIVIUM [STEPS] [KILLS] [SEED]
set -euo pipefail
trivium=$(realpath "$1") steps=${2:-200} kills=${3:-20}
RANDOM=${4:-$$}
ranks=2
place=$(mktemp -d)
run=
trap '[ -z "$run" ] || kill $run 2>/dev/null; rm -rf "$place"' EXIT
cd "$place"
export XDG_DATA_HOME=$place/data
for i in $(seq 400); do echo "In the beginning was the Word, and line $i."; done >text.txt

train() {
  "$trivium" run --model gpt-tiny --cluster this-machine --data $ranks --zero-stage 1 --global-batch 8 --micro-batch 2 --sequence 64 \
    --corpus text.txt --timeline-steps 0 --steps "$steps" --json "$@"
}
# losses FILE: "step loss" lines, each step once; a step that was done twice must have said the same both times.
losses() { sed -E 's/.*"loss":([^,}]*).*"step":([0-9]+).*/\2 \1/' "$1" | sort -u | sort -n; }

train >calm.txt
train --processes $ranks --flight-record flight --checkpoint checkpoints --checkpoint-every 2 --keep 2 \
  --max-restarts "$kills" >disturbed.txt 2>disturbed.err &
run=$!
steps_done() { grep -c loss disturbed.txt || true; }
alive() { kill -0 $run 2>/dev/null || { cat disturbed.err >&2; echo "it ended after $kill kills" >&2; exit 1; }; }
for ((kill = 0; kill < kills; ++kill)); do
  victim=flight/attempt-$kill/rank-0000$((RANDOM % ranks)).flight
  until [ -e "$victim" ]; do alive; sleep 0.02; done
  # After 0 to 9 steps of this attempt, and then at any moment of a step.
  wanted=$(($(steps_done) + RANDOM % 10))
  while [ "$(steps_done)" -lt $wanted ]; do alive; sleep 0.02; done
  sleep "0.0$((RANDOM % 10))"
  # The process' number stands in its flight record, after magic, version, rank and ranks.
  kill -9 "$(od -An -t d4 -j 20 -N 4 "$victim" | tr -d ' ')" || alive
done
wait $run || { cat disturbed.err >&2; exit 1; }
run=
losses calm.txt >calm.losses
losses disturbed.txt >disturbed.losses
if ! cmp calm.losses disturbed.losses; then
  echo "the losses differ" >&2
  exit 1
fi
echo "$steps steps, $kills kills (seed ${4:-$$}): every loss bitwise equal, the last is $(tail -n 1 calm.losses | cut -d' ' -f2)"
