"""A model split in one of the ways that trainers know. `split_of(name, …)` gives what a step needs."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)

from model import Llama, loss_of

RANKS = {"ddp": 2, "fsdp1": 2, "fsdp2": 2, "tp": 2, "sp": 2, "pp": 2, "gpipe": 2, "interleaved": 2, "ep": 2,
         "fsdp2_tp": 4, "pp_dp": 4, "ddp4": 4}


def tensor_parallel(model, mesh, sequence):
    from torch.distributed.tensor import Replicate, Shard
    for layer in model.layers:
        plan = {"attention.q": ColwiseParallel(), "attention.k": ColwiseParallel(), "attention.v": ColwiseParallel(),
                "attention.o": RowwiseParallel(), "mlp.gate": ColwiseParallel(), "mlp.up": ColwiseParallel(),
                "mlp.down": RowwiseParallel()}
        if sequence:
            gathered = PrepareModuleInput(input_layouts=(Shard(1), None, None), desired_input_layouts=(Replicate(), None, None))
            plan |= {"norm_1": SequenceParallel(), "norm_2": SequenceParallel(), "attention": gathered,
                     "attention.o": RowwiseParallel(output_layouts=Shard(1)),
                     "mlp": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
                     "mlp.down": RowwiseParallel(output_layouts=Shard(1))}
        parallelize_module(layer, mesh, plan)
    if sequence:
        parallelize_module(model, mesh, {"embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
                                         "norm": SequenceParallel(),
                                         "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())})


class Whole:
    """Every rank has the whole depth of the model."""

    def __init__(self, model, data, shard):
        self.model, self.data_rank, self.parameters = model, data, [p for p in model.parameters()]
        self.core = shard

    def forward_backward(self, x, y):
        loss_of(self.model(x), y).backward()

    def evaluate(self, x, y):
        with torch.no_grad():
            loss_of(self.model(x), y)

    def modules(self):
        return self.core.modules()


class Pipeline:
    """Stages of the depth under one of PyTorch's schedules."""

    def __init__(self, shape, name, rank, cut, micro_batches, batch, group, data):
        from torch.distributed import pipelining
        from torch.distributed.pipelining import PipelineStage
        stages = dist.get_world_size(group)
        place = dist.get_rank(group)
        chunks = 2 if name == "interleaved" else 1
        self.data_rank, self.first, self.last = data, place == 0, place == stages - 1
        bounds = [0, cut, shape.layers] if chunks == 1 else [i * shape.layers // 4 for i in range(5)]
        example = torch.zeros(batch // micro_batches, shape.sequence, dtype=torch.long)
        hidden = torch.zeros(batch // micro_batches, shape.sequence, shape.hidden)
        self.parts, made = [], []
        for chunk in range(chunks):
            at = place + chunk * stages
            part = Llama(shape, bounds[at], bounds[at + 1])
            self.parts.append(part)
            made.append(PipelineStage(part, at, stages * chunks, torch.device("cpu"), group=group))
        self.core = nn.ModuleList(self.parts)
        kind = {"gpipe": pipelining.ScheduleGPipe, "interleaved": pipelining.ScheduleInterleaved1F1B}.get(
            name, pipelining.Schedule1F1B)
        self.schedule = kind(made if chunks > 1 else made[0], n_microbatches=micro_batches, loss_fn=loss_of)
        self.parameters = [p for part in self.parts for p in part.parameters()]
        self.replicas = None

    def forward_backward(self, x, y):
        inputs = (x,) if self.first else ()
        if self.last:
            self.schedule.step(*inputs, target=y, losses=[])
        else:
            self.schedule.step(*inputs)
        if self.replicas is not None:
            for parameter in self.parameters:
                dist.all_reduce(parameter.grad, group=self.replicas)

    def evaluate(self, x, y):
        raise NotImplementedError("pipelines are not evaluated here")

    def modules(self):
        return self.core.modules()


def split_of(name, shape, options, rank):
    if name in ("pp", "gpipe", "interleaved"):
        cut = options.cut or shape.layers // 2
        return Pipeline(shape, name, rank, cut, options.micro_batches, options.batch, dist.group.WORLD, 0)
    if name == "pp_dp":
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
        made = Pipeline(shape, name, rank, options.cut or shape.layers // 2, options.micro_batches, options.batch,
                        mesh.get_group("pp"), mesh.get_local_rank("dp"))
        made.replicas = mesh.get_group("dp")
        return made
    model = Llama(shape)
    core = model
    if options.recompute:
        from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
        for i, layer in enumerate(model.layers):
            model.layers[i] = checkpoint_wrapper(layer)
    if name in ("ddp", "ddp4"):
        return Whole(nn.parallel.DistributedDataParallel(model), rank, core)
    if name == "ep":
        return Experts(model, rank, core)
    if name == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy
        from model import Layer
        wrapped = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Layer}), use_orig_params=True,
                                           device_id=torch.device("cpu"))
        return Whole(wrapped, rank, core)
    if name == "fsdp2":
        from torch.distributed.fsdp import fully_shard
        for layer in model.layers:
            fully_shard(layer)
        fully_shard(model)
        return Whole(model, rank, core)
    if name in ("tp", "sp"):
        tensor_parallel(model, init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",)), name == "sp")
        return Whole(model, 0, core)
    if name == "fsdp2_tp":
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        tensor_parallel(model, mesh["tp"], False)
        for layer in model.layers:
            fully_shard(layer, mesh=mesh["dp"])
        fully_shard(model, mesh=mesh["dp"])
        return Whole(model, mesh.get_local_rank("dp"), core)
    raise SystemExit(f"unknown split {name}")


class Experts(Whole):
    """Experts keep their gradients; what all ranks have is summed after the backward."""

    def forward_backward(self, x, y):
        super().forward_backward(x, y)
        for key, parameter in self.model.named_parameters():
            if ".local." not in key and parameter.grad is not None:
                dist.all_reduce(parameter.grad)
