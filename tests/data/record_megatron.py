"""Records tests/data/megatron_cpu.log: a small GPT trained by Megatron-LM's own loop on cores, two ranks over gloo.

OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore torchrun --nproc-per-node 2 record_megatron.py > megatron_cpu.log 2>&1

Megatron-LM wants CUDA: what it asks of it is answered here by the host (tensors of "cuda" lie there, streams and events do
nothing, memory is 0). Arguments, training loop, parallel layers, optimizer, data and every line of the log are Megatron's.
"""

import contextlib
import os
import sys
from functools import partial
from types import SimpleNamespace

os.environ.update(CUDA_DEVICE_MAX_CONNECTIONS="1", TORCHDYNAMO_DISABLE="1")
import torch  # noqa: E402: reads the environment
from torch.overrides import TorchFunctionMode  # noqa: E402

SEQUENCE, VOCABULARY = 64, 128
ARGUMENTS = f"""--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length {SEQUENCE}
  --max-position-embeddings {SEQUENCE} --vocab-size {VOCABULARY} --tokenizer-type NullTokenizer --mock-data
  --micro-batch-size 2 --global-batch-size 16 --train-iters 12 --lr 1e-3 --min-lr 1e-4 --lr-decay-style cosine
  --tensor-model-parallel-size 2 --transformer-impl local --distributed-backend gloo --no-persist-layer-norm
  --no-gradient-accumulation-fusion --no-masked-softmax-fusion --no-bias-gelu-fusion --no-bias-dropout-fusion
  --no-rope-fusion --attention-dropout 0 --hidden-dropout 0 --log-interval 1 --log-throughput --eval-iters 0
  --eval-interval 1000 --num-workers 0 --use-cpu-initialization --split 100,0,0""".split()


def on_host(value):
    """The host in place of the GPU, wherever an argument names one."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return "cpu"
    return value


class OnHost(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if function is torch.Tensor.type and len(args) == 1 and not kwargs:
            return function(*args).replace("torch.", "torch.cuda.")
        return function(*map(on_host, args), **{key: on_host(value) for key, value in (kwargs or {}).items()})


class Nothing:
    """A stream or an event of a device that is not there."""

    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


def replace_cuda():
    cuda = torch.cuda
    for name in ("set_device", "synchronize", "empty_cache", "set_stream", "manual_seed", "check_error"):
        setattr(cuda, name, lambda *args, **kwargs: None)
    cuda.is_available = lambda: True
    cuda.device_count = lambda: 1
    cuda.current_device = lambda: torch.device("cpu")
    cuda.get_device_capability = lambda *args: (8, 0)
    cuda.get_device_properties = lambda *args: SimpleNamespace(major=8, minor=0, name="none")
    cuda.current_stream = cuda.default_stream = torch.accelerator.current_stream = lambda *args: Nothing()
    cuda.stream = lambda *args: contextlib.nullcontext()
    cuda.Stream = cuda.Event = Nothing
    cuda.get_rng_state = cuda.random.get_rng_state = lambda *args, **kwargs: torch.get_rng_state()
    cuda.FloatTensor, cuda.BFloat16Tensor, cuda.HalfTensor = torch.FloatTensor, torch.BFloat16Tensor, torch.HalfTensor


def forward_step(batches, model):
    from megatron.training import get_timers
    get_timers()("batch-generator", log_level=2).start()
    batch = next(batches)
    get_timers()("batch-generator").stop()
    losses = model(batch["tokens"], batch["position_ids"], batch["attention_mask"], labels=batch["labels"])

    def loss(mask, output):
        total, tokens = (output.view(-1) * mask.view(-1)).sum(), mask.sum().to(torch.int)
        return total, tokens, {"lm loss": torch.cat([total.detach().view(1), tokens.view(1)])}

    return losses, partial(loss, batch["loss_mask"])


def datasets(samples):
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDatasetConfig, MockGPTDataset
    from megatron.training import get_tokenizer
    config = GPTDatasetConfig(random_seed=1, sequence_length=SEQUENCE, split="100,0,0", reset_position_ids=False,
                              reset_attention_mask=False, eod_mask_loss=False, tokenizer=get_tokenizer(),
                              mid_level_dataset_surplus=0.005)
    return BlendedMegatronDatasetBuilder(MockGPTDataset, samples, lambda: True, config).build()


def model(pre_process=True, post_process=True, **unused):
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.training import get_args
    from megatron.training.arguments import core_transformer_config_from_args
    args = get_args()
    return GPTModel(core_transformer_config_from_args(args), get_gpt_layer_local_spec(), args.padded_vocab_size, SEQUENCE,
                    pre_process, post_process, share_embeddings_and_output_weights=True)


def main():
    torch.set_num_threads(1)
    replace_cuda()
    sys.argv[1:1] = ARGUMENTS
    with OnHost():
        from megatron.core.datasets import utils
        from megatron.core.enums import ModelType
        from megatron.core.tensor_parallel import random
        from megatron.training import pretrain
        from megatron.training.argument_utils import pretrain_cfg_container_from_args
        from megatron.training.arguments import parse_and_validate_args
        random._set_cuda_rng_state = lambda state, *args, **kwargs: torch.set_rng_state(state)
        utils.compile_helpers = lambda: None  # the package has them compiled
        datasets.is_distributed = True  # on every rank
        args = parse_and_validate_args()
        pretrain(pretrain_cfg_container_from_args(args), datasets, ModelType.encoder_or_decoder, forward_step, model)


main()
