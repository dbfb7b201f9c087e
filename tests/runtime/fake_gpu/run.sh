#!/usr/bin/env bash
# `trivium run --backend cuda` on the fake GPU, a process a rank: whatever the split, the precision and the switches, and
# whenever the device gets to its work, a training comes to the loss of one rank on cores.
# run.sh TRIVIUM PART: `splits`, `precisions`, `blocks`, `switches`, `checkpoints`, `memory`, `products`
# or `failures`.
set -euo pipefail
trivium=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export TMPDIR=$work TRIVIUM_NCCL_TIMEOUT_S=60

printf '{"schema": "trivium.model/1", "name": "toy", "source": "test", "layers": 4, "hidden": 32, "heads": 4, "vocab": 256, "max_sequence": 16}' >toy.json
sed 's/"vocab"/"linear_bias": false, "experts": {"count": 4, "top_k": 2, "every": 2, "capacity_factor": 1.25}, "vocab"/' toy.json >mixture.json
sed 's/"layers": 4, "hidden": 32, "heads": 4/"layers": 2, "hidden": 128, "heads": 2/' toy.json >wide.json  # heads of 64: fused attention in 16 bits
sed 's/"capacity_factor": 1.25/"capacity_factor": 1/' mixture.json >coded-mixture.json
for i in $(seq 4000); do printf '%d ' $((i * i % 97)); done >text.txt

wrong() {
  echo "$1"
  [ ! -f err ] || cat err
  exit 1
}
loss() { sed -n 's/.*"loss":\([-+.0-9e]*\).*/\1/p' "$1" | tail -1; }
train() { "$trivium" run --corpus text.txt --sequence 16 --global-batch 8 --timeline-steps 0 --json "$@" >out 2>err; }
on_cores() { train --cluster this-machine --ranks 1 --precision fp32 "$@" || wrong "cores: $*"; loss out; }
# two_steps PROCESS: waits until they are in `out`, however slow the machine is, or the process is gone.
two_steps() {
  while [ -e "/proc/$1" ]; do
    [ ! -s out ] || [ "$(grep -c loss out)" -lt 2 ] || break
    sleep 0.1
  done
}
# near A B RELATIVE
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a > b ? a - b : b - a; exit !(a != "" && b != "" && d <= t * a) }'; }

# follows PACES LOSS RELATIVE ARGUMENT...: on the fake GPU, early, late, or now and then by a seed.
follows() {
  local paces=$1 wanted=$2 tolerance=$3 pace
  shift 3
  for pace in $paces; do
    FAKE_GPU=$pace train --backend cuda --cluster "${cluster:-h200}" "$@" || wrong "$pace: $*"
    near "$wanted" "$(loss out)" "$tolerance" || wrong "$pace: $*: loss $(loss out) instead of $wanted"
    echo "$pace: $*: $(loss out), on cores $wanted"
  done
}

case $2 in
  splits)
    one=$(on_cores --model toy.json --steps 2)
    while read -r split; do
      follows "late 7" "$one" 1e-6 --model toy.json --steps 2 --precision fp32 $split
    done <<'END'
--data 2
--tensor 2 --sequence-parallel true
--pipeline 2 --schedule gpipe
--pipeline 2 --virtual-stages 2 --schedule interleaved
--pipeline 2 --schedule zero_bubble
--data 2 --zero-stage 1
--data 2 --zero-stage 3
--pipeline 2 --recompute full --recompute-group 2
--data 2 --zero-stage 3 --recompute full --recompute-group 3
--context 2 --attention flash
--tensor 2 --pipeline 2 --data 2
END
    mixture=$(on_cores --model mixture.json --steps 2)
    while read -r split; do
      follows "late 7" "$mixture" 1e-6 --model mixture.json --steps 2 --precision fp32 $split
    done <<'END'
--data 2 --expert 2
--tensor 2 --data 2 --expert 2
--context 2 --attention flash --data 2 --expert 2
--tensor 2 --sequence-parallel true --context 2 --attention flash
END
    ;;
  precisions)
    one=$(on_cores --model wide.json --steps 2)
    mixture=$(on_cores --model mixture.json --steps 2)
    # In 8 bits on both sides: micro-batches of 32 tokens, and 64 columns of a tensor rank.
    coded=$(on_cores --model wide.json --steps 2 --fp8 current --micro-batch 2)
    follows "late 7" "$coded" 2e-3 --model wide.json --steps 2 --precision bf16 --fp8 current --micro-batch 2
    follows 5 "$coded" 2e-3 --model wide.json --steps 2 --precision bf16 --fp8 current --micro-batch 2 --tensor 2 --data 2
    # Experts, of 16 rows each: a product and a scale for every one, and for every rank that rows come from.
    coded=$(on_cores --model coded-mixture.json --steps 2 --fp8 current --micro-batch 2)
    for split in "" "--data 2 --expert 2"; do
      follows "late 5" "$coded" 2e-3 --model coded-mixture.json --steps 2 --precision bf16 --fp8 current --micro-batch 2 $split
    done
    # The first step scales by its own largest numbers, as it is recorded; those after it by its.
    coded=$(on_cores --model wide.json --steps 4 --fp8 delayed --micro-batch 2)
    follows "late 7" "$coded" 2e-3 --model wide.json --steps 4 --precision bf16 --fp8 delayed --micro-batch 2 --cuda-graphs on
    follows 5 "$coded" 2e-3 --model wide.json --steps 4 --precision bf16 --fp8 delayed --micro-batch 2 --tensor 2 --data 2
    for precision in bf16 fp16; do
      follows late "$one" 2e-3 --model wide.json --steps 2 --precision $precision --attention flash --data 2 --zero-stage 1
      follows 3 "$one" 2e-3 --model wide.json --steps 2 --precision $precision --attention unfused --tensor 2
      follows 4 "$one" 2e-3 --model wide.json --steps 2 --precision $precision --attention flash --context 2
      follows 5 "$mixture" 2e-3 --model mixture.json --steps 2 --precision $precision --attention flash --tensor 2 --context 2
    done
    ;;
  blocks)
    # Scales of blocks: Hopper has products of block's, Blackwell of both, and where there is none they are in bf16,
    # which is told.
    for recipe in block mxfp8; do
      for model in wide coded-mixture; do
        coded=$(on_cores --model $model.json --steps 2 --fp8 $recipe --micro-batch 4)
        for sm in 89 90 100; do
          FAKE_GPU_SM=$sm follows 5 "$coded" 2e-3 --model $model.json --steps 2 --precision bf16 --fp8 $recipe --micro-batch 4
          told=$(grep -c "note: this GPU has no products in 8 bits by the scales of fp8 $recipe" err || true)
          case $recipe$sm in block89 | mxfp889 | mxfp890) [ "$told" = 1 ] ;; *) [ "$told" = 0 ] ;; esac || wrong "$recipe on sm_$sm: told $told times"
          ! grep "cuBLASLt has no product" err || wrong "$recipe on sm_$sm"
        done
      done
    done
    ;;
  switches)
    one=$(on_cores --model wide.json --steps 3)  # the second step records, the third launches what was recorded
    for switch in "--cuda-graphs on" "--cuda-epilogues on" "--cuda-graphs on --cuda-epilogues on"; do
      follows late "$one" 2e-3 --model wide.json --steps 3 --precision bf16 --attention flash --pipeline 2 $switch
      ! grep "no CUDA graphs" err || wrong "$switch"
    done
    follows "late 5" "$(on_cores --model toy.json --steps 3 --dropout 0.1)" 1e-6 --model toy.json --steps 3 --precision fp32 --dropout 0.1 --data 2
    follows "late 5" "$(on_cores --model toy.json --steps 3)" 1e-6 --model toy.json --steps 3 --precision fp32 --offload-optimizer host --data 2
    cluster=dgx-a100-80gb follows "late 5 6" "$(on_cores --model toy.json --steps 3)" 1e-6 --model toy.json --steps 3 --precision fp32 --offload-optimizer disk --offload-gradients disk --data 2
    # What has no fused kernel is products, and goes row by row around a ring, which is told once.
    one=$(on_cores --model toy.json --steps 1)
    follows late "$one" 1e-6 --model toy.json --steps 1 --precision fp32 --attention flash --data 2
    ! grep "row by row" err || wrong "slow attention"
    follows late "$one" 1e-6 --model toy.json --steps 1 --precision fp32 --attention flash --context 2
    [ "$(grep -c "attention in fp32 has no fused kernel here and goes row by row" err)" = 1 ] || wrong "no word of slow attention"
    ;;
  checkpoints)
    whole=$(on_cores --model toy.json --steps 4 --decay-steps 4)
    half=(--model toy.json --precision fp32 --decay-steps 4 --checkpoint kept)
    train --cluster this-machine --ranks 1 "${half[@]}" --steps 2 || wrong "two steps on cores"
    train --backend cuda --cluster h200 --data 2 --zero-stage 1 "${half[@]}" --steps 4 --resume || wrong "two more on GPUs"
    near "$whole" "$(loss out)" 1e-6 || wrong "from cores to GPUs: $(loss out) instead of $whole"
    rm -rf kept
    train --backend cuda --cluster h200 --pipeline 2 "${half[@]}" --steps 2 || wrong "two steps on GPUs"
    train --cluster this-machine --ranks 1 "${half[@]}" --steps 4 --resume || wrong "two more on cores"
    near "$whole" "$(loss out)" 1e-6 || wrong "from GPUs to cores: $(loss out) instead of $whole"
    ;;
  memory)
    # Who reads or writes device memory from the host ends by a signal.
    FAKE_GPU_GUARD=1 follows "eager late 7" "$(on_cores --model toy.json --steps 2)" 1e-6 --model toy.json --steps 2 --precision fp32 --tensor 2 --data 2
    code=0
    FAKE_GPU_BYTES=50000 train --backend cuda --cluster h200 --model toy.json --steps 1 || code=$?
    [ $code -ne 0 ] && grep -q "bytes left" err || wrong "no word of too little memory (exit $code)"
    ;;
  products)
    # Three algorithms, of which the second is fastest; all but the first give other bits. What is timed changes no bit
    # of the run that times it. All ranks of a later one take the fastest, whichever rank had the shape and whatever it
    # is split over, and so does one that goes on from a checkpoint.
    export FAKE_GPU=late FAKE_GPU_PRODUCTS=3,1,2
    losses() { sed -n 's/.*"loss":\([-+.0-9e]*\).*/\1/p' out; }
    split=(--backend cuda --cluster h200 --model toy.json --precision fp32 --decay-steps 4 --tensor 2 --pipeline 2)
    train "${split[@]}" --steps 4 || wrong "without times"
    plain=$(losses)
    train "${split[@]}" --steps 4 --time-cuda-products times || wrong "timing"
    [ "$(losses)" = "$plain" ] || wrong "timing changed the losses: $(losses) instead of $plain"
    [ "$(ls times)" = "$(printf 'rank-0000%d.products\n' 0 1 2 3)" ] || wrong "files of times: $(ls times)"
    shapes=$(cat times/* | grep -c ' | ')
    fastest=$(cat times/* | awk '/ \| 1 / && $(NF - 1) >= 1e6 && $(NF - 1) < 2e6 && $NF >= 3e6' | wc -l)
    [ "$shapes" -gt 20 ] && [ "$fastest" = "$shapes" ] || wrong "of $shapes shapes $fastest have the second, of 1 s: $(cat times/*)"
    train "${split[@]}" --steps 4 --cuda-products times || wrong "with times"
    fast=$(losses)
    [ "$fast" != "$plain" ] || wrong "the first algorithm was used all the same"
    near "$(echo "$plain" | tail -1)" "$(echo "$fast" | tail -1)" 1e-6 || wrong "with times: $fast instead of $plain"
    train "${split[@]}" --steps 2 --cuda-products times --checkpoint kept || wrong "two steps with times"
    train "${split[@]}" --steps 4 --cuda-products times --checkpoint kept --resume || wrong "two more with times"
    [ "$(losses)" = "$(echo "$fast" | tail -n +3)" ] || wrong "resumed: $(losses) instead of $(echo "$fast" | tail -n +3)"
    # Combined with graphs, which a segment's first use never is, and with products that write the input of GELU.
    for both in "--cuda-graphs on" "--cuda-epilogues on --cuda-graphs on"; do
      switched=(--backend cuda --cluster h200 --model wide.json --precision bf16 --attention flash --pipeline 2 --steps 3 $both)
      train "${switched[@]}" || wrong "$both"
      plain=$(losses)
      rm -rf switched
      train "${switched[@]}" --time-cuda-products switched || wrong "timing, $both"
      [ "$(losses)" = "$plain" ] && [ -s switched/rank-00001.products ] || wrong "$both: $(losses) instead of $plain"
    done
    grep -q "epilogue gelu at" switched/* || wrong "no product with GELU was timed: $(cat switched/*)"
    for rank in 0 1 2 3; do echo "(none) | 0" >>times/rank-0000$rank.products; done
    ! train "${split[@]}" --steps 1 --cuda-products times || wrong "a broken file was read"
    grep -q "a line that is none of a timed product" err || wrong "no word of the broken file"
    sed -i 's/fake GPU/another GPU/' times/*
    ! train "${split[@]}" --steps 1 --cuda-products times || wrong "times of another GPU were used"
    grep -q "is not of this device and library" err || wrong "no word of the other GPU"
    ! train "${split[@]}" --steps 1 --cuda-products nowhere || wrong "no times were used"
    grep -q "no timed products in nowhere" err || wrong "no word of the missing times"
    ;;
  failures)
    # A rank that dies or hangs is noticed: the others say so and end.
    export TRIVIUM_NCCL_TIMEOUT_S=10  # a loaded machine starts its ranks seconds apart
    # So it is with thousands of launches a step, more than a stream takes, and with communicators for the world, its
    # transfers, tensor pairs and both ends of the pipeline, which only end together.
    sed 's/"layers": 4/"layers": 20/' toy.json >deep.json
    for failure in "KILL toy --data 2" "STOP toy --data 2" "KILL deep --tensor 2 --pipeline 2 --micro-batch 1" \
      "STOP deep --tensor 2 --pipeline 2 --micro-batch 1"; do
      read -r signal model split <<<"$failure"
      rm -rf fl out
      FAKE_GPU_QUEUE=600 FAKE_GPU_COMPUTE=$([ $model = toy ] && echo 1 || echo 0) train --backend cuda --cluster h200 \
        --model $model.json --steps 1000000 --precision fp32 $split --flight-record fl &
      run=$!
      two_steps $run
      victim=$(od -An -t d4 -j 20 -N 4 "$(find fl -name 'rank-00001.flight')" | tr -d ' ')
      kill -$signal "$victim"
      code=0
      wait $run || code=$?
      [ $code -eq 1 ] || wrong "$failure: exit code $code"
      grep -q "nothing has come for 10 s" err || wrong "$failure: no word of the wait"
      grep -q "the last .* calls of communication" err || wrong "$failure: no flight record"
      [ $signal = STOP ] || grep -q "rank 1 (process $victim) was ended by signal 9" err || wrong "no word of rank 1"
      ! grep "was ended by signal 6\|fake GPU" err || wrong "$failure: another rank broke down"
      echo "$failure: $(tail -1 err)"
    done
    # Ctrl-C of a terminal, which signals its foreground group: a checkpoint all the same.
    rm -rf kept out
    setsid "$trivium" run --corpus text.txt --sequence 16 --global-batch 8 --timeline-steps 0 --json --backend cuda \
      --cluster h200 --model toy.json --steps 1000000 --precision fp32 --data 2 --checkpoint kept >out 2>err &
    run=$!
    two_steps $run
    kill -INT -- -$run
    code=0
    wait $run || code=$?
    [ $code -eq 130 ] || wrong "interrupted: exit code $code"
    [ -n "$(ls -A kept)" ] || wrong "interrupted: no checkpoint"
    ;;
  *)
    wrong "no part $2"
    ;;
esac
