"""adapters.py TRIVIUM: adapters (LoRA) between PEFT and trivium, both ways, on small models with random weights.

For each model and choice of targets, PEFT's adapters, converted with the weights to a checkpoint, are merged into the
weights, and written as adapters again; transformers and PEFT then compute logits with each. Prints the largest difference
from the logits that PEFT had at first, relative to the largest of them, beside what the adapters change. The last column
is of adapters that trivium trained: what PEFT computes with them, against the weights that trivium merged.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import peft
import torch
import transformers
from make_cases import SIZES, gpt2, llama, qwen3

TOLERANCE = 1e-5  # fp32; merging rounds the weights
MODELS = {
    "gpt2": (gpt2, [["c_attn"], ["attn.c_proj"], ["c_attn", "c_proj", "c_fc"]]),
    "llama": (llama, [["q_proj", "v_proj"], ["o_proj"], ["up_proj"],
                      ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]]),
    "qwen3": (qwen3, ["all-linear"]),
}


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
            "--lora-alpha", 5)
        run("checkpoint", "convert", "begun", "trained/model.safetensors")
        run("checkpoint", "convert", "begun", "apart/adapter_model.safetensors")
        one = logits_of(type(model).from_pretrained(folder / "trained"), ids)
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
