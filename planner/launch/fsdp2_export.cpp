// PyTorch alone: a script that shards a model of transformers with fully_shard (FSDP2), or copies it with DDP.
#include <fmt/format.h>

#include <algorithm>

#include "planner/launch/export_parts.h"

namespace trivium::planner::launch {
namespace {

using program::DType;
using program::Plan;
using program::Recompute;
using program::Storage;

// Follows the plan's own numbers, which the script has as constants.
constexpr const char* kScript = R"(
import os
import sys
import time

import numpy
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoConfig, AutoModelForCausalLM

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if GPU else torch.device("cpu")
WIDTHS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def whole_model(folder):
    config = AutoConfig.from_pretrained(folder)
    config.use_cache = False
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    if RECOMPUTE == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.train()


def sharded(model):
    replicas = DATA // SHARD
    shape, names = ((replicas, SHARD), ("replicate", "shard")) if replicas > 1 else ((SHARD,), ("shard",))
    mesh = init_device_mesh(DEVICE.type, shape, mesh_dim_names=names)
    policy = MixedPrecisionPolicy(param_dtype=WIDTHS[PRECISION], reduce_dtype=WIDTHS[REDUCE])
    for part in [*model.model.layers, model]:
        fully_shard(part, mesh=mesh, mp_policy=policy, reshard_after_forward=ZERO == 3)
    return model


def split(model):
    model = sharded(model) if ZERO > 0 else model
    model.to_empty(device=DEVICE)
    torch.manual_seed(SEED)
    model.init_weights()
    return model if ZERO > 0 or DATA == 1 else DistributedDataParallel(model, device_ids=[DEVICE] if GPU else None)


def samples(rank, vocabulary):
    text = numpy.memmap(sys.argv[2], dtype=numpy.uint32, mode="r") if len(sys.argv) > 2 else None
    random = numpy.random.default_rng(SEED + rank)
    while True:
        if text is None:
            rows = random.integers(vocabulary, size=(MICRO_BATCH, SEQUENCE))
        else:
            begins = random.integers(len(text) - SEQUENCE, size=MICRO_BATCH)
            rows = numpy.stack([text[begin : begin + SEQUENCE] for begin in begins])
        yield torch.from_numpy(rows.astype(numpy.int64)).to(DEVICE)


def main():
    dist.init_process_group("nccl" if GPU else "gloo")
    if dist.get_world_size() != DATA:
        sys.exit(f"this plan is for {DATA} processes, not {dist.get_world_size()}")
    if GPU:
        torch.cuda.set_device(DEVICE)
    model = split(whole_model(sys.argv[1]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=BETAS, eps=EPSILON,
                                  weight_decay=WEIGHT_DECAY, fused=GPU)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [torch.optim.lr_scheduler.LinearLR(optimizer, 1 / max(1, WARMUP), total_iters=WARMUP),
         torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, STEPS - WARMUP), MIN_LEARNING_RATE)],
        [WARMUP])
    data = samples(dist.get_rank(), AutoConfig.from_pretrained(sys.argv[1]).vocab_size)
    accumulate = GLOBAL_BATCH // (MICRO_BATCH * DATA)
    for step in range(1, STEPS + 1):
        begin, total = time.perf_counter(), torch.zeros((), device=DEVICE)
        for i in range(accumulate):
            last = i + 1 == accumulate
            if ZERO > 0:
                model.set_is_last_backward(last)
            elif DATA > 1:
                model.require_backward_grad_sync = last
            tokens = next(data)
            with torch.autocast(DEVICE.type, WIDTHS[PRECISION], enabled=ZERO == 0 and PRECISION != "fp32"):
                loss = model(input_ids=tokens, labels=tokens).loss / accumulate
            loss.backward()
            total += loss.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        dist.all_reduce(total, dist.ReduceOp.SUM)
        seconds = time.perf_counter() - begin
        if dist.get_rank() == 0:
            print(f"step {step} loss {total.item() / DATA:.6f} seconds {seconds:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
)";

class Fsdp2Export {
 public:
  explicit Fsdp2Export(const program::Job& job) : job_(job), plan_(job.plan) {}

  Launch write(const hardware::Cluster& cluster) {
    const Machines machines = machines_of(plan_, cluster, launch_.losses);
    launch_.form = "Python";
    launch_.text = fmt::format(
        "# {}.\n# torchrun --nnodes {} --nproc-per-node {} --rdzv-backend c10d --rdzv-endpoint HEAD:29500 THIS_FILE "
        "MODEL "
        "[TOKENS]\n# MODEL: a folder with the model's config.json · TOKENS: a file of 32-bit tokens; random ones "
        "without\n{}",
        title_of(job_, Trainer::kFsdp2), machines.nodes, machines.devices, domain_comment(machines));
    split();
    training();
    launch_.text += kScript;
    lose_fields();
    lose_placement(plan_, kDataInsidePipeline, launch_.losses);
    lose_common(plan_, launch_.losses);
    lose_groups(plan_, launch_.losses);
    lose_fp8(plan_, launch_.losses);
    lose_moments(plan_, "moments stay in fp32", launch_.losses);
    return std::move(launch_);
  }

 private:
  void set(const char* name, const std::string& value) { launch_.text += fmt::format("{} = {}\n", name, value); }
  void set(const char* name, std::int64_t value) { set(name, std::to_string(value)); }
  void set_number(const char* name, double value) { set(name, fmt::format("{:g}", value)); }
  void lose(const char* field, std::string what, std::string becomes = "") {
    launch_.losses.push_back({field, std::move(what), std::move(becomes)});
  }

  static std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

  void split() {
    const int shard = plan_.zero_stage == 0 ? 1 : plan_.shard_group > 0 ? plan_.shard_group : plan_.data;
    if (plan_.zero_stage == 1) lose("zero_stage", "1; written as 2: gradients are split, too", "2");
    set("DATA", plan_.data);
    set("SHARD", shard);
    set("ZERO", plan_.zero_stage == 1 ? 2 : plan_.zero_stage);
    set("MICRO_BATCH", plan_.micro_batch);
    set("GLOBAL_BATCH", job_.training.global_batch);
    set("SEQUENCE", job_.training.sequence);
    set("RECOMPUTE", quoted(plan_.recompute == Recompute::kFull ? "full" : "none"));
    if (plan_.recompute == Recompute::kSelective) lose("recompute", "selective; nothing is recomputed", "none");
    set("PRECISION", quoted(name_of(plan_.precision)));
    set("REDUCE", quoted(name_of(plan_.reduce_dtype)));
  }

  void training() {
    const program::Optimizer& o = job_.training.optimizer;
    set("STEPS", steps_of(job_.training, launch_.losses));
    set_number("LEARNING_RATE", o.learning_rate);
    set_number("MIN_LEARNING_RATE", o.min_learning_rate);
    set("WARMUP", o.warmup_steps);
    set("BETAS", fmt::format("({:g}, {:g})", o.beta1, o.beta2));
    set_number("EPSILON", o.epsilon);
    set_number("WEIGHT_DECAY", o.weight_decay);
    set_number("CLIP", o.clip_norm);
    set("SEED", static_cast<std::int64_t>(job_.training.seed));
    if (job_.training.dropout > 0) lose("dropout", "as the model's config.json has it");
  }

  void lose_fields() {
    if (job_.model.mtp) lose("mtp", "no module of multi-token prediction");
    if (plan_.tensor > 1) lose("tensor", "1; layers are not split");
    if (plan_.context > 1) lose("context", "1; sequences are not split");
    if (plan_.pipeline > 1) lose("pipeline", "1; there are no stages");
    if (plan_.expert > 1) lose("expert", "1; experts are sharded as all else is");
    if (plan_.attention == program::Attention::kUnfused)
      lose("attention", "unfused; scaled_dot_product_attention", "flash");
    if (plan_.bucket_bytes > 0) lose("bucket_bytes", "gradients are reduced layer by layer");
    if (plan_.compression != program::Compression::kNone) lose("compression", "gradients go uncompressed", "none");
    const program::Offload& o = plan_.offload;
    const bool some = o.optimizer != Storage::kNone || o.gradients != Storage::kNone || o.parameters != Storage::kNone;
    if (some) lose("offload", "state, gradients and parameters stay on the device");
    if (o.activations != Storage::kNone) lose("offload.activations", "activations stay on the device", "none");
    const bool alone = plan_.data == 1;
    if (!plan_.overlap.gradient_reduction && !alone)
      lose("overlap.gradient_reduction", "reductions overlap with the backward", "true");
    if (plan_.overlap.parameter_gather != (plan_.zero_stage > 0)) {
      lose("overlap.parameter_gather", "gathers overlap with the passes, with ZeRO only");
    }
  }

  const program::Job& job_;
  const Plan& plan_;
  Launch launch_;
};

}  // namespace

Launch export_fsdp2(const program::Job& job, const hardware::Cluster& cluster) {
  return Fsdp2Export(job).write(cluster);
}

}  // namespace trivium::planner::launch
