# a small job
torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads 12 \
  --seq-length 1024 --max-position-embeddings 1024 --vocab-size 50257 --micro-batch-size 4 --global-batch-size 256 \
  --tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer --bf16 --attention-backend unfused \
  --lr 6e-4 --save checkpoints --unheard-of 7
