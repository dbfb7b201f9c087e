"""torchtitan v0.2.2 (2026-02-20) with PyTorch's pipelining: a TOML and, where needed, a flavor of a model."""

import ast
import re

from exported import literal
import hosts

# torch/distributed/pipelining/schedules.py, get_schedule_class; whether a stage has several chunks, in a V, and splits
# backwards (_check_torch_compile_compatibility refuses those with torch.compile).
SCHEDULES = {
    "1f1b": (False, False, False),
    "gpipe": (False, False, False),
    "interleaved1f1b": (True, False, False),
    "loopedbfs": (True, False, False),
    "interleavedzerobubble": (True, False, True),
    "zbvzerobubble": (True, True, True),
    "dualpipev": (True, True, True),
}
# torchtitan/config/manager.py, _dict_to_dataclass, refuses names that config/job_config.py has not: its tables, and the
# fields of those that set how a job runs.
SECTIONS = set(
    "job profiling metrics model optimizer lr_scheduler training parallelism checkpoint activation_checkpoint compile"
    " quantize comm memory_estimation fault_tolerance experimental validation debug".split()
)
FIELDS = {
    "model": "name flavor hf_assets_path tokenizer_path converters print_after_conversion",
    "optimizer": "name lr beta1 beta2 eps weight_decay implementation early_step_in_backward",
    "lr_scheduler": "warmup_steps total_steps decay_ratio decay_type min_lr_factor",
    "training": "dataset dataset_path local_batch_size global_batch_size seq_len max_norm steps enable_cpu_offload"
    " dtype mixed_precision_param mixed_precision_reduce gc_freq gc_debug dataloader",
    "parallelism": "data_parallel_replicate_degree data_parallel_shard_degree fsdp_reshard_after_forward"
    " tensor_parallel_degree disable_loss_parallel enable_async_tensor_parallel pipeline_parallel_degree"
    " module_fqns_per_model_part pipeline_parallel_first_stage_less_layers pipeline_parallel_last_stage_less_layers"
    " pipeline_parallel_layers_per_stage pipeline_parallel_schedule pipeline_parallel_schedule_csv"
    " pipeline_parallel_microbatch_size pipeline_parallel_expert_parallel_overlap context_parallel_degree"
    " context_parallel_load_balancer context_parallel_rotate_method expert_parallel_degree"
    " expert_tensor_parallel_degree expert_parallel_comm_backend",
    "activation_checkpoint": "mode selective_ac_option per_op_sac_force_recompute_mm_shapes_by_fqns early_stop"
    " memory_budget visualize_memory_budget_pareto preserve_rng_state determinism_check debug",
    "compile": "enable components backend",
    "experimental": "custom_import custom_args_module",
    "quantize.linear.float8": "enable_fsdp_float8_all_gather precompute_float8_dynamic_scale_for_fsdp recipe_name"
    " filter_fqns emulate",
    "quantize.linear.mx": "mxfp8_dim1_cast_kernel_choice recipe_name filter_fqns",
    "quantize.grouped_mm.float8": "fqns",
    "quantize.grouped_mm.mx": "recipe_name fqns",
}
# Literal types of config/job_config.py.
CHOICES = {
    "parallelism.fsdp_reshard_after_forward": ("default", "always", "never"),
    "training.mixed_precision_param": ("bfloat16", "float32"),
    "training.mixed_precision_reduce": ("float32",),
    "activation_checkpoint.mode": ("selective", "full", "memory_budget", "none"),
    "quantize.linear.float8.recipe_name": ("tensorwise", "rowwise", "rowwise_with_gw_hp"),
}


class Config:
    def __init__(self, tables):
        self.tables = tables

    def get(self, name, default=None):
        at = self.tables
        for part in name.split("."):
            if part not in at:
                return default
            at = at[part]
        return at


def model_of(file, config):
    """The arguments of the model: of the flavor that the file brings, else what is known of the shipped one."""
    for text in file.files.values():
        for node in ast.walk(ast.parse(text)) if re.search(r"^from torchtitan", text, re.M) else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ModelArgs"):
                return literal(node)
    return shipped_flavors().get((config.get("model.name"), config.get("model.flavor")), {})


def shipped_flavors():
    """torchtitan/models/llama3/__init__.py and qwen3/__init__.py: heads, heads of keys and values, layers."""

    def dense(heads, kv_heads, layers, **more):
        return {"": "TransformerModelArgs", "n_heads": heads, "n_kv_heads": kv_heads, "n_layers": layers, **more}

    tied = {"enable_weight_tying": True}
    return {
        ("llama3", "8B"): dense(32, 8, 32),
        ("llama3", "70B"): dense(64, 8, 80),
        ("llama3", "405B"): dense(128, 8, 126),
        ("qwen3", "0.6B"): dense(16, 8, 28, **tied),
        ("qwen3", "1.7B"): dense(16, 8, 28, **tied),
        ("qwen3", "4B"): dense(32, 8, 36, **tied),
        ("qwen3", "8B"): dense(32, 8, 36),
        ("qwen3", "14B"): dense(40, 8, 40),
        ("qwen3", "32B"): dense(64, 8, 64),
    }


def widths_of(model):
    """The inner widths of dense MLPs and of experts; 0 where there are none. Llama's are made of one number:
    models/llama3/model/model.py, FeedForward.__init__, and models/llama4/model/model.py, TransformerBlock.__init__."""
    if not model:
        return 0, 0
    if "hidden_dim" in model:
        return (0, model.get("moe_inter_dim", 0)) if model.get("moe_enabled") else (model["hidden_dim"], 0)
    if "inter_dim" in model:
        return (model["inter_dim"] if model.get("n_dense_layers", 1) else 0), model["moe_inter_dim"]
    if "dim" not in model:
        return 0, 0
    width = int((model.get("ffn_dim_multiplier") or 1) * int(2 * 4 * model["dim"] / 3))
    up = lambda number: -(-number // model.get("multiple_of", 256)) * model.get("multiple_of", 256)
    moe = model.get("moe_args")
    if moe is None:
        return up(width), 0
    share = moe.get("top_k", 1) + moe.get("num_shared_experts", 1) if model.get("auto_scale_hidden_dim", True) else 1
    return (up(width) if model.get("interleave_moe_layer_step", 2) > 1 else 0), up(int(width / share))


def experts_of(model):
    if not model.get("moe_enabled", "moe_args" in model):
        return 0
    return (model.get("moe_args") or {}).get("num_experts", 8)


def check(file, cluster, found):
    place = hosts.check_hosts(file, cluster, found)
    config = Config(file.toml())
    check_names(config, found)
    model = model_of(file, config)
    found.require(model, "unknown-flavor", f"{config.get('model.name')} {config.get('model.flavor')}")
    is_llama = config.get("model.name") in ("llama3", "llama4") or any(
        re.search(r"torchtitan\.models\.llama[34] ", text) for text in file.files.values()
    )
    sizes = check_parallel_dims(config, place, is_llama, found)
    check_batch(config, sizes, found)
    check_shapes(config, model, sizes, found)
    check_pipeline(config, model, sizes, found)
    check_converters(config, model, cluster, sizes, found)
    check_async_tensor(config, file, cluster, sizes, place, found)
    check_device(config, cluster, found)
    pipelined = config.get("parallelism.pipeline_parallel_microbatch_size", 1)
    return {
        "tensor": sizes["tp"],
        "pipeline": sizes["pp"],
        "context": sizes["cp"],
        "expert": sizes["ep"],
        "micro_batch": pipelined if sizes["pp"] > 1 else config.get("training.local_batch_size", 8),
        "eight_bits": bool(config.get("model.converters")),
    }


def check_names(config, found):
    unknown = set(config.tables) - SECTIONS
    for table, fields in FIELDS.items():
        unknown |= {f"{table}.{name}" for name in set(config.get(table, {})) - set(fields.split())}
    found.require(not unknown, "unknown-name", f"torchtitan has no {', '.join(sorted(unknown))}")
    for name, choices in CHOICES.items():
        said = config.get(name)
        found.require(said is None or said in choices, "unknown-value", f"{name} is {said}")


def check_parallel_dims(config, place, is_llama, found):
    """torchtitan/distributed/parallel_dims.py: _validate, and the sparse mesh of build_mesh, which _unflatten refuses
    where its degrees do not multiply to the world."""
    degree = lambda name, default=1: config.get(f"parallelism.{name}", default)
    sizes = {
        "replicate": degree("data_parallel_replicate_degree"),
        "shard": degree("data_parallel_shard_degree", -1),
        "cp": degree("context_parallel_degree"),
        "tp": degree("tensor_parallel_degree"),
        "pp": degree("pipeline_parallel_degree"),
        "ep": degree("expert_parallel_degree"),
        "etp": degree("expert_tensor_parallel_degree"),
    }
    world = place[0] * place[1] if place else 0
    other = sizes["replicate"] * sizes["cp"] * sizes["tp"] * sizes["pp"]
    if sizes["shard"] < 0:
        sizes["shard"] = max(world // other, 1)
    if world:
        found.require(
            other * sizes["shard"] == world,
            "world-size",
            f"{' x '.join(f'{name} {sizes[name]}' for name in ('replicate', 'shard', 'cp', 'tp', 'pp'))} for {world}",
        )
    if sizes["ep"] > 1:
        found.require(sizes["etp"] in (1, sizes["tp"]), "expert-tensor", f"ETP{sizes['etp']} with TP{sizes['tp']}")
        spread = sizes["shard"] * sizes["cp"] * sizes["tp"]
        found.divides(
            sizes["etp"] * sizes["ep"],
            spread,
            "expert-groups",
            f"EP{sizes['ep']} ETP{sizes['etp']} in shard {sizes['shard']} x CP{sizes['cp']} x TP{sizes['tp']}",
        )
    # models/llama[34]/infra/parallelize.py, parallelize_llama: "DDP has not supported > 1D parallelism"
    alone = sizes["replicate"] > 1 and sizes["shard"] == sizes["cp"] == 1
    if alone and world and is_llama:
        found.require(
            world == sizes["replicate"],
            "replicas-alone",
            f"{sizes['replicate']} replicas without shards, with TP{sizes['tp']} PP{sizes['pp']}",
        )
    # distributed/utils.py, maybe_enable_amp: without FSDP, "Mixed precision training is disabled" with TP or PP
    if (
        sizes["shard"] == sizes["cp"] == 1
        and sizes["tp"] * sizes["pp"] > 1
        and config.get("training.dtype", "float32") == "float32"
    ):
        found.require(
            config.get("training.mixed_precision_param", "bfloat16") == "float32",
            "runs-in-fp32",
            f"TP{sizes['tp']} PP{sizes['pp']} without shards: mixed precision is disabled, all is fp32",
        )
    return sizes


def check_batch(config, sizes, found):
    """torchtitan/train.py, Trainer.__init__; models/*/infra/parallelize.py, seq_len_divisor."""
    local, whole = config.get("training.local_batch_size", 8), config.get("training.global_batch_size", -1)
    replicas = sizes["replicate"] * sizes["shard"]
    if whole > 0:
        found.divides(local * replicas, whole, "batch", f"global batch over local {local} x {replicas}")
    found.divides(
        sizes["tp"] * 2 * sizes["cp"],
        config.get("training.seq_len", 2048),
        "sequence",
        f"seq_len over TP{sizes['tp']} x 2 x CP{sizes['cp']}",
    )
    if sizes["pp"] > 1:
        found.divides(
            config.get("parallelism.pipeline_parallel_microbatch_size", 1),
            local,
            "batch",
            "local batch over micro-batches",
        )


def check_shapes(config, model, sizes, found):
    """models/*/model/model.py: projections are split by columns (ColwiseParallel) and viewed as whole heads, so TP
    divides heads of queries and of keys and values; distributed/expert_parallel.py shares experts out over EP."""
    heads = model.get("n_heads")
    if heads:
        found.divides(sizes["tp"], heads, "tensor-heads", f"heads over TP{sizes['tp']}")
        found.divides(
            sizes["tp"],
            model.get("n_kv_heads") or heads,
            "tensor-kv-heads",
            f"heads of keys and values over TP{sizes['tp']}",
        )
    dense, width = widths_of(model)
    if dense:
        found.divides(sizes["tp"], dense, "tensor-ffn", f"inner width over TP{sizes['tp']}")
    experts = experts_of(model)
    if experts:
        found.divides(sizes["ep"], experts, "expert-parallel", f"experts over EP{sizes['ep']}")
        # distributed/expert_parallel.py: without EP, TensorParallel splits every expert over TP; with it, ETP does
        split = sizes["etp"] if sizes["ep"] > 1 else sizes["tp"]
        found.divides(split, width or split, "expert-ffn", f"inner width of experts over {split}")
    elif model:
        found.require(sizes["ep"] == 1, "expert-parallel", f"EP{sizes['ep']} in a model without experts")
    # models/gpt_oss and deepseek_v3: "Context Parallel only supports SDPA attention"
    found.require(
        sizes["cp"] == 1 or model.get("attn_type", "sdpa") == "sdpa",
        "context-attention",
        f"CP{sizes['cp']} with {model.get('attn_type')} attention",
    )
    if sizes["pp"] > 1:
        # models/qwen3/model/model.py, init_weights: `assert self.tok_embeddings is not None and self.output is not
        # None`
        found.require(not model.get("enable_weight_tying"), "tied-pipeline", f"tied embeddings over PP{sizes['pp']}")


def check_pipeline(config, model, sizes, found):
    """torchtitan/distributed/pipeline_parallel.py and torch/distributed/pipelining/schedules.py."""
    stages = config.get("parallelism.module_fqns_per_model_part")
    if sizes["pp"] == 1:
        return
    name = config.get("parallelism.pipeline_parallel_schedule", "1F1B")
    if not found.require(name.lower() in SCHEDULES, "schedule", f"{name} is no schedule of PyTorch's"):
        return
    looped, in_v, splits = SCHEDULES[name.lower()]
    micro_batches = config.get("training.local_batch_size", 8) // config.get(
        "parallelism.pipeline_parallel_microbatch_size", 1
    )
    parts = len(stages) if stages else sizes["pp"] * (2 if looped else 1)
    if found.divides(sizes["pp"], parts, "stages", f"model parts over PP{sizes['pp']}"):
        chunks = parts // sizes["pp"]
        found.require(chunks == 1 or looped, "stages", f"{chunks} parts a rank with {name}")
        found.require(chunks == 2 or not in_v, "stages", f"{chunks} parts a rank with {name}, which takes two")
    if name.lower() == "1f1b":
        found.require(
            micro_batches >= sizes["pp"], "schedule-micro-batches", f"{micro_batches} micro-batches for PP{sizes['pp']}"
        )
    if looped and not in_v and name.lower() != "loopedbfs":
        rounds = max(1, micro_batches // sizes["pp"])
        found.divides(rounds, micro_batches, "schedule-micro-batches", f"micro-batches in {rounds} rounds of {name}")
    if name.lower() == "dualpipev":
        found.require(
            micro_batches >= parts, "schedule-micro-batches", f"{micro_batches} micro-batches for {parts} stages"
        )
        found.require(
            sizes["ep"] == 1 or config.get("activation_checkpoint.mode", "selective") == "none",
            "schedule",
            "DualPipeV with experts and recomputation",
        )
    compiled = config.get("compile.enable", False) and "model" in config.get("compile.components", ["model", "loss"])
    found.require(not splits or not compiled, "schedule-compile", f"{name} with torch.compile")
    if stages:
        flat = [part for stage in stages for part in stage]
        layers = [f"layers.{at}" for at in range(model.get("n_layers", 0))]
        wanted = ["tok_embeddings", *layers, "norm", "output"]
        found.require(
            not layers or flat == wanted, "stages", "parts of the model are not embeddings, every layer, norm, output"
        )
        found.require(all(stages), "stages", "a stage without modules")


def check_converters(config, model, cluster, sizes, found):
    """components/quantization/float8.py and mx.py: their converters' __init__."""
    sm, compiled, names = cluster.machine.sm, config.get("compile.enable", False), config.get("model.converters", [])
    for name in names:
        found.require(
            name
            in ("quantize.linear.float8", "quantize.grouped_mm.float8", "quantize.linear.mx", "quantize.grouped_mm.mx"),
            "converter",
            f"{name} is no converter",
        )
        if name.endswith("float8"):
            found.require(sm >= (8, 9), "fp8-device", f"{name} on {cluster.machine.gpu} of compute capability {sm}")
        if name.endswith("mx"):
            found.require(sm >= (10, 0), "fp8-device", f"{name} on {cluster.machine.gpu} of compute capability {sm}")
        if name == "quantize.grouped_mm.float8":
            found.require(
                sizes["pp"] == sizes["cp"] == 1, "fp8-experts", f"{name} with PP{sizes['pp']} CP{sizes['cp']}"
            )
            # PyTorch, aten/src/ATen/native/cuda/GroupedBlas.cpp, _scaled_grouped_mm_cuda: "compute capability = [9.0,
            # 10.0]", by their major numbers
            found.require(sm[0] in (9, 10), "fp8-device", f"{name} on {cluster.machine.gpu}")
        if name == "quantize.linear.mx":
            found.require(
                sizes["tp"] == 1 or not compiled, "fp8-compile", f"{name} with TP{sizes['tp']} and torch.compile"
            )
        if name == "quantize.linear.float8" and config.get("quantize.linear.float8.recipe_name"):
            found.require(
                not config.get("quantize.linear.float8.enable_fsdp_float8_all_gather"),
                "converter",
                "float8 gathers with a recipe_name",
            )
    # components/quantization/__init__.py, QuantizationConverter._validate
    kinds = {name.rpartition(".")[2] for name in names}
    found.require(len(kinds) <= 1, "converter", f"converters of {' and '.join(sorted(kinds))}")
    if names and len(kinds) == 1:
        check_eight_bits(config, model, kinds.pop(), sizes, found)


def check_eight_bits(config, model, kind, sizes, found):
    """Which products run in 8 bits, and their shapes. components/quantization/utils.py, module_filter_fn, looks at
    whole matrices; kernels at those of a tensor rank: PyTorch, aten/src/ATen/native/cuda/Blas.cpp, _scaled_mm,
    "divisible by 16"; torchao, prototype/mx_formats, blocks of 32."""
    names = config.get("model.converters")
    if experts_of(model):
        grouped = f"quantize.grouped_mm.{kind}"
        found.require(
            grouped in names and "experts" in config.get(f"{grouped}.fqns", []),
            "fp8-experts",
            f"experts stay in 16 bits without {grouped} of them",
        )
    unit, (dense, expert) = (32 if kind == "mx" else 16), widths_of(model)
    head = model.get("head_dim") or (model["dim"] // model["n_heads"] if "dim" in model else 0)
    if "qk_nope_head_dim" in model:  # wkv_b, as wide as all keys and values; wq_b is three quarters of it
        head = model["qk_nope_head_dim"] + model["v_head_dim"]
    columns = {
        "hidden": model.get("dim", 0),
        "queries of a rank": head * model.get("n_heads", 0) // sizes["tp"],
        "keys of a rank": head * (model.get("n_kv_heads") or model.get("n_heads", 0)) // sizes["tp"],
        "inner width of a rank": dense // sizes["tp"],
        "inner width of experts": expert // (sizes["etp"] if sizes["ep"] > 1 else sizes["tp"]),
    }
    for name, width in columns.items():
        found.divides(unit, width, "fp8-shape", f"{name} in {kind}")


def check_async_tensor(config, file, cluster, sizes, place, found):
    """distributed/tensor_parallel.py: needs the compiled model. The compiled code exchanges in symmetric memory, which
    PyTorch 2.9, torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemory.cu, maps into every rank of the group: a
    fabric handle over multi-node NVLink, else a file descriptor of one host, and peer access either way."""
    if not config.get("parallelism.enable_async_tensor_parallel", False) or sizes["tp"] == 1:
        return
    compiled = config.get("compile.enable", False) and "model" in config.get("compile.components", ["model", "loss"])
    found.require(compiled, "async-compile", "async TP without torch.compile")
    machine = cluster.machine
    if (
        found.require(
            machine.domain_gpus > 1,
            "overlap-without-nvlink",
            f"async TP{sizes['tp']} on {machine.gpu}, which has no NVLink",
        )
        and place
    ):
        found.require(
            cluster.in_one_domain(sizes["tp"], place[0] * place[1], place[1], file.segment),
            "overlap-over-nodes",
            f"async TP{sizes['tp']} beyond NVLink domains of {machine.domain_gpus} {machine.gpu}",
        )
    found.require(machine.sm >= (8, 0), "overlap-device", f"async TP on {machine.gpu}")


def check_device(config, cluster, found):
    machine, wide = cluster.machine, config.get("training.mixed_precision_param", "bfloat16") == "float32"
    # CUDA C++ programming guide, "Tensor cores": bfloat16 from compute capability 8.0 on
    found.require(machine.sm >= (8, 0) or wide, "bf16-device", f"bf16 on {machine.gpu}")
