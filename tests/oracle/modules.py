"""modules.py TRIVIUM: modules of multi-token prediction that trivium trained and wrote, read by transformers.

A small model with random weights is converted, trained for three steps and written in shards; the loss of the fourth step
is trivium's, and computed again from what transformers' MtpModel makes of the files. Prints both.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import multi_token
import torch
from make_cases import CASES, SIZES, write_case

TOLERANCE = 1e-5
SHARE = 0.3
STEPS = 3


def compare(trivium, name):
    size = SIZES["full"]

    def run(*arguments):
        subprocess.run([trivium, *map(str, arguments)], cwd=folder, check=True, capture_output=True)

    def train(steps):
        run("run", "--model", "case/config.json", "--mtp", depth, "--mtp-loss-scale", SHARE, "--global-batch",
            size["batch"], "--corpus", "case/tokens.bin", "--steps", steps, "--precision", "fp32", "--learning-rate", 0.003,
            "--warmup-steps", 0, "--checkpoint", "begun", "--resume", "--record", "record.json", "--force")
        return json.loads((folder / "record.json").read_text())["steps"][-1]["loss"]

    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        torch.manual_seed(5)
        model = CASES[name](size)
        kind, depth = type(model), model.config.num_mtp_layers
        write_case(folder / "case", model, size)
        before = json.loads((folder / "case" / "expected.json").read_text())["losses"][0]
        run("checkpoint", "convert", "case", "begun", "--mtp", depth)
        train(STEPS)
        run("checkpoint", "convert", "begun", "written/model.safetensors", "--shard-size", "300 kB")
        shards = len(list((folder / "written").glob("model-*.safetensors")))
        ours = train(STEPS + 1)
        tokens = torch.frombuffer(bytearray((folder / "case" / "tokens.bin").read_bytes()), dtype=torch.int16).long()
        ids, labels = (t.view(size["batch"], size["sequence"]) for t in (tokens[:-1], tokens[1:]))
        states, main = multi_token.read_by_transformers(kind, folder / "written", ids, labels)
        theirs = float(multi_token.loss_after(states, main.lm_head, labels, SHARE / depth))
        apart = abs(ours - theirs) / theirs
        print(f"{name},{shards},{before:.6f},{ours:.6f},{theirs:.6f},{apart:.1e}", flush=True)
        return apart <= TOLERANCE and before - ours > 100 * TOLERANCE


def main():
    trivium = pathlib.Path(sys.argv[1]).absolute()
    torch.set_num_threads(1)
    print("case,shards,loss_at_first,trivium,transformers,apart")
    agree = [compare(trivium, name) for name in ("deepseek-v3-mtp", "glm4-moe-mtp")]
    sys.exit(0 if all(agree) else 1)


if __name__ == "__main__":
    main()
