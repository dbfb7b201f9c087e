"""quantized.py TRIVIUM: released weights in 8 and 4 bits, as trivium and as transformers and PyTorch read them.

Two folders of the weights of one small model: one with numbers in the form of the release (MXFP4 of gpt-oss, E4M3 with a
scale for 128 x 128 of DeepSeek-V3), one with what the others make of these numbers in 32 bits. trivium converts both, to
the same bytes. Prints how many weights were compared.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
from make_cases import CASES, as_saved
from safetensors.torch import load_file, save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

SIZE = dict(vocab=251, hidden=192, layers=2, heads=4, sequence=64, batch=8)
BLOCK = 128


def mxfp4(name, tensor, files):
    """Random nibbles and powers of two where the experts of gpt-oss are."""
    if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
        return None
    experts, rows, columns = tensor.shape
    blocks = torch.randint(0, 256, (experts, columns, rows // 32, 16), dtype=torch.uint8)
    scales = torch.randint(114, 124, (experts, columns, rows // 32), dtype=torch.uint8)
    files[name + "_blocks"], files[name + "_scales"] = blocks, scales
    return convert_moe_packed_tensors(blocks.clone(), scales.clone(), dtype=torch.float32).cpu()


def fp8(name, tensor, files):
    """Matrices of layers, but not the router's, rounded to E4M3 by blocks."""
    if tensor.dim() != 2 or ".layers." not in name or name.endswith("mlp.gate.weight"):
        return None
    rows, columns = tensor.shape
    tiles = (-(-rows // BLOCK), -(-columns // BLOCK))
    scales = torch.empty(tiles)
    values = torch.empty(rows, columns, dtype=torch.float8_e4m3fn)
    back = torch.empty(rows, columns)
    for i in range(tiles[0]):
        for j in range(tiles[1]):
            at = (slice(i * BLOCK, (i + 1) * BLOCK), slice(j * BLOCK, (j + 1) * BLOCK))
            scales[i, j] = tensor[at].abs().max() / torch.finfo(torch.float8_e4m3fn).max
            values[at] = (tensor[at] / scales[i, j]).to(torch.float8_e4m3fn)
            back[at] = values[at].float() * scales[i, j]
    files[name], files[name + "_scale_inv"] = values, scales
    return back


def compare(trivium, case, form):
    torch.manual_seed(5)
    model = CASES[case](SIZE).float()
    saved = as_saved(model, dict(model.named_parameters()))
    packed, plain, count = {}, {}, 0
    for name, tensor in saved.items():
        tensor = tensor.detach()
        back = form(name, tensor, packed)
        plain[name] = tensor if back is None else back.contiguous()
        if back is None:
            packed[name] = tensor
        else:
            assert back.shape == tensor.shape, (name, back.shape, tensor.shape)
            count += back.numel()
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        for kind, tensors in dict(packed=packed, plain=plain).items():
            (folder / kind).mkdir()
            model.config.save_pretrained(folder / kind)
            save_file(tensors, folder / kind / "model.safetensors")
            subprocess.run([trivium, "checkpoint", "convert", folder / kind, folder / f"{kind}.safetensors"], check=True,
                           capture_output=True)
        ours, theirs = load_file(folder / "packed.safetensors"), load_file(folder / "plain.safetensors")
        assert ours.keys() == theirs.keys()
        unlike = [name for name in ours if not torch.equal(ours[name], theirs[name])]
        assert not unlike, unlike
    finally:
        shutil.rmtree(folder)
    print(f"{case}: {count:,} weights of {form.__name__} read as by "
          f"{'transformers' if form is mxfp4 else 'PyTorch'}, {len(ours)} tensors alike")


def main():
    compare(sys.argv[1], "gpt-oss", mxfp4)
    compare(sys.argv[1], "deepseek-v3", fp8)


if __name__ == "__main__":
    main()
