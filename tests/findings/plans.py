"""Findings about what the search answers: F1, F2, F6 to F9, F13 and F19 of the report."""

import csv
import re

from harness import ROOT, Check, finding, seconds, split_words

LLAMA_405B = "--model llama3.1-405b --sequence 8192 --cluster dgx-h100-80gb:32 --global-batch 1024"
LLAMA_70B = "--model llama3-70b --sequence 8192 --global-batch 512"
BRIDGE_70B = f"plan {LLAMA_70B} --cluster dgx-h100-80gb:16 --for megatron-bridge"
FAMILY = ("tensor", "context", "pipeline", "expert")
FAMILY_TOLERANCE = 0.005
TRAINERS = ("megatron", "megatron-bridge", "torchtitan", "deepspeed", "fsdp2")
OVERLAP_FLAG = re.compile(r"tp-comm-overlap|enable_async_tensor_parallel *= *true|tp_comm_overlap *= *True")


def split_options(tensor, pipeline, data, stack):
    return f"--tensor {tensor} --pipeline {pipeline} --data {data} --stack {stack} --sequence-parallel --overlap-tensor"


@finding("F1", "tensor overlap only where a trainer can overlap")
def tensor_overlap(trivium):
    crossing = f"{LLAMA_405B} {split_options(16, 16, 1, 'megatron-bridge')}"
    refusal = trivium.refusal(f"simulate {crossing}")
    yield Check("lie on 2 nodes" in refusal, "TP16 over two nodes of H100 with overlap is refused")
    done = trivium.run(f"export {crossing} --to megatron-bridge")
    yield Check(done.returncode or not OVERLAP_FLAG.search(done.stdout), "and its export says no overlap")
    old = "--model gpt3-13b --cluster dgx1-v100-32gb:8 --global-batch 128 --recompute full"
    refusal = trivium.refusal(f"simulate {old} {split_options(8, 1, 8, 'megatron-core')}")
    yield Check("compute capability" in refusal, "on V100 it is refused, too")
    rack = "--model llama3-70b --sequence 8192 --cluster gb200-nvl72:2 --global-batch 288"
    refusal = trivium.refusal(f"simulate {rack} {split_options(8, 1, 18, 'megatron-core')}")
    yield Check(not refusal, "TP8 within a rack of GB200 may")
    best = trivium.best(f"plan {LLAMA_405B} --for megatron-bridge")
    tensor = best["plan"]["tensor"]
    yield Check(tensor <= 8, f"405B on 256 H100: {split_words(best['plan'])} {seconds(best['iteration_s'])}")


@finding("F1c", "no file asks for overlap without NVLink", quick=False)
def no_file_with_overlap(trivium):
    profiles = [p["name"] for p in trivium.json("profiles")["profiles"]]
    without = [name for name in profiles if re.search(r"pcie|v100|rtx-4090|l40s", name)]
    files = wrong = 0
    for name in without:
        for trainer in ("megatron", "megatron-bridge", "torchtitan"):
            job = f"--model llama-7b --sequence 2048 --cluster {name}:2 --global-batch 128"
            plan = f"f1-{name}-{trainer}.json"
            done = trivium.run(f"plan {job} --for {trainer} -o {plan}")
            if done.returncode:
                continue
            files += 1
            script = trivium.text(f"export {plan} --to {trainer}")
            wrong += bool(OVERLAP_FLAG.search(script))
    yield Check(files and not wrong, f"{wrong} of {files} files for {len(without)} machines without NVLink or before 8.0")


@finding("F2", "launch files ask for hosts of four GPUs on GB200")
def hosts_of_four(trivium):
    job = "--model llama3-70b --cluster gb200-nvl72:2 --global-batch 288"
    for trainer in TRAINERS:
        plan, script, again = (f"f2-{trainer}.{ending}" for ending in ("json", "txt", "again.json"))
        trivium.text(f"plan {job} --for {trainer} -o {plan}")
        text = trivium.text(f"export {plan} --to {trainer}")
        trivium.write(script, text)
        hosts = re.search(r"--(?:nodes|nnodes|num_nodes)[= ](\d+)", text)
        devices = re.search(r"--(?:gpus-per-node|nproc-per-node|num_gpus)[= ](\d+)", text)
        said = tuple(int(found[1]) if found else 0 for found in (hosts, devices))
        trivium.text(f"import {script} --from {trainer} --model llama3-70b --cluster gb200-nvl72:2 -o {again}")
        was, read = (trivium.json(f"simulate {name}")["iteration_s"] for name in (plan, again))
        same = abs(read / was - 1) < 1e-9
        yield Check(said == (36, 4), f"{trainer} {said[0]} x {said[1]}")
        yield Check(same, f"read back {'alike' if same else f'as {seconds(read)}, not {seconds(was)}'}")


@finding("F6", "torchtitan's experts inside FSDP are searched", quick=False)
def experts_inside_fsdp(trivium):
    job = "--model deepseek-v3 --sequence 4096 --cluster dgx-h100-80gb:128 --global-batch 8192"
    best = trivium.best(f"plan {job} --for torchtitan")
    plan = best["plan"]
    held = plan["expert"] > 1 and plan["data"] > 1 and plan["tensor"] <= 8
    yield Check(held, f"DeepSeek-V3 on 1,024 H100: {split_words(plan)} ZeRO-{plan['zero_stage']} "
                      f"{seconds(best['iteration_s'])}")


@finding("F7", "promises are held against published runs", quick=False)
def promises(trivium):
    bridge = "--for megatron-bridge --sequence 4096 --cluster dgx-h100-80gb"
    jobs = {"Mixtral": f"plan --model mixtral-8x7b {bridge}:16 --global-batch 512",
            "Qwen3-235B fp8": f"plan --model qwen3-235b-a22b {bridge}:32 --global-batch 8192 --fp8 current",
            "gpt-oss": f"plan --model gpt-oss-120b {bridge}:8 --global-batch 1280"}
    for name, command in jobs.items():
        answer = trivium.json(command)
        promise = answer.get("promise") or {}
        yield Check(bool(promise.get("words")), f"{name} MFU {100 * answer['best']['mfu']:.1f} % against "
                                                f"{100 * promise.get('measured_mfu', 0):.1f} % published")
        if name != "Mixtral":
            yield Check(bool(answer.get("published_run")), "names the model's best run")
    yield from of_every_device(trivium)


def of_every_device(trivium):
    """Kinds of device of runs_modern that train dense models in 16 bits: the line exists for each."""
    machines = set()
    for path in sorted(ROOT.glob("validation/runs_modern/*.csv")):
        for row in csv.DictReader(path.open(encoding="utf-8")):
            if row["precision"] == "bf16" and not row["experts"] and (row.get("task") or "pretrain") == "pretrain":
                machines.add(row["hardware"])
    shipped = {p["name"]: p["device"] for p in trivium.json("profiles")["profiles"]}
    by_device = {shipped[name]: name for name in sorted(machines) if name in shipped}
    silent = []
    for device, name in sorted(by_device.items()):
        job = f"plan --model llama3-8b --sequence 8192 --cluster {name}:1 --global-batch 72 --for megatron-bridge"
        done = trivium.run(job + " --json")
        if not done.returncode and '"promise"' not in done.stdout:
            silent.append(device)
    yield Check(not silent, f"said for {len(by_device) - len(silent)} of {len(by_device)} kinds of device")


@finding("F8", "64 of the 72 devices of a rack", quick=False)
def part_of_a_rack(trivium):
    job = "--model deepseek-v3 --sequence 4096 --cluster gb200-nvl72:4 --devices-per-node 64 --global-batch 4096"
    best = trivium.best(f"plan {job} --for megatron-bridge --fp8 mxfp8")
    yield Check(best["iteration_s"] <= 15, f"DeepSeek-V3 in mxfp8: {split_words(best['plan'])} "
                                           f"{seconds(best['iteration_s'])}, at most 15 s; published 13.2 to 16.6 s")


@finding("F9", "other families are the best of their families", quick=False)
def families(trivium):
    answer = trivium.json(BRIDGE_70B)
    worst = 0
    for row in answer["others"]:
        fixed = " ".join(f"--fix {field}={row['plan'][field]}" for field in FAMILY)
        best = trivium.best(f"{BRIDGE_70B} {fixed}")
        worst = max(worst, row["iteration_s"] / best["iteration_s"] - 1)
    yield Check(worst <= FAMILY_TOLERANCE, f"{len(answer['others'])} families at most {100 * worst:.2f} % from their best")
    plan = f"simulate {LLAMA_70B} --cluster dgx-h100-80gb:16 --stack megatron-bridge --tensor 8 --pipeline 2 --data 8"
    on, off = (trivium.text(f"{plan} --zero-stage 1 --recompute full --overlap-gradient-reduction={given} "
                            f"--overlap-parameter-gather={given}") for given in ("true", "false"))
    yield Check(on.splitlines()[0] != off.splitlines()[0], "plans without overlap say so")


@finding("F13", "ties leave overlap on; nothing below 0.5 % is recommended", quick=False)
def ties(trivium):
    job = "--model qwen3-235b-a22b --sequence 4096 --cluster dgx-h100-80gb:32 --global-batch 8192 --fp8 current"
    plan = trivium.best(f"plan {job} --for megatron-bridge -o q235.json")["plan"]
    overlap = plan["overlap"]
    on = plan["data"] == 1 or plan["zero_stage"] == 0 or (overlap["gradient_reduction"] and overlap["parameter_gather"])
    yield Check(on, f"{split_words(plan)} ZeRO-{plan['zero_stage']}: gradient reduction "
                    f"{overlap['gradient_reduction']}, parameter gather {overlap['parameter_gather']}")
    words = trivium.text("explain q235.json")
    changes = re.search(r"Change first:.*?\(([-+−]?[\d.]+) %\)", words, re.DOTALL)
    gain = abs(float(changes[1].replace("−", "-"))) if changes else None
    yield Check(gain is None or gain >= 0.5, f"explain recommends {'nothing' if gain is None else f'{gain:.1f} %'}")


@finding("F19", "devices that stay idle are named")
def idle_devices(trivium):
    job = "--model llama-13b --sequence 2048 --cluster dgx1-v100-32gb:8+dgx-a100-80gb:8 --global-batch 512"
    text = trivium.text(f"plan {job} --for megatron")
    found = re.search(r"\d+ v100-sxm-32gb not used", text)
    yield Check(bool(found), found[0] if found else "no line says that V100 are idle")
    page = (ROOT / "docs/explanation/cost-model.md").read_text(encoding="utf-8")
    yield Check("three times its forward" in page, "HFU with selective recomputation is explained")
