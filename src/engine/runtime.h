#pragma once
// Runtime: what the process computes with, decided once: instruction set, kernels, thread team. Environment variables
// are read here and nowhere else (PAGODA_ISA forces an instruction-set level).

#include <memory>

#include "base/cpu.h"
#include "base/thread_team.h"
#include "kernels/kernel_table.h"
#include "pagoda/status.h"

namespace pagoda {

class Runtime {
 public:
  /// `num_threads` 0: as many as affinity and the control group's quota allow (default_num_threads).
  static Result<std::unique_ptr<Runtime>> create(int num_threads);

  Isa isa() const { return kernels_->isa; }
  const KernelTable& kernels() const { return *kernels_; }
  ThreadTeam& team() { return *team_; }

 private:
  const KernelTable* kernels_ = nullptr;
  std::unique_ptr<ThreadTeam> team_;
};

}  // namespace pagoda
