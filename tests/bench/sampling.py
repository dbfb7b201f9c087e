"""What transformers needs for the texts of bench_sampling: GPT-2 124M with random weights, on one core, in fp32."""

import sys
import time

import torch
import transformers

torch.set_num_threads(1)
tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 128
torch.manual_seed(1)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(bos_token_id=None, eos_token_id=None)).eval()
prompt = torch.tensor([[7 * i + 1 for i in range(16)]])
print("trainer,tokens,use_cache,tokens_per_s")
for cached in (True, False):
    begin = time.perf_counter()
    with torch.no_grad():
        model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens, min_new_tokens=tokens,
                       do_sample=False, use_cache=cached, pad_token_id=0)
    print(f"transformers {transformers.__version__},{tokens},{cached},{tokens / (time.perf_counter() - begin):.1f}")
