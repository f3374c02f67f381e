#pragma once
// AttentionRunner: one layer's attention for all sequences of a step, split over the team.
//
// Decode and prefill rows mix freely. Work items are (sequence, KV head, block of rows); a few rows against a long
// context are cut into ranges of splits, whose partials the last finisher folds in order. How the work is cut changes
// no bit of the result. Buffers are sized at creation; run() allocates nothing.
//
// Thread rule: called from the engine thread; uses the team inside.

#include <atomic>
#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "base/thread_team.h"
#include "kernels/attention.h"
#include "pagoda/status.h"

namespace pagoda {

enum class AttentionKind : uint8_t {
  kFlash,
  kNaive,  ///< the baseline: whole score rows in memory
};

struct AttentionLimits {
  int32_t max_rows = 0;       ///< rows of a step, all sequences together
  int32_t max_sequences = 0;  ///< sequences of a step
  int32_t max_context = 0;    ///< positions of a sequence
  int32_t num_heads = 0;      ///< query heads
};

class AttentionRunner {
 public:
  static Result<AttentionRunner> create(const AttentionKernels& kernels, ThreadTeam& team, AttentionKind kind,
                                        const KvLayout& layout, const AttentionLimits& limits);
  /// Bytes that create() takes, for either kind.
  static uint64_t buffer_bytes(const AttentionKernels& kernels, const KvLayout& layout, const AttentionLimits& limits,
                               int num_threads);

  /// Outputs of every row of every sequence. Sequences keep the limits and the layout given to create(); outputs are
  /// disjoint and K and V of the rows are already in the cache.
  void run(std::span<const AttentionArgs> sequences);

 private:
  struct Item;
  struct Group;
  struct Sizes;
  class Plan;

  AttentionRunner(const AttentionKernels& kernels, ThreadTeam& team, AttentionKind kind)
      : kernels_(&kernels), team_(&team), kind_(kind) {}
  static Sizes sizes(const AttentionKernels& kernels, const KvLayout& layout, const AttentionLimits& limits,
                     int num_threads);
  void run_item(const AttentionArgs& args, const Item& item, uint8_t* scratch);

  const AttentionKernels* kernels_;
  ThreadTeam* team_;
  AttentionKind kind_;
  AlignedBuffer buffer_;
  size_t max_items_ = 0;
  size_t max_groups_ = 0;
  size_t scratch_bytes_ = 0;   // of one thread
  size_t partial_floats_ = 0;  // of all threads together
  Item* items_ = nullptr;
  Group* groups_ = nullptr;
  float* partials_ = nullptr;
  uint8_t* scratch_ = nullptr;
};

}  // namespace pagoda
