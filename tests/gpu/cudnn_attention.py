"""Times of cuDNN's fused causal attention in bf16, through PyTorch, for the shapes of bench_cuda: a line each of name,
shape and microseconds. Exits with 77 where there is no PyTorch with cuDNN and a GPU."""

import sys

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention
except ImportError:
    sys.exit(77)

SHAPES = ((32, 1024, 12, 12, 64), (8, 1024, 25, 25, 64), (2, 4096, 32, 8, 128), (8, 2048, 16, 16, 128))


def microseconds(work, runs=30, warm_up=5):
    """The median by events of the device."""
    for _ in range(warm_up):
        work()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(runs)]
    for begin, end in events:
        begin.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return sorted(begin.elapsed_time(end) for begin, end in events)[runs // 2] * 1e3


def main():
    if not torch.cuda.is_available():
        sys.exit(77)
    torch.manual_seed(1)
    for samples, sequence, heads, kv_heads, dim in SHAPES:

        def operand(count):
            x = torch.randn(samples, sequence, count, dim, device="cuda", dtype=torch.bfloat16)
            return x.transpose(1, 2).requires_grad_()

        q, k, v = operand(heads), operand(kv_heads), operand(kv_heads)

        def forward():
            return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != kv_heads)

        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            with torch.no_grad():
                times = [("attention", microseconds(forward))]
            y = forward()
            dy = torch.randn_like(y)
            times.append(
                ("attention_backward", microseconds(lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)))
            )
        for name, time in times:
            print(f"{name} B{samples} S{sequence} H{heads}/{kv_heads} D{dim} {time:.1f}")


main()
