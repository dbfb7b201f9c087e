"""Files of `trivium export` in the hands of the trainers that they are for.

launch_files.py TRIVIUM: for each trainer whose package is installed, plans of a dense model and a mixture are exported;
the trainer's own parser reads the file, torchtitan builds the model on the meta device (its parameters are counted),
Megatron-Core the parts of every rank, and PyTorch trains a toy of the fsdp2 script on two processes. One line a check;
the exit status counts what failed.
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
DENSE, MIXTURE = "llama3-8b", "qwen3-30b-a3b"
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
    """The plan, and its file, of one cluster of eight nodes."""
    trivium("plan", "--model", model, "--sequence", 4096, "--cluster", "dgx-h100-80gb:8", "--global-batch", 512,
            "--total-tokens", 1_000_000_000, "--for", trainer, *more, "-o", "plan.json")
    trivium("export", "plan.json", "--to", trainer, "-o", "launch")
    return json.loads(pathlib.Path("plan.json").read_text())["plan"]


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
    return f"parsed, {count:,} parameters on the meta device as planned"


def deepspeed_json():
    from deepspeed.runtime.config import DeepSpeedConfig

    plan = planned("deepspeed", DENSE)
    here_documents()
    settings = json.loads(pathlib.Path("ds_config.json").read_text())
    read = DeepSpeedConfig({**settings, "train_batch_size": settings["train_batch_size"] // plan["data"]})
    if read.zero_config.stage != plan["zero_stage"]:
        raise RuntimeError(f"stage {read.zero_config.stage}, {plan['zero_stage']} planned")
    return f"parsed, stage {int(read.zero_config.stage)}, micro-batch {read.train_micro_batch_size_per_gpu}"


def accelerate_yaml():
    from accelerate.commands.config.config_args import load_config_from_file

    plan = planned("fsdp2", DENSE)
    trivium("export", "plan.json", "--to", "accelerate", "-o", "launch.yaml")
    config = load_config_from_file("launch.yaml")
    if config.num_processes != plan["data"]:
        raise RuntimeError(f"{config.num_processes} processes, {plan['data']} planned")
    return f"parsed, {config.distributed_type}"


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
        if counts[-1] != ours:
            raise RuntimeError(f"stage {stage} of {plan['pipeline']}: {counts[-1]:,} parameters, {ours:,.0f} planned")
    return f"stages of {', '.join(f'{count:,}' for count in counts)} parameters a rank as planned"


if has("torchtitan"):
    check(f"torchtitan {DENSE}")(lambda: torchtitan(DENSE))
    check(f"torchtitan {MIXTURE}")(lambda: torchtitan(MIXTURE))
    check("torchtitan llama3.1-8b")(lambda: torchtitan("llama3.1-8b"))
if has("deepspeed"):
    check(f"deepspeed {DENSE}")(deepspeed_json)
if has("accelerate"):
    check(f"accelerate {DENSE}")(accelerate_yaml)
if has("transformers"):
    for stage in (0, 2, 3):
        check(f"fsdp2, ZeRO {stage}")(lambda: fsdp2_training(stage))
if has("megatron"):
    check(f"megatron-core {DENSE}")(lambda: megatron_ranks(DENSE))
    check(f"megatron-core {DENSE}, TP4 PP2")(lambda: megatron_ranks(DENSE, "--tensor", 4, "--pipeline", 2))
    check(f"megatron-core {MIXTURE}, TP2 PP2 EP4")(
        lambda: megatron_ranks(MIXTURE, "--tensor", 2, "--pipeline", 2, "--expert", 4, "--virtual-stages", 1))
sys.exit(failed)
