"""Every reader of the program: what it reads well, damaged."""
import gzip
import json
import os
import pickle
import shutil
import sqlite3
import zlib
from dataclasses import dataclass, field

from judge import judge, run
from mutate import mutated

CODES = frozenset({0, 2, 3, 4})  # what a file may end a command with


@dataclass
class Reader:
    """`seeds`: files below seeds/ that are read well. `words`: of the command, {} the damaged file. With `folder` the
    damaged file takes its place in a copy of that folder, which {} then is. `environment`: variables, also with {}."""
    seeds: list
    words: list
    folder: str = ""
    environment: dict = field(default_factory=dict)
    stdin: bool = False
    then: tuple = ()  # words of a command that must take what the first one wrote
    traps: bool = True  # whether files that were made to take time and memory are tried as well


JOB = ["--model", "seeds/toy.json", "--cluster", "seeds/node.json", "--global-batch", "4", "--micro-batch", "1"]
HERE = ["--model", "seeds/toy.json", "--global-batch", "4", "--cluster"]
CALIBRATE = ["calibrate", "--base", "dgx-h100-80gb", "-o", "out.json", "--force"]
TOKENIZE = ["tokenize", "seeds/text.txt", "-o", "out.bin", "--force"]
PROFILE = ("profiles", "out.json")
IMPORT = ["import", "{}", "--model", "gpt2-124m", "--cluster", "dgx-a100-80gb:2", "-o", "out.json", "--force"]
PLAN = ("simulate", "out.json")
TRAIN = ["run", *JOB, "--ranks", "1", "--timeline-steps", "0", "--steps"]
STEP = "ck/step-00000002/"
READERS = {
    "plan": Reader(["plan.json", "plan-split.json"], ["simulate", "{}"]),
    "plan from standard input": Reader(["plan.json"], ["simulate", "-"], stdin=True, traps=False),
    "plan, compared": Reader(["plan.json", "plan-split.json"], ["compare", "seeds/plan.json", "{}"]),
    "plan, exported": Reader(["plan-split.json"], ["export", "{}", "--to", "megatron"]),
    "plan, explained": Reader(["plan-split.json"], ["explain", "{}"]),
    "plan result": Reader(["result.json"], ["simulate", "{}"]),
    "model": Reader(["model.json", "toy.json", "mixture.json"], ["models", "{}"]),
    "model of a job": Reader(["toy.json", "mixture.json"],
                             ["simulate", "--model", "{}", "--cluster", "seeds/node.json", "--global-batch", "4"]),
    "Hugging Face config.json": Reader(["hf/config.json", "llama.json", "falcon.json", "mixtral.json"], ["models", "{}"]),
    "hardware node": Reader(["node.json", "gpu-node.json", "based-node.json"], ["profiles", "{}"]),
    "hardware node, planned on": Reader(["node.json", "gpu-node.json", "based-node.json"], ["plan", *HERE, "{}"]),
    "this machine's profile": Reader(["data/trivium/profiles/this-machine.json"], ["simulate", *HERE, "this-machine"],
                                     folder="data", environment={"XDG_DATA_HOME": "{}"}, traps=False),
    "stack": Reader(["data/trivium/stacks/own.json"], ["stacks", "own"], folder="data", environment={"XDG_DATA_HOME": "{}"},
                    traps=False),
    "stack of a job": Reader(["data/trivium/stacks/own.json"],
                             ["simulate", "--model", "seeds/toy.json", "--cluster", "generic-cpu", "--global-batch", "16", "--stack", "own"],
                             folder="data", environment={"XDG_DATA_HOME": "{}"}, traps=False),
    "cluster": Reader(["cluster.json", "linked.json"], ["simulate", "--model", "seeds/toy.json", "--cluster", "{}", "--data", "16", "--global-batch",
                                                          "16", "--micro-batch", "1"]),
    "run record": Reader(["run.json"], ["replan", "{}", "--json"]),
    "run record, validated": Reader(["run.json"], ["validate", "seeds/plan-run.json", "{}"]),
    "run record, calibrated": Reader(["run.json"], ["calibrate", "{}", "-o", "out.json", "--force"], then=PROFILE),
    "run records of a folder": Reader(["history/run.json"], ["validate", "--history", "{}"], folder="history", traps=False),
    "trace of ours": Reader(["trace.json"], ["calibrate", "{}", "-o", "out.json", "--force"], then=PROFILE),
    "nccl-tests": Reader(["nccl_all_reduce.txt"],
                         [*CALIBRATE, "{}"], then=PROFILE),
    "nccl-tests JSON": Reader(["nccl_reduce_scatter.json"], [*CALIBRATE, "{}"], then=PROFILE),
    "topology": Reader(["topo_h100.txt"], [*CALIBRATE, "{}"], then=PROFILE),
    "Kineto": Reader(["kineto.pt.trace.json"], [*CALIBRATE, "{}"], then=PROFILE),
    "Kineto, packed": Reader(["kineto.pt.trace.json.gz"], [*CALIBRATE, "{}"], then=PROFILE),
    "Kineto, explained": Reader(["rank0.pt.trace.json.gz"],
                                ["explain", "auto", "--model", "seeds/llama-10m.json", "--cluster", "dgx-a100-80gb:1",
                                 "--trace", "{}", "seeds/rank1.pt.trace.json.gz"]),
    "Flight Recorder": Reader(["flight_missing_rank_0", "flight_disagree_rank_1"], ["explain", "auto", "--trace", "{}"]),
    "memory snapshot": Reader(["snapshot.pickle"], ["explain", "auto", "--trace", "{}"]),
    "torchtitan log": Reader(["torchtitan.log"], ["validate", "seeds/plan.json", "{}"]),
    "Nsight Systems": Reader(["nsight.sqlite"], [*CALIBRATE, "{}"], then=PROFILE),
    "Megatron log": Reader(["megatron.log"], ["calibrate", "seeds/gpt3.json", "{}", "-o", "out.json", "--force"],
                           then=PROFILE),
    "Megatron log of cores": Reader(["megatron_cpu.log"], [*CALIBRATE, "seeds/two.json", "{}"], then=PROFILE),
    "DeepSpeed log": Reader(["deepspeed.log"], ["calibrate", "seeds/ds-plan.json", "{}", "-o", "out.json", "--force"],
                            then=PROFILE),
    "published runs": Reader(["runs.csv"], ["validate", "--runs", "{}", "--json"]),
    "published runs, fitted": Reader(["runs.csv"], ["calibrate", "--runs", "{}", "-o", "out", "--no-leave-one-out"]),
    "measured kernels": Reader(["gemm.csv", "deepbench.csv", "nccl.csv"],
                               ["calibrate", "--runs", "seeds/runs.csv", "--micro", "{}", "-o", "out", "--no-leave-one-out"]),
    "text corpus": Reader(["text.txt"], [*TRAIN, "1", "--corpus", "{}"]),
    "token file": Reader(["tokens.bin"], [*TRAIN, "1", "--corpus", "{}"]),
    "token file, validation": Reader(["tokens.bin"], [*TRAIN, "1", "--corpus", "seeds/text.txt", "--validation", "{}"]),
    "vocabulary": Reader(["vocab.json"], [*TOKENIZE, "--vocabulary", "{}", "--merges", "seeds/merges.txt"]),
    "merges": Reader(["merges.txt"], [*TOKENIZE, "--vocabulary", "seeds/vocab.json", "--merges", "{}"]),
    "text to tokenize": Reader(["text.txt"], ["tokenize", "{}", "-o", "out.bin", "--force"]),
    "safetensors": Reader(["hf/model.safetensors", STEP + "rank-00000.safetensors"], ["checkpoint", "inspect", "{}"]),
    "safetensors, converted": Reader(["hf/model.safetensors"],
                                     ["checkpoint", "convert", "{}", "new.safetensors", "--force", "--model",
                                      "seeds/hf/config.json"]),
    "Hugging Face folder": Reader(["hf/config.json", "hf/model.safetensors"],
                                  ["checkpoint", "convert", "{}/model.safetensors", "new.safetensors", "--force"], folder="hf",
                                  traps=False),
    "index of shards": Reader(["shards/model.safetensors.index.json", "shards/model-00001-of-00002.safetensors"],
                              ["checkpoint", "convert", "{}", "new.safetensors", "--force"], folder="shards", traps=False),
    "adapters of PEFT": Reader(["peft/adapter_config.json", "peft/adapter_model.safetensors"],
                               ["checkpoint", "convert", "seeds/hf/model.safetensors", "new.safetensors", "--force",
                                "--adapters", "{}"], folder="peft", traps=False),
    "checkpoint's manifest": Reader([STEP + "checkpoint.json"], ["checkpoint", "inspect", "{}"], folder="ck", traps=False),
    "checkpoint's shard": Reader([STEP + "rank-00000.safetensors", "ck/latest"], ["checkpoint", "inspect", "{}"],
                                 folder="ck", traps=False),
    "checkpoint, sampled": Reader([STEP + "checkpoint.json", STEP + "rank-00000.safetensors"],
                                  ["sample", "--checkpoint", "{}", "--prompt", "In", "--tokens", "2"], folder="ck",
                                  traps=False),
    "checkpoint, converted": Reader([STEP + "checkpoint.json", STEP + "rank-00000.safetensors"],
                                    ["checkpoint", "convert", "{}", "new.safetensors", "--force"], folder="ck",
                                    traps=False),
    "checkpoint, resumed": Reader([STEP + "checkpoint.json", STEP + "rank-00000.safetensors", "ck/latest"],
                                  [*TRAIN, "3", "--corpus", "seeds/text.txt", "--checkpoint", "{}", "--resume"],
                                  folder="ck", traps=False),
    "Megatron script": Reader(["launch.sh"], IMPORT, then=PLAN),
    "DeepSpeed JSON": Reader(["ds.json", "export-ds.json"], IMPORT, then=PLAN),
}


def make_seeds(program, place, tree):
    """Files that are read well, in `place`/seeds; each reader is held to that."""
    seeds = os.path.join(place, "seeds")
    os.makedirs(os.path.join(seeds, "hf"))
    os.makedirs(os.path.join(seeds, "history"))
    at = lambda *names: os.path.join(seeds, *names)

    def trivium(*words):
        outcome = run([program, *words], place)
        if outcome.code != 0:
            raise RuntimeError(f"{' '.join(words)}: exit {outcome.code}: {outcome.err.decode(errors='replace')}")
        return outcome.out

    def write(name, document):
        with open(at(name), "w") as file:
            json.dump(document, file)

    with open(at("text.txt"), "w") as text:
        text.writelines(f"In the beginning was the Word, and line {i}.\n" for i in range(100))
    toy = {"schema": "trivium.model/1", "name": "toy", "source": "drawn up for this", "layers": 2, "hidden": 16, "heads": 2,
           "vocab": 256, "max_sequence": 32}
    write("toy.json", toy)
    write("mixture.json", toy | {"linear_bias": False, "experts": {"count": 4, "top_k": 2, "every": 2,
                                                                   "capacity_factor": 1.25}})
    shutil.copy(os.path.join(tree, "models", "gpt-tiny.json"), at("model.json"))
    profiles = os.path.join(tree, "hardware_profiles")
    shutil.copy(os.path.join(profiles, "generic-cpu.json"), at("node.json"))
    shutil.copy(os.path.join(profiles, "dgx-a100-80gb.json"), at("gpu-node.json"))
    write("based-node.json", {"schema": "trivium.hardware/1", "name": "mine", "base": "generic-cpu"})
    with open(at("gpu-node.json")) as file:
        node = json.load(file)
    write("cluster.json", {"schema": "trivium.cluster/1", "name": "two", "groups": [{"node": node, "count": 2}]})
    write("linked.json", {"schema": "trivium.cluster/1", "name": "two sites", "groups": [
        {"node": "dgx-a100-80gb", "count": 1}, {"node": "dgx-a100-40gb", "count": 1}],
        "links": [{"between": [0, 1], "bandwidth": "10 Gb/s", "latency": "1 ms", "source": "this test"}]})
    os.makedirs(at("data", "trivium", "stacks"))
    write("data/trivium/stacks/own.json", {
        "schema": "trivium.stack/1", "name": "own", "description": "Ours", "base": "megatron", "family": "", "issue": 2.5,
        "logit_bytes": 4, "bucket_elements": 1000, "expert_dispatch": "deepep", "peer_buffers": True,
        "sources": {f"/{flag}": "measured" for flag in ("issue", "logit_bytes", "bucket_elements", "expert_dispatch",
                                                        "peer_buffers")}})
    os.makedirs(at("data", "trivium", "profiles"))
    shutil.copy(at("node.json"), at("data", "trivium", "profiles", "this-machine.json"))
    job = ["--model", "seeds/toy.json", "--cluster", "seeds/node.json", "--global-batch", "4"]
    trivium("plan", *job, "-o", "seeds/plan.json")
    trivium("plan", *job, "--ranks", "1", "--micro-batch", "1", "-o", "seeds/plan-run.json")
    trivium("plan", "--model", "gpt2-124m", "--cluster", "dgx-a100-80gb", "--global-batch", "16", "--tensor", "2", "--pipeline",
            "2", "--virtual-stages", "2", "--schedule", "interleaved", "--data", "2", "-o", "seeds/plan-split.json")
    with open(at("result.json"), "wb") as result:
        result.write(trivium("plan", *job, "--best", "2", "--json"))
    trivium("run", "seeds/plan-run.json", "--corpus", "seeds/text.txt", "--steps", "2", "--checkpoint", "seeds/ck",
            "--record", "seeds/run.json", "--trace", "seeds/trace.json")
    shutil.copy(at("run.json"), at("history", "run.json"))
    trivium("tokenize", "seeds/text.txt", "-o", "seeds/tokens.bin")
    trivium("checkpoint", "convert", "seeds/ck", "seeds/hf/model.safetensors")
    trivium("checkpoint", "convert", "seeds/ck", "seeds/shards/model.safetensors", "--shard-size", "25 kB")
    trivium("checkpoint", "convert", "seeds/hf/model.safetensors", "seeds/begun")
    trivium("run", *job, "--ranks", "1", "--micro-batch", "1", "--corpus", "seeds/text.txt", "--steps", "1", "--checkpoint",
            "seeds/begun", "--resume", "--lora-rank", "2", "--lora-alpha", "4")
    trivium("checkpoint", "convert", "seeds/begun", "seeds/peft/adapter_model.safetensors")
    gpt2 = ["--model", "gpt2-124m", "--cluster", "dgx-a100-80gb:2", "--global-batch", "16"]
    trivium("export", *gpt2, "--to", "megatron", "-o", "seeds/launch.sh")
    trivium("export", *gpt2, "--to", "deepspeed", "-o", "seeds/export-ds.json")
    trivium("plan", "--model", "gpt3-13b", "--cluster", "dgx-h100-80gb:2", "--sequence", "2048", "--tensor", "8",
            "--pipeline", "2", "--data", "1", "--global-batch", "64", "-o", "seeds/gpt3.json")
    trivium("plan", "--model", "gpt2-124m", "--cluster", "dgx-h100-80gb:8", "--micro-batch", "4", "--tensor", "1",
            "--pipeline", "1", "--data", "64", "--global-batch", "256", "-o", "seeds/ds-plan.json")
    write("small.json", {"schema": "trivium.model/1", "name": "small", "source": "record_megatron.py", "layers": 2,
                         "hidden": 64, "heads": 4, "vocab": 128, "max_sequence": 64})
    trivium("plan", "--ranks", "2", "--model", "seeds/small.json", "--cluster", "dgx-h100-80gb", "--sequence", "64",
            "--global-batch", "16", "--pipeline", "1", "--tensor", "2", "--data", "1", "-o", "seeds/two.json")
    write("ds.json", {"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True},
                      "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8, "overlap_comm": True}})
    corpus = os.path.join(tree, "tests", "fuzz", "corpus", "model")
    for name in ["llama.json", "falcon.json"]:
        shutil.copy(os.path.join(corpus, name), at(name))
    write("mixtral.json", {"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
                           "num_key_value_heads": 2, "num_hidden_layers": 2, "num_local_experts": 4,
                           "num_experts_per_tok": 2, "vocab_size": 256, "max_position_embeddings": 64,
                           "rope_theta": 10000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu"})
    # GPT-2's stand-ins: printable bytes are themselves, the others characters from U+0100 on.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [256 + i for i in range(256 - len(printable))]
    write("vocab.json", {chr(c): i for i, c in enumerate(printable + others)} | {"th": 256, "the": 257})
    with open(at("merges.txt"), "w") as merges:
        merges.write("#version: 0.2\nt h\nth e\n")
    data = os.path.join(tree, "tests", "data")
    for name in ["nccl_all_reduce.txt", "nccl_reduce_scatter.json",
                 "topo_h100.txt", "kineto.pt.trace.json", "nsight.sqlite", "megatron.log", "megatron_cpu.log",
                 "deepspeed.log", "torchtitan.log", "flight_missing_rank_0", "flight_disagree_rank_1"]:
        shutil.copy(os.path.join(data, name), seeds)
    for rank in ("rank0", "rank1"):
        shutil.copy(os.path.join(data, "foreign", f"plain-{rank}.pt.trace.json.gz"), at(f"{rank}.pt.trace.json.gz"))
    shutil.copy(os.path.join(tree, "tests", "foreign", "llama-10m.json"), seeds)
    block = {"address": 4096, "size": 2 ** 20, "state": "active_allocated",
             "frames": [{"name": "forward", "filename": "model.py", "line": 1}]}
    event = {"action": "alloc", "addr": 4096, "size": 2 ** 20, "frames": block["frames"]}
    segment = {"device": 0, "address": 4096, "total_size": 2 ** 21, "segment_type": "large", "blocks": [block]}
    with open(at("snapshot.pickle"), "wb") as file:
        pickle.dump({"segments": [segment], "device_traces": [[event]]}, file)
    with open(at("kineto.pt.trace.json"), "rb") as plain, open(at("kineto.pt.trace.json.gz"), "wb") as packed:
        packed.write(gzip.compress(plain.read()))
    validation = os.path.join(tree, "validation")
    for table, name in [("runs/vtrain_single.csv", "runs.csv"), ("micro/gemm_sdp_a100pcie_simumax.csv", "gemm.csv"),
                        ("micro/gemm_v100_fp16_deepbench.csv", "deepbench.csv"),
                        ("micro/nccl_allreduce_single_node_vtrain.csv", "nccl.csv")]:
        with open(os.path.join(validation, table), "rb") as whole, open(at(name), "wb") as short:
            short.write(b"".join(whole.readlines()[:4]))
    refused = []
    for name, reader in READERS.items():
        for seed in reader.seeds:
            with open(at(seed), "rb") as file:
                outcome = attempt(program, place, reader, seed, file.read())
            if outcome.code != 0:
                refused.append(f"the reader of {name} does not take its seed {seed}: exit {outcome.code}: "
                               f"{outcome.err.decode(errors='replace')}")
    if refused:
        raise RuntimeError("\n".join(refused))


def _link_or_copy(source, target):
    """Training writes into its folder by renaming alone, so what is not damaged may be shared."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def attempt(program, place, reader, seed, data):
    """Lets the reader have `data` in place of one of its seeds; `place` has seeds/."""
    if reader.folder:
        given = os.path.join(place, "damaged")
        shutil.rmtree(given, ignore_errors=True)
        shutil.copytree(os.path.join(place, "seeds", reader.folder), given, copy_function=_link_or_copy)
        file = os.path.join(given, os.path.relpath(seed, reader.folder))
        os.unlink(file)
    else:
        # A checkpoint is known by its ending, and so are tables and databases.
        given = file = os.path.join(place, "damaged-file" + "".join(os.path.basename(seed).partition(".")[1:]))
    with open(file, "wb") as out:
        out.write(data)
    return _read(program, place, reader, given if reader.environment else os.path.relpath(given, place), file)


def _read(program, place, reader, given, file):
    environment = {**os.environ, **{name: value.replace("{}", given) for name, value in reader.environment.items()}}
    words = [program] + [word.replace("{}", given) for word in reader.words]
    if not reader.stdin:
        return run(words, place, environment)
    with open(file, "rb") as stdin:
        return run(words, place, environment, stdin)


def mutation(program, place, name, random):
    """One damaged file; returns the outcome and its bytes."""
    reader = READERS[name]
    seed = random.choice(reader.seeds)
    with open(os.path.join(place, "seeds", seed), "rb") as file:
        data = mutated(file.read(), random)
    outcome = attempt(program, place, reader, seed, data)
    # Whoever named no file that is damaged read it from standard input.
    judge(outcome, "-" if reader.stdin else "damaged", CODES)
    if reader.then and outcome.code == 0:
        taken = run([program, *reader.then], place)
        if judge(taken, codes=CODES - {3}) or taken.code == 3:
            outcome.faults += ["written wrong", *taken.faults]
            outcome.err += taken.err
    return outcome, data


TRAPS = ["bomb.sh", "bomb.json.gz", "small.json.gz", "evil.sqlite", "pipe", "/dev/zero", "/dev/full", "/dev/null", ".",
         "nothing", "deep.json", "many.json", "self.json", "many.safetensors", "/proc/self/mem", "loop", "socket"]


def make_traps(folder):
    """Files that were made to take memory or time."""
    def path(name):
        return os.path.join(folder, name)

    with open(path("bomb.sh"), "w") as script:
        script.write("A=xx\n" + "A=$A$A\n" * 40 + "python x.py --lr $A\n")
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    with open(path("bomb.json.gz"), "wb") as packed:
        packed.write(packer.compress(b'{"traceEvents":['))
        for _ in range(1500):
            packed.write(packer.compress(b"[" + b"0," * (1 << 19) + b"0],"))
        packed.write(packer.flush())
    with gzip.open(path("small.json.gz"), "wb") as packed:
        packed.write(b'{"traceEvents":[]}')
    with sqlite3.connect(path("evil.sqlite")) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE r(start) AS (SELECT 1 UNION ALL "
                         "SELECT start + 1 FROM r) SELECT start, start AS end, 0 AS deviceId, 1 AS demangledName FROM r")
    os.mkfifo(path("pipe"))
    os.symlink("loop", path("loop"))
    with open(path("deep.json"), "w") as deep:
        deep.write("[" * 100000)
    with open(path("many.json"), "w") as many:
        many.write("[")
        for _ in range(200):
            many.write("{}," * 100_000)
        many.write("{}]")
    with open(path("self.json"), "w") as itself:
        itself.write('"self.json"')
    header = json.dumps({f"t{i}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for i in range(100000)}).encode()
    with open(path("many.safetensors"), "wb") as tensors:
        tensors.write(len(header).to_bytes(8, "little") + header)


def trap(program, place, name, which, traps):
    """One of the traps, which lie in the folder `traps`."""
    given = which if which.startswith(("/", ".")) else os.path.join(traps, which)
    outcome = _read(program, place, READERS[name], given, given)
    judge(outcome, os.path.basename(which) if which != "." else None, CODES)
    return outcome
