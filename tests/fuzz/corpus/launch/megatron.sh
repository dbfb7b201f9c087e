#!/usr/bin/env bash
# gpt2-124m as TP1 PP1 DP1 mb1 flash recompute=none, for Megatron-LM d98e8a64ddf3 of 2026-08-22.
# HEAD: the name of the first host.
torchrun --nnodes 1 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint "$HEAD:29500" \
  pretrain_gpt.py \
  --num-layers 12 --hidden-size 768 --num-attention-heads 12 --ffn-hidden-size 3072 \
  --max-position-embeddings 1024 --position-embedding-type learned_absolute --normalization LayerNorm \
  --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --context-parallel-size 1 \
  --micro-batch-size 1 --global-batch-size 16 --seq-length 1024 --bf16 --attention-backend flash \
  --transformer-impl transformer_engine \
  --train-iters 100 --lr 0.0003 --min-lr 3e-05 --lr-decay-style cosine --lr-warmup-iters 10 --weight-decay 0.1 \
  --adam-beta1 0.9 --adam-beta2 0.95 --adam-eps 1e-08 --clip-grad 1 --hidden-dropout 0 --attention-dropout 0 \
  --seed 1234 \
  --tokenizer-type NullTokenizer --vocab-size 50257 --mock-data --eval-iters 0 --log-interval 1 \
  --log-throughput
