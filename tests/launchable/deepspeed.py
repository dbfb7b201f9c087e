"""Megatron-DeepSpeed 4efb479d5317 (2025-07-16) on DeepSpeed edaa72212672 (2026-08-22): flags and a JSON
configuration."""

from megatron import Flags
import hosts

# Options of Megatron-LM's that megatron/arguments.py has not: argparse ends with "unrecognized arguments".
UNKNOWN = (
    "add-qkv-bias",
    "attention-backend",
    "expert-model-parallel-size",
    "context-parallel-size",
    "group-query-attention",
    "mock-data",
    "moe-grouped-gemm",
    "multi-latent-attention",
    "num-query-groups",
    "pipeline-model-parallel-layout",
    "position-embedding-type",
    "qk-layernorm",
)


def check(file, cluster, found):
    place = hosts.check_hosts(file, cluster, found)
    unknown = [name for name in UNKNOWN if name in file.arguments]
    found.require(not unknown, "unknown-name", f"Megatron-DeepSpeed has no --{', --'.join(unknown)}")
    flags, config = Flags(file.arguments), file.json()
    sizes = {
        "tensor": flags.number("tensor-model-parallel-size", 1),
        "pipeline": flags.number("pipeline-model-parallel-size", 1),
        "context": flags.number("ds-sequence-parallel-size", 1),
        "expert": flags.number("moe-expert-parallel-size", 1),
    }
    data = check_groups(flags, sizes, place, found)
    check_batch(flags, config, data, found)
    check_zero(flags, config, sizes, found)
    check_shapes(flags, sizes, found)
    check_experts(flags, config, sizes, data, found)
    check_device(flags, config, cluster, found)
    if flags.has("sequence-parallel") and sizes["tensor"] > 1:
        check_connections(file, place, found)
    eight_bits = flags.has("fp8-hybrid") or flags.has("fp8-e4m3")
    return {**sizes, "micro_batch": flags.number("micro-batch-size"), "eight_bits": eight_bits}


def check_connections(file, place, found):
    """megatron/arguments.py, validate_args: "Using sequence parallelism requires setting the environment variable
    CUDA_DEVICE_MAX_CONNECTIONS to 1". The processes of other hosts get what a file .deepspeed_env says, and of the
    shell's environment only names that begin with some prefixes, this one not (deepspeed/launcher/runner.py,
    EXPORT_ENVS)."""
    lines = [line.strip() for line in file.files.get(".deepspeed_env", "").splitlines()]
    here = file.environment.get("CUDA_DEVICE_MAX_CONNECTIONS") == "1" and place and place[0] == 1
    found.require(
        here or "CUDA_DEVICE_MAX_CONNECTIONS=1" in lines,
        "connections",
        "--sequence-parallel without CUDA_DEVICE_MAX_CONNECTIONS=1, which other hosts get from .deepspeed_env",
    )


def check_groups(flags, sizes, place, found):
    """megatron/arguments.py, validate_args: TP x PP x sequence parallel divide the world. Returns the replicas."""
    size = sizes["tensor"] * sizes["pipeline"] * sizes["context"]
    world = place[0] * place[1] if place else 0
    if not world or not found.divides(
        size, world, "world-size", f"TP{sizes['tensor']} PP{sizes['pipeline']} SP{sizes['context']}"
    ):
        return 0
    found.require(
        not flags.has("no-pipeline-parallel") or sizes["pipeline"] == 1, "no-pipeline", "--no-pipeline-parallel with PP"
    )
    return world // size


def check_batch(flags, config, data, found):
    """deepspeed/runtime/config.py, _batch_assertion; megatron/microbatches.py"""
    micro, whole = flags.number("micro-batch-size"), flags.number("global-batch-size")
    found.require(
        config.get("train_micro_batch_size_per_gpu", micro) == micro, "batch", "the JSON's micro-batch is another"
    )
    found.require(config.get("train_batch_size", whole) == whole, "batch", "the JSON's batch is another")
    if data:
        steps = config.get("gradient_accumulation_steps", whole // (micro * data) if micro else 0)
        found.require(
            micro * steps * data == whole,
            "batch",
            f"{whole} is not micro-batch {micro} x {steps} steps x {data} replicas",
        )


def check_zero(flags, config, sizes, found):
    stage = config.get("zero_optimization", {}).get("stage", 0)
    found.require(
        flags.number("zero-stage") == stage,
        "zero-stage",
        f"--zero-stage {flags.number('zero-stage')}, stage {stage} in the JSON",
    )
    # deepspeed/runtime/pipe/engine.py, __init__: "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism"; the
    # engine of pipelines is taken unless --no-pipeline-parallel (pretrain_gpt.py), even with one stage.
    found.require(
        flags.has("no-pipeline-parallel") or stage < 2, "zero-pipeline", f"ZeRO-{stage} in the engine of pipelines"
    )
    found.require(
        not (config.get("bf16", {}).get("enabled") and config.get("fp16", {}).get("enabled")),
        "precision",
        "bf16 and fp16",
    )
    for kind in ("bf16", "fp16"):
        found.require(
            bool(config.get(kind, {}).get("enabled")) == flags.has(kind),
            "precision",
            f"{kind} in one of flags and JSON",
        )
    offload = config.get("zero_optimization", {}).get("offload_param", {}).get("device", "none")
    # deepspeed/runtime/zero/config.py, offload_param: "Valid only with stage 3"
    found.require(offload == "none" or stage == 3, "offload", f"parameters on {offload} with ZeRO-{stage}")


def check_shapes(flags, sizes, found):
    heads, tensor = flags.number("num-attention-heads"), sizes["tensor"]
    kv_heads = flags.number("num-key-value-heads", heads)
    # megatron/model/transformer.py, ParallelAttention: divide() of both kinds of heads; arguments.py: one by the other
    found.divides(tensor, heads, "tensor-heads", f"heads over TP{tensor}")
    found.divides(tensor, kv_heads, "tensor-kv-heads", f"heads of keys and values over TP{tensor}")
    found.divides(kv_heads, heads, "tensor-kv-heads", "heads over heads of keys and values")
    found.divides(
        tensor, flags.number("ffn-hidden-size", 4 * flags.number("hidden-size")), "tensor-ffn", f"ffn over TP{tensor}"
    )
    # megatron/model/transformer.py: num_attention_heads % sequence parallel; pretrain_gpt.py: seq_length % it
    found.divides(sizes["context"], heads, "context-heads", f"heads over sequence parallel {sizes['context']}")
    found.divides(sizes["context"], flags.number("seq-length"), "context-sequence", f"tokens over {sizes['context']}")
    if flags.has("sequence-parallel"):
        found.divides(
            tensor,
            flags.number("seq-length") // sizes["context"],
            "sequence-parallel",
            f"tokens of a rank over TP{tensor}",
        )
    found.require(
        flags.number("max-position-embeddings") >= flags.number("seq-length"), "positions", "positions below seq-length"
    )
    # deepspeed/runtime/pipe/module.py, _partition_layers: a stage of the partition by layers that has none
    found.require(
        sizes["pipeline"] <= flags.number("num-layers"), "stage-layers", f"PP{sizes['pipeline']} of fewer layers"
    )


def check_experts(flags, config, sizes, data, found):
    experts = flags.number("num-experts", 1)
    if experts <= 1:
        found.require(sizes["expert"] == 1, "expert-parallel", f"EP{sizes['expert']} without experts")
        return
    # deepspeed/moe/layer.py: "Number of experts should be divisible by expert parallel size"; utils/groups.py: EP in DP
    found.divides(sizes["expert"], experts, "expert-parallel", f"experts over EP{sizes['expert']}")
    if data:
        found.divides(sizes["expert"], data * sizes["context"], "expert-groups", f"EP{sizes['expert']} in the replicas")
    # deepspeed/runtime/engine.py: "MoE not supported with Stage 3"
    found.require(config.get("zero_optimization", {}).get("stage", 0) < 3, "zero-experts", "experts with ZeRO-3")
    found.require(flags.number("topk", 1) <= experts, "router", f"top {flags.number('topk', 1)} of {experts}")


def check_device(flags, config, cluster, found):
    machine = cluster.machine
    # deepspeed/runtime/engine.py, _do_sanity_check: "Type bf16 is not supported on your device"; CUDA: from sm80 on
    found.require(machine.sm >= (8, 0) or not flags.has("bf16"), "bf16-device", f"bf16 on {machine.gpu}")
    # FlashAttention 2, README: "Ampere, Ada, or Hopper GPUs"; for what is older, --use-flash-attn-v1
    found.require(
        machine.sm >= (8, 0) or not flags.has("use-flash-attn-v2"), "flash-device", f"FlashAttention 2 on {machine.gpu}"
    )
    found.require(
        not flags.has("use-flash-attn-v2") or flags.has("bf16") or flags.has("fp16"),
        "flash-precision",
        "FlashAttention in fp32",
    )
    if flags.has("fp8-hybrid") or flags.has("fp8-e4m3"):
        found.require(machine.sm >= (8, 9), "fp8-device", f"fp8 on {machine.gpu}")
