"""Files of `trivium export` in the hands of the trainers that they are for.

launch_files.py TRIVIUM: for each trainer, plans of Llama 3 70B and of a mixture on 128 H100 are exported and imported
again, which gives the same plan; `--for` leaves nothing unexpressed. Where the trainer's package is installed its own
parser reads the file, torchtitan builds the model on the meta device (its parameters are counted), Megatron-Core the
parts of every rank, and PyTorch trains a toy of the fsdp2 script on two processes. Megatron-LM, Megatron-Bridge and
Megatron-DeepSpeed are in no package that installs without a GPU: their code reads the files where the environment names
checkouts (MEGATRON_LM, MEGATRON_BRIDGE, MEGATRON_DEEPSPEED). One line a check; the exit status counts what failed.
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TRIVIUM = str(pathlib.Path(sys.argv[1]).resolve())
DENSE, MIXTURE = "llama3-70b", "qwen3-30b-a3b"
RANKS, CLUSTER, BATCH, STEPS = 128, "dgx-h100-80gb:16", 512, 1000
# DeepSpeed-MoE's 1.3B with 64 experts (Rajbhandari et al., arXiv 2201.05596, Table 1): Megatron-DeepSpeed's mixtures drop
# tokens beyond a capacity and have no norms of heads, so Qwen's are not among them.
DEEPSPEED_MIXTURE = {"schema": "trivium.model/1", "name": "gpt-1.3b-moe-64", "layers": 24, "hidden": 2048, "heads": 16,
                     "vocab": 50257, "max_sequence": 2048,
                     "experts": {"count": 64, "top_k": 1, "every": 2, "capacity_factor": 1.25}}
TOY = dict(architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=128, hidden_size=32, num_hidden_layers=2,
           num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, max_position_embeddings=64,
           rms_norm_eps=1e-5, tie_word_embeddings=False)
failed = 0


def trivium(*words):
    done = subprocess.run([TRIVIUM, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout


def parameters(model):
    return json.loads(trivium("models", model, "--json"))["parameters"]["total"]


def planned(trainer, model, *more):
    """The plan, and its file: nothing of it is lost, and reading it back gives the plan again."""
    if isinstance(model, dict):
        pathlib.Path("model.json").write_text(json.dumps(model))
        model = "model.json"
    longest = json.loads(trivium("models", model, "--json"))["max_sequence"]
    sequence = min(8192 if model == DENSE else 4096, longest)
    result = json.loads(trivium("plan", "--model", model, "--sequence", sequence, "--cluster", CLUSTER, "--global-batch",
                                BATCH, "--total-tokens", STEPS * BATCH * sequence, "--for", trainer, *more, "--json",
                                "-o", "plan.json"))
    if result["for"]["not_expressed"]:
        raise RuntimeError(f"not expressed: {result['for']['not_expressed']}")
    trivium("export", "plan.json", "--to", trainer, "-o", "launch")
    # These two leave the model's shape to its own files.
    told = ["--model", model] if trainer in ("deepspeed", "fsdp2") else []
    trivium("import", "launch", "--cluster", CLUSTER, *told, "-o", "again.json")
    written, read = (json.loads(pathlib.Path(name).read_text()) for name in ("plan.json", "again.json"))
    for part in ("plan", "model", "training"):
        if written[part] != read[part]:
            raise RuntimeError(f"imported again, the {part} is another: {written[part]} became {read[part]}")
    return written["plan"]


def split_of(plan):
    """As `trivium` names it, shortly."""
    names = {"tensor": "TP", "context": "CP", "pipeline": "PP", "data": "DP", "expert": "EP"}
    parts = [f"{short}{plan[name]}" for name, short in names.items() if plan[name] > 1]
    return " ".join([*parts, f"ZeRO-{plan['zero_stage']}"])


def read_by(checkout, trainer, model):
    """What the trainer's own arguments say, next to the plan."""
    plan = planned(trainer, model)
    reader = pathlib.Path(__file__).with_name("megatron_arguments.py")
    done = subprocess.run([sys.executable, "-W", "ignore", reader, checkout, str(RANKS), "launch"], capture_output=True,
                          text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    read, written = json.loads(done.stdout.splitlines()[-1]), json.loads(pathlib.Path("plan.json").read_text())
    model, training = written["model"], written["training"]
    meant = {**{name: plan[name] for name in ("tensor", "context", "pipeline", "data", "expert", "micro_batch",
                                              "sequence_parallel")},
             **{name: model[name] for name in ("layers", "hidden", "heads")},
             **{name: training[name] for name in ("sequence", "global_batch")},
             "experts": model["experts"]["count"] if model.get("experts") else 1}
    if read != meant:
        raise RuntimeError(f"{ {name: (read[name], meant[name]) for name in meant if read[name] != meant[name]} }")
    return f"{split_of(plan)}: imported again, equal; parsed and validated, {len(meant)} values as planned"


def fields_of_bridge(model):
    plan = planned("megatron-bridge", model)
    done = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("bridge_fields.py"),
                           os.environ["MEGATRON_BRIDGE"], os.environ["MEGATRON_LM"], "launch"], capture_output=True,
                          text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return f"{split_of(plan)}: imported again, equal; {done.stdout.strip()} fields, each in its classes"


def round_trip(trainer, model):
    return f"{split_of(planned(trainer, model))}: imported again, equal; no checkout to parse it with"


def name_of(model):
    return model["name"] if isinstance(model, dict) else model


def check(name):
    """Runs the check in a folder of its own and prints what it says, or why it failed."""
    def run(body):
        global failed
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            try:
                print(f"{name}: {body()}", flush=True)
            except Exception as error:  # whatever a trainer throws is the finding
                failed += 1
                print(f"{name}: FAILED: {type(error).__name__}: {error}", flush=True)
        return body
    return run


def has(package):
    if importlib.util.find_spec(package):
        return True
    print(f"{package}: not installed, not checked")
    return False


def here_documents():
    """What the script writes before it launches: `launch` is run with a torchrun and a deepspeed that do nothing."""
    for command in ("torchrun", "deepspeed"):
        pathlib.Path(command).write_text("#!/bin/sh\n")
        os.chmod(command, 0o755)
    subprocess.run(["bash", "launch"], env={**os.environ, "PATH": f".:{os.environ['PATH']}", "HEAD": "h"}, check=True)


def torchtitan(model):
    import torch
    from torchtitan.config import ConfigManager

    plan = planned("torchtitan", model)
    here_documents()
    config = ConfigManager().parse_args(["--job.config_file", "trivium.toml"])
    spec_of = importlib.util.spec_from_file_location("trivium_flavor", "trivium_flavor.py")
    registry = importlib.import_module("torchtitan.protocols.train_spec")
    registry._extra_train_specs.pop("trivium", None)
    spec_of.loader.exec_module(importlib.util.module_from_spec(spec_of))
    spec = registry.get_train_spec("trivium")
    arguments = spec.model_args["plan"]
    arguments.update_from_config(config)
    with torch.device("meta"):
        built = spec.model_cls(arguments)
    count = sum(p.numel() for p in built.parameters())
    if count != parameters(model):
        raise RuntimeError(f"{count} parameters, {parameters(model)} planned")
    degrees = config.parallelism
    if (degrees.tensor_parallel_degree, degrees.pipeline_parallel_degree) != (plan["tensor"], plan["pipeline"]):
        raise RuntimeError("the degrees differ")
    return f"{split_of(plan)}: imported again, equal; parsed, {count:,} parameters on the meta device as planned"


def deepspeed_json(model):
    from deepspeed.runtime.config import DeepSpeedConfig

    plan = planned("deepspeed", model)
    here_documents()
    settings = json.loads(pathlib.Path("ds_config.json").read_text())
    read = DeepSpeedConfig({**settings, "train_batch_size": settings["train_batch_size"] // plan["data"]})
    if read.zero_config.stage != plan["zero_stage"]:
        raise RuntimeError(f"stage {read.zero_config.stage}, {plan['zero_stage']} planned")
    return (f"{split_of(plan)}: imported again, equal; parsed, stage {int(read.zero_config.stage)}, micro-batch "
            f"{read.train_micro_batch_size_per_gpu}")


def accelerate_yaml(model):
    from accelerate.commands.config.config_args import load_config_from_file

    plan = planned("fsdp2", model)
    compile(pathlib.Path("launch").read_text(), "launch", "exec")
    trivium("export", "plan.json", "--to", "accelerate", "-o", "launch.yaml")
    config = load_config_from_file("launch.yaml")
    if config.num_processes != plan["data"]:
        raise RuntimeError(f"{config.num_processes} processes, {plan['data']} planned")
    return f"{split_of(plan)}: imported again, equal; parsed, {config.distributed_type}"


def fsdp2_training(zero):
    pathlib.Path("model").mkdir()
    pathlib.Path("model/config.json").write_text(json.dumps(TOY))
    trivium("export", "--to", "fsdp2", "--model", "model/config.json", "--sequence", 32, "--cluster",
            "dgx-h100-80gb:1", "--global-batch", 8, "--data", 2, "--zero-stage", zero, "--overlap-gradient-reduction",
            *(["--overlap-parameter-gather"] if zero else []), "--learning-rate", 0.01, "--warmup-steps", 2,
            "--total-tokens", 20 * 8 * 32, "-o", "launch")
    numpy = importlib.import_module("numpy")
    numpy.arange(4096, dtype=numpy.uint32).__mod__(17).tofile("tokens.bin")
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "launch", "model",
                           "tokens.bin"], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)", done.stdout)]
    if done.returncode or len(losses) != 20 or losses[-1] > losses[0] - 0.5:
        raise RuntimeError(f"losses {losses}: {done.stderr.strip().splitlines()[-1:]}")
    return f"trained on two processes, loss {losses[0]:.3f} to {losses[-1]:.3f}"


def megatron_ranks(model, *fixed):
    """Parameters of the first rank of each stage, as Megatron-Core builds it in a world of fake processes."""
    plan = planned("megatron-bridge", model, *fixed)
    ranks = plan["tensor"] * plan["context"] * plan["pipeline"] * plan["data"]
    simulated = json.loads(trivium("simulate", "plan.json", "--json"))["ranks"]
    builder = pathlib.Path(__file__).with_name("megatron_rank.py")
    counts = []
    for stage in range(plan["pipeline"]):
        rank = stage * ranks // plan["pipeline"]
        done = subprocess.run([sys.executable, "-W", "ignore", builder, "launch", str(ranks), str(rank)],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        counts.append(int(done.stdout.split()[-1]))
        ours = simulated[rank]["memory_bytes"]["parameters"] / 2
        # Buckets whose state is shared are filled up to a multiple of the ranks.
        filled = 2e-5 * ours if plan["zero_stage"] else 0
        if not 0 <= ours - counts[-1] <= filled:
            raise RuntimeError(f"stage {stage} of {plan['pipeline']}: {counts[-1]:,} parameters, {ours:,.0f} planned")
    return f"{split_of(plan)}: stages of {', '.join(f'{count:,}' for count in counts)} parameters a rank as planned"


for model in (DENSE, MIXTURE):
    if "MEGATRON_LM" in os.environ:
        check(f"megatron {model}")(lambda: read_by(os.environ["MEGATRON_LM"], "megatron", model))
    else:
        check(f"megatron {model}")(lambda: round_trip("megatron", model))
    if "MEGATRON_BRIDGE" in os.environ and "MEGATRON_LM" in os.environ:
        check(f"megatron-bridge {model}")(lambda: fields_of_bridge(model))
    else:
        check(f"megatron-bridge {model}")(lambda: round_trip("megatron-bridge", model))
for model in (DENSE, DEEPSPEED_MIXTURE):
    if "MEGATRON_DEEPSPEED" in os.environ:
        check(f"megatron-deepspeed {name_of(model)}")(lambda: read_by(os.environ["MEGATRON_DEEPSPEED"], "deepspeed", model))
if has("megatron"):
    for model in (DENSE, MIXTURE):
        check(f"megatron-core {model}")(lambda: megatron_ranks(model))
    check("megatron-core llama3-8b, TP4 PP2")(lambda: megatron_ranks("llama3-8b", "--tensor", 4, "--pipeline", 2))
    check(f"megatron-core {MIXTURE}, TP2 PP2 EP4")(
        lambda: megatron_ranks(MIXTURE, "--tensor", 2, "--pipeline", 2, "--expert", 4, "--virtual-stages", 1))
if has("torchtitan"):
    for model in (DENSE, MIXTURE, "llama3.1-8b", "deepseek-v2-lite"):
        check(f"torchtitan {model}")(lambda: torchtitan(model))
if has("deepspeed"):
    for model in (DENSE, DEEPSPEED_MIXTURE):
        check(f"deepspeed {name_of(model)}")(lambda: deepspeed_json(model))
if has("accelerate"):
    for model in (DENSE, MIXTURE):
        check(f"fsdp2, accelerate {model}")(lambda: accelerate_yaml(model))
if has("transformers"):
    for stage in (0, 2, 3):
        check(f"fsdp2, ZeRO {stage}")(lambda: fsdp2_training(stage))
sys.exit(failed)
