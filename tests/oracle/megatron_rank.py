"""megatron_rank.py FILE RANKS RANK: builds on the meta device what Megatron-Core holds on one rank.

FILE is a script for Megatron-Bridge; what it assigns to cfg.model is the configuration. The processes are fake. Prints
the number of parameters.
"""

import re
import sys

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer.transformer_config import TransformerConfig
from torch.testing._internal.distributed.fake_pg import FakeStore

torch.cuda.Stream = lambda *_, **__: None  # of the dispatcher, which is made and never used

text, ranks, rank = open(sys.argv[1]).read(), int(sys.argv[2]), int(sys.argv[3])
settings = {}
for name, value in re.findall(r"^cfg\.model\.(\w+) = (.*)$", text, re.M):
    settings[name] = eval(value, {})

vocabulary, tensor = settings["vocab_size"], settings["tensor_model_parallel_size"]
padded = -(-vocabulary // (128 * tensor)) * 128 * tensor
dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)
parallel_state.initialize_model_parallel(
    tensor_model_parallel_size=tensor, pipeline_model_parallel_size=settings["pipeline_model_parallel_size"],
    context_parallel_size=settings["context_parallel_size"],
    expert_model_parallel_size=settings["expert_model_parallel_size"],
    expert_tensor_parallel_size=settings["expert_tensor_parallel_size"], create_gloo_process_groups=False)
known = TransformerConfig.__dataclass_fields__
options = {name: value for name, value in settings.items() if name in known and name != "attention_backend"}
options.update(params_dtype=torch.bfloat16, bf16=True, pipeline_dtype=torch.bfloat16, use_cpu_initialization=True,
               activation_func=torch.nn.functional.silu, moe_grouped_gemm=False, perform_initialization=False)
# Layers of a rank are built as one chunk, with norms of PyTorch, which take whole sequences: parameters are the same.
options.update(virtual_pipeline_model_parallel_size=None, sequence_parallel=False)
config = TransformerConfig(**options)
spec = get_gpt_layer_local_spec(num_experts=settings.get("num_moe_experts"), moe_grouped_gemm=False,
                                qk_layernorm=settings.get("qk_layernorm", False), normalization="RMSNorm")
with torch.device("meta"):
    model = GPTModel(config, spec, padded, settings["seq_length"], pre_process=parallel_state.is_pipeline_first_stage(),
                     post_process=parallel_state.is_pipeline_last_stage(), position_embedding_type="rope",
                     share_embeddings_and_output_weights=settings["share_embeddings_and_output_weights"])
print(sum(p.numel() for p in model.parameters()))
