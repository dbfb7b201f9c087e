#!/bin/bash
# a small job
TP=${TP:-2}
ARGS=(
  --num-layers 12 --hidden-size 768 --num-attention-heads 12  # GPT-2
  --seq-length 1024 --max-position-embeddings 1024 --vocab-size 50257
  --tensor-model-parallel-size $TP
  --recompute-activations
)
torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py "${ARGS[@]}" \
  --micro-batch-size 4 --global-batch-size 256 \
  --use-distributed-optimizer \
  --bf16 --attention-backend flash --hidden-dropout 0 --attention-dropout 0 --lr 6e-4
