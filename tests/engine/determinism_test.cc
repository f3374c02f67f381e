// One request has one answer: the bits of its logits do not depend on the batch it ran in, on how its prompt was cut,
// on threads, on the prefix cache, on a preemption, on the instruction set, or on the compiler. The expected hashes are
// committed; every cell of the matrix must give them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/checked_math.h"
#include "base/cpu.h"
#include "engine/model_executor.h"
#include "random_llama.h"
#include "scheduler/scheduler.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define PAGODA_TEST_IS_SLOW_BUILD 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
#define PAGODA_TEST_IS_SLOW_BUILD 1
#endif

namespace pagoda {
namespace {

#ifdef PAGODA_TEST_IS_SLOW_BUILD
constexpr bool kIsSlowBuild = true;
#else
constexpr bool kIsSlowBuild = false;
#endif

constexpr int32_t kNumGenerated = 32;
constexpr int32_t kBlockTokens = 16;

struct Cell {
  int32_t batch = 1, chunk = 512, threads = 1;
  bool is_prefix_cached = false, is_preempted = false;
  int32_t num_prompt = 70;

  std::string name() const {
    return "batch " + std::to_string(batch) + ", chunk " + std::to_string(chunk) + ", threads " +
           std::to_string(threads) + (is_prefix_cached ? ", prefix cached" : "") + (is_preempted ? ", preempted" : "");
  }
};

struct TargetRun {
  std::vector<int32_t> ids;
  std::vector<uint64_t> hash_at;  ///< of the logits, by generated position
  int32_t num_cached = 0;
  size_t largest_batch = 0;  ///< of the steps that drew a token of the target

  uint64_t hash() const {
    uint64_t all = 0;
    for (const uint64_t h : hash_at) all = mix64(all ^ h);
    return all;
  }
};

uint64_t hash_floats(std::span<const float> values) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const float v : values) {
    uint32_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3ULL;
  }
  return hash;
}

std::vector<int32_t> random_ids(uint64_t seed, int32_t count) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(mix64(seed * 1000003 + i) % 256));
  return ids;
}

/// Scheduler and model executor driven by hand, following one request.
class Driver {
 public:
  Driver(std::shared_ptr<const Model> model, KvType kv_type, Isa isa, ThreadTeam& team, const Cell& cell)
      : cell_(cell) {
    const ModelConfig& config = model->config();
    const int32_t max_context = cell.num_prompt + kNumGenerated;
    const int32_t num_blocks = ceil_div(max_context, kBlockTokens) * (cell.batch + 1);
    SchedulerConfig scheduling;
    scheduling.max_batch = cell.batch;
    scheduling.prefill_chunk = std::min(cell.chunk, cell.num_prompt);
    scheduling.max_step_tokens = scheduling.prefill_chunk + cell.batch;
    scheduling.max_context = max_context;
    scheduling.kv = {kBlockTokens, {{0, num_blocks}}};
    scheduling.enable_prefix_cache = cell.is_prefix_cached;
    scheduler_ = std::move(Scheduler::create(scheduling)).value();

    const KernelTable& kernels = kernel_table(isa);
    const DecoderLimits limits = {scheduling.max_step_tokens, cell.batch, max_context, std::min(cell.batch, 5)};
    auto kv = KvStore::create(config, kv_type, kBlockTokens, {num_blocks});
    auto decoder =
        Decoder::create(model, limits, kv_layout(config, kv_type, kBlockTokens), AttentionKind::kFlash, kernels, team);
    executor_ = std::make_unique<ModelExecutor>(std::move(decoder).value(), std::move(kv).value(),
                                                std::vector<int32_t>{}, config, kernels, team);
    executor_->set_logits_observer([this](int32_t slot, int64_t position, std::span<const float> logits) {
      if (slot != target_slot_) return;
      EXPECT_EQ(position, cell_.num_prompt + static_cast<int64_t>(run_.hash_at.size()));
      run_.hash_at.push_back(hash_floats(logits));
    });
  }

  TargetRun run() {
    if (cell_.is_prefix_cached) warm_up();
    target_sampling_ = greedy(kNumGenerated);
    target_id_ = submit(random_ids(1, cell_.num_prompt), target_sampling_);
    // Neighbours come when most of the prompt is computed, so that they run beside the target's own tokens.
    const int32_t last_part = std::max(cell_.num_prompt - 20, 0);
    bool are_neighbours_in = cell_.chunk > last_part;
    if (are_neighbours_in) submit_neighbours();
    int32_t num_preempted = 0;
    while (scheduler_->has_work() && !is_done_) {
      step();
      if (!are_neighbours_in && num_prompt_computed_ >= last_part) {
        submit_neighbours();
        are_neighbours_in = true;
      }
      const bool is_half_way = num_preempted == 0 && num_prompt_computed_ >= 30;
      const bool is_decoding = num_preempted == 1 && run_.ids.size() >= 5;
      if (cell_.is_preempted && !is_done_ && (is_half_way || is_decoding))
        num_preempted += scheduler_->preempt(target_id_);
    }
    EXPECT_EQ(num_preempted, cell_.is_preempted ? 2 : 0);
    return run_;
  }

 private:
  static std::shared_ptr<const SamplingParams> greedy(int32_t max_tokens) {
    SamplingParams sampling;
    sampling.temperature = 0.0f;
    sampling.max_tokens = max_tokens;
    return std::make_shared<const SamplingParams>(sampling);
  }

  SequenceId submit(std::vector<int32_t> prompt, std::shared_ptr<const SamplingParams> sampling) {
    auto id = scheduler_->submit({0, std::move(prompt), std::move(sampling), ""});
    EXPECT_TRUE(id.ok()) << id.status().to_string();
    return id.ok() ? *id : -1;
  }

  void warm_up() {
    submit(random_ids(1, cell_.num_prompt), greedy(1));
    while (scheduler_->has_work()) step();
  }

  void submit_neighbours() {
    for (int32_t i = 1; i < cell_.batch; ++i) submit(random_ids(100 + i, 1 + i % 12), greedy(kNumGenerated + i % 5));
  }

  void step() {
    scheduler_->plan(0, 1 << 20, plan_);
    for (const int32_t slot : plan_.ended_slots) {
      if (slot == target_slot_) target_slot_ = -1;
    }
    for (const SequenceStart& s : plan_.starts) {
      if (s.sampling == target_sampling_) target_slot_ = s.slot;
    }
    const size_t num_before = run_.hash_at.size();
    const Status status = executor_->step(plan_, result_);
    ASSERT_TRUE(status.ok());
    if (run_.hash_at.size() > num_before) run_.largest_batch = std::max(run_.largest_batch, plan_.entries.size());
    events_.clear();
    scheduler_->commit(plan_, result_, events_);
    for (const SequenceEvent& event : events_) {
      if (event.sequence_id != target_id_) continue;
      run_.num_cached = event.num_cached_tokens;
      num_prompt_computed_ = event.num_prompt_computed;
      if (event.token_id >= 0) run_.ids.push_back(event.token_id);
      is_done_ = event.finish != FinishReason::kNone;
    }
  }

  const Cell cell_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<ModelExecutor> executor_;
  std::shared_ptr<const SamplingParams> target_sampling_;
  SequenceId target_id_ = -1;
  int32_t target_slot_ = -1;
  int32_t num_prompt_computed_ = 0;
  bool is_done_ = false;
  StepPlan plan_;
  StepResult result_;
  std::vector<SequenceEvent> events_;
  TargetRun run_;
};

constexpr int32_t kBatches[] = {1, 3, 16, 64};
constexpr int32_t kChunks[] = {1, 7, 64, 512};

Cell make_cell(int b, int c, int t, int h, int p) {
  return {kBatches[b], kChunks[c], 1 + t, h != 0, p != 0};
}

/// 16 cells that hold every pair of values of any two axes: the two-valued axes are independent linear functions of
/// the bits of the other two.
std::vector<Cell> pairwise_cells(int num_batches) {
  std::vector<Cell> cells;
  for (int b = 0; b < num_batches; ++b) {
    for (int c = 0; c < 4; ++c) cells.push_back(make_cell(b, c, (b ^ c) & 1, (b >> 1 ^ c) & 1, (b ^ c >> 1) & 1));
  }
  return cells;
}

std::vector<Cell> all_cells() {
  std::vector<Cell> cells;
  for (int i = 0; i < 4 * 4 * 8; ++i) cells.push_back(make_cell(i >> 5, i >> 3 & 3, i & 1, i >> 1 & 1, i >> 2 & 1));
  return cells;
}

std::vector<Isa> levels_of_this_cpu() {
  std::vector<Isa> levels;
  for (const Isa isa : kAllIsas) {
    if (isa <= detect_isa()) levels.push_back(isa);
  }
  return levels;
}

struct Variant {
  const char* name;
  DType weights;
  KvType kv_type;
  uint64_t expected;       ///< prompt of 70 tokens
  uint64_t expected_long;  ///< prompt of 250 tokens: its answer crosses the attention's split at 256
};

void PrintTo(const Variant& variant, std::ostream* out) {
  *out << variant.name;
}

class Determinism : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    for (int n = 1; n <= 2; ++n) teams_[n] = std::move(ThreadTeam::create(n)).value();
    bytes_ = RandomLlama(GetParam().weights).bytes();
    auto file = GgufFile::parse(bytes_, {});
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    auto model = Model::load(*file, *teams_[1], [](uint64_t, uint64_t) { return true; });
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    model_ = *model;
  }

  void check(Isa isa, const Cell& cell, uint64_t expected) {
    const TargetRun run = Driver(model_, GetParam().kv_type, isa, *teams_[cell.threads], cell).run();
    ASSERT_EQ(run.hash_at.size(), static_cast<size_t>(kNumGenerated));
    ASSERT_EQ(run.ids.size(), static_cast<size_t>(kNumGenerated));
    EXPECT_EQ(run.num_cached > 0, cell.is_prefix_cached) << cell.name();
    if (!cell.is_preempted) EXPECT_EQ(run.largest_batch, static_cast<size_t>(cell.batch)) << cell.name();
    auto& first = first_[cell.num_prompt];
    if (first.hash_at.empty()) first = run;
    EXPECT_EQ(run.ids, first.ids) << isa_name(isa) << ", " << cell.name();
    int32_t position = 0;  // the first whose logits differ from the first cell's: it says where to look
    while (position < kNumGenerated && run.hash_at[position] == first.hash_at[position]) ++position;
    EXPECT_EQ(run.hash(), expected) << std::hex << "hash 0x" << run.hash() << std::dec << ", " << isa_name(isa) << ", "
                                    << cell.name() << ": differs from the first cell from generated token " << position
                                    << " of " << kNumGenerated;
  }

  std::map<int, std::unique_ptr<ThreadTeam>> teams_;
  std::vector<uint8_t> bytes_;
  std::shared_ptr<const Model> model_;
  std::map<int32_t, TargetRun> first_;  // by prompt length
};

TEST_P(Determinism, EveryWayToRunARequestGivesTheSameBits) {
  for (const Isa isa : levels_of_this_cpu()) {
    const bool is_slow = isa == Isa::kReference || kIsSlowBuild;
    for (const Cell& cell : is_slow ? pairwise_cells(isa == Isa::kReference ? 1 : 2) : all_cells()) {
      check(isa, cell, GetParam().expected);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Determinism, ContextsOfSeveralSplitsToo) {
  for (const Isa isa : levels_of_this_cpu()) {
    if (kIsSlowBuild && isa == Isa::kReference) continue;
    for (Cell cell : {make_cell(0, 3, 1, 0, 0), make_cell(1, 1, 0, 1, 1)}) {
      cell.num_prompt = 250;
      check(isa, cell, GetParam().expected_long);
      if (HasFatalFailure()) return;
      if (isa == Isa::kReference) break;
    }
  }
}

// The answers themselves must not be degenerate, or equal hashes would mean little.
TEST_P(Determinism, TheAnswerDependsOnThePrompt) {
  Cell cell;
  const TargetRun one = Driver(model_, GetParam().kv_type, detect_isa(), *teams_[1], cell).run();
  cell.num_prompt = 69;
  const TargetRun other = Driver(model_, GetParam().kv_type, detect_isa(), *teams_[1], cell).run();
  EXPECT_NE(one.hash(), other.hash());
  EXPECT_GT(std::set<int32_t>(one.ids.begin(), one.ids.end()).size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(
    Types, Determinism,
    testing::Values(Variant{"F32", DType::kF32, KvType::kF32, 0xff973135a2d0643b, 0x69371896d349be41},
                    Variant{"BF16", DType::kBF16, KvType::kF16, 0x1936ebf7d7b9f540, 0x852420a09f292c9a},
                    Variant{"Q8_0", DType::kQ8_0, KvType::kF16, 0x42aded9e1a2c41b7, 0x17a81fa6d99821f8},
                    Variant{"Q8_0_KvBF16", DType::kQ8_0, KvType::kBF16, 0x2f4be652a03c0b9a, 0x4121fc0ac3f634},
                    Variant{"Q4_K", DType::kQ4_K, KvType::kF16, 0xf4856d81e6c853ec, 0x103e713f7c8f9726}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace pagoda
