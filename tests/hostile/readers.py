"""Every reader of the program: a seed, and the command that reads it."""
import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import zlib

from judge import judge, run
from mutate import mutated

JOB = ["--model", "gpt-tiny", "--cluster", "this-machine", "--global-batch", "4", "--micro-batch", "1", "--sequence", "32"]
TEXT = "".join(f"In the beginning was the Word, and line {i}.\n" for i in range(200))


def make_seeds(program, place, tree):
    """Files that are read well, in `place`/seeds."""
    seeds = os.path.join(place, "seeds")
    os.makedirs(seeds)

    def trivium(*words):
        subprocess.run([program, *words], cwd=seeds, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    with open(os.path.join(seeds, "text.txt"), "w") as text:
        text.write(TEXT)
    trivium("run", *JOB, "--corpus", "text.txt", "--steps", "2", "--checkpoint", "ck", "--record", "run.json",
            "--trace", "trace.json")
    trivium("plan", "--model", "gpt-tiny", "--cluster", "this-machine", "--global-batch", "4", "-o", "plan.json")
    trivium("tokenize", "text.txt", "-o", "tokens.bin")
    trivium("checkpoint", "convert", "ck", "model.safetensors")
    trivium("export", "--model", "gpt2-124m", "--cluster", "dgx-a100-80gb:2", "--global-batch", "16", "--to", "megatron",
            "-o", "launch.sh")
    shutil.copy(os.path.join(seeds, "config.json"), os.path.join(seeds, "hf.json"))
    shutil.copy(os.path.join(tree, "models", "gpt-tiny.json"), os.path.join(seeds, "model.json"))
    shutil.copy(os.path.join(tree, "hardware_profiles", "generic-cpu.json"), os.path.join(seeds, "node.json"))
    with open(os.path.join(seeds, "cluster.json"), "w") as cluster:
        json.dump({"schema": "trivium.cluster/1", "name": "two",
                   "groups": [{"node": json.load(open(os.path.join(seeds, "node.json"))), "count": 2}]}, cluster)
    with open(os.path.join(seeds, "ds.json"), "w") as config:
        json.dump({"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True},
                   "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8, "overlap_comm": True}}, config)
    # GPT-2's stand-ins: printable bytes are themselves, the others characters from U+0100 on.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [256 + i for i in range(256 - len(printable))]
    with open(os.path.join(seeds, "vocab.json"), "w") as vocabulary:
        json.dump({chr(c): i for i, c in enumerate(printable + others)} | {"th": 256, "the": 257}, vocabulary)
    with open(os.path.join(seeds, "merges.txt"), "w") as merges:
        merges.write("#version: 0.2\nt h\nth e\n")
    data = os.path.join(tree, "tests", "data")
    for name in ["nccl_all_reduce.txt", "nccl_reduce_scatter.json", "topo_h100.txt", "kineto.pt.trace.json",
                 "kineto_cpu.pt.trace.json.gz", "nsight.sqlite", "megatron.log", "deepspeed.log"]:
        shutil.copy(os.path.join(data, name), seeds)
    with open(os.path.join(tree, "validation", "runs", sorted(os.listdir(os.path.join(tree, "validation", "runs")))[0]),
              "rb") as table, open(os.path.join(seeds, "runs.csv"), "wb") as short:
        short.write(b"".join(table.readlines()[:4]))
    return seeds


CALIBRATE = ["calibrate", "{}", "--base", "dgx-h100-80gb", "-o", "out.json", "--force"]
# reader: seed, the words of the command ({}: the damaged file)
READERS = {
    "plan": ("plan.json", ["simulate", "{}"]),
    "model": ("model.json", ["models", "{}"]),
    "HF config.json": ("hf.json", ["models", "{}"]),
    "hardware node": ("node.json", ["plan", "--model", "gpt-tiny", "--cluster", "{}", "--global-batch", "4"]),
    "cluster": ("cluster.json", ["plan", "--model", "gpt-tiny", "--cluster", "{}", "--global-batch", "4"]),
    "run record": ("run.json", ["replan", "{}", "--json"]),
    "trace of ours": ("trace.json", ["calibrate", "{}", "-o", "out.json", "--force"]),
    "nccl-tests": ("nccl_all_reduce.txt", CALIBRATE),
    "nccl-tests JSON": ("nccl_reduce_scatter.json", CALIBRATE),
    "topology": ("topo_h100.txt", CALIBRATE),
    "Kineto": ("kineto.pt.trace.json", CALIBRATE),
    "Kineto, packed": ("kineto_cpu.pt.trace.json.gz", CALIBRATE),
    "Nsight": ("nsight.sqlite", CALIBRATE),
    "Megatron log": ("megatron.log", ["calibrate", "seeds/plan.json", "{}", "-o", "out.json", "--force"]),
    "DeepSpeed log": ("deepspeed.log", ["calibrate", "seeds/plan.json", "{}", "-o", "out.json", "--force"]),
    "published runs": ("runs.csv", ["validate", "--runs", "{}", "--json"]),
    "token file": ("tokens.bin", ["run", *JOB, "--corpus", "{}", "--steps", "1"]),
    "vocabulary": ("vocab.json", ["tokenize", "seeds/text.txt", "-o", "out.bin", "--force", "--vocabulary", "{}",
                                  "--merges", "seeds/merges.txt"]),
    "merges": ("merges.txt", ["tokenize", "seeds/text.txt", "-o", "out.bin", "--force", "--vocabulary",
                              "seeds/vocab.json", "--merges", "{}"]),
    "safetensors": ("model.safetensors", ["checkpoint", "inspect", "{}"]),
    "Megatron script": ("launch.sh", ["import", "{}", "--model", "gpt2-124m", "--cluster", "dgx-a100-80gb:2", "--json"]),
    "DeepSpeed JSON": ("ds.json", ["import", "{}", "--model", "gpt2-124m", "--cluster", "dgx-a100-80gb:2", "--json"]),
}


def chosen_traps(folder):
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
    with open(path("deep.json"), "w") as deep:
        deep.write("[" * 100000)
    with open(path("many.json"), "w") as many:
        many.write("[" + "{}," * 20_000_000 + "{}]")
    with open(path("self.json"), "w") as itself:
        itself.write('"self.json"')
    header = json.dumps({f"t{i}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for i in range(100000)}).encode()
    with open(path("many.safetensors"), "wb") as tensors:
        tensors.write(len(header).to_bytes(8, "little") + header)
    return ["bomb.sh", "bomb.json.gz", "small.json.gz", "evil.sqlite", "pipe", "/dev/zero", "/dev/full", "/dev/null", ".",
            "nothing", "deep.json", "many.json", "self.json", "many.safetensors", "/proc/self/mem"]


def attack(program, place, table, random, inputs, only):
    traps = chosen_traps(place)
    for name, (seed, words) in READERS.items():
        if only and name not in only:
            continue
        with open(os.path.join(place, "seeds", seed), "rb") as file:
            data = file.read()
        suffix = ".safetensors" if seed.endswith(".safetensors") else "." + seed.split(".", 1)[1]

        def attempt(file, what):
            outcome = run([program] + [word.replace("{}", file) for word in words], place)
            judge(outcome, os.path.basename(file) if file[0] != "." else None)
            table.add(name, outcome, what)

        for number in range(inputs):
            file = "damaged" + suffix
            damaged = mutated(data, random)
            with open(os.path.join(place, file), "wb") as out:
                out.write(damaged)
            attempt(file, f"mutation {number}")
        for trap in traps:
            attempt(trap, trap)
