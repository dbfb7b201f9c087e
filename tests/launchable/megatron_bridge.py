"""Megatron-Bridge: a Python recipe that fills a ConfigContainer, read as 067f987df (2026-08-22) does."""

from exported import assignments
from megatron_core import Core, check_core, layout_stages, said_of
import hosts

# training/mixed_precision.py: names of recipes, with the recipe of fp8 where there is one.
PRECISIONS = {
    "bf16_mixed": "",
    "fp16_mixed": "",
    "bf16_with_fp8_delayed_scaling_mixed": "delayed",
    "bf16_with_fp8_current_scaling_mixed": "tensorwise",
    "bf16_with_fp8_subchannel_scaling_mixed": "blockwise",
    "bf16_with_mxfp8_mixed": "mxfp8",
    "bf16_with_nvfp4_mixed": "",
}
# Fields that MLATransformerConfig adds to TransformerConfig and that core/transformer/multi_latent_attention.py reads.
LATENT_FIELDS = ("mscale_all_dim", "cache_mla_latents", "rope_type")


class Fields:
    def __init__(self, values):
        self.values = values

    def get(self, name, default=None):
        value = self.values.get("cfg." + name)
        return default if value is None else value

    def has(self, name):
        return "cfg." + name in self.values


def attention_of(model):
    """core/models/common/language_module/language_module.py, _set_attention_backend, compares with AttnBackend.NAME: a
    string is none of them, and Transformer Engine chooses."""
    said = str(model.get("attention_backend", "auto"))
    return said.rpartition(".")[2] if said.startswith("AttnBackend.") else "auto"


def core_of(fields):
    model = {
        name.removeprefix("cfg.model."): value
        for name, value in fields.values.items()
        if name.startswith("cfg.model.") and value is not None
    }
    overlap = fields.get("comm_overlap", {})
    pipeline = model.get("pipeline_model_parallel_size", 1)
    layout = model.get("pipeline_model_parallel_layout", "")
    layout = layout if isinstance(layout, str) else "|".join("".join(stage) for stage in layout)
    virtual = model.get("virtual_pipeline_model_parallel_size") or (
        max(1, len(layout_stages(layout)) // pipeline) if layout else 1
    )
    precision = fields.get("mixed_precision", "bf16_mixed")
    precision = precision if isinstance(precision, str) else precision[""].rpartition(".")[2]
    latent = model.get("multi_latent_attention", False)
    heads, hidden = model["num_attention_heads"], model["hidden_size"]
    head_dim = model.get("kv_channels", hidden // heads)
    if latent:
        head_dim = model.get("qk_head_dim", 128) + model.get("qk_pos_emb_head_dim", 64)
    return Core(
        layers=model["num_layers"],
        hidden=hidden,
        heads=heads,
        ffn=model.get("ffn_hidden_size", 4 * hidden),
        sequence=model.get("seq_length", 1024),
        micro_batch=fields.get("train.micro_batch_size", 2),
        global_batch=fields.get("train.global_batch_size", 32),
        kv_heads=0 if latent else model.get("num_query_groups", 0),
        tensor=model.get("tensor_model_parallel_size", 1),
        pipeline=pipeline,
        context=model.get("context_parallel_size", 1),
        expert=model.get("expert_model_parallel_size", 1),
        expert_tensor=model.get("expert_tensor_parallel_size", 0),
        virtual=virtual,
        layout=layout,
        first_layers=model.get("num_layers_in_first_pipeline_stage", 0),
        last_layers=model.get("num_layers_in_last_pipeline_stage", 0),
        sequence_parallel=model.get("sequence_parallel", False),
        context_method=model.get("cp_comm_type", "p2p"),
        experts=model.get("num_moe_experts", 0),
        top_k=model.get("moe_router_topk", 2),
        expert_ffn=model.get("moe_ffn_hidden_size", 0),
        shared_ffn=model.get("moe_shared_expert_intermediate_size", 0),
        layer_frequency=model.get("moe_layer_freq", 1),
        dispatcher=model.get("moe_token_dispatcher_type", "allgather"),
        flex_backend=model.get("moe_flex_dispatcher_backend", "deepep"),
        grouped_gemm=model.get("moe_grouped_gemm", False),
        router_score=model.get("moe_router_score_function", "softmax"),
        router_pre_softmax=model.get("moe_router_pre_softmax", False),
        expert_bias=model.get("moe_router_enable_expert_bias", False),
        router_groups=model.get("moe_router_num_groups", 0),
        router_group_top_k=model.get("moe_router_group_topk", 0),
        latent=latent,
        gated=model.get("gated_linear_unit", False),
        bias=model.get("add_bias_linear", True),
        bias_dropout_fusion=model.get("bias_dropout_fusion", False),
        mtp_layers=model.get("mtp_num_layers", 0),
        attention=attention_of(model),
        head_dim=head_dim,
        bf16=precision.startswith("bf16"),
        fp16=precision.startswith("fp16"),
        fp8="fp8" if PRECISIONS.get(precision) else "",
        fp8_recipe=PRECISIONS.get(precision) or "delayed",
        fp4="nvfp4" in precision,
        recompute=model.get("recompute_granularity", ""),
        recompute_method=model.get("recompute_method", ""),
        recompute_layers=model.get("recompute_num_layers", 0),
        recompute_modules=tuple(model.get("recompute_modules", ())),
        distributed_optimizer=fields.get("ddp.use_distributed_optimizer", True),
        fsdp=fields.get("ddp.use_megatron_fsdp", False),
        checkpoint_format=fields.get("checkpoint.ckpt_format", "torch_dist"),
        overlap_grad_reduce=fields.get("ddp.overlap_grad_reduce", True),
        overlap_param_gather=fields.get("ddp.overlap_param_gather", True),
        overlap_tensor=overlap.get("tp_comm_overlap") is True and model.get("sequence_parallel", False),
        overlap_experts=overlap.get("overlap_moe_expert_parallel_comm") is True,
        delay_wgrad=overlap.get("delay_wgrad_compute") is True,
        shared_overlap=model.get("moe_shared_expert_overlap", False),
        offload_optimizer=fields.get("optimizer.optimizer_cpu_offload", False),
        precision_aware=fields.get("optimizer.use_precision_aware_optimizer", False),
        cuda_graphs=model.get("cuda_graph_impl", "none"),
    )


def check(file, cluster, found):
    place = hosts.check_hosts(file, cluster, found)
    fields = Fields(assignments(file.python))
    core = core_of(fields)
    check_core(core, file, cluster, place, found)
    # training/config.py, validate: "ensure sequence length configuration in model config and dataset config match"
    found.require(
        fields.get("dataset.seq_length", 4096) == core.sequence,
        "dataset-sequence",
        f"dataset.seq_length {fields.get('dataset.seq_length', 4096)}, model.seq_length {core.sequence}",
    )
    # core/model_parallel_config.py, __post_init__
    found.require(not core.sequence_parallel or core.tensor > 1, "sequence-parallel", "sequence parallelism with TP1")
    precision = fields.get("mixed_precision", "bf16_mixed")
    name = precision if isinstance(precision, str) else precision.get("", "").rpartition(".")[2]
    found.require(name in PRECISIONS, "precision", f"mixed_precision {name} is no recipe")
    said = fields.get("model.attention_backend", "auto")
    found.require(
        said not in ("unfused", "local"), "attention-ignored", f"attention_backend is the string {said}, no AttnBackend"
    )
    check_provider(fields, core, found)
    return said_of(core)


def check_provider(fields, core, found):
    """models/mla_provider.py: latent attention reads fields of MLATransformerConfig, which MLAModelProvider has and
    GPTModelProvider has not; one that is missing is an AttributeError in core/transformer/multi_latent_attention.py."""
    provider = fields.get("model", {}).get("", "")
    if core.latent and "MLA" not in provider:
        missing = [name for name in LATENT_FIELDS if not fields.has("model." + name)]
        found.require(
            not missing, "latent-provider", f"latent attention in {provider}, which has no {', '.join(missing)}"
        )
