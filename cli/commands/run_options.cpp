#include "cli/commands/run_options.h"

#include <cstdint>

#include "cli/render/output.h"

namespace trivium::cli {

void add_checkpoint_options(CLI::App& command, runtime::session::CheckpointOptions& options) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  CLI::Option* folder =
      command
          .add_option("--checkpoint", options.folder, "Keep checkpoints here; the last step and Ctrl-C write one too")
          ->type_name("DIR");
  mark_output(command, folder, OutputKind::kFolder);
  command.add_option("--checkpoint-every", options.every, "Save a checkpoint every N steps (0: only at the end)")
      ->check(CLI::Range(std::int64_t{0}, kMost))
      ->needs(folder);
  command.add_option("--keep", options.keep, "How many of the newest checkpoints stay (0: all)")
      ->check(CLI::Range(std::int64_t{0}, kMost))
      ->needs(folder)
      ->capture_default_str();
  command.add_flag("--resume", options.resume, "Continue from the newest checkpoint, under this plan")->needs(folder);
}

void add_supervision_options(CLI::App& command, runtime::session::SupervisionOptions& options) {
  constexpr int kMostProcesses = 4096, kMostRestarts = 1'000'000;
  constexpr double kLongest = 1e6;
  CLI::Option* processes =
      command
          .add_option("--processes", options.processes, "A supervised process per rank under mpirun (as many as ranks)")
          ->check(CLI::Range(1, kMostProcesses));
  command.add_option("--max-restarts", options.max_restarts, "Most restarts from the last checkpoint")
      ->check(CLI::Range(0, kMostRestarts))
      ->needs(processes);
  CLI::Option* record =
      command.add_option("--flight-record", options.flight_record, "Folder for the ranks' flight records")
          ->type_name("DIR");
  mark_output(command, record, OutputKind::kFolder);
  command
      .add_option("--deadline", options.deadline_s,
                  "With flight records: seconds without any progress to give up (0: never)")
      ->check(CLI::Range(0.0, kLongest))
      ->capture_default_str();
}

}  // namespace trivium::cli
