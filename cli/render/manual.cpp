#include "cli/render/manual.h"

#include <algorithm>

namespace trivium::cli {
namespace {

using Options = std::vector<std::string>;

const Options kJob{"--model", "--cluster", "--ranks", "--sequence", "--global-batch"};
const Options kSplit{"--tensor", "--context",    "--pipeline",    "--virtual-stages", "--data",
                     "--expert", "--zero-stage", "--micro-batch", "--recompute",      "--precision"};

Options joined(std::initializer_list<Options> lists) {
  Options all;
  for (const Options& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::vector<Manual> planning() {
  return {
      {"plan",
       "Searches all ways to split the training of a model over a cluster, and proves that none is faster than the one "
       "it prints. Fields of the plan that are given as options stay as they are; the rest is searched. Studies answer "
       "what follows from the answer: cost, deadlines, batches, other hardware.",
       joined({kJob,
               {"--tokens", "--tensor", "--context", "--pipeline", "--virtual-stages", "--data", "--zero-stage",
                "--precision", "--fix", "--forbid", "--min", "--max", "--for", "--deadline", "--pareto", "--output",
                "--all", "--json"}}),
       {{"trivium plan --model llama3-8b --cluster dgx-h100-80gb:2 --global-batch 256 -o plan.json",
         "the fastest plan on 16 GPUs, written to a file"},
        {"trivium plan plan.json --forbid offload --max tensor=2 --zero-stage 1 -o other.json",
         "the same job with bounds on the plan"},
        {"trivium plan --model gpt3-175b --cluster dgx-a100-80gb:128 --global-batch 1536 --tokens 300B",
         "with time, energy and price of the whole training"}}},
      {"simulate",
       "Simulates one plan event by event: iteration, where its time goes, memory of every rank, and how far a "
       "measurement may be off. With the options of disturbances and failures, what they cost.",
       joined({kJob,
               {"--tokens"},
               kSplit,
               {"--trace", "--ignore-memory", "--json", "--jitter", "--slow-device", "--failures"}}),
       {{"trivium simulate plan.json", "iteration, breakdown and memory of a plan"},
        {"trivium simulate plan.json --recompute full --trace trace.json", "a variant, with its timeline for Perfetto"},
        {"trivium simulate --model gpt2-124m --cluster dgx-a100-80gb --global-batch 64 --data 8",
         "a plan that is said by options"}}},
      {"explain",
       "Says in sentences what limits a plan and what to change first; with --why-not, what rules another plan out or "
       "how much slower it is and where.",
       joined({kJob, kSplit, {"--why-not", "--trace", "--json"}}),
       {{"trivium explain plan.json", "what limits it"},
        {"trivium explain plan.json --why-not other.json", "why not the other one"}}},
      {"compare",
       "Simulates plans and sets them side by side, with the fields in which they differ.",
       {},
       {{"trivium compare plan.json other.json", "two plans, field by field and second by second"}}},
      {"scale",
       "Finds the best plan for more and more devices: with the batch as it is (strong scaling), or growing with the "
       "devices (weak).",
       joined({kJob,
               {"--tokens", "--price", "--precision", "--fix", "--forbid", "--min", "--max", "--curve", "--devices",
                "--csv", "--threads", "--json"}}),
       {{"trivium scale --model gpt3-2.7b --cluster dgx-a100-80gb:4 --global-batch 512 --devices 8,16,32",
         "a curve of three points"}}},
      {"program",
       "Prints what a rank executes: its memory, its tasks in order, and the ops inside them with their dependencies.",
       joined({kJob, kSplit, {"--rank"}}),
       {{"trivium program plan.json --rank 3", "tasks and ops of one rank"}}},
  };
}

std::vector<Manual> training() {
  return {
      {"run",
       "Trains a plan for real on this machine: ranks are threads, with --processes or under mpirun processes, with "
       "--backend cuda GPUs. Every split trains with the losses of the unsplit model.",
       joined({kJob,
               {"--learning-rate"},
               kSplit,
               {"--corpus", "--steps", "--validation", "--checkpoint", "--resume", "--processes", "--record", "--trace",
                "--backend", "--json"}}),
       {{"trivium run --model gpt-tiny --pipeline 2 --global-batch 8 --corpus text.txt --record run.json",
         "ten steps on two cores, with what was measured"},
        {"trivium run --model gpt-tiny --global-batch 8 --corpus text.txt --steps 20 --checkpoint kept",
         "with a checkpoint after the last step"}}},
      {"replan",
       "Says from a run's measured stages how many layers each should have.",
       {},
       {{"trivium replan run.json -o better.json", "better stage layers as a plan file"}}},
      {"report",
       "Writes one HTML page that needs no other file: the plan, its timeline, memory, and what limits it.",
       joined({kJob, {"--tokens", "--price"}, kSplit, {"--output", "--every-rank", "--jitter"}}),
       {{"trivium report plan.json -o plan.html", "a page to send to others"}}},
      {"sample",
       "Goes on from a text with a model that was trained.",
       {},
       {{"trivium sample --checkpoint kept --prompt \"In the beginning\" --tokens 40 --temperature 0",
         "forty tokens, always the likeliest"}}},
      {"tokenize",
       "Makes a token file of a text, once for all runs.",
       {},
       {{"trivium tokenize text.txt -o text.bin", "bytes as tokens; --vocabulary and --merges for GPT-2's"}}},
      {"checkpoint", "Looks into checkpoints, and moves them between plans and programs.", {}, {}},
      {"checkpoint inspect",
       "Verifies the files of a checkpoint and lists what is in them.",
       {},
       {{"trivium checkpoint inspect kept", "step, plan, tensors"}}},
      {"checkpoint convert",
       "Writes a checkpoint as it lies under another plan, or as a Hugging Face file; reads such files too.",
       {},
       {{"trivium checkpoint convert kept weights.safetensors", "the weights for others"}}},
  };
}

std::vector<Manual> measuring() {
  return {
      {"export",
       "Writes the file with which another trainer starts a plan; what it cannot be told is said on stderr.",
       joined({{"--to"}, kJob, kSplit, {"--output", "--json"}}),
       {{"trivium export plan.json --to megatron -o train.sh", "a shell script for Megatron-LM"},
        {"trivium export other.json --to torchtitan", "torchtitan's TOML and flavor in a script"}}},
      {"import",
       "Reads another trainer's launch file as a plan; what has no place in a plan is said on stderr.",
       {},
       {{"trivium import train.sh --cluster dgx-h100-80gb:2 -o imported.json", "Megatron's arguments as a plan file"}}},
      {"capture",
       "Runs a launch script with stand-ins for torchrun, srun, sbatch and the like, which write down their arguments "
       "and start nothing; the result is a script for `import`.",
       {},
       {{"trivium capture -o captured.sh -- bash train.sh", "what train.sh would start, as a script"},
        {"trivium import captured.sh --cluster dgx-h100-80gb:2 -o imported.json", "that script as a plan file"}}},
      {"improve",
       "Predicts what a launch file runs, searches the best plan for the same trainer, model, batch and devices, and "
       "says option by option what changes and what each change gains. With --patch it prints the changed file as a "
       "unified diff.",
       {"FILE", "--cluster", "--model", "--sequence", "--global-batch", "--ranks", "--env", "--forbid", "--max",
        "--patch", "--output", "--all", "--json"},
       {{"trivium improve train.sh --cluster dgx-h100-80gb:2", "what train.sh gains by the best plan"},
        {"trivium improve train.sh --cluster dgx-h100-80gb:2 --max pipeline=1", "by the best one without a pipeline"}}},
      {"trial",
       "Runs plans of one job as short jobs by a command of yours, the likeliest to be the fastest first, until one is "
       "known to be. Without --go it says what it would run.",
       {"PLAN", "--launch", "--to", "--go", "--folder", "--probability", "--minutes", "--output", "--json"},
       {{"trivium trial plan.json other.json --launch 'srun -N {nodes} bash {script}' --to megatron",
         "what two jobs of Megatron-LM would be run, and how likely each is to be the fastest"}}},
      {"validate",
       "Holds predictions against measurements: of one run op by op, of a folder of runs over time, or of tables of "
       "published ones.",
       {},
       {{"trivium validate run.json", "a run against the prediction of its plan"},
        {"trivium validate plan.json train.log", "a plan against the log of Megatron-LM, DeepSpeed or PyTorch"},
        {"trivium validate run.json --html validation.html", "the same as a page with pictures"}}},
      {"calibrate",
       "Fits a hardware profile to what was measured: run records, outputs of nccl-tests, traces of PyTorch and Nsight "
       "Systems, logs of trainers, told apart by their content.",
       {},
       {{"trivium calibrate run.json -o calibrated.json", "a profile of this machine that knows the run"}}},
      {"profile",
       "Measures kernels, memory and links of this machine and keeps them as the profile this-machine.",
       {},
       {{"trivium profile --quick -o mine.json", "with fewer shapes and repetitions, to a file"}}},
      {"models",
       "Lists shipped models with their parameters, or shows one with its source.",
       {},
       {{"trivium models", "all of them"}, {"trivium models llama3-70b", "one of them"}}},
      {"profiles",
       "Lists shipped hardware, or shows a node: every constant with its source.",
       {},
       {{"trivium profiles dgx-h100-80gb", "a node"},
        {"trivium profiles dgx-h100-80gb --template -o my-node.json", "one to change into your own"}}},
      {"stacks",
       "Lists the trainers' software that plans can name, or shows one: every flag with its source.",
       {},
       {{"trivium stacks", "all of them"}, {"trivium stacks megatron-core", "one of them"}}},
      {"doctor", "Says what this machine offers, and what is missing for more.", {}, {{"trivium doctor", "a table"}}},
      {"completion",
       "Prints a script with which a shell completes commands, options and their values. Packages install them.",
       {},
       {{"trivium completion bash > trivium.bash", "then: source trivium.bash"},
        {"trivium completion fish > trivium.fish", "for ~/.config/fish/completions"}}},
      {"schema",
       "Prints the JSON Schema of a form that the program reads or writes, by the name in its member \"schema\".",
       {},
       {{"trivium schema", "the names"}, {"trivium schema plan-result > plan-result.schema.json", "one of them"}}},
  };
}

}  // namespace

const std::vector<Manual>& manuals() {
  static const std::vector<Manual> kManuals = [] {
    std::vector<Manual> all{
        {"",
         "Trivium finds the fastest way to split the training of a GPT over a cluster, proves it on an event "
         "simulator, "
         "and trains the same plan for real.",
         {},
         {{"trivium plan --model llama3-8b --cluster dgx-h100-80gb:2 --global-batch 256 -o plan.json",
           "the fastest plan on 16 GPUs"},
          {"trivium simulate plan.json", "where its time and memory go"},
          {"trivium export plan.json --to megatron", "how Megatron-LM starts it"}}}};
    for (const auto& part : {planning(), training(), measuring()}) all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return kManuals;
}

const Manual* find_manual(std::string_view command) {
  const auto& all = manuals();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Manual& manual) { return manual.command == command; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace trivium::cli
