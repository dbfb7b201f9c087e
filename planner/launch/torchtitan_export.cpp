// torchtitan v0.2.2: a TOML file for `-m torchtitan.train --job.config_file`, and a module that defines the model.
#include <fmt/format.h>

#include <algorithm>

#include "planner/launch/export_parts.h"
#include "program/lower/layout.h"

namespace trivium::planner::launch {
namespace {

using program::DType;
using program::Plan;
using program::Recompute;
using program::Storage;

class TorchtitanExport {
 public:
  explicit TorchtitanExport(const program::Job& job) : job_(job), plan_(job.plan) {}

  Launch write(const hardware::Cluster& cluster) {
    const Machines machines = machines_of(plan_, cluster, launch_.losses);
    launch_.form = "shell script";
    launch_.text = script_head(title_of(job_, Trainer::kTorchtitan), machines);
    line("cat >trivium_flavor.py <<'PYTHON'");
    flavor();
    line("PYTHON\ncat >trivium.toml <<'TOML'");
    line(
        fmt::format("[model]\nname = \"trivium\"\nflavor = \"plan\"\n\n[experimental]\ncustom_import = "
                    "\"trivium_flavor\"\n\n[compile]\nenable = true\ncomponents = [\"model\", \"loss\"]"));
    training();
    parallelism(cluster);
    memory();
    line("TOML");
    line(
        fmt::format("export PYTHONPATH=.\n$start torchrun --nnodes {} --nproc-per-node {} "
                    "--rdzv-backend c10d --rdzv-endpoint "
                    "\"$HEAD:29500\" \\\n  -m torchtitan.train --job.config_file trivium.toml",
                    machines.nodes, machines.devices));
    lose_fields();
    lose_common(plan_, launch_.losses);
    lose_groups(plan_, launch_.losses);
    lose_fp8(plan_, launch_.losses);
    lose_moments(plan_, "moments stay in fp32", launch_.losses);
    return std::move(launch_);
  }

 private:
  void line(std::string text) { launch_.text += std::move(text) + "\n"; }
  void lose(const char* field, std::string what, std::string becomes = "") {
    launch_.losses.push_back({field, std::move(what), std::move(becomes)});
  }

  // Qwen 3's class takes any width of heads and MLP, norms of heads, tied embeddings and experts; Llama 3's has the
  // scaled frequencies.
  void flavor() {
    const bool scaled = job_.model.rotary.scaling == models::RotaryScaling::kLlama3;
    line("from dataclasses import replace\n");
    line(scaled ? "from torchtitan.models.llama3 import TransformerModelArgs, get_train_spec\n"
                  "from torchtitan.models.llama3.model.args import RoPEScalingArgs"
                : "from torchtitan.models.moe import MoEArgs\n"
                  "from torchtitan.models.qwen3 import Qwen3ModelArgs, get_train_spec");
    line(
        "from torchtitan.distributed.pipeline_parallel import pipeline_llm\n"
        "from torchtitan.protocols.train_spec import register_train_spec\n");
    line(scaled ? llama_arguments() : qwen_arguments());
    line(
        "register_train_spec(\n"
        "    \"trivium\", replace(get_train_spec(), model_args={\"plan\": args}, pipelining_fn=pipeline_llm))");
    lose_model();
  }

  // The inner width there is 2/3 of 4 dim times a factor, rounded up to a multiple: the width itself is a multiple of
  // its own that two thirds of itself round up to.
  std::string llama_arguments() const {
    const models::Model& m = job_.model;
    const models::Rotary& r = m.rotary;
    return fmt::format(
        "args = TransformerModelArgs(\n"
        "    dim={}, n_layers={}, n_heads={}, n_kv_heads={}, vocab_size={}, multiple_of={}, "
        "ffn_dim_multiplier={:.9g},\n"
        "    norm_eps={:g}, rope_theta={:g}, max_seq_len={},\n"
        "    rope_scaling_args=RoPEScalingArgs(scaling_factor={:g}, low_freq_factor={:g}, high_freq_factor={:g},\n"
        "                                      original_max_position_embeddings={}))\n",
        m.hidden, m.layers, m.heads, m.kv_heads, m.vocab, m.ffn_hidden,
        static_cast<double>(m.ffn_hidden) / (4.0 * static_cast<double>(m.hidden)), m.norm_epsilon, r.theta,
        m.max_sequence, r.factor, r.slow_turns, r.fast_turns, r.original_sequence);
  }

  std::string qwen_arguments() const {
    const models::Model& m = job_.model;
    std::string text = fmt::format(
        "args = Qwen3ModelArgs(\n"
        "    dim={}, n_layers={}, n_heads={}, n_kv_heads={}, head_dim={}, hidden_dim={}, vocab_size={},\n"
        "    norm_eps={:g}, rope_theta={:g}, qk_norm={}, enable_weight_tying={}, max_seq_len={}",
        m.hidden, m.layers, m.heads, m.kv_heads, m.head_dim, m.dense_hidden(), m.vocab, m.norm_epsilon, m.rotary.theta,
        m.head_norms ? "True" : "False", m.tied_embeddings ? "True" : "False", m.max_sequence);
    if (m.experts) {
      const models::Experts& e = *m.experts;
      text += fmt::format(
          ",\n    moe_enabled=True, moe_inter_dim={},\n"
          "    moe_args=MoEArgs(num_experts={}, num_shared_experts={}, top_k={}, score_func=\"{}\", route_norm={},\n"
          "                     route_scale={:g}, score_before_experts={})",
          m.ffn_hidden, e.count, e.shared_hidden / m.ffn_hidden, e.top_k,
          e.scores == models::Scores::kSigmoid ? "sigmoid" : "softmax", e.normalised ? "True" : "False", e.scale,
          e.scales_input ? "True" : "False");
    }
    return text + ")\n";
  }

  void lose_model() {
    const models::Model& m = job_.model;
    const bool is_llama = m.norm == models::Norm::kRmsNorm && m.activation == models::Activation::kSwiglu &&
                          m.positions == models::Positions::kRotary && !m.linear_bias && !m.qkv_bias &&
                          !m.parallel_block && !m.attention_sinks && !m.branch_norms && m.attention_soft_cap == 0 &&
                          m.logit_soft_cap == 0 && m.embedding_scale == 1 && m.logit_scale == 1 &&
                          !m.plain_head_norms && !m.temperature && !m.embedding_norm;
    if (!is_llama) {
      lose("model", fmt::format("{}: only the shape; layers are RMSNorm, SwiGLU and rotary, without biases", m.name));
    }
    const bool scaled = m.rotary.scaling == models::RotaryScaling::kLlama3;
    if (scaled && (m.head_norms || m.tied_embeddings || m.experts || m.head_dim * m.heads != m.hidden)) {
      lose("model", fmt::format("{}: with scaled frequencies, heads are hidden / heads wide, embeddings untied, MLPs "
                                "dense and heads without norms",
                                m.name));
    } else if (!scaled && m.rotary.scaling != models::RotaryScaling::kNone) {
      lose("rotary", "scaled frequencies; written without, which costs the same");
    }
    if (m.window) lose("window", "every layer sees all keys");
    if (m.mtp) lose("mtp", "no module of multi-token prediction");
    if (m.latent) lose("latent", "every head has queries, keys and values of its own");
    if (m.experts && (!m.experts->dropless || m.experts->every != 1 || m.experts->dense_layers > 0)) {
      lose("experts", "every layer becomes a mixture that drops nothing");
    }
  }

  void training() {
    const program::Training& t = job_.training;
    line(
        fmt::format("\n[optimizer]\nname = \"AdamW\"\nlr = {:g}\nbeta1 = {:g}\nbeta2 = {:g}\neps = {:g}\n"
                    "weight_decay = {:g}",
                    t.optimizer.learning_rate, t.optimizer.beta1, t.optimizer.beta2, t.optimizer.epsilon,
                    t.optimizer.weight_decay));
    line(fmt::format("\n[lr_scheduler]\nwarmup_steps = {}\ndecay_type = \"cosine\"", t.optimizer.warmup_steps));
    // A flush of the pipeline is a local batch: the whole share of a replica, as in our schedules.
    const std::int64_t local = plan_.pipeline > 1 ? t.global_batch / plan_.data : plan_.micro_batch;
    line(
        fmt::format("\n[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\nmax_norm = {:g}\n"
                    "steps = {}",
                    local, t.global_batch, t.sequence, t.optimizer.clip_norm, steps_of(t, launch_.losses)));
    const bool half = plan_.precision == DType::kBf16 || plan_.precision == DType::kFp16;
    line(fmt::format("mixed_precision_param = \"{}\"\nmixed_precision_reduce = \"float32\"",
                     half ? "bfloat16" : "float32"));
    if (plan_.precision == DType::kFp16) lose("precision", "fp16; written as bfloat16");
    if (plan_.reduce_dtype != DType::kFp32) {
      lose("reduce_dtype", fmt::format("{}; gradients are reduced in float32", program::name_of(plan_.reduce_dtype)));
    }
    const program::Offload& o = plan_.offload;
    const bool some = o.optimizer != Storage::kNone || o.gradients != Storage::kNone || o.parameters != Storage::kNone;
    const bool all = o.optimizer == Storage::kHost && o.gradients == Storage::kHost && o.parameters == Storage::kHost;
    if (some) line("enable_cpu_offload = true");
    if (some && !all) lose("offload", "parameters, gradients and optimizer go to the host together or not at all");
    if (o.activations != Storage::kNone) lose("offload.activations", "activations stay on the device", "none");
  }

  void parallelism(const hardware::Cluster& cluster) {
    line("\n[parallelism]");
    sharding();
    line(fmt::format("tensor_parallel_degree = {}\ncontext_parallel_degree = {}\nexpert_parallel_degree = {}",
                     plan_.tensor, plan_.context, plan_.expert));
    if (plan_.expert > 1) {
      if (plan_.context > 1) {
        lose("expert",
             fmt::format("{}; context ranks share experts, too: written as if they were replicas", plan_.expert));
      }
      const bool whole = program::expert_tensor_ranks(plan_) == 1;
      line(fmt::format("expert_tensor_parallel_degree = {}", whole ? 1 : plan_.tensor));
      if (program::folds_experts(plan_) && !whole) {
        lose("expert_tensor", fmt::format("{}; experts are whole, or split by all tensor ranks", plan_.expert_tensor),
             "0");
      }
    }
    if (plan_.context > 1) {
      line("context_parallel_rotate_method = \"alltoall\"");  // of keys and values to the next rank: a ring
      if (plan_.context_method == program::ContextMethod::kAllToAll) {
        lose("context_method", "all_to_all; torchtitan's context ranks exchange keys and values, not heads", "ring");
      }
    }
    line(fmt::format("pipeline_parallel_degree = {}", plan_.pipeline));
    if (overlaps_in_peer_buffers(plan_, cluster, launch_.losses)) line("enable_async_tensor_parallel = true");
    if (plan_.overlap.expert) lose("overlap.expert", "exchanges with the experts run alone", "false");
    if (plan_.pipeline == 1) return;
    const program::ScheduleTraits& schedule = program::traits_of(plan_.schedule);
    const bool unknown = schedule.pytorch.empty();
    const std::string_view name =
        unknown ? program::traits_of(program::usual_schedule(plan_.virtual_stages)).pytorch : schedule.pytorch;
    line(fmt::format("pipeline_parallel_schedule = \"{}\"\npipeline_parallel_microbatch_size = {}", name,
                     plan_.micro_batch));
    if (unknown) lose("schedule", fmt::format("{}; written as {}", schedule.name, name), usual_schedule_of(plan_));
    if (!unknown && schedule.splits_backward && plan_.virtual_stages == 1) {
      lose("schedule", fmt::format("{} wants two chunks a stage there", schedule.name));
    }
    const std::int64_t count = program::micro_batches(plan_, job_.training.global_batch);
    if (name == "DualPipeV" && count < plan_.chunks()) {
      lose("schedule", fmt::format("{} wants {} micro-batches there, one for every chunk; there are {}", schedule.name,
                                   plan_.chunks(), count));
    }
    chunks();
  }

  void sharding() {
    int shard = plan_.zero_stage == 0 ? 1 : plan_.data;
    if (plan_.zero_stage > 0 && plan_.shard_group > 0) shard = std::max(1, plan_.shard_group / plan_.context);
    if (plan_.zero_stage == 1) lose("zero_stage", "1; written as 2: parameters are kept, gradients are split too", "2");
    const int others = plan_.tensor * plan_.pipeline * plan_.context * plan_.expert;
    if (plan_.zero_stage == 0 && plan_.data > 1 && others > 1) {
      lose("zero_stage", "0; plain replicas with tensor, pipeline or expert parallelism are refused; written as 2",
           "2");
      shard = plan_.data;
    }
    line(fmt::format("data_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}",
                     std::max(1, plan_.data / shard), shard));
    if (shard * plan_.context > 1) {
      line(fmt::format("fsdp_reshard_after_forward = \"{}\"", plan_.zero_stage == 3 ? "always" : "never"));
    }
  }

  // By default embedding and head count as a layer each; lists of names can express any split.
  void chunks() {
    const std::vector<int> layers = program::chunk_layers(job_);
    line("module_fqns_per_model_part = [");
    int next = 0;
    for (std::size_t part = 0; part < layers.size(); ++part) {
      std::string names = part == 0 ? "\"tok_embeddings\", " : "";
      for (int i = 0; i < layers[part]; ++i) names += fmt::format("\"layers.{}\", ", next++);
      if (part + 1 == layers.size()) names += "\"norm\", \"output\", ";
      line(fmt::format("  [{}],", names.substr(0, names.size() - 2)));
    }
    line("]");
  }

  void memory() {
    line(fmt::format("\n[activation_checkpoint]\nmode = \"{}\"", program::name_of(plan_.recompute)));
    if (plan_.recompute == Recompute::kSelective) {
      line("selective_ac_option = \"op\"");
      lose("recompute", "selective keeps products of matrices and computes attention again by its own list");
    }
  }

  void lose_fields() {
    if (plan_.tensor > 1 && !plan_.sequence_parallel) {
      lose("sequence_parallel", "false; it is always on with tensor parallel", "true");
    }
    if (plan_.attention == program::Attention::kUnfused)
      lose("attention", "unfused; the flavor chooses the kernel", "flash");
    if (plan_.bucket_bytes > 0) lose("bucket_bytes", "gradients are reduced block by block");
    if (plan_.compression != program::Compression::kNone) lose("compression", "gradients go uncompressed", "none");
    if (job_.training.dropout > 0) lose("dropout", "there is none");
    lose_placement(plan_, kDataInsidePipeline, launch_.losses);
  }

  const program::Job& job_;
  const Plan& plan_;
  Launch launch_;
};

}  // namespace

Launch export_torchtitan(const program::Job& job, const hardware::Cluster& cluster) {
  return TorchtitanExport(job).write(cluster);
}

}  // namespace trivium::planner::launch
