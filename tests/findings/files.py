"""The finding about files that were not read: F15 of the report."""

from harness import Check, finding, split_words

FUNCTIONAL_TEST = """ENV_VARS:
  CUDA_DEVICE_MAX_CONNECTIONS: 1
MODEL_ARGS:
  --num-layers: 12
  --hidden-size: 512
  --num-attention-heads: 8
  --seq-length: 1024
  --max-position-embeddings: 1024
  --micro-batch-size: 4
  --global-batch-size: 32
  --tensor-model-parallel-size: 2
  --sequence-parallel: true
  --vocab-size: 50304
  --bf16: true
TEST_TYPE: regular
"""
RECIPE = """from megatron.bridge.recipes.llama import llama3_70b_pretrain_config

cfg = llama3_70b_pretrain_config(tensor_model_parallel_size=4, pipeline_model_parallel_size=4)
"""
SPLIT = ("tensor", "context", "pipeline", "data", "zero_stage")


def plan_of(trivium, file, options):
    """The plan read from a file, or why none is."""
    done = trivium.run(f"import {file} {options} -o {file}.json --force")
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1]
    return trivium.json(f"simulate {file}.json")["plan"], ""


@finding("F15", "accelerate's YAML, Megatron's YAML and recipes by name are read")
def files_are_read(trivium):
    job = "--model llama3.2-1b --sequence 4096 --cluster dgx-h100-80gb:1 --global-batch 64"
    plan = trivium.best(f"plan {job} --for fsdp2 -o f15.json")["plan"]
    trivium.write("accelerate.yaml", trivium.text("export f15.json --to accelerate"))
    read, why_not = plan_of(trivium, "accelerate.yaml", job)
    same = read is not None and all(read[field] == plan[field] for field in SPLIT)
    yield Check(same, f"accelerate {split_words(plan)} {'alike' if same else why_not or split_words(read)}")
    trivium.write("functional.yaml", FUNCTIONAL_TEST)
    read, why_not = plan_of(trivium, "functional.yaml", "--cluster dgx-h100-80gb:1")
    yield Check(read is not None and read["tensor"] == 2, f"MODEL_ARGS {split_words(read) if read else why_not}")
    trivium.write("recipe.py", RECIPE)
    read, why_not = plan_of(trivium, "recipe.py", "--cluster dgx-h100-80gb:16 --sequence 8192 --global-batch 512")
    yield Check(read is not None and read["tensor"] == 4, f"recipe {split_words(read) if read else why_not}")
