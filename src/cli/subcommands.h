#pragma once
// One function a subcommand: adds its options to the program and, when chosen, its action. An action returns the exit
// code.

#include <CLI/CLI.hpp>
#include <functional>

namespace pagoda::cli {

using Action = std::function<int()>;

void add_run(CLI::App& program, Action& action);
void add_chat(CLI::App& program, Action& action);
void add_inspect(CLI::App& program, Action& action);
void add_tokenize(CLI::App& program, Action& action);
void add_eval(CLI::App& program, Action& action);
void add_bench(CLI::App& program, Action& action);

}  // namespace pagoda::cli
