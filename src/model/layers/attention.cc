#include "model/layers/attention.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace pagoda {

namespace {

// A prefill item: 192 rows (position x head) share each tile of K and V, which keeps the state of the rows in L2
// (D = 64: 110 KiB), but at most 64 positions, so that the causal triangle wastes little.
constexpr int32_t kItemRows = 192;
constexpr int32_t kMinItemPositions = 8;
constexpr int32_t kMaxItemPositions = 64;
// Items per thread: enough that the last one to finish costs little, few enough that each stays worth its start.
constexpr int32_t kItemsPerThread = 4;
// Rows (positions) of a sequence that may be cut along its context: a decode row and its drafts.
constexpr int32_t kMaxSplitPositions = 8;
// Partials for this many rows of every head at the longest context; past that, sequences run uncut (same bits).
constexpr int32_t kPartialRows = 4;

int32_t positions_per_item(int32_t group_size) {
  return std::clamp(kItemRows / group_size, kMinItemPositions, kMaxItemPositions);
}

int32_t first_split(const AttentionArgs& args) {
  const int32_t seen = args.window > 0 ? std::max(0, args.first_position + 1 - args.window) : 0;
  return seen / kAttentionSplit;
}

int32_t end_split(const AttentionArgs& args) {
  return (args.first_position + args.num_rows - 1) / kAttentionSplit + 1;
}

}  // namespace

/// What one thread takes at a time. `group` >= 0: splits [split_begin, split_end) into that group's partials.
struct AttentionRunner::Item {
  int64_t cost;
  int32_t sequence;
  AttentionItem part;
  int32_t group;
  int32_t split_begin;
  int32_t split_end;
};

/// The partials of one (sequence, KV head), and how many of its items are unfinished.
struct AttentionRunner::Group {
  float* partials;
  size_t stride;
  int32_t first_split;
  int32_t num_splits;
  int32_t items_left;  // by atomic_ref while the team runs
};

struct AttentionRunner::Sizes {
  size_t items, groups, scratch, partials;  // counts of items and groups; bytes
  int num_threads;
  size_t items_bytes() const { return round_up<size_t>(items * sizeof(Item), AlignedBuffer::kAlignment); }
  size_t groups_bytes() const { return round_up<size_t>(groups * sizeof(Group), AlignedBuffer::kAlignment); }
  size_t total() const { return items_bytes() + groups_bytes() + scratch * num_threads + partials; }
};

AttentionRunner::Sizes AttentionRunner::sizes(const AttentionKernels& kernels, const KvLayout& layout,
                                              const AttentionLimits& limits, int num_threads) {
  AttentionArgs args;
  args.layout = layout;
  args.num_heads = limits.num_heads;
  const int32_t group_size = limits.num_heads / layout.num_kv_heads;
  const auto kv_heads = static_cast<size_t>(layout.num_kv_heads);
  const size_t row_blocks = static_cast<size_t>(limits.max_rows) / kMinItemPositions + limits.max_sequences;
  Sizes s;
  s.num_threads = num_threads;
  // Cutting along the context makes at most twice the wanted number more: ranges are rounded down to whole splits.
  s.items = row_blocks * kv_heads + 2 * static_cast<size_t>(kItemsPerThread) * num_threads;
  s.groups = limits.max_sequences * kv_heads;
  const int32_t item_positions = std::min(limits.max_rows, positions_per_item(group_size));
  s.scratch = round_up<size_t>(
      std::max(kernels.scratch_bytes(args, item_positions), kernels.naive_scratch_bytes(args, limits.max_context)),
      AlignedBuffer::kAlignment);
  const size_t splits = (static_cast<size_t>(limits.max_context) + kAttentionSplit - 1) / kAttentionSplit;
  s.partials =
      num_threads == 1 ? 0 : splits * kv_heads * kernels.partial_floats(args, 1) * kPartialRows * sizeof(float);
  return s;
}

uint64_t AttentionRunner::buffer_bytes(const AttentionKernels& kernels, const KvLayout& layout,
                                       const AttentionLimits& limits, int num_threads) {
  return sizes(kernels, layout, limits, num_threads).total();
}

Result<AttentionRunner> AttentionRunner::create(const AttentionKernels& kernels, ThreadTeam& team, AttentionKind kind,
                                                const KvLayout& layout, const AttentionLimits& limits) {
  const Sizes s = sizes(kernels, layout, limits, team.size());
  AttentionRunner runner(kernels, team, kind);
  PAGODA_ASSIGN_OR_RETURN(runner.buffer_, AlignedBuffer::create(s.total()));
  uint8_t* next = runner.buffer_.data();
  runner.max_items_ = s.items;
  runner.max_groups_ = s.groups;
  runner.scratch_bytes_ = s.scratch;
  runner.partial_floats_ = s.partials / sizeof(float);
  runner.partials_ = reinterpret_cast<float*>(next);
  runner.scratch_ = next + s.partials;
  runner.items_ = reinterpret_cast<Item*>(runner.scratch_ + s.scratch * team.size());
  runner.groups_ = reinterpret_cast<Group*>(runner.scratch_ + s.scratch * team.size() + s.items_bytes());
  return runner;
}

/// Cuts the step's work into items, in the runner's buffers.
class AttentionRunner::Plan {
 public:
  Plan(AttentionRunner& runner, std::span<const AttentionArgs> sequences) : r_(runner) {
    int64_t total = 0;
    for (const AttentionArgs& args : sequences) total += cost(args, 0, args.num_rows) * args.layout.num_kv_heads;
    target_ = std::max<int64_t>(1, total / (int64_t{kItemsPerThread} * runner.team_->size()));
    for (size_t i = 0; i < sequences.size(); ++i) {
      for (int32_t h = 0; h < sequences[i].layout.num_kv_heads; ++h) add(sequences[i], static_cast<int32_t>(i), h);
    }
    // Longest first; the rest of the order is fixed so that a run repeats.
    std::sort(r_.items_, r_.items_ + num_items_, [](const Item& a, const Item& b) {
      if (a.cost != b.cost) return a.cost > b.cost;
      if (a.sequence != b.sequence) return a.sequence < b.sequence;
      if (a.part.kv_head != b.part.kv_head) return a.part.kv_head < b.part.kv_head;
      return a.split_begin != b.split_begin ? a.split_begin < b.split_begin : a.part.row_begin < b.part.row_begin;
    });
  }

  size_t num_items() const { return num_items_; }

 private:
  /// Tokens seen, summed over rows [begin, end), plus what starting a row costs. Of one KV head.
  static int64_t cost(const AttentionArgs& args, int32_t begin, int32_t end) {
    const int64_t last = args.first_position + (begin + end - 1) / 2 + 1;
    const int64_t seen = args.window > 0 ? std::min<int64_t>(args.window, last) : last;
    return (seen + kAttentionTile) * (end - begin);
  }

  void push(const Item& item) {
    PAGODA_CHECK(num_items_ < r_.max_items_);
    r_.items_[num_items_++] = item;
  }

  void add(const AttentionArgs& args, int32_t sequence, int32_t kv_head) {
    if (args.num_rows <= 0) return;
    if (try_split(args, sequence, kv_head)) return;
    const int32_t group_size = args.num_heads / args.layout.num_kv_heads;
    const int32_t widest = std::min(args.num_rows, positions_per_item(group_size));
    // Short prefills are cut finer, or some threads would have nothing.
    const int64_t row_cost = std::max<int64_t>(1, cost(args, 0, args.num_rows) / args.num_rows);
    const int64_t fitting = std::clamp<int64_t>(target_ / row_cost, kMinItemPositions, kMaxItemPositions);
    const int32_t step = std::min(widest, static_cast<int32_t>(fitting));
    for (int32_t begin = 0; begin < args.num_rows; begin += step) {
      const int32_t end = std::min(begin + step, args.num_rows);
      push({cost(args, begin, end), sequence, {kv_head, begin, end}, -1, 0, 0});
    }
  }

  /// Cuts along the context when one item would be much more than a thread's fair share and there is room for partials.
  bool try_split(const AttentionArgs& args, int32_t sequence, int32_t kv_head) {
    if (r_.kind_ == AttentionKind::kNaive || r_.team_->size() == 1 || args.num_rows > kMaxSplitPositions) return false;
    const int64_t whole = cost(args, 0, args.num_rows);
    const int32_t first = first_split(args);
    const int32_t num_splits = end_split(args) - first;
    if (whole <= target_ || num_splits < 2) return false;
    const size_t stride = r_.kernels_->partial_floats(args, args.num_rows);
    const size_t needed = stride * num_splits;
    const int32_t per_item = std::max<int32_t>(1, static_cast<int32_t>(num_splits * target_ / whole));
    const auto num_ranges = static_cast<size_t>((num_splits + per_item - 1) / per_item);
    const size_t reserved = ranges_used_ + num_ranges - 1;
    if (used_floats_ + needed > r_.partial_floats_ || num_groups_ >= r_.max_groups_ ||
        reserved > 2 * static_cast<size_t>(kItemsPerThread) * r_.team_->size()) {
      return false;
    }
    ranges_used_ = reserved;
    r_.groups_[num_groups_] = {r_.partials_ + used_floats_, stride, first, num_splits,
                               static_cast<int32_t>(num_ranges)};
    for (int32_t s = first; s < first + num_splits; s += per_item) {
      const int32_t end = std::min(s + per_item, first + num_splits);
      push({whole * (end - s) / num_splits,
            sequence,
            {kv_head, 0, args.num_rows},
            static_cast<int32_t>(num_groups_),
            s,
            end});
    }
    used_floats_ += needed;
    ++num_groups_;
    return true;
  }

  AttentionRunner& r_;
  int64_t target_ = 1;  // cost that one item should have
  size_t num_items_ = 0;
  size_t num_groups_ = 0;
  size_t used_floats_ = 0;
  size_t ranges_used_ = 0;
};

void AttentionRunner::run_item(const AttentionArgs& args, const Item& item, uint8_t* scratch) {
  if (kind_ == AttentionKind::kNaive) {
    kernels_->attend_naive(args, item.part, scratch);
    return;
  }
  if (item.group < 0) {
    kernels_->attend(args, item.part, scratch);
    return;
  }
  Group& group = groups_[item.group];
  for (int32_t s = item.split_begin; s < item.split_end; ++s) {
    kernels_->attend_split(args, item.part, s, scratch, group.partials + (s - group.first_split) * group.stride);
  }
  // Acquire and release: the last finisher sees the partials of all the others.
  std::atomic_ref<int32_t> left(group.items_left);
  if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    kernels_->fold_splits(args, item.part, group.partials, group.num_splits);
  }
}

void AttentionRunner::run(std::span<const AttentionArgs> sequences) {
  const Plan plan(*this, sequences);
  team_->parallel_for(static_cast<int64_t>(plan.num_items()), 1, [&](int64_t begin, int64_t end, int member) {
    for (int64_t i = begin; i < end; ++i) {
      run_item(sequences[items_[i].sequence], items_[i], scratch_ + scratch_bytes_ * member);
    }
  });
}

}  // namespace pagoda
