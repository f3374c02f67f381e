#include "model/layers/linear.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/packing.h"

namespace pagoda {

namespace {

// Enough items for the threads to even out, not so many that handing them out shows: 8 a thread, 2 to 64 panels each.
int32_t panels_per_item(int32_t total_panels, int num_threads) {
  return std::clamp(total_panels / (num_threads * 8), 2, 64);
}

}  // namespace

Result<LinearRunner> LinearRunner::create(const MatmulKernels& kernels, ThreadTeam& team, int32_t max_rows, int32_t max_k) {
  LinearRunner runner(kernels, team);
  for (int f = 0; f < kNumFormats; ++f) {
    PAGODA_ASSIGN_OR_RETURN(runner.act_[f],
                            AlignedBuffer::create(kernels.act_bytes(static_cast<ActFormat>(f), max_rows, max_k)));
  }
  return runner;
}

uint64_t LinearRunner::buffer_bytes(const MatmulKernels& kernels, int32_t max_rows, int32_t max_k) {
  uint64_t total = 0;
  for (int f = 0; f < kNumFormats; ++f) total += kernels.act_bytes(static_cast<ActFormat>(f), max_rows, max_k);
  return total;
}

void LinearRunner::run(const float* x, size_t x_stride, int32_t num_rows, int32_t k, std::span<const LinearJob> jobs,
                       int32_t num_segments) {
  bool wanted[kNumFormats] = {};
  int32_t total_panels = 0;
  for (const LinearJob& job : jobs) {
    PAGODA_DCHECK(job.weights->k == k);
    wanted[static_cast<int>(act_format(job.weights->dtype))] = true;
    total_panels += num_panels(job.weights->n);
  }
  // One row is converted faster than a second thread can be told of it.
  const int32_t tiles = kernels_->act_num_tiles(num_rows);
  team_->parallel_for(tiles, num_rows <= 4 ? tiles : 1, [&](int64_t begin, int64_t end, int) {
    for (int f = 0; f < kNumFormats; ++f) {
      if (!wanted[f]) continue;
      kernels_->prepare_act(static_cast<ActFormat>(f), x, x_stride, num_rows, k, static_cast<int32_t>(begin),
                            static_cast<int32_t>(end), act_[f].data());
    }
  });
  const int32_t step = panels_per_item(total_panels, team_->size());
  team_->parallel_for(total_panels, step, [&](int64_t begin, int64_t end, int) {
    int32_t first = 0;  // index of the job's first panel in the joint numbering
    for (const LinearJob& job : jobs) {
      const int32_t count = num_panels(job.weights->n);
      const auto low = static_cast<int32_t>(std::max<int64_t>(begin - first, 0));
      const auto high = static_cast<int32_t>(std::min<int64_t>(end - first, count));
      first += count;
      if (low >= high) continue;
      MatmulArgs args;
      args.weights = *job.weights;
      args.act = act_[static_cast<int>(act_format(job.weights->dtype))].data();
      args.num_rows = num_rows;
      args.panel_begin = low;
      args.panel_end = high;
      args.num_segments = num_segments;
      args.bias = job.bias;
      args.store = job.store;
      args.out = job.out;
      args.out_stride = job.out_stride;
      kernels_->matmul(args);
    }
  });
}

}  // namespace pagoda
