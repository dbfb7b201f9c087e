#!/bin/bash
A=xx
B="$A${A}"
TP=2; PP=$((TP * 2))
ARGS=(--num-layers 2 --hidden-size 64)
cat <<EOF > ds.json
{"train_batch_size": 16}
EOF
torchrun --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]} \
  --tensor-model-parallel-size $TP --lr ${B:-1} --deepspeed
