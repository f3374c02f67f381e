#pragma once
// LinearRunner: matmuls that share one activation matrix. Activations are converted once per format that the weights
// ask for; panels of all jobs are handed out over the team together.
//
// Thread rule: called from the engine thread; uses the team inside.

#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "base/thread_team.h"
#include "kernels/matmul.h"
#include "pagoda/status.h"

namespace pagoda {

/// out[m][n] (+)= act[m] . weights[n] (+ bias[n])
struct LinearJob {
  const PackedMatrix* weights = nullptr;
  const float* bias = nullptr;
  float* out = nullptr;
  size_t out_stride = 0;
  MatmulStore store = MatmulStore::kOverwrite;
};

/// Attention output and FFN down are what tensor parallelism sums over ranks: their K is cut at four fixed points, so
/// that one rank and four give the same bits.
inline constexpr int32_t kReducedSegments = 4;

class LinearRunner {
 public:
  /// Buffers for activations of up to [max_rows, max_k].
  static Result<LinearRunner> create(const MatmulKernels& kernels, ThreadTeam& team, int32_t max_rows, int32_t max_k);
  static uint64_t buffer_bytes(const MatmulKernels& kernels, int32_t max_rows, int32_t max_k);

  /// x: [num_rows, k], rows x_stride apart; all jobs have K = k.
  void run(const float* x, size_t x_stride, int32_t num_rows, int32_t k, std::span<const LinearJob> jobs,
           int32_t num_segments);

 private:
  static constexpr int kNumFormats = 4;
  LinearRunner(const MatmulKernels& kernels, ThreadTeam& team) : kernels_(&kernels), team_(&team) {}
  const MatmulKernels* kernels_;
  ThreadTeam* team_;
  AlignedBuffer act_[kNumFormats];
};

}  // namespace pagoda
