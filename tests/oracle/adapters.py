"""adapters.py TRIVIUM: adapters (LoRA) between PEFT and trivium, both ways, on small models with random weights.

For each model and choice of targets, PEFT's adapters, converted with the weights to a checkpoint, are merged into the
weights, and written as adapters again; transformers and PEFT then compute logits with each. Prints the largest difference
from the logits that PEFT had at first, relative to the largest of them, beside what the adapters change. The last column
is of adapters that trivium trained, those of every expert too: what PEFT computes with them, against the weights that
trivium merged.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

from make_cases import SIZES, deepseek_v3, gpt2, gpt_oss, llama, mixtral, qwen3, qwen3_moe

TOLERANCE = 1e-5  # fp32; merging rounds the weights
MODELS = {
    "gpt2": (gpt2, [["c_attn"], ["attn.c_proj"], ["c_attn", "c_proj", "c_fc"]]),
    "llama": (llama, [["q_proj", "v_proj"], ["o_proj"], ["up_proj"],
                      ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]]),
    "qwen3": (qwen3, ["all-linear"]),
    "mixtral": (mixtral, [["q_proj", "o_proj"]]),
    "qwen3_moe": (qwen3_moe, [["q_proj", "k_proj", "v_proj", "o_proj"]]),
    "deepseek_v3": (deepseek_v3, [["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"]]),
    "gpt_oss": (gpt_oss, [["q_proj", "v_proj"]]),
}
# PEFT 0.21 reads adapters of each expert's matrices into those of all experts together, and with them drops those of other
# MLPs whose matrices have the same names: their products are added to the weights here.
BY_HAND = {"deepseek_v3"}
# In its files all experts' matrices are one tensor, for whose adapters PEFT has other names.
WITHOUT_EXPERTS = {"gpt_oss": ["--lora-targets", "qkv,projection"]}


def logits_of(model, ids):
    with torch.no_grad():
        return model.eval()(ids).logits


def apart(a, b):
    return float((a - b).abs().max() / b.abs().max())


def with_adapters(model, targets, **more):
    adapted = peft.get_peft_model(model, peft.LoraConfig(
        r=4, lora_alpha=10, target_modules=targets, task_type="CAUSAL_LM",
        fan_in_fan_out=isinstance(model, transformers.GPT2LMHeadModel), **more))
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:  # zeros change nothing
                parameter.normal_(std=0.05)
    return adapted


def summed(folder):
    """The base model with the products of the factors of folder/apart added to its weights."""
    tensors = load_file(folder / "base" / "model.safetensors")
    factors = load_file(folder / "apart" / "adapter_model.safetensors")
    config = json.loads((folder / "apart" / "adapter_config.json").read_text())
    taken = 0
    for name in tensors:
        first = "base_model.model." + name.removesuffix(".weight") + ".lora_A.weight"
        if first not in factors:
            continue
        taken += 2
        tensors[name] += config["lora_alpha"] / config["r"] * factors[first.replace("lora_A", "lora_B")] @ factors[first]
    assert taken == len(factors), "adapters of matrices that the model lacks"
    (folder / "summed").mkdir()
    shutil.copy(folder / "base" / "config.json", folder / "summed")
    save_file(tensors, folder / "summed" / "model.safetensors", metadata={"format": "pt"})
    return folder / "summed"


def compare(trivium, name, build, targets, **more):
    def run(*arguments):
        subprocess.run([trivium, *map(str, arguments)], cwd=folder, check=True, capture_output=True)

    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        torch.manual_seed(5)
        model = build(SIZES["full"])
        model.save_pretrained(folder / "base")
        ids = torch.randint(0, SIZES["full"]["vocab"], (2, SIZES["full"]["sequence"]))
        plain = logits_of(model, ids)
        adapted = with_adapters(model, targets, **more)
        adapted.save_pretrained(folder / "theirs")
        expected = logits_of(adapted, ids)
        fresh = lambda: type(model).from_pretrained(folder / "base")  # noqa: E731

        run("checkpoint", "convert", "base", "tuned", "--adapters", "theirs")
        run("checkpoint", "convert", "tuned", "merged/model.safetensors")
        run("checkpoint", "convert", "tuned", "ours/adapter_model.safetensors")
        merged = logits_of(type(model).from_pretrained(folder / "merged"), ids)
        again = logits_of(peft.PeftModel.from_pretrained(fresh(), folder / "ours"), ids)

        lora = json.loads((folder / "ours" / "adapter_config.json").read_text())
        text = folder / "text.bin"
        torch.randint(0, SIZES["full"]["vocab"], (4000,)).numpy().astype("<u2").tofile(text)
        run("checkpoint", "convert", "base", "begun")
        run("run", "--model", "base/config.json", "--global-batch", 2, "--corpus", text, "--steps", 3, "--learning-rate",
            0.01, "--warmup-steps", 0, "--precision", "fp32", "--checkpoint", "begun", "--resume", "--lora-rank", 3,
            "--lora-alpha", 5, *WITHOUT_EXPERTS.get(name, []))
        run("checkpoint", "convert", "begun", "trained/model.safetensors")
        run("checkpoint", "convert", "begun", "apart/adapter_model.safetensors")
        one = logits_of(type(model).from_pretrained(folder / "trained"), ids)
        if name in BY_HAND:
            other = logits_of(type(model).from_pretrained(summed(folder)), ids)
        else:
            other = logits_of(peft.PeftModel.from_pretrained(fresh(), folder / "apart"), ids)
        figures = [apart(merged, expected), apart(again, expected), apart(other, one)]
        label = "+".join(targets) if isinstance(targets, list) else targets
        print(f"{name},{label},{lora['r']},{apart(plain, expected):.1e}," + ",".join(f"{f:.1e}" for f in figures) +
              f",{apart(plain, one):.1e}", flush=True)
        return max(figures) <= TOLERANCE and min(apart(plain, expected), apart(plain, one)) > 100 * TOLERANCE


def main():
    trivium = pathlib.Path(sys.argv[1]).absolute()
    torch.set_num_threads(1)
    print("model,targets,rank,adapters_change,merged,adapters,trained,training_changes")
    agree = [compare(trivium, name, build, targets)
             for name, (build, choices) in MODELS.items() for targets in choices]
    agree.append(compare(trivium, "llama-rslora", llama, ["q_proj"], use_rslora=True))
    sys.exit(0 if all(agree) else 1)


if __name__ == "__main__":
    main()
