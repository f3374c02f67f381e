// The pagoda program: parses the command line and hands over to one subcommand.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/common.h"
#include "cli/subcommands.h"

int main(int argc, char** argv) {
  using namespace pagoda::cli;
  CLI::App program{
      "Pagoda runs open large language models on CPUs.\n\n"
      "  pagoda run -m model.gguf --chat -p 'Why is the sky blue?'   answer one question\n"
      "  pagoda chat -m model.gguf                                   talk\n"
      "  pagoda inspect model.gguf                                   what is in the file\n"
      "  pagoda bench -m model.gguf                                  how fast is it here\n\n"
      "PAGODA_ISA=reference|avx2|avx512|avx512vnni|avx512bf16 forces an instruction-set level; all give the same tokens.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong command line, 130 interrupted."};
  program.set_version_flag("--version", std::string("pagoda ") + PAGODA_VERSION);
  program.require_subcommand(1);
  program.fallthrough(false);
  Action action;
  add_run(program, action);
  add_chat(program, action);
  add_inspect(program, action);
  add_tokenize(program, action);
  add_eval(program, action);
  add_bench(program, action);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return program.exit(e) == 0 ? 0 : kExitUsage;
  }
  interrupts();  // before any other thread
  return action();
}
