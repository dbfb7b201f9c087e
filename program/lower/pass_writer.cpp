#include "program/lower/pass_writer.h"

#include <fmt/format.h>

#include "program/schedules/schedule.h"

namespace trivium::program {

PassWriter::PassWriter(const Job& job, const ChunkKey& key, const ChunkShape& shape, const ParameterBuffers& parameters,
                       LayerSlots& slots, BodyBuilder& builder, ChunkTemplate& chunk, std::vector<Body>& bodies)
    : job_(job),
      key_(key),
      shape_(shape),
      builder_(builder),
      chunk_(chunk),
      bodies_(bodies),
      writer_(builder, shape, parameters),
      elements_(shape.own_tokens * shape.hidden),
      splits_backward_(traits_of(job.plan.schedule).splits_backward) {
  if (job.plan.offload.activations != Storage::kNone) writer_.offload_to(slots);
}

void PassWriter::write() {
  place_inputs();
  chunk_.forward = write_forward("forward");
  if (shape_.keeps_casts) {
    writer_.cast_weights(true);
    chunk_.forward_first = write_forward("forward of the first");
    writer_.cast_weights(false);
  }
  chunk_.backward = write_backward("backward", splits_backward_);
  if (splits_backward_) write_backward_weights();
  if (splits_backward_ && shape_.pairs) chunk_.backward_whole = write_backward("whole backward", false);
  if (job_.plan.pipeline > 1) write_transfers();
}

void PassWriter::write_transfers_alone() {
  place_ends();
  if (job_.plan.pipeline > 1) write_transfers();
}

// The embedding alone in its chunk writes the output, and takes the gradient that comes back there.
void PassWriter::place_ends() {
  const bool embedding_alone = key_.embedding && key_.layers == 0 && !key_.head;
  if (!embedding_alone) inputs_.push_back(builder_.place("chunk input", Space::kFrame, shape_.type, elements_));
  if (!key_.head) output_ = builder_.place("chunk output", Space::kFrame, shape_.type, elements_);
  if (embedding_alone) inputs_.push_back(output_);
}

// The buffer a transfer fills forward is read as layer input and, spent, takes the gradient that is sent back; the
// output likewise takes the gradient that comes back once the output has left.
void PassWriter::place_inputs() {
  place_ends();
  chunk_.input = inputs_.front();
  chunk_.output = output_;
  const auto tokens = [&](const char* name) {
    return builder_.place(name, Space::kTokens, DType::kInt32, shape_.tokens);
  };
  chunk_.ids = key_.embedding ? tokens("ids") : kNoBuffer;
  chunk_.labels = key_.head ? tokens("labels") : kNoBuffer;
  if (key_.embedding) writer_.keep_embedding();
  bool in_loss = key_.head;  // mixture layers add their balance loss
  for (int layer = 0; layer < key_.layers; ++layer) in_loss = in_loss || shape_.kind(layer).mixture;
  if (in_loss) loss_ = builder_.view("loss", Space::kScalar, DType::kFp64, 1, 0);
  for (int layer = 1; layer < key_.layers + (key_.head ? 1 : 0); ++layer) {
    const bool stays = layer == key_.layers || begins_group(layer);
    const std::string name = fmt::format("layer {} input", layer);
    inputs_.push_back(stays ? builder_.place(name, Space::kFrame, shape_.type, elements_) : kNoBuffer);
  }
  if (key_.head) head_ = writer_.keep_head(inputs_.back(), chunk_.labels);
  place_modules();
}

// A module reads the tokens that the previous one predicts, and predicts the ones after them.
void PassWriter::place_modules() {
  int normed = head_.norm, read = chunk_.labels;
  for (int i = 0; i < chunk_.mtp; ++i) {
    const int labels =
        builder_.place(fmt::format("labels {} further on", i + 1), Space::kTokens, DType::kInt32, shape_.tokens);
    chunk_.later_labels.push_back(labels);
    modules_.push_back(writer_.keep_module(key_.layers + i, normed, read, labels));
    normed = modules_.back().head.norm, read = labels;
  }
}

// Those that do not outlive the body.
void PassWriter::place_inner_inputs(const char* name) {
  for (int layer = 1; layer < key_.layers; ++layer) {
    if (begins_group(layer)) continue;
    inputs_[static_cast<std::size_t>(layer)] =
        builder_.temporary(fmt::format("layer {} {}", layer, name), shape_.type, elements_);
  }
}

LayerKept PassWriter::keep_nothing(int layer) {
  LayerKept kept = writer_.keep_nothing(layer, input_of_kept(layer));
  kept.loss = loss_;
  return kept;
}

// Frames are placed once; what only one forward has is named anew for a second. What a backward makes again it casts
// again.
void PassWriter::keep_layers_of_forward() {
  const bool is_second = !kept_.empty();
  for (int layer = 0; layer < all_layers(); ++layer) {
    LayerKept now;
    if (recomputes(layer)) {
      now = keep_nothing(layer);
      now.casts = {};
    } else if (is_second) {
      now = key_.modules.empty() ? kept(layer) : writer_.keep_again(layer, kept(layer), key_.modules, false);
    } else {
      now = writer_.keep(layer, input_of_kept(layer), key_.modules);
      now.loss = loss_;
    }
    if (is_second) {
      kept(layer) = now;
    } else {
      kept_.push_back(now);
    }
  }
}

int PassWriter::write_forward(const char* name) {
  builder_.begin(name, shape_.pairs ? Space::kForwardWorkspace : Space::kWorkspace);
  place_inner_inputs("input");
  keep_layers_of_forward();
  if (key_.embedding) builder_.segment("embedding"), writer_.embedding_forward(chunk_.ids, inputs_.front());
  for (int layer = 0; layer < key_.layers; ++layer) {
    builder_.segment(fmt::format("layer {}", layer));
    writer_.layer_forward(layer, kept(layer), output_of(layer), Pass::kForward);
  }
  if (key_.head) builder_.segment("head"), writer_.head_forward(head_, loss_);
  for (int layer = key_.layers; layer < all_layers(); ++layer) {
    builder_.segment(module_name(layer));
    writer_.module_forward(module(layer), kept(layer), loss_);
  }
  return append();
}

int PassWriter::write_backward(const char* name, bool splits) {
  splits_this_ = splits;
  writer_.delay_weights(splits);
  builder_.begin(name);
  place_inner_inputs("input again");
  for (int layer = 0; layer < all_layers(); ++layer) {
    if (recomputes(layer)) kept(layer) = keep_nothing(layer);
  }
  layers_backward(key_.head ? head_gradient() : output_);
  if (!splits) embedding_backward();
  return append();
}

// `d`: gradient of the last one's output.
void PassWriter::layers_backward(int d) {
  for (int layer = key_.layers - 1; layer >= 0; --layer) {
    if (in_groups() && ends_group(layer)) group_again(layer);
    builder_.segment(fmt::format("layer {}", layer), part_back(layer));
    if (!in_groups()) layer_again(layer);
    const int d_input = gradient_of_input(layer, d);
    writer_.layer_backward(layer, kept(layer), d, d_input);
    d = d_input;
  }
}

// The layers of a group, which end with `last`, one after the other: what each of them saves is there until its own
// backward.
void PassWriter::group_again(int last) {
  for (int layer = last - last % key_.group; layer <= last; ++layer) {
    builder_.segment(fmt::format("layer {} again", layer), part_back(layer));
    layer_again(layer);
  }
}

std::string PassWriter::module_name(int layer) const { return fmt::format("mtp {}", layer - key_.layers); }

// Of the output of the last layer, or of a module's.
int PassWriter::gradient_at_end() {
  return splits_this_ ? builder_.place("gradient", Space::kDeferred, shape_.type, elements_)
                      : builder_.temporary("gradient", shape_.type, elements_);
}

// The gradient that the modules leave of what the head norms; kNoBuffer where there are none.
int PassWriter::modules_backward() {
  int d_norm = kNoBuffer;
  for (int layer = all_layers() - 1; layer >= key_.layers; --layer) {
    builder_.segment(module_name(layer));
    const int d = gradient_at_end();
    writer_.head_backward(module(layer).head, d, d_norm);
    layer_again(layer);
    const int d_input = gradient_of_input(layer, d);
    writer_.layer_backward(layer, kept(layer), d, d_input);
    d_norm = writer_.module_backward(module(layer), d_input);
  }
  return d_norm;
}

// The gradient that the head leaves for the last layer, or, alone in its stage, for the stage before.
int PassWriter::head_gradient() {
  const int d_norm = modules_backward();
  builder_.segment("head");
  const int d = key_.layers == 0 ? inputs_.front() : gradient_at_end();
  writer_.head_backward(head_, d, d_norm);
  return d;
}

// What the forward did not keep of a layer.
void PassWriter::layer_again(int layer) {
  if (recomputes(layer)) {
    const bool is_read = layer < key_.layers && !ends_group(layer);
    const int again = is_read ? output_of(layer)
                              : builder_.temporary(fmt::format("layer {} output again", layer), shape_.type, elements_);
    writer_.layer_forward(layer, kept(layer), again, Pass::kRecompute);
  } else if (!key_.modules.empty()) {
    kept(layer) = writer_.keep_again(layer, kept(layer), key_.modules, true);
    writer_.modules_again(layer, kept(layer), key_.modules);
  }
}

// Where a layer leaves the gradient of its input; `d`: that of its output.
int PassWriter::gradient_of_input(int layer, int d) {
  if (layer == 0 && key_.layers > 0) return inputs_.front();
  if (!writer_.keeps_gradients()) return d;
  return builder_.place(fmt::format("gradient of layer {} input", layer), Space::kDeferred, shape_.type, elements_);
}

void PassWriter::embedding_backward() {
  if (shape_.lora.used()) return;  // it is frozen
  if (key_.embedding) builder_.segment("embedding"), writer_.embedding_backward(chunk_.ids, inputs_.front());
}

void PassWriter::write_backward_weights() {
  writer_.delay_weights(false);
  builder_.begin("backward weights");
  for (int layer = all_layers() - 1; layer >= key_.layers; --layer) {
    builder_.segment(module_name(layer));
    writer_.write_weights(layer);
  }
  if (key_.head) builder_.segment("head"), writer_.write_weights(-1);
  for (int layer = key_.layers - 1; layer >= 0; --layer) {
    builder_.segment(fmt::format("layer {}", layer));
    writer_.write_weights(layer);
  }
  embedding_backward();
  chunk_.backward_weights = append();
}

void PassWriter::write_transfers() {
  const int input = inputs_.front();
  if (!key_.embedding) chunk_.recv_forward = transfer(OpKind::kRecv, Pass::kForward, input);
  if (!key_.head) chunk_.send_forward = transfer(OpKind::kSend, Pass::kForward, output_);
  if (!key_.head) chunk_.recv_backward = transfer(OpKind::kRecv, Pass::kBackward, output_);
  if (!key_.embedding) chunk_.send_backward = transfer(OpKind::kSend, Pass::kBackward, input);
  if (!key_.embedding) chunk_.gather_forward = gather_received(Pass::kForward, input);
  if (!key_.head) chunk_.gather_backward = gather_received(Pass::kBackward, output_);
}

int PassWriter::transfer(OpKind kind, Pass pass, int buffer) {
  const bool send = kind == OpKind::kSend;
  builder_.begin(fmt::format("{} {}", send ? "send" : "recv", name_of(pass)));
  builder_.segment("transfer");
  Op& op = send ? builder_.add(kind, pass, {buffer}, {}) : builder_.add(kind, pass, {}, {buffer});
  op.lane = Lane::kPipeline;
  op.group = Group::kPipeline;
  op.dtype = shape_.type;
  op.parts = shape_.transfer_parts;
  op.elements = builder_.buffer(buffer).elements / op.parts;
  return append();
}

// Each tensor rank has its own part where it belongs in the buffer.
int PassWriter::gather_received(Pass pass, int buffer) {
  if (shape_.transfer_parts == 1) return -1;
  builder_.begin(fmt::format("gather received {}", name_of(pass)));
  builder_.segment("transfer");
  Op& op = builder_.add(OpKind::kAllGather, pass, {buffer}, {buffer});
  op.lane = Lane::kPipeline;
  op.group = Group::kTensor;
  op.dtype = shape_.type;
  op.elements = builder_.buffer(buffer).elements;
  return append();
}

int PassWriter::append() {
  bodies_.push_back(builder_.finish());
  return static_cast<int>(bodies_.size()) - 1;
}

}  // namespace trivium::program
