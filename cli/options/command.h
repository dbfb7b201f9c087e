// The subcommands of `trivium`: each file adds one to the parser, with its options and what it does.
#pragma once

#include <CLI/CLI.hpp>

namespace trivium::cli {

/// Every function adds one subcommand; when the user chose it, its work runs at the end of the parse and puts its exit
/// code into `exit_code`. Both arguments must outlive the parse. Errors of the work: base::Failure out of the parse.
void add_calibrate(CLI::App& app, int& exit_code);
void add_capture(CLI::App& app, int& exit_code);
void add_checkpoint(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_export(CLI::App& app, int& exit_code);
void add_import(CLI::App& app, int& exit_code);
void add_improve(CLI::App& app, int& exit_code);
void add_man(CLI::App& app, int& exit_code);
void add_models(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_profile(CLI::App& app, int& exit_code);
void add_profiles(CLI::App& app, int& exit_code);
void add_program(CLI::App& app, int& exit_code);
void add_replan(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_sample(CLI::App& app, int& exit_code);
void add_scale(CLI::App& app, int& exit_code);
void add_schema(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_stacks(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_trial(CLI::App& app, int& exit_code);
void add_validate(CLI::App& app, int& exit_code);

}  // namespace trivium::cli
