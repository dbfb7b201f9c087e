"""Megatron-LM: a script of flags for pretrain_gpt.py, read as megatron/training/arguments.py of d98e8a64ddf3 does."""

from exported import literal
from megatron_core import Core, check_core, layout_stages, said_of
import ast
import hosts


class Flags:
    def __init__(self, options):
        self.options = options

    def has(self, name):
        return name in self.options

    def text(self, name, default=""):
        return self.options[name][0] if self.options.get(name) else default

    def number(self, name, default=0):
        return int(self.text(name, default))


def virtual_stages(flags, layers, pipeline):
    """validate_args: from the layout, from a number, or from layers of a chunk."""
    if flags.has("pipeline-model-parallel-layout"):
        return max(1, len(layout_stages(flags.text("pipeline-model-parallel-layout"))) // pipeline)
    if flags.has("num-virtual-stages-per-pipeline-rank"):
        return flags.number("num-virtual-stages-per-pipeline-rank")
    chunk = flags.number("num-layers-per-virtual-pipeline-stage")
    return layers // pipeline // chunk if chunk else 1


def core_of(flags):
    layers, pipeline = flags.number("num-layers"), flags.number("pipeline-model-parallel-size", 1)
    hidden, heads, gated = flags.number("hidden-size"), flags.number("num-attention-heads"), flags.has("swiglu")
    ffn = flags.number("ffn-hidden-size", int(4 * hidden * 2 / 3 / 64) * 64 if gated else 4 * hidden)
    frequency = flags.text("moe-layer-freq", "1")
    latent = flags.has("multi-latent-attention")
    head_dim = flags.number("kv-channels", hidden // max(heads, 1))
    if latent:
        head_dim = flags.number("qk-head-dim", 128) + flags.number("qk-pos-emb-head-dim", 64)
    recompute = "selective" if flags.has("recompute-activations") else flags.text("recompute-granularity")
    return Core(
        layers=layers,
        hidden=hidden,
        heads=heads,
        ffn=ffn,
        sequence=flags.number("seq-length"),
        micro_batch=flags.number("micro-batch-size"),
        global_batch=flags.number("global-batch-size"),
        kv_heads=flags.number("num-query-groups", 1) if flags.has("group-query-attention") else 0,
        tensor=flags.number("tensor-model-parallel-size", 1),
        pipeline=pipeline,
        context=flags.number("context-parallel-size", 1),
        expert=flags.number("expert-model-parallel-size", 1),
        expert_tensor=flags.number("expert-tensor-parallel-size"),
        virtual=virtual_stages(flags, layers, pipeline),
        layout=flags.text("pipeline-model-parallel-layout"),
        first_layers=flags.number("decoder-first-pipeline-num-layers"),
        last_layers=flags.number("decoder-last-pipeline-num-layers"),
        # validate_args turns it off, with a warning, where TP is 1
        sequence_parallel=flags.has("sequence-parallel") and flags.number("tensor-model-parallel-size", 1) > 1,
        context_method=flags.text("cp-comm-type", "p2p"),
        experts=flags.number("num-experts"),
        top_k=flags.number("moe-router-topk", 2),
        expert_ffn=flags.number("moe-ffn-hidden-size"),
        shared_ffn=flags.number("moe-shared-expert-intermediate-size"),
        layer_frequency=literal(ast.parse(frequency, mode="eval").body),
        dispatcher=flags.text("moe-token-dispatcher-type", "allgather"),
        flex_backend=flags.text("moe-flex-dispatcher-backend", "deepep"),
        grouped_gemm=flags.has("moe-grouped-gemm"),
        router_score=flags.text("moe-router-score-function", "softmax"),
        router_pre_softmax=flags.has("moe-router-pre-softmax"),
        expert_bias=flags.has("moe-router-enable-expert-bias"),
        router_groups=flags.number("moe-router-num-groups"),
        router_group_top_k=flags.number("moe-router-group-topk"),
        latent=latent,
        gated=gated,
        bias=not flags.has("disable-bias-linear"),
        bias_dropout_fusion=not flags.has("no-bias-dropout-fusion"),
        mtp_layers=flags.number("mtp-num-layers"),
        attention=flags.text("attention-backend", "auto"),
        head_dim=head_dim,
        bf16=flags.has("bf16"),
        fp16=flags.has("fp16"),
        fp8=flags.text("fp8-format"),
        fp8_recipe=flags.text("fp8-recipe", "delayed"),
        fp4=flags.has("fp4-format"),
        recompute=recompute,
        recompute_method=flags.text("recompute-method"),
        recompute_layers=flags.number("recompute-num-layers"),
        recompute_modules=tuple(flags.options.get("recompute-modules", [])),
        distributed_optimizer=flags.has("use-distributed-optimizer"),
        fsdp=flags.has("use-megatron-fsdp"),
        checkpoint_format=flags.text("ckpt-format", "torch_dist"),
        overlap_grad_reduce=flags.has("overlap-grad-reduce"),
        overlap_param_gather=flags.has("overlap-param-gather"),
        overlap_tensor=flags.has("tp-comm-overlap"),
        overlap_experts=flags.has("overlap-moe-expert-parallel-comm"),
        overlap_p2p=not flags.has("no-overlap-p2p-communication"),
        delay_wgrad=flags.has("delay-wgrad-compute"),
        shared_overlap=flags.has("moe-shared-expert-overlap"),
        offload_optimizer=flags.has("optimizer-cpu-offload"),
        precision_aware=flags.has("use-precision-aware-optimizer"),
        cuda_graphs=flags.text("cuda-graph-impl", "none"),
    )


def check(file, cluster, found):
    place = hosts.check_hosts(file, cluster, found)
    flags = Flags(file.arguments)
    core = core_of(flags)
    check_core(core, file, cluster, place, found)
    check_arguments(flags, core, file, cluster, found)
    return said_of(core)


def check_arguments(flags, core, file, cluster, found):
    """What validate_args itself asks for."""
    for name in ("num-layers", "hidden-size", "num-attention-heads", "max-position-embeddings", "micro-batch-size"):
        found.require(flags.has(name), "required", f"--{name} is missing")
    found.require(
        flags.number("max-position-embeddings") >= core.sequence,
        "positions",
        f"--max-position-embeddings {flags.number('max-position-embeddings')} below --seq-length {core.sequence}",
    )
    found.require(
        core.tensor == 1 or core.sequence_parallel or not core.overlap_tensor,
        "overlap-sequence-parallel",
        "--tp-comm-overlap without --sequence-parallel",
    )
    found.require(
        core.tensor > 1 or not core.overlap_tensor,
        "overlap-sequence-parallel",
        "--tp-comm-overlap with TP1, where sequence parallelism is turned off",
    )
    found.require(
        not core.offload_optimizer or core.precision_aware,
        "offload",
        "--optimizer-cpu-offload without --use-precision-aware-optimizer",
    )
    check_connections(core, file, cluster, found)
    found.require(
        not core.grouped_gemm or cluster.machine.sm >= (8, 0),
        "grouped-gemm",
        f"--moe-grouped-gemm on {cluster.machine.gpu}",
    )
    chosen = [
        name
        for name in (
            "num-layers-per-virtual-pipeline-stage",
            "num-virtual-stages-per-pipeline-rank",
            "pipeline-model-parallel-layout",
        )
        if flags.has(name)
    ]
    found.require(len(chosen) <= 1, "virtual-stages", f"{' and '.join(chosen)}")
    found.require(
        not flags.has("fp8-param-gather") or core.fp8, "fp8-parameters", "--fp8-param-gather without --fp8-format"
    )
    found.require(
        not flags.has("fp8-param-gather") or core.distributed_optimizer or core.fsdp,
        "fp8-parameters",
        "--fp8-param-gather without a distributed optimizer",
    )
    # core/distributed/distributed_data_parallel_config.py: "Reuse grad buffer only when keeping params in MXFP8"
    found.require(
        not flags.has("reuse-grad-buf-for-mxfp8-param-ag") or flags.has("fp8-param-gather"),
        "fp8-parameters",
        "--reuse-grad-buf-for-mxfp8-param-ag without --fp8-param-gather",
    )
    found.require(
        core.mtp_layers == 0 or flags.text("position-embedding-type", "learned_absolute") in ("rope", "none"),
        "prediction-positions",
        f"--mtp-num-layers with {flags.text('position-embedding-type')} positions",
    )
    # core/optimizer/optimizer_config.py, __post_init__: types of states other than fp32
    for name in ("main-grads-dtype", "main-params-dtype", "exp-avg-dtype", "exp-avg-sq-dtype"):
        found.require(
            flags.text(name, "fp32") == "fp32" or core.precision_aware,
            "optimizer-types",
            f"--{name} {flags.text(name)} without --use-precision-aware-optimizer",
        )
    found.require(
        not core.precision_aware or core.distributed_optimizer or core.fsdp,
        "optimizer-types",
        "--use-precision-aware-optimizer without a distributed optimizer",
    )
    found.require(
        sum(flags.has(name) for name in ("mock-data", "data-path", "data-args-path")) == 1,
        "data",
        "not one source of data",
    )


def check_connections(core, file, cluster, found):
    """validate_args, "Using tensor model parallelism or context parallelism require setting the environment variable
    CUDA_DEVICE_MAX_CONNECTIONS to 1", before Blackwell, without FSDP and without overlapped experts."""
    if core.tensor == core.context == 1 or cluster.machine.sm[0] >= 10 or core.fsdp or core.overlap_experts:
        return
    found.require(
        file.environment.get("CUDA_DEVICE_MAX_CONNECTIONS") == "1",
        "connections",
        f"TP{core.tensor} CP{core.context} on {cluster.machine.gpu} without CUDA_DEVICE_MAX_CONNECTIONS=1",
    )
