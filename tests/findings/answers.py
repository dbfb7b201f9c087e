"""Findings about what is printed, and how sure it is: F4, F5, F10 to F12, F14 and F16 to F18 of the report."""

import json
import re

from harness import ROOT, Check, finding, seconds
from plans import BRIDGE_70B, LLAMA_70B, TRAINERS

ON_128 = f"{LLAMA_70B} --cluster dgx-h100-80gb:16"
MOST_LINES, COLUMNS = 25, 80


@finding("F4", "without --for the answer begins with the trainers")
def begins_with_trainers(trivium):
    text = trivium.text(f"plan {ON_128}")
    head = text.split("#", 1)[0]
    missing = [name for name in TRAINERS if not re.search(rf"^ *{name} ", head, re.MULTILINE)]
    yield Check(not missing, f"{len(TRAINERS) - len(missing)} of {len(TRAINERS)} trainers before the plan")
    yield Check("never run on several GPUs" in " ".join(text.split()), "our own runtime is said never to have run there")
    lines = trivium.text("plan --help")
    yield Check(all(name in lines for name in TRAINERS), "the help lists the names")
    for page in ("README.md", "docs/tutorial.md"):
        first = re.search(r"^\$ (trivium plan .*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        yield Check("--for" in first[1], f"{page} plans for a trainer first")


def interval(answer):
    return answer["iteration_interval_90_s"]


@finding("F5", "intervals that decide, on days and dollars too", quick=False)
def intervals(trivium):
    bridge = trivium.json(f"{BRIDGE_70B} -o f5.json")
    megatron = trivium.json(BRIDGE_70B.replace("megatron-bridge", "megatron"))
    ends = [interval(answer["best"])[1] for answer in (megatron, bridge)]
    yield Check(abs(ends[0] / ends[1] - 1) < 0.1, f"upper ends {seconds(ends[0])} and {seconds(ends[1])}")
    yield from copied_profile(trivium, bridge["best"])
    best = bridge["best"]
    low, high = interval(best)
    yield Check(low < best["iteration_expected_s"] < high, f"expected {seconds(best['iteration_expected_s'])}")
    whole = trivium.json(f"{BRIDGE_70B} --tokens 2T")["whole_training"]
    days, dollars = whole["seconds_interval_90"], whole["cost_interval_90_usd"]
    yield Check(days[0] < whole["seconds"] < days[1] and dollars[0] < whole["cost_usd"] < dollars[1],
                f"{days[0] / 86400:.1f} to {days[1] / 86400:.1f} days, "
                f"${dollars[0] / 1e6:.2f}M to ${dollars[1] / 1e6:.2f}M")
    dated = trivium.text(f"{BRIDGE_70B} --tokens 2T --deadline 30d")
    probability = re.search(r"with\s+probability\s+[\d.]+", dated)
    yield Check(bool(probability), f"the deadline {probability[0] if probability else 'has no probability'}")
    trivium.text(f"{BRIDGE_70B} --fix tensor=4 -o f5-other.json")
    trial = trivium.json("trial f5.json f5-other.json --launch 'run {plan}'")["trials"][0]
    theirs = [value for key, value in trial.items() if "interval" in key and isinstance(value, list)]
    same = any(all(abs(a / b - 1) < 1e-6 for a, b in zip(interval(best), given)) for given in theirs)
    yield Check(same, f"trial's interval {'is' if same else 'differs from'} plan's")


def copied_profile(trivium, best):
    profile = json.loads(trivium.text("profiles dgx-h100-80gb --template"))
    profile["name"] = "mine"
    trivium.write("mine.json", json.dumps(profile))
    copy = trivium.best(BRIDGE_70B.replace("dgx-h100-80gb:16", "mine.json:16"))
    ends = [interval(answer)[1] / answer["iteration_s"] for answer in (best, copy)]
    yield Check(abs(ends[0] / ends[1] - 1) < 1e-6, f"a renamed copy's upper end {ends[1]:.3f} of {ends[0]:.3f}")


@finding("F10", "MFU above what is possible is labelled")
def labelled_mfu(trivium):
    command = f"plan {ON_128} --for megatron-bridge --fp8 current"
    yield Check("MFU of bf16 peak" in trivium.text(f"{command} --all"), "the columns of an fp8 plan name the bf16 peak")
    yield Check(trivium.best(command)["mfu_peak"] == "bf16", "and mfu_peak does")


@finding("F11", "efficiency against the best count", quick=False)
def efficiency(trivium):
    answer = trivium.json("scale --model llama3-70b --sequence 8192 --cluster dgx-h100-80gb:128 --global-batch 1024")
    shares = [point["efficiency"] for curve in ("strong", "weak") for point in answer.get(curve, ()) if point]
    shares = [share for share in shares if share is not None]
    yield Check(shares and max(shares) <= 1 + 1e-9, f"{100 * min(shares):.1f} to {100 * max(shares):.1f} %")


@finding("F12", "an answer of 25 lines as wide as the terminal", quick=False)
def readable_answer(trivium):
    commands = (BRIDGE_70B, f"plan {ON_128}", f"{BRIDGE_70B} --tokens 2T",
                "plan --model mixtral-8x7b --sequence 4096 --cluster dgx-h100-80gb:16 --global-batch 512 --for megatron")
    bold = re.compile(r"\x1b\[[0-9;]*m")  # takes no column
    lines = [[bold.sub("", line) for line in trivium.on_terminal(command, COLUMNS)] for command in commands]
    most, widest = max(map(len, lines)), max(len(line) for answer in lines for line in answer)
    yield Check(most <= MOST_LINES, f"at most {most} lines")
    yield Check(widest <= COLUMNS, f"at most {widest} columns of {COLUMNS}")
    text = "\n".join(line for answer in lines for line in answer)
    yield Check("faster than 99.9" not in text, "no share of 99.901 %")


@finding("F14", "profiles say what they are for")
def profiles_for(trivium):
    header, *rows = trivium.text("profiles").splitlines()
    at = header.rfind("for")
    silent = [row.split()[0] for row in rows if row.strip() and not row[at:].strip()]
    yield Check(header.split()[-1] == "for" and not silent, f"{len(rows) - len(silent)} of {len(rows)} profiles say it")
    refusal = trivium.refusal("plan --model llama3-8b --cluster h100:16 --global-batch 64")
    yield Check('"dgx-h100"' in refusal, "h100 suggests dgx-h100")


@finding("F16", "names of repositories suggest shipped models")
def repository_names(trivium):
    refusal = trivium.refusal("plan --model meta-llama/Llama-3.1-70B-FP8 --cluster dgx-h100:16 --global-batch 64")
    yield Check('"llama3.1-70b"' in refusal, "meta-llama/Llama-3.1-70B-FP8 suggests llama3.1-70b")


@finding("F17", "BLOOM's config.json and Meta's 405B split")
def bloom_and_405b(trivium):
    # https://huggingface.co/bigscience/bloom/blob/main/config.json
    trivium.write("config.json", json.dumps({
        "model_type": "bloom", "n_layer": 70, "n_embed": 14336, "num_attention_heads": 112, "vocab_size": 250880,
        "apply_residual_connection_post_layernorm": False, "layer_norm_epsilon": 1e-05, "bias_dropout_fusion": True}))
    best = trivium.best("plan --model config.json --sequence 2048 --cluster dgx-a100-80gb:48 --global-batch 2048 "
                        "--for megatron")
    yield Check(best["iteration_s"] > 0, f"BLOOM on 384 A100: {seconds(best['iteration_s'])}")
    meta = ("simulate --model llama3.1-405b --sequence 8192 --cluster dgx-h100-80gb:128 --global-batch 1024 --tensor 8 "
            "--pipeline 16 --virtual-stages 8 --schedule interleaved --data 8 --zero-stage 1 --stack megatron-core")
    yield Check("stage_layers" in trivium.refusal(meta), "128 chunks of 126 layers point to stage_layers")
    layers = ",".join(["0", *["1"] * 126, "0"])
    done = trivium.run(f"{meta} --stage-layers {layers} --ignore-memory --json")
    if done.returncode:
        done = trivium.run(f"{meta} --stage-layers {layers} --json")
    yield Check(done.returncode == 0, "which runs" if done.returncode == 0 else done.stderr.strip()[:120])


@finding("F18", "the guide's figures are the program's")
def guide_figures(trivium):
    page = (ROOT / "docs/guides/planning.md").read_text(encoding="utf-8")
    for names, printed in re.findall(r"^\| (`[^|]*`) \| [^|]+ \| ([\d.]+) s \|", page, re.MULTILINE):
        for trainer in re.findall(r"`([^`]+)`", names):
            time = trivium.best(f"plan {ON_128} --for {trainer}")["iteration_s"]
            yield Check(abs(time - float(printed)) <= 0.05 + 1e-9, f"{trainer} {printed} s for {time:.2f} s")
