#!/usr/bin/env python3
"""Tests of the checker: exported files broken on purpose, one line each, with the finding that must name it.

checker_test.py TRIVIUM. What is exported is a plan given field by field, so no search decides what is tested."""

import functools
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import checker
import economy
from exported import Exported, options_of
from hardware import MACHINES, Cluster
from megatron_core import layout_stages
import torchtitan

TRIVIUM = sys.argv.pop(1)
H100, A100, GB200 = "dgx-h100-80gb:2", "dgx-a100-80gb:2", "gb200-nvl72:2"
DENSE = "--model llama3-8b --global-batch 64".split()
# 16 GPUs: TP4 PP2 DP2 with tensor overlap in nodes of eight.
OVERLAPPED = [*DENSE, *"--tensor 4 --pipeline 2 --data 2 --sequence-parallel --zero-stage 1 --overlap-tensor".split()]
# 16 GPUs: DP16, with 128 experts of Qwen3-30B over 16 ranks.
MIXTURE = "--model qwen3-30b-a3b --sequence 4096 --global-batch 64 --data 16 --expert 16 --zero-stage 1".split()
TITAN_MIXTURE = [*MIXTURE[:6], *"--data 16 --zero-stage 3 --fp8 current".split()]


@functools.cache
def export(trainer, cluster, *plan):
    done = subprocess.run(
        [TRIVIUM, "export", "--to", trainer, "--cluster", cluster, *plan], capture_output=True, text=True
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


def changed(text, *pairs):
    """Replaces every pattern; each has to be there."""
    for pattern, replacement in pairs:
        text, count = re.subn(pattern, replacement, text)
        if not count:
            raise AssertionError(f"{pattern} is not in the file")
    return text


def rules(text, trainer, cluster):
    return {finding.rule for finding in checker.check_file(text, trainer, cluster)}


class WholeFiles(unittest.TestCase):
    """Files that could start."""

    def test_have_no_findings(self):
        split = "--data 16 --zero-stage 3".split()
        for trainer in ("megatron", "megatron-bridge", "torchtitan", "fsdp2"):
            with self.subTest(trainer):
                self.assertEqual(rules(export(trainer, H100, *DENSE, *split), trainer, H100), set())
        self.assertEqual(rules(export("deepspeed", H100, *DENSE, *split), "deepspeed", H100), set())
        for trainer in ("megatron", "megatron-bridge"):
            with self.subTest(trainer):
                self.assertEqual(rules(export(trainer, H100, *OVERLAPPED), trainer, H100), set())
                self.assertEqual(rules(export(trainer, H100, *MIXTURE), trainer, H100), set())

    def test_a_plan_of_another_split_is_not_theirs(self):
        text = export("megatron", H100, *OVERLAPPED)
        plan = {"tensor": 8, "pipeline": 2, "context": 1, "expert": 1, "micro_batch": 1, "fp8": "delayed"}
        self.assertEqual(
            [str(found) for found in checker.check_file(text, "megatron", H100, plan)],
            [
                "not-the-plan: tensor 8 in the plan, 4 in the file",
                "not-the-plan: eight_bits True in the plan, False in the file",
            ],
        )


class FiveWays(unittest.TestCase):
    """Broken as plans once were: each is the reason of a launch that died or of money lost."""

    def test_overlap_over_nodes(self):
        # TP16 on nodes of eight: 32 heads, 8 of keys, 8,192 tokens all go by 16; only the buffers of two hosts do not.
        wide = (r"tensor(.)model(.)parallel(.)size( = | )4", r"tensor\1model\2parallel\3size\g<4>16")
        flat = (r"pipeline(.)model(.)parallel(.)size( = | )2", r"pipeline\1model\2parallel\3size\g<4>1")
        for trainer in ("megatron", "megatron-bridge"):
            with self.subTest(trainer):
                text = changed(export(trainer, H100, *OVERLAPPED), wide, flat)
                self.assertEqual(rules(text, trainer, H100), {"overlap-over-nodes"})
        text = changed(
            export("torchtitan", H100, *DENSE, *"--tensor 8 --data 2 --sequence-parallel --zero-stage 3".split()),
            ("tensor_parallel_degree = 8", "tensor_parallel_degree = 16\nenable_async_tensor_parallel = true"),
            ("shard_degree = 2", "shard_degree = 1"),
            ("mixed_precision_param", 'dtype = "bfloat16"\nmixed_precision_param'),
            (r"local_batch_size = \d+", "local_batch_size = 1"),
        )
        self.assertIn("overlap-over-nodes", rules(text, "torchtitan", H100))

    def test_seventy_two_processes_in_a_host(self):
        text = export("megatron", GB200, *DENSE[:2], *"--global-batch 144 --data 144 --zero-stage 1".split())
        crowded = changed(
            text,
            (r"--nodes=\d+", "--nodes=2"),
            (r"--gpus-per-node=\d+", "--gpus-per-node=72"),
            (r"--nnodes \d+", "--nnodes 2"),
            (r"--nproc-per-node \d+", "--nproc-per-node 72"),
        )
        self.assertEqual(rules(crowded, "megatron", GB200), {"processes-in-host"})
        # 18 trays of four in each of two racks
        spread = changed(
            crowded,
            ("--nodes=2", "--nodes=36"),
            ("--gpus-per-node=72", "--gpus-per-node=4"),
            ("--nnodes 2", "--nnodes 36"),
            ("--nproc-per-node 72", "--nproc-per-node 4"),
        )
        self.assertEqual(rules(spread, "megatron", GB200), set())

    def test_experts_wider_than_the_world(self):
        # EP64 of 128 experts on 16 GPUs
        for trainer, pattern in {
            "megatron": "expert-model-parallel-size 16",
            "megatron-bridge": "expert_model_parallel_size = 16",
        }.items():
            with self.subTest(trainer):
                text = changed(export(trainer, H100, *MIXTURE), (pattern, pattern.replace("16", "64")))
                self.assertEqual(rules(text, trainer, H100), {"expert-groups"})

    def test_fp8_on_a100(self):
        fp8 = [*DENSE, *"--data 16 --zero-stage 1 --fp8 delayed".split()]
        for trainer in ("megatron", "megatron-bridge"):
            with self.subTest(trainer):
                text = export(trainer, H100, *fp8)
                self.assertEqual(rules(text, trainer, H100), set())
                self.assertEqual(rules(text, trainer, A100), {"fp8-device"})
        fp8 = [*DENSE, *"--data 16 --zero-stage 3 --fp8 current".split()]
        text = export("torchtitan", H100, *fp8)
        self.assertEqual(rules(text, "torchtitan", H100), set())
        self.assertEqual(rules(text, "torchtitan", A100), {"fp8-device"})
        # MXFP8 is Blackwell's
        fp8 = [*DENSE, *"--data 16 --zero-stage 1 --fp8 delayed".split()]
        text = changed(export("megatron", H100, *fp8), ("--fp8-recipe delayed", "--fp8-recipe mxfp8"))
        self.assertEqual(rules(text, "megatron", H100), {"fp8-device"})
        self.assertEqual(rules(text, "megatron", "dgx-b200:2"), set())

    def test_tensor_beyond_key_heads(self):
        # eight heads of keys: Megatron-Core repeats them for TP16; torchtitan and Megatron-DeepSpeed do not, and no one
        # takes TP12 of 96 heads
        text = changed(
            export("torchtitan", H100, *DENSE, *"--tensor 8 --data 2 --sequence-parallel --zero-stage 3".split()),
            ("tensor_parallel_degree = 8", "tensor_parallel_degree = 16"),
            ("shard_degree = 2", "shard_degree = 1"),
            (r"local_batch_size = \d+", "local_batch_size = 1"),
        )
        self.assertIn("tensor-kv-heads", rules(text, "torchtitan", H100))
        text = changed(
            export("deepspeed", H100, *DENSE, *"--tensor 8 --data 2 --zero-stage 1".split()),
            ("tensor-model-parallel-size 8", "tensor-model-parallel-size 16"),
        )
        self.assertIn("tensor-kv-heads", rules(text, "deepspeed", H100))
        text = changed(
            export("megatron", H100, *OVERLAPPED),
            ("tensor-model-parallel-size 4", "tensor-model-parallel-size 12"),
            ("num-attention-heads 32", "num-attention-heads 96"),
        )
        self.assertIn("tensor-kv-heads", rules(text, "megatron", H100))


# (trainer, plan, replacements, cluster, findings): other breaks, each one line of a trainer's own validation.
BREAKS = [
    (
        "megatron",
        OVERLAPPED,
        [("CUDA_DEVICE_MAX_CONNECTIONS=1", "CUDA_DEVICE_MAX_CONNECTIONS=8")],
        H100,
        {"connections"},
    ),
    ("megatron", OVERLAPPED, [(" --sequence-parallel", "")], H100, {"overlap-sequence-parallel"}),
    ("megatron", OVERLAPPED, [("--num-layers 32", "--num-layers 33")], H100, {"stage-layers"}),
    ("megatron", OVERLAPPED, [("global-batch-size 64", "global-batch-size 63")], H100, {"batch"}),
    ("megatron", OVERLAPPED, [("--nnodes 2", "--nnodes 3")], H100, {"sbatch-nodes", "more-than-cluster", "batch"}),
    ("megatron", OVERLAPPED, [("seq-length 8192", "seq-length 8190")], H100, {"sequence-parallel"}),
    ("megatron", OVERLAPPED, [("seq-length 8192", "seq-length 16384")], H100, {"positions"}),
    ("megatron", OVERLAPPED, [("--ffn-hidden-size 14336", "--ffn-hidden-size 14338")], H100, {"tensor-ffn"}),
    ("megatron", OVERLAPPED, [("--gpus-per-node=8", "--gpus-per-node=4")], H100, {"sbatch-gpus"}),
    ("megatron", OVERLAPPED, [("--ntasks-per-node=1", "--ntasks-per-node=8")], H100, {"sbatch-tasks"}),
    ("megatron", OVERLAPPED, [("--use-distributed-optimizer", "--overlap-param-gather")], H100, {"param-gather"}),
    ("megatron", OVERLAPPED, [("--bf16", "--bf16 --recompute-granularity full")], H100, {"recompute"}),
    ("megatron", OVERLAPPED, [("--bf16", "--bf16 --optimizer-cpu-offload")], H100, {"offload"}),
    (
        "megatron",
        OVERLAPPED,
        [
            (
                "--pipeline-model-parallel-size 2",
                "--pipeline-model-parallel-size 2 " "--pipeline-model-parallel-layout 'Et*16|t*15,L'",
            )
        ],
        H100,
        {"layout"},
    ),
    # 16 chunks of two layers; 32 micro-batches in groups of two, of 60 / 2 = 30; then of 31
    (
        "megatron",
        OVERLAPPED,
        [
            ("--bf16", "--bf16 --num-layers-per-virtual-pipeline-stage 2"),
            ("global-batch-size 64", "global-batch-size 62"),
        ],
        H100,
        {"virtual-micro-batches"},
    ),
    ("megatron", MIXTURE, [("--num-experts 128", "--num-experts 120")], H100, {"expert-parallel"}),
    ("megatron", MIXTURE, [("--moe-router-topk 8", "--moe-router-topk 1")], H100, {"router"}),
    ("megatron", MIXTURE, [("--disable-bias-linear", "")], H100, {"expert-bias-fusion"}),
    (
        "megatron",
        MIXTURE,
        [
            (
                "--bf16",
                "--bf16 --overlap-moe-expert-parallel-comm --recompute-granularity full "
                "--recompute-method uniform --recompute-num-layers 1",
            )
        ],
        H100,
        {"expert-overlap"},
    ),
    ("megatron", MIXTURE, [("--bf16", "--bf16 --delay-wgrad-compute")], H100, {"delay-wgrad"}),
    (
        "megatron",
        OVERLAPPED,
        [],
        "dgx1-v100-32gb:2",
        {"bf16-device", "flash-device", "overlap-without-multicast", "overlap-device"},
    ),
    ("megatron", OVERLAPPED, [], A100, {"overlap-without-multicast"}),
    ("megatron", OVERLAPPED, [("export CUDA", "export UB_SKIPMC=1\nexport CUDA")], A100, set()),
    ("megatron", OVERLAPPED, [], "h100-pcie-80gb:2", {"overlap-without-nvlink"}),
    (
        "megatron-bridge",
        OVERLAPPED,
        [(r"dataset.seq_length = 8192", "dataset.seq_length = 4096")],
        H100,
        {"dataset-sequence"},
    ),
    ("megatron-bridge", OVERLAPPED, [("bf16_mixed", "bf16_with_mxfp8_mixed")], H100, {"fp8-device"}),
    ("megatron-bridge", OVERLAPPED, [("bf16_mixed", "bf16_mixture")], H100, {"precision"}),
    (
        "deepspeed",
        [*DENSE, *"--pipeline 2 --data 8 --zero-stage 1".split()],
        [('"stage": 1', '"stage": 2'), ("--zero-stage 1", "--zero-stage 2")],
        H100,
        {"zero-pipeline"},
    ),
    (
        "deepspeed",
        [*DENSE, *"--data 16 --zero-stage 2".split()],
        [('"gradient_accumulation_steps": 4', '"gradient_accumulation_steps": 2')],
        H100,
        {"batch"},
    ),
    ("deepspeed", [*DENSE, *"--data 16 --zero-stage 2".split()], [("slots=8", "slots=4")], H100, {"hostfile-slots"}),
    (
        "deepspeed",
        [*DENSE, *"--data 16 --zero-stage 2".split()],
        [("--bf16", "--bf16 --sequence-parallel")],
        H100,
        set(),
    ),
    (
        "deepspeed",
        [*DENSE, *"--tensor 2 --data 8 --zero-stage 2".split()],
        [("--bf16", "--bf16 --sequence-parallel")],
        H100,
        {"connections"},
    ),
    (
        "deepspeed",
        [*DENSE, *"--data 16 --zero-stage 2".split()],
        [],
        "dgx1-v100-32gb:2",
        {"bf16-device", "flash-device"},
    ),
    (
        "torchtitan",
        [*DENSE, *"--data 16 --zero-stage 3".split()],
        [("shard_degree = 16", "shard_degree = 8")],
        H100,
        {"world-size"},
    ),
    (
        "torchtitan",
        [*DENSE, *"--data 16 --zero-stage 3".split()],
        [("seq_len = 8192", "seq_len = 8191")],
        H100,
        {"sequence"},
    ),
    (
        "torchtitan",
        [*DENSE, *"--data 16 --zero-stage 3".split()],
        [(r"\[parallelism\]", "[parallels]")],
        H100,
        {"unknown-name"},
    ),
    (
        "torchtitan",
        [*DENSE, *"--pipeline 4 --data 4 --zero-stage 2".split()],
        [(r"\"1F1B\"", '"InterleavedZeroBubble"')],
        H100,
        {"schedule-compile"},
    ),
    (
        "torchtitan",
        [*DENSE, *"--data 16 --zero-stage 3".split()],
        [("tensor_parallel_degree", "tensor_degree"), ('mode = "none"', 'mode = "some"')],
        H100,
        {"unknown-name", "unknown-value"},
    ),
    # 64 / 4 replicas = 16 micro-batches of one; of eight, two for four stages
    (
        "torchtitan",
        [*DENSE, *"--pipeline 4 --data 4 --zero-stage 2".split()],
        [("microbatch_size = 1", "microbatch_size = 8")],
        H100,
        {"schedule-micro-batches"},
    ),
    (
        "torchtitan",
        [*DENSE, *"--pipeline 4 --data 4 --zero-stage 2".split()],
        [(r'"layers.31", ', "")],
        H100,
        {"stages"},
    ),
    (
        "torchtitan",
        [*DENSE, *"--pipeline 2 --data 8 --zero-stage 2".split()],
        [
            ("replicate_degree = 1", "replicate_degree = 8"),
            ("shard_degree = 8", "shard_degree = 1"),
            ('name = "trivium"', 'name = "llama3"'),
        ],
        H100,
        {"replicas-alone", "runs-in-fp32"},
    ),
    (
        "torchtitan",
        [*DENSE, *"--data 16 --zero-stage 3 --fp8 mxfp8".split()],
        [("tensor_parallel_degree = 1", "tensor_parallel_degree = 2"), ("shard_degree = 16", "shard_degree = 8")],
        "dgx-b200:2",
        {"fp8-compile"},
    ),
    (
        "torchtitan",
        [*DENSE, *"--data 16 --zero-stage 3 --fp8 mxfp8".split()],
        [(r'\["quantize.linear.mx"\]', '["quantize.linear.mx", "quantize.linear.float8"]')],
        "dgx-b200:2",
        {"converter"},
    ),
    (
        "torchtitan",
        [*DENSE, *"--data 16 --zero-stage 3 --fp8 current".split()],
        [("filter_fqns", "filters")],
        H100,
        {"unknown-name"},
    ),
    # 14,360 columns are eights, no sixteens
    (
        "torchtitan",
        [*DENSE[2:], *"--model qwen3-8b --sequence 4096 --data 16 --zero-stage 3 --fp8 current".split()],
        [(r"hidden_dim=\d+", "hidden_dim=14360")],
        H100,
        {"fp8-shape"},
    ),
    ("torchtitan", TITAN_MIXTURE, [], H100, set()),
    ("torchtitan", TITAN_MIXTURE, [(', "quantize.grouped_mm.float8"', "")], H100, {"fp8-experts"}),
    ("torchtitan", TITAN_MIXTURE, [(r'fqns = \["experts"\]', "fqns = []")], H100, {"fp8-experts"}),
    ("torchtitan", TITAN_MIXTURE, [], "l40s:2", {"fp8-device"}),
    (
        "torchtitan",
        TITAN_MIXTURE,
        [("context_parallel_degree = 1", "context_parallel_degree = 2"), ("shard_degree = 16", "shard_degree = 8")],
        H100,
        {"fp8-experts"},
    ),
    # Llama 4 with replicas that do not shard, next to tensor ranks
    (
        "torchtitan",
        "--model llama4-scout --sequence 4096 --global-batch 64 --tensor 2 --sequence-parallel --data 8"
        " --zero-stage 3".split(),
        [("replicate_degree = 1", "replicate_degree = 8"), ("shard_degree = 8", "shard_degree = 1")],
        H100,
        {"replicas-alone", "runs-in-fp32"},
    ),
    (
        "fsdp2",
        [*DENSE, *"--data 16 --zero-stage 3".split()],
        [("DATA = 16", "DATA = 8")],
        H100,
        {"world-size", "shards"},
    ),
    (
        "fsdp2",
        [*DENSE, *"--data 16 --zero-stage 3".split()],
        [("GLOBAL_BATCH = 64", "GLOBAL_BATCH = 60")],
        H100,
        {"batch"},
    ),
]


class OtherBreaks(unittest.TestCase):
    def test_are_named(self):
        for trainer, plan, replacements, cluster, expected in BREAKS:
            with self.subTest(trainer=trainer, replacements=replacements, cluster=cluster):
                text = changed(export(trainer, H100, *plan), *replacements)
                self.assertEqual(rules(text, trainer, cluster), expected)


class Parts(unittest.TestCase):
    def test_widths_of_llamas_are_what_torchtitan_makes_of_them(self):
        # Flavors of torchtitan v0.2.2, and the widths of Meta's own configurations: Llama 3 8B 14,336; Llama 4 Scout
        # 8,192 in every layer; Maverick 16,384 and 8,192 in turns
        llama3 = {"dim": 4096, "multiple_of": 1024, "ffn_dim_multiplier": 1.3}
        llama4 = {"dim": 5120, "multiple_of": 2048, "ffn_dim_multiplier": 1.2, "moe_args": {}}
        self.assertEqual(torchtitan.widths_of(llama3), (14336, 0))
        self.assertEqual(torchtitan.widths_of({**llama4, "interleave_moe_layer_step": 1}), (0, 8192))
        self.assertEqual(torchtitan.widths_of(llama4), (16384, 8192))

    def test_layouts_repeat_layers_and_groups(self):
        # megatron/core/transformer/pipeline_parallel_layer_layout.py: "Et*3|(tt|)*2,tL"
        self.assertEqual(layout_stages("Et*3|(tt|)*2,tL"), ["Ettt", "tt", "tt", "tL"])

    def test_domains_of_racks_are_of_seventy_two(self):
        # Ranks 64 to 79 lie in two racks of 18 x 4; 72 is nine groups of eight.
        racks = Cluster.of("gb200-nvl72:2")
        self.assertEqual((racks.hosts, racks.gpus), (36, 144))
        self.assertTrue(racks.in_one_domain(8, 144, 4))
        self.assertFalse(racks.in_one_domain(16, 144, 4))
        # 16 hosts of each rack, so 64 ranks
        self.assertTrue(racks.in_one_domain(16, 128, 4, segment=16))
        self.assertTrue(Cluster.of("dgx-h100:2").in_one_domain(8, 16, 8))
        self.assertFalse(Cluster.of("rtx-4090:1").in_one_domain(2, 8, 8))

    def test_options_take_what_follows_them(self):
        self.assertEqual(
            options_of(["--a", "1", "--b=2", "--c_d", "-3", "--e"]), {"a": ["1"], "b": ["2"], "c-d": ["-3"], "e": []}
        )

    def test_scripts_are_read_as_bash_reads_them(self):
        file = Exported(
            "#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=8\nexport A=1 B=2\nunset C\ncat >x.toml <<'E'\nn = 3\nE\n"
            "$start torchrun --nnodes 2 --nproc-per-node 8 \\\n  -m titan --job.config_file x.toml\n"
        )
        self.assertEqual(file.sbatch, {"nodes": "2", "gpus-per-node": "8"})
        self.assertEqual(file.environment, {"A": "1", "B": "2", "C": None})
        self.assertEqual((file.toml(), file.program, file.launch_number("nnodes")), ({"n": 3}, "titan", 2))

    def test_variables_are_set_before_a_command_and_in_python_too(self):
        file = Exported(
            "# A=1 B=2 torchrun --nnodes 2 --nproc-per-node 8 THIS_FILE\nimport os\n"
            'os.environ["C"] = "3"\nos.environ.setdefault("D", "4")\n'
        )
        self.assertEqual(file.environment, {"A": "1", "B": "2", "C": "3", "D": "4"})

    def test_every_shipped_machine_is_known(self):
        listed = subprocess.run([TRIVIUM, "profiles", "--json"], capture_output=True, text=True, check=True).stdout
        names = set(re.findall(r'"name": "([^"]+)"', listed)) - {"generic-cpu"}
        self.assertEqual(names - set(MACHINES), set())

    def test_useful_work_is_six_flops_a_parameter_and_half_of_the_attention(self):
        # arXiv 2104.04473, equation 3, without the pass of recomputation: 72 B s l h^2 (1 + s / 6h), so 12 l h s a
        # token for attention, of which a causal mask needs half: 6 x 96 x 12,288 x 2,048 = 14,495,514,624.
        gpt3 = {
            "parameters": {"active": 175_000_000_000, "token_embedding": 600_000_000, "position_embedding": 25_000_000},
            "layers": 96,
            "heads": 96,
            "head_dim": 128,
        }
        self.assertEqual(economy.flops_of_token(gpt3, 2048), 6 * 174_375_000_000 + 14_495_514_624)


if __name__ == "__main__":
    unittest.main()
