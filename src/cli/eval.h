#pragma once
// The measures under `pagoda eval`, a function each.

#include "cli/subcommands.h"

namespace pagoda::cli {

void add_divergence(CLI::App& eval, Action& action);

}  // namespace pagoda::cli
