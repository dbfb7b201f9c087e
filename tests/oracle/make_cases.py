"""Randomly initialised models by transformers, and what PyTorch computes with them.

make_cases.py FOLDER [SIZE [NAME...]]: FOLDER/NAME/ gets config.json and model.safetensors (as transformers saves them),
tokens.bin (raw uint16), logits.safetensors and gradients.safetensors (names of the model's parameters), expected.json (training, losses
and gradient norms). Every step trains on the whole of tokens.bin, so the order of samples does not matter.
"""

import json
import pathlib
import sys

import multi_token
import torch
import transformers
from grok import Grok1
from safetensors.torch import save_file

SIZES = {
    "golden": dict(vocab=48, hidden=16, layers=2, heads=4, sequence=16, batch=4),
    "full": dict(vocab=251, hidden=64, layers=4, heads=8, sequence=64, batch=8),
}
TRAINING = dict(learning_rate=1e-3, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1, clip_norm=1.0)
STEPS = 10


def gpt2(s, **more):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=s["vocab"], n_positions=s["sequence"], n_embd=s["hidden"], n_layer=s["layers"], n_head=s["heads"],
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, **more))


def llama(s, **more):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        intermediate_size=5 * s["hidden"] // 2, bos_token_id=0, eos_token_id=0,
        pad_token_id=None, **dict(dict(rms_norm_eps=1e-5), **more)))  # a padding token would get no gradient


def qwen3(s, **more):
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        head_dim=2 * s["hidden"] // s["heads"], intermediate_size=5 * s["hidden"] // 2, rms_norm_eps=1e-6,
        rope_parameters=dict(rope_type="default", rope_theta=2000.0), tie_word_embeddings=False, bos_token_id=0,
        eos_token_id=0, pad_token_id=None, **more))


def phi3(s, **more):
    return transformers.Phi3ForCausalLM(transformers.Phi3Config(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        intermediate_size=5 * s["hidden"] // 2, resid_pdrop=0.0, embd_pdrop=0.0, attention_dropout=0.0,
        original_max_position_embeddings=s["sequence"], bos_token_id=0, eos_token_id=0, pad_token_id=None, **more))


def nemotron(s):
    return transformers.NemotronForCausalLM(transformers.NemotronConfig(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        head_dim=s["hidden"] // s["heads"], intermediate_size=4 * s["hidden"], norm_eps=1e-4, bos_token_id=0,
        eos_token_id=0, pad_token_id=None))


def mistral(s, window=None):
    return transformers.MistralForCausalLM(transformers.MistralConfig(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        head_dim=2 * s["hidden"] // s["heads"], intermediate_size=5 * s["hidden"] // 2, sliding_window=window,
        bos_token_id=0, eos_token_id=0, pad_token_id=None))


def gpt_oss(s):
    model = transformers.GptOssForCausalLM(transformers.GptOssConfig(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        head_dim=2 * s["hidden"] // s["heads"], intermediate_size=s["hidden"], num_local_experts=4,
        num_experts_per_tok=2, sliding_window=s["sequence"] // 3, bos_token_id=0, eos_token_id=0, pad_token_id=None,
        rope_parameters=scaled(s, "yarn", beta_fast=0.5, beta_slow=0.05, truncate=False)))
    with torch.no_grad():  # choices that rounding does not change
        for layer in model.model.layers:
            layer.mlp.router.weight *= 30
    return model


def gemma2(s):
    return transformers.Gemma2ForCausalLM(transformers.Gemma2Config(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        head_dim=2 * s["hidden"] // s["heads"], intermediate_size=5 * s["hidden"] // 2, query_pre_attn_scalar=5,
        sliding_window=s["sequence"] // 3, attn_logit_softcapping=2.0, final_logit_softcapping=1.5, bos_token_id=0,
        eos_token_id=0, pad_token_id=None, attn_implementation="eager"))  # whose scores the caps are in


def gemma3(s):
    return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        head_dim=2 * s["hidden"] // s["heads"], intermediate_size=5 * s["hidden"] // 2,
        query_pre_attn_scalar=2 * s["hidden"] // s["heads"], sliding_window=s["sequence"] // 3,
        layer_types=["sliding_attention", "full_attention"] * (s["layers"] // 2), bos_token_id=0, eos_token_id=0,
        pad_token_id=None, rope_parameters=dict(
            full_attention=dict(rope_type="linear", rope_theta=2000.0, factor=4.0),
            sliding_attention=dict(rope_type="default", rope_theta=50.0))))


def mixtral(s):
    return transformers.MixtralForCausalLM(transformers.MixtralConfig(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        intermediate_size=2 * s["hidden"], num_local_experts=4, num_experts_per_tok=2, sliding_window=None,
        bos_token_id=0, eos_token_id=0, pad_token_id=None))


def qwen3_moe(s):
    return transformers.Qwen3MoeForCausalLM(transformers.Qwen3MoeConfig(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        head_dim=2 * s["hidden"] // s["heads"], intermediate_size=7, moe_intermediate_size=s["hidden"],
        num_experts=8, num_experts_per_tok=3, norm_topk_prob=False, bos_token_id=0, eos_token_id=0,
        pad_token_id=None))


def latents(s):
    """Heads of DeepSeek's attention and widths that no other case has."""
    return dict(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"],
        kv_lora_rank=s["hidden"] // 2, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=8,
        intermediate_size=2 * s["hidden"], moe_intermediate_size=s["hidden"], first_k_dense_replace=1,
        n_routed_experts=8, bos_token_id=0, eos_token_id=0, pad_token_id=None)


def deepseek_v2(s):
    return transformers.DeepseekV2ForCausalLM(transformers.DeepseekV2Config(
        q_lora_rank=None, num_experts_per_tok=3, n_shared_experts=2, topk_method="group_limited_greedy", n_group=4,
        topk_group=2, routed_scaling_factor=1.5, norm_topk_prob=False, **latents(s)))


def deepseek_v3(s):
    return transformers.DeepseekV3ForCausalLM(transformers.DeepseekV3Config(
        q_lora_rank=s["hidden"] // 4 * 3, num_experts_per_tok=3, n_shared_experts=1, n_group=4, topk_group=2,
        routed_scaling_factor=2.5, norm_topk_prob=True, num_mtp_layers=0,
        rope_parameters=scaled(s, "yarn", beta_fast=0.5, beta_slow=0.05, mscale=1.0, mscale_all_dim=0.7),
        **latents(s)))


def glm4_moe(s):
    return transformers.Glm4MoeForCausalLM(transformers.Glm4MoeConfig(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        head_dim=2 * s["hidden"] // s["heads"], attention_bias=True, use_qk_norm=True, rms_norm_eps=1e-5,
        intermediate_size=2 * s["hidden"], moe_intermediate_size=s["hidden"], first_k_dense_replace=1,
        n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1, routed_scaling_factor=1.25, num_mtp_layers=0,
        bos_token_id=0, eos_token_id=0, pad_token_id=None))


def with_modules(model, depth, share=0.3):
    return multi_token.add_modules(model, depth, share)


def llama4(s, **more):
    model = transformers.Llama4ForCausalLM(transformers.Llama4TextConfig(
        vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        head_dim=2 * s["hidden"] // s["heads"], intermediate_size=s["hidden"], intermediate_size_mlp=2 * s["hidden"],
        num_local_experts=4, num_experts_per_tok=1, attention_chunk_size=s["sequence"] // 3,
        no_rope_layer_interval=2, floor_scale=s["sequence"] // 4, attn_scale=0.3, bos_token_id=0, eos_token_id=0,
        pad_token_id=None, **more))
    with torch.no_grad():  # choices that rounding does not change
        for layer in model.model.layers:
            if layer.is_moe_layer:
                layer.feed_forward.router.weight *= 30
    return model


def grok(s):
    return Grok1(dict(
        model_type="grok-1", vocab_size=s["vocab"], max_position_embeddings=s["sequence"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["heads"] // 2,
        intermediate_size=2 * s["hidden"], num_experts=4, num_experts_per_tok=2, rms_norm_eps=1e-5,
        attn_output_multiplier=0.7, max_attn_value=2.0, embedding_multiplier_scale=3.0, output_multiplier_scale=0.6))


def scaled(s, kind, **more):
    """Rotary positions that were trained on an eighth of the sequence before."""
    return dict(rope_type=kind, rope_theta=500.0, factor=4.0, original_max_position_embeddings=s["sequence"] // 8, **more)


# Every case has what another has not: a reader that took one for another would be found out.
CASES = {
    "gpt2": gpt2,
    "gpt2-exact": lambda s: gpt2(s, activation_function="gelu", layer_norm_epsilon=1e-3, scale_attn_weights=False),
    "llama": llama,
    "llama-tied": lambda s: llama(s, tie_word_embeddings=True),
    "llama-linear": lambda s: llama(s, rms_norm_eps=1e-3, rope_parameters=dict(
        rope_type="linear", rope_theta=500.0, factor=4.0)),
    "llama3": lambda s: llama(s, rope_parameters=scaled(s, "llama3", low_freq_factor=0.05, high_freq_factor=0.5)),
    "llama-yarn": lambda s: llama(s, rope_parameters=scaled(s, "yarn", beta_fast=0.5, beta_slow=0.05)),
    "qwen3": qwen3,
    "qwen3-windows": lambda s: qwen3(
        s, use_sliding_window=True, sliding_window=s["sequence"] // 3, max_window_layers=s["layers"] // 2),
    "mistral": mistral,
    "mistral-window": lambda s: mistral(s, s["sequence"] // 3),
    "phi3": phi3,
    "phi3-window": lambda s: phi3(s, sliding_window=s["sequence"] // 3),
    "nemotron": nemotron,
    "gpt-oss": gpt_oss,
    "gemma2": gemma2,
    "gemma3": gemma3,
    "mixtral": mixtral,
    "qwen3-moe": qwen3_moe,
    "deepseek-v2": deepseek_v2,
    "deepseek-v3": deepseek_v3,
    "glm4-moe": glm4_moe,
    "deepseek-v3-mtp": lambda s: with_modules(deepseek_v3(s), 1),
    "glm4-moe-mtp": lambda s: with_modules(glm4_moe(s), 2),
    "llama4": lambda s: llama4(s, use_qk_norm=True, rope_parameters=scaled(
        s, "llama3", low_freq_factor=0.2, high_freq_factor=0.2)),
    "llama4-dense": lambda s: llama4(s, use_qk_norm=False, interleave_moe_layer_step=2),
    "grok-1": grok,
}
GOLDEN = ["gpt2", "gpt2-exact", "llama", "llama3", "qwen3", "qwen3-windows", "phi3", "nemotron", "gpt-oss", "gemma2",
          "gemma3", "mixtral", "qwen3-moe", "deepseek-v2", "deepseek-v3", "glm4-moe", "deepseek-v3-mtp", "glm4-moe-mtp", "llama4",
          "llama4-dense", "grok-1"]


def parameters_of(model):
    """Every parameter once, by the name under which transformers saves it."""
    return dict(model.named_parameters())


def is_matrix(name, parameter):
    """What weights decay of: not the biases of experts, one tensor for all of them."""
    return parameter.dim() >= 2 and not name.endswith("bias")


def as_saved(model, tensors):
    """Of parameters: a tensor for each expert under the name of the released files, zeros for what has no gradient."""
    mixtral_names = model.config.model_type == "mixtral"
    as_they_are = model.config.model_type in ("gpt_oss", "llama4_text")  # in files too all experts are one tensor
    gate, up, down = ("w1", "w3", "w2") if mixtral_names else ("gate_proj", "up_proj", "down_proj")
    saved = {}
    for name, tensor in tensors.items():
        if mixtral_names:
            name = name.replace(".mlp.", ".block_sparse_moe.")
        if as_they_are or not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            saved[name] = tensor
            continue
        experts = name.rsplit(".", 1)[0]
        for number, one in enumerate(tensor):
            for part, values in zip([gate, up], one.chunk(2)) if "gate_up" in name else [(down, one)]:
                saved[f"{experts}.{number}.{part}.weight"] = values
    saved |= {name: torch.zeros_like(b) for name, b in model.named_buffers() if name in model.state_dict()}
    return {name: tensor.clone().contiguous() for name, tensor in saved.items()}


def loss_of(model, ids, labels):
    if hasattr(model, "share"):
        return multi_token.loss_of(model, ids, labels)
    return torch.nn.functional.cross_entropy(model(ids).logits.flatten(0, 1), labels.flatten())


def write_case(folder, model, size):
    folder.mkdir(parents=True, exist_ok=True)
    model = model.float().eval()
    model.save_pretrained(folder, safe_serialization=True)
    (folder / "generation_config.json").unlink(missing_ok=True)
    count = size["batch"] * size["sequence"] + 1
    tokens = torch.randint(0, size["vocab"], (count,), generator=torch.Generator().manual_seed(7))
    tokens.numpy().astype("<u2").tofile(folder / "tokens.bin")
    ids = tokens[:-1].view(size["batch"], size["sequence"])
    labels = tokens[1:].view(size["batch"], size["sequence"])
    modules = getattr(model, "share", None)
    if modules is not None:
        multi_token.complete(model, folder)
        multi_token.check_with_transformers(model, folder, ids, labels)
    with torch.no_grad():
        save_file({"logits": model(ids[:1]).logits[0].contiguous()}, folder / "logits.safetensors")

    named = parameters_of(model)
    groups = [dict(params=[p for n, p in named.items() if is_matrix(n, p)], weight_decay=TRAINING["weight_decay"]),
              dict(params=[p for n, p in named.items() if not is_matrix(n, p)], weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=TRAINING["learning_rate"], betas=(TRAINING["beta1"], TRAINING["beta2"]),
                                  eps=TRAINING["epsilon"])
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, ids, labels)
        loss.backward()
        if step == 0:
            save_file(as_saved(model, {name: p.grad for name, p in named.items()}), folder / "gradients.safetensors")
        norms.append(float(torch.nn.utils.clip_grad_norm_(named.values(), TRAINING["clip_norm"])))
        losses.append(loss.item())
        optimizer.step()
    expected = dict(sequence=size["sequence"], global_batch=size["batch"], training=TRAINING, losses=losses,
                    gradient_norms=norms, made_with=dict(torch=torch.__version__.split("+")[0],
                                                         transformers=transformers.__version__))
    if modules is not None:
        expected["mtp_loss_scale"] = modules * model.config.num_mtp_layers
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    size = SIZES[sys.argv[2] if len(sys.argv) > 2 else "full"]
    torch.set_num_threads(1)
    for name in sys.argv[3:] or (GOLDEN if size is SIZES["golden"] else CASES):
        torch.manual_seed(11)
        model = CASES[name](size)
        with torch.no_grad():  # norms of 1 and biases of 0 would hide which is which
            chosen_by = [(name, b) for name, b in model.named_buffers() if name.endswith("e_score_correction_bias")]
            for parameter_name, parameter in [*model.named_parameters(), *chosen_by]:
                if not is_matrix(parameter_name, parameter):
                    parameter += 0.1 * torch.randn_like(parameter)
        write_case(folder / name, model, size)


if __name__ == "__main__":
    main()
