#include "engine/runtime.h"

#include <cstdlib>

namespace pagoda {

Result<std::unique_ptr<Runtime>> Runtime::create(int num_threads) {
  const char* forced = std::getenv("PAGODA_ISA");
  PAGODA_ASSIGN_OR_RETURN(const Isa isa, choose_isa(forced == nullptr ? "" : forced));
  auto runtime = std::make_unique<Runtime>();
  runtime->kernels_ = &kernel_table(isa);
  PAGODA_ASSIGN_OR_RETURN(runtime->team_, ThreadTeam::create(num_threads > 0 ? num_threads : default_num_threads()));
  return runtime;
}

}  // namespace pagoda
