"""Rules of Megatron-Core, which Megatron-LM and Megatron-Bridge both run, and of Transformer Engine below it.

Written from Megatron-LM d98e8a64ddf3 (2026-08-22) and Transformer Engine d0067d0da6cb (2026-08-22); each rule names the
place. A job is a `Core`: what both trainers' files come to."""

import dataclasses
import re


@dataclasses.dataclass
class Core:
    layers: int
    hidden: int
    heads: int
    ffn: int
    sequence: int
    micro_batch: int
    global_batch: int
    kv_heads: int = 0  # 0: as many as heads
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    expert_tensor: int = 0  # 0: as tensor
    virtual: int = 1
    layout: str = ""
    first_layers: int = 0
    last_layers: int = 0
    sequence_parallel: bool = False
    context_method: str = "p2p"
    experts: int = 0
    top_k: int = 1
    expert_ffn: int = 0
    shared_ffn: int = 0
    layer_frequency: object = 1
    dispatcher: str = "allgather"
    flex_backend: str = ""
    grouped_gemm: bool = False
    router_score: str = "softmax"
    router_pre_softmax: bool = False
    expert_bias: bool = False
    router_groups: int = 0
    router_group_top_k: int = 0
    latent: bool = False
    gated: bool = False
    bias: bool = True
    bias_dropout_fusion: bool = False
    mtp_layers: int = 0
    attention: str = "auto"
    head_dim: int = 0
    bf16: bool = False
    fp16: bool = False
    fp8: str = ""  # format; "" where the products are of 16 bits
    fp8_recipe: str = "delayed"
    fp4: bool = False
    recompute: str = ""
    recompute_method: str = ""
    recompute_layers: int = 0
    recompute_modules: tuple = ()
    distributed_optimizer: bool = False
    fsdp: bool = False
    checkpoint_format: str = "torch_dist"
    overlap_grad_reduce: bool = False
    overlap_param_gather: bool = False
    overlap_tensor: bool = False
    overlap_experts: bool = False
    overlap_p2p: bool = True
    delay_wgrad: bool = False
    shared_overlap: bool = False
    offload_optimizer: bool = False
    precision_aware: bool = False
    cuda_graphs: str = "none"

    @property
    def model_size(self):
        return self.tensor * self.pipeline * self.context

    @property
    def has_dense_layers(self):
        """moe_layer_freq: 1 where every layer has experts, N where every Nth has, or a list with 0 where none are."""
        every = self.layer_frequency == 1 or isinstance(self.layer_frequency, list) and 0 not in self.layer_frequency
        return not (self.experts and every)


def said_of(core):
    """What a file says of the fields that checker.py compares with its plan."""
    return {
        "tensor": core.tensor,
        "pipeline": core.pipeline,
        "context": core.context,
        "expert": core.expert,
        "micro_batch": core.micro_batch,
        "eight_bits": bool(core.fp8 or core.fp4),
    }


def check_core(core, file, cluster, place, found):
    """`place`: (hosts, processes a host), or None where the file does not say."""
    world = place[0] * place[1] if place else 0
    check_groups(core, world, found)
    check_shapes(core, found)
    check_pipeline(core, world, found)
    check_experts(core, cluster, found)
    check_precision(core, cluster, found)
    check_attention(core, cluster, found)
    check_recomputation(core, found)
    check_overlap(core, found)
    check_optimizer(core, file, found)
    if core.overlap_tensor and core.tensor > 1 and place:
        check_user_buffers(core, file, cluster, place, found)


def check_groups(core, world, found):
    """core/parallel_state.py, initialize_model_parallel: the world is a multiple of TP x PP x CP, and of ETP x EP x PP
    for the ranks of experts."""
    if not world:
        return
    found.divides(core.model_size, world, "world-size", f"TP{core.tensor} PP{core.pipeline} CP{core.context}")
    if core.experts:
        size = (core.expert_tensor or core.tensor) * core.expert * core.pipeline
        found.divides(
            size,
            world,
            "expert-groups",
            f"ETP{core.expert_tensor or core.tensor} EP{core.expert} PP{core.pipeline} in the world",
        )


def check_shapes(core, found):
    tensor, kv_heads = core.tensor, core.kv_heads or core.heads
    # core/transformer/transformer_config.py, __post_init__: "num_attention_heads must be a multiple of TP"; "num_query_
    # groups must be a multiple or divisor of TP" (attention.py repeats groups where there are fewer than ranks).
    found.divides(tensor, core.heads, "tensor-heads", f"heads over TP{tensor}")
    found.require(
        kv_heads % tensor == 0 or tensor % kv_heads == 0,
        "tensor-kv-heads",
        f"{kv_heads} heads of keys and values over TP{tensor}: neither divides the other",
    )
    # core/tensor_parallel/layers.py: ColumnParallelLinear, RowParallelLinear divide() what they split.
    if core.has_dense_layers:
        found.divides(tensor, core.ffn, "tensor-ffn", f"ffn_hidden_size over TP{tensor}")
    if core.sequence_parallel:
        # core/tensor_parallel/mappings.py, _split_along_first_dim: the sequence that a rank has is split over TP.
        found.divides(tensor, core.sequence // core.context, "sequence-parallel", f"tokens of a rank over TP{tensor}")
    if core.context > 1:
        # training/arguments.py, validate_args, and Megatron-Bridge's training/config.py, validate: 2 * CP.
        found.divides(2 * core.context, core.sequence, "context-sequence", f"seq_length over 2 x CP{core.context}")
    if core.latent:
        # training/arguments.py, validate_args: "mutually exclusive"
        found.require(kv_heads == core.heads, "latent-groups", "latent attention with query groups")


def check_pipeline(core, world, found):
    if core.layout:
        check_layout(core, found)
    elif core.first_layers or core.last_layers:
        # core/transformer/transformer_config.py, "Uneven PP"
        left = core.layers - core.first_layers - core.last_layers
        stages = core.pipeline - bool(core.first_layers) - bool(core.last_layers)
        if (
            found.require(bool(left) == bool(stages), "stage-layers", f"{left} layers for {stages} middle stages")
            and stages
        ):
            found.divides(stages * core.virtual, left, "stage-layers", "layers of middle stages")
    else:
        # training/arguments.py: "Number of layers should be divisible by the pipeline-model-parallel size"
        found.divides(
            core.pipeline * core.virtual,
            core.layers,
            "stage-layers",
            f"layers over PP{core.pipeline} x {core.virtual} chunks",
        )
    if not world or world % core.model_size:
        return
    data = world // core.model_size
    # core/num_microbatches_calculator.py: "global batch size is not divisible by micro batch size times data parallel"
    if not found.divides(
        core.micro_batch * data, core.global_batch, "batch", f"global batch over mb{core.micro_batch} DP{data}"
    ):
        return
    rounds = core.global_batch // (core.micro_batch * data)
    if core.virtual > 1:
        # core/parallel_state.py: virtual stages need PP > 1; training/arguments.py: PP > 2 where sends do not overlap.
        found.require(
            core.pipeline > (1 if core.overlap_p2p else 2),
            "virtual-stages",
            f"{core.virtual} chunks a stage with PP{core.pipeline}, overlap_p2p_comm {core.overlap_p2p}",
        )
        # core/pipeline_parallel/schedules.py, forward_backward_pipelining_with_interleaving: groups of PP
        # micro-batches, and none of what remains may be smaller than PP.
        found.require(
            rounds >= core.pipeline and rounds % core.pipeline == 0,
            "virtual-micro-batches",
            f"{rounds} micro-batches in groups of PP{core.pipeline}",
        )


def layout_stages(text):
    """core/transformer/pipeline_parallel_layer_layout.py, parse_str_to_list: commas are decoration, x*N and (xyz)*N
    repeat, | parts stages."""
    text = text.replace(",", "").replace(" ", "")
    text = re.sub(r"\(([^()]+)\)\*(\d+)", lambda m: m[1] * int(m[2]), text)
    text = re.sub(r"(.)\*(\d+)", lambda m: m[1] * int(m[2]), text)
    return text.split("|")


def check_layout(core, found):
    """core/transformer/pipeline_parallel_layer_layout.py, __init__ and validate_layer_layout."""
    stages = layout_stages(core.layout)
    whole = "".join(stages)
    found.divides(core.pipeline, len(stages), "layout", f"stages of the layout over PP{core.pipeline}")
    found.require(whole.count("E") == 1 and whole.startswith("E"), "layout", "the layout does not begin with one E")
    found.require(whole.count("L") == 1 and whole.endswith("L"), "layout", "the layout does not end with one L")
    found.require(whole.count("t") == core.layers, "layout", f"{whole.count('t')} layers t for {core.layers}")
    found.require(whole.count("m") == core.mtp_layers, "layout", f"{whole.count('m')} modules m for {core.mtp_layers}")
    if "m" in whole:
        found.require("t" not in whole[whole.index("m") :], "layout", "layers t after a module m")
        holders = [at for at, stage in enumerate(stages) if "m" in stage]
        found.require(
            len(holders) == 1
            and holders[0] // core.pipeline == core.virtual - 1
            and (holders[0] % core.pipeline != 0 or core.pipeline == 1 or core.virtual == 1),
            "layout",
            "the modules m are not in the last chunk of one stage",
        )


def check_experts(core, cluster, found):
    if not core.experts:
        # core/transformer/transformer_config.py: "num_moe_experts must be non None to use expert-parallel"
        found.require(core.expert == 1, "expert-parallel", f"EP{core.expert} in a model without experts")
        return
    expert_tensor = core.expert_tensor or core.tensor
    # training/arguments.py: "Number of experts should be a multiple of expert model parallel_size"; moe_layer.py
    found.divides(core.expert, core.experts, "expert-parallel", f"experts over EP{core.expert}")
    found.divides(
        expert_tensor, core.expert_ffn or core.ffn, "expert-ffn", f"moe_ffn_hidden_size over ETP{expert_tensor}"
    )
    if core.shared_ffn:
        found.divides(core.tensor, core.shared_ffn, "expert-ffn", f"the shared expert over TP{core.tensor}")
    # core/transformer/moe/moe_layer.py, forward: training with TP > 1 and no sequence parallelism raises
    found.require(
        core.tensor == 1 or core.sequence_parallel,
        "experts-sequence-parallel",
        f"experts with TP{core.tensor} and without sequence parallelism",
    )
    found.require(not core.bias or expert_tensor == 1, "expert-bias", f"biases of experts with ETP{expert_tensor}")
    if core.grouped_gemm:
        # core/transformer/moe/experts.py, TEGroupedMLP.__init__; --no-bias-dropout-fusion is what turns it off
        found.require(
            not (core.bias and core.bias_dropout_fusion),
            "expert-bias-fusion",
            "grouped experts with biases and the fusion of bias and dropout",
        )
    # core/transformer/transformer_config.py, the router
    found.require(
        core.top_k > 1 or core.router_score != "softmax" or core.router_pre_softmax,
        "router",
        "top-1 routing without --moe-router-pre-softmax",
    )
    found.require(core.top_k <= core.experts, "router", f"top {core.top_k} of {core.experts} experts")
    found.require(
        not core.expert_bias or core.router_score in ("sigmoid", "sqrtsoftplus"),
        "router",
        f"bias of experts with router score {core.router_score}",
    )
    if core.router_group_top_k:
        found.require(
            core.router_groups >= core.router_group_top_k and core.experts % core.router_groups == 0,
            "router",
            f"{core.router_group_top_k} of {core.router_groups} groups of {core.experts} experts",
        )
    if isinstance(core.layer_frequency, list):
        found.require(
            len(core.layer_frequency) == core.layers,
            "layer-frequency",
            f"moe_layer_freq has {len(core.layer_frequency)} of {core.layers} layers",
        )
    check_dispatcher(core, cluster, expert_tensor, found)


def check_dispatcher(core, cluster, expert_tensor, found):
    if core.dispatcher != "flex":
        return
    machine = cluster.machine
    # core/transformer/moe/token_dispatcher.py: "DeepEP dispatcher requires TPxEP > 1"
    found.require(expert_tensor * core.expert > 1, "flex-dispatcher", "a flex dispatcher with EP1 ETP1")
    # Megatron-Bridge 067f987df, training/flex_dispatcher_backend.py; the packages of DeepEP are built for these
    fits = (
        machine.sm[0] in (8, 9) or machine.gpu in ("B200", "B300")
        if core.flex_backend == "deepep"
        else machine.sm[0] in (8, 9, 10)
    )
    found.require(fits, "flex-dispatcher", f"{core.flex_backend} on {machine.gpu}")


def check_precision(core, cluster, found):
    machine = cluster.machine
    found.require(not (core.bf16 and core.fp16), "precision", "bf16 and fp16 at once")
    # CUDA C++ programming guide, "Arithmetic instructions" and "Tensor cores": bfloat16 from compute capability 8.0 on
    found.require(not core.bf16 or machine.sm >= (8, 0), "bf16-device", f"bf16 on {machine.gpu}")
    if core.fp8:
        # transformer_engine/pytorch/quantization.py, _compute_*_support
        least = {"delayed": (8, 9), "tensorwise": (8, 9), "blockwise": (9, 0), "mxfp8": (10, 0)}.get(core.fp8_recipe)
        if found.require(least, "fp8-recipe", f"fp8 recipe {core.fp8_recipe}"):
            fits = machine.sm >= least and not (core.fp8_recipe == "mxfp8" and machine.sm >= (12, 0))
            found.require(
                fits, "fp8-device", f"fp8 {core.fp8_recipe} on {machine.gpu} of compute capability {machine.sm}"
            )
        # transformer_engine/pytorch/utils.py, assert_dim_for_fp8_exec: rows by 8, columns by 16; blocks of mxfp8 have
        # 32.
        rows = core.sequence * core.micro_batch // core.context
        unit = 32 if core.fp8_recipe == "mxfp8" else 8
        found.divides(unit, rows, "fp8-shape", f"rows of a product in {core.fp8_recipe} fp8")
        columns = {"hidden": core.hidden}
        if core.has_dense_layers:
            columns["ffn of a rank"] = core.ffn // core.tensor
        if core.experts:
            columns["ffn of an expert"] = (core.expert_ffn or core.ffn) // (core.expert_tensor or core.tensor)
        for name, width in columns.items():
            found.divides(max(unit, 16), width, "fp8-shape", f"{name} in {core.fp8_recipe} fp8")
        found.require(not core.fp4, "fp8-recipe", "fp8 and fp4 at once")
    found.require(not core.fp4 or machine.sm >= (10, 0), "fp8-device", f"nvfp4 on {machine.gpu}")


def check_attention(core, cluster, found):
    """transformer_engine/pytorch/attention/dot_product_attention/utils.py, get_attention_backend: below sm80 neither
    flash nor fused attention; with CP no unfused one; heads of up to 256, and above 192 only on some devices."""
    sm = cluster.machine.sm
    if core.attention in ("flash", "fused"):
        found.require(sm >= (8, 0), "flash-device", f"{core.attention} attention on {cluster.machine.gpu}")
        found.require(core.bf16 or core.fp16, "flash-precision", f"{core.attention} attention in fp32")
    if core.context > 1:
        found.require(
            sm >= (8, 0), "context-device", f"CP{core.context} on {cluster.machine.gpu}: it has no fused attention"
        )
        found.require(
            core.attention not in ("unfused", "local"), "context-attention", f"CP with {core.attention} attention"
        )
    if core.attention == "flash" and core.head_dim:
        found.require(core.head_dim <= 256 and core.head_dim % 8 == 0, "flash-head", f"heads of {core.head_dim}")
        # Hopper and Blackwell have newer FlashAttentions, which may take more.
        found.require(core.head_dim <= 192 or sm != (8, 9), "flash-head", f"heads of {core.head_dim} on sm89")
    if core.context > 1 and core.context_method == "a2a":
        # dot_product_attention/context_parallel.py, AttnFuncWithCPAndQKVOA2A: both kinds of heads over CP
        kv_heads = max((core.kv_heads or core.heads) // core.tensor, 1)
        found.divides(
            core.context, core.heads // core.tensor, "context-heads", f"heads of a rank over CP{core.context}"
        )
        found.divides(
            core.context, kv_heads, "context-heads", f"heads of keys and values of a rank over CP{core.context}"
        )


MODULES = {
    "core_attn",
    "moe_act",
    "layernorm",
    "mla_up_proj",
    "mlp",
    "moe",
    "shared_experts",
    "gdn_norm_out",
    "gdp_in_proj",
    "gdp_qkv",
    "mhc",
}


def check_recomputation(core, found):
    """core/transformer/transformer_config.py, recompute_*"""
    if core.recompute == "full":
        found.require(
            core.recompute_method in ("block", "uniform") and core.recompute_layers > 0,
            "recompute",
            "full recomputation without a method and its number of layers",
        )
        found.require(
            core.cuda_graphs in ("none", "full_iteration"), "recompute", f"full, with {core.cuda_graphs} CUDA graphs"
        )
    if core.recompute == "selective":
        found.require(not core.recompute_method and not core.recompute_layers, "recompute", "selective, with a method")
        found.require(set(core.recompute_modules) <= MODULES, "recompute", f"modules {core.recompute_modules}")
        found.require(
            "moe_act" not in core.recompute_modules or core.grouped_gemm,
            "recompute",
            "moe_act without grouped products",
        )
        found.require(
            "mla_up_proj" not in core.recompute_modules or core.latent,
            "recompute",
            "mla_up_proj without latent attention",
        )
        found.require(
            not {"moe_act", "layernorm"} & set(core.recompute_modules) or not core.fp8 or core.fp8_recipe != "delayed",
            "recompute",
            "moe_act or layernorm with delayed scaling",
        )
        found.require(
            "shared_experts" not in core.recompute_modules or not core.shared_overlap,
            "recompute",
            "shared_experts with --moe-shared-expert-overlap",
        )


def check_overlap(core, found):
    if core.overlap_experts:
        # core/transformer/transformer_config.py, overlap_moe_expert_parallel_comm
        found.require(core.expert > 1, "expert-overlap", "exchanges of experts overlapped with EP1")
        found.require(
            core.pipeline == 1 or core.virtual > 1, "expert-overlap", f"PP{core.pipeline} without virtual stages"
        )
        found.require(core.dispatcher in ("alltoall", "flex"), "expert-overlap", f"dispatcher {core.dispatcher}")
        found.require(core.recompute != "full", "expert-overlap", "full recomputation")
        found.require("moe" not in core.recompute_modules, "expert-overlap", "moe recomputed")
        found.require(not core.shared_overlap, "expert-overlap", "--moe-shared-expert-overlap")
        found.require(core.mtp_layers <= 1, "expert-overlap", f"{core.mtp_layers} modules of prediction")
    found.require(
        not core.delay_wgrad or core.overlap_experts, "delay-wgrad", "delay_wgrad_compute without overlapped experts"
    )


def check_optimizer(core, file, found):
    # training/arguments.py: "--overlap-param-gather only supported with distributed optimizer, megatron fsdp"
    if core.overlap_param_gather:
        found.require(
            core.distributed_optimizer or core.fsdp,
            "param-gather",
            "overlap of gathers without a distributed optimizer",
        )
        found.require(core.overlap_grad_reduce, "param-gather", "overlap of gathers without that of reductions")
    if core.fsdp:
        # training/arguments.py, use_megatron_fsdp, and Megatron-Bridge's _validate_and_apply_megatron_fsdp_v1_configs
        found.require(
            file.environment.get("CUDA_DEVICE_MAX_CONNECTIONS") != "1",
            "connections",
            "CUDA_DEVICE_MAX_CONNECTIONS=1 with Megatron-FSDP",
        )
        found.require(core.checkpoint_format == "fsdp_dtensor", "fsdp-checkpoint", f"format {core.checkpoint_format}")
    else:
        found.require(core.checkpoint_format != "fsdp_dtensor", "fsdp-checkpoint", "fsdp_dtensor without Megatron-FSDP")


def check_user_buffers(core, file, cluster, place, found):
    """Transformer Engine, examples/pytorch/comm_gemm_overlap/README.md: "Tensor-parallel GPUs must be on a single node,
    and connected over NVLink/NVSwitch", "Devices older than compute capability 9.0 require UB_SKIPMC=1";
    pytorch/module/base.py, initialize_ub, raises without multicast unless it is set;
    common/comm_gemm_overlap/userbuffers/userbuffers-host.cpp passes handles over multi-node NVLink (has_mnnvl_fabric)
    or a Unix socket of the host, and nothing else."""
    hosts, processes = place
    machine = cluster.machine
    if not found.require(
        machine.domain_gpus > 1,
        "overlap-without-nvlink",
        f"tensor overlap of TP{core.tensor} on {machine.gpu}, which has no NVLink",
    ):
        return
    found.require(
        cluster.in_one_domain(core.tensor, hosts * processes, processes, file.segment),
        "overlap-over-nodes",
        f"tensor overlap of TP{core.tensor} beyond NVLink domains of {machine.domain_gpus} {machine.gpu}",
    )
    found.require(
        machine.multicast or file.environment.get("UB_SKIPMC") == "1",
        "overlap-without-multicast",
        f"tensor overlap on {machine.gpu}, which has no multicast, without UB_SKIPMC=1",
    )
    # its README.rst, "System requirements": Blackwell, Hopper, Ada, Ampere
    found.require(machine.sm >= (8, 0), "overlap-device", f"tensor overlap on {machine.gpu}")
