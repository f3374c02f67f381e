// pagoda bench: prefill and decode speed of a model, beside what the machine can do.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "base/checked_math.h"
#include "base/machine_probe.h"
#include "base/random.h"
#include "cli/common.h"
#include "cli/subcommands.h"
#include "model/decoder.h"

namespace pagoda::cli {

namespace {

struct BenchOptions {
  ModelOptions model;
  std::vector<int32_t> prefill = {512}, decode = {128}, batch = {1}, depth = {0};
  int32_t repeats = 5;
  bool json = false;
};

struct Case {
  bool is_prefill;
  int32_t n, batch, depth;
};

struct Machine {
  double bandwidth_gbps = 0;
  double int8_gops = 0;
};

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A decoder with a batch of sequences of fixed maximal length, driven without scheduler or sampler: what is timed is the
/// forward pass, the logits and the choice of the highest.
class Bench {
 public:
  static Result<Bench> create(ServingModel& model, const BenchOptions& o, int32_t max_batch, int32_t max_length) {
    EngineOptions engine = o.model.engine_options();
    engine.context = max_length;
    engine.max_batch = max_batch;
    PAGODA_ASSIGN_OR_RETURN(const MemoryPlan plan, model.plan(engine));
    Bench b(model, plan);
    const ModelConfig& config = model.model().config();
    const std::vector<KvGroup> groups = kv_groups(config);
    b.blocks_per_sequence_ = ceil_div(max_length, plan.kv.block_tokens);
    const std::vector<int32_t> num_blocks(groups.size(), b.blocks_per_sequence_ * max_batch);
    PAGODA_ASSIGN_OR_RETURN(KvStore kv, KvStore::create(config, engine.kv_type, plan.kv.block_tokens, num_blocks));
    b.kv_ = std::make_unique<KvStore>(std::move(kv));
    const KvLayout layout = kv_layout(config, engine.kv_type, plan.kv.block_tokens);
    PAGODA_ASSIGN_OR_RETURN(b.decoder_, Decoder::create(model.shared_model(), plan.limits, layout, engine.attention,
                                                        model.runtime().kernels(), model.runtime().team()));
    for (int32_t s = 0; s < max_batch; ++s) {
      std::vector<int32_t>& table = b.tables_.emplace_back(b.blocks_per_sequence_);
      for (int32_t i = 0; i < b.blocks_per_sequence_; ++i) table[i] = s * b.blocks_per_sequence_ + i;
      b.pointers_.emplace_back(groups.size(), nullptr);
    }
    for (int32_t s = 0; s < max_batch; ++s) {
      for (auto& p : b.pointers_[s]) p = b.tables_[s].data();
    }
    return b;
  }

  /// Seconds for the case, after its depth was filled.
  double run(const Case& c) {
    for (int32_t s = 0; s < c.batch; ++s) fill(s, 0, c.depth);
    const double start = now_s();
    if (c.is_prefill) {
      for (int32_t s = 0; s < c.batch; ++s) {
        fill(s, c.depth, c.n);
        last_logits(1);
      }
    } else {
      for (int32_t i = 0; i < c.n; ++i) decode_step(c.batch, c.depth + i);
    }
    return now_s() - start;
  }

 private:
  Bench(ServingModel& model, const MemoryPlan& plan) : model_(model), chunk_(plan.limits.max_rows) {}

  int32_t token_at(int32_t sequence, int32_t position) const {
    const uint64_t bits = random_bits({1, static_cast<uint64_t>(sequence), static_cast<uint64_t>(position)});
    return static_cast<int32_t>(bits % static_cast<uint64_t>(model_.model().config().vocab_size));
  }

  void fill(int32_t s, int32_t begin, int32_t count) {
    for (int32_t done = 0; done < count; done += chunk_) {
      const int32_t n = std::min(chunk_, count - done);
      ids_.clear();
      for (int32_t i = 0; i < n; ++i) ids_.push_back(token_at(s, begin + done + i));
      const StepSequence sequence{0, n, begin + done, pointers_[s].data()};
      decoder_->forward({ids_, {&sequence, 1}}, *kv_);
    }
  }

  void decode_step(int32_t batch, int32_t position) {
    ids_.clear();
    sequences_.clear();
    for (int32_t s = 0; s < batch; ++s) {
      ids_.push_back(token_at(s, position));
      sequences_.push_back({s, 1, position, pointers_[s].data()});
    }
    decoder_->forward({ids_, sequences_}, *kv_);
    last_logits(batch);
  }

  // Logits of the last `count` rows and their highest entries.
  void last_logits(int32_t count) {
    const auto vocab = static_cast<size_t>(model_.model().config().vocab_size);
    const int32_t limit = decoder_->limits().max_logit_rows;
    for (int32_t done = 0; done < count; done += limit) {
      const int32_t n = std::min(limit, count - done);
      rows_.clear();
      for (int32_t i = 0; i < n; ++i) rows_.push_back(static_cast<int32_t>(ids_.size()) - count + done + i);
      decoder_->compute_logits(rows_);
      for (int32_t i = 0; i < n; ++i) {
        const float* row = decoder_->logits() + i * vocab;
        best_ += static_cast<size_t>(std::max_element(row, row + vocab) - row);
      }
    }
  }

  ServingModel& model_;
  int32_t chunk_;
  int32_t blocks_per_sequence_ = 0;
  std::unique_ptr<KvStore> kv_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<std::vector<int32_t>> tables_;
  std::vector<std::vector<const int32_t*>> pointers_;
  std::vector<int32_t> ids_, rows_;
  std::vector<StepSequence> sequences_;
  size_t best_ = 0;  // keeps the search for the highest logit alive
};

/// Weight matrices read by one step: all but an untied embedding, of which a few rows are read.
struct ModelCost {
  double weight_bytes = 0;
  double matmul_ops_per_token = 0;  // without the output matrix
  double output_ops = 0;
  double kv_bytes_per_token = 0;
};

ModelCost model_cost(const ServingModel& m, KvType kv_type) {
  ModelCost cost;
  const auto add = [&](const PackedMatrix& w, double& ops) {
    cost.weight_bytes += static_cast<double>(w.panel_bytes) * num_panels(w.n);
    ops += 2.0 * w.n * w.k;
  };
  for (const LayerWeights& w : m.model().layers()) {
    for (const PackedMatrix* x : {&w.q, &w.k, &w.v, &w.attention_output, &w.gate, &w.up, &w.down}) add(*x, cost.matmul_ops_per_token);
  }
  add(m.model().output(), cost.output_ops);
  cost.kv_bytes_per_token = static_cast<double>(kv_bytes_per_token(m.model().config(), kv_type));
  return cost;
}

struct Figures {
  double median, low, high;  // tokens/s
  double gbps, gops, share;
};

Figures figures(const Case& c, std::vector<double> seconds, const ModelCost& cost, const Machine& machine, int32_t chunk) {
  std::sort(seconds.begin(), seconds.end());
  const double tokens = static_cast<double>(c.n) * c.batch;
  const double median = seconds[seconds.size() / 2];
  Figures f{tokens / median, tokens / seconds.back(), tokens / seconds.front(), 0, 0, 0};
  const double steps = c.is_prefill ? static_cast<double>(ceil_div(c.n, chunk)) * c.batch : c.n;
  const double kv_read = cost.kv_bytes_per_token * (c.depth + c.n / 2.0) * (c.is_prefill ? steps : steps * c.batch);
  const double bytes = cost.weight_bytes * steps + kv_read;
  const double ops = cost.matmul_ops_per_token * tokens + cost.output_ops * (c.is_prefill ? c.batch : tokens);
  f.gbps = bytes / median / 1e9;
  f.gops = ops / median / 1e9;
  // The roofline: no step can be faster than its bytes at full bandwidth or its operations at full rate.
  const double bound = std::max(bytes / (machine.bandwidth_gbps * 1e9),
                                machine.int8_gops > 0 ? ops / (machine.int8_gops * 1e9) : 0.0);
  f.share = bound / median;
  return f;
}

void print_row(const Case& c, const Figures& f, bool json) {
  const char* test = c.is_prefill ? "prefill" : "decode";
  if (!json) {
    std::cout << fmt::format("{:<8} {:>6} {:>6} {:>7} {:>10.1f} {:>10.1f} {:>10.1f} {:>8.1f} {:>9.0f} {:>8.0f} %\n", test, c.n,
                             c.batch, c.depth, f.median, f.low, f.high, f.gbps, f.gops, f.share * 100) << std::flush;
    return;
  }
  JsonWriter w;
  w.begin_object();
  w.field("test", test);
  w.field("n", c.n);
  w.field("batch", c.batch);
  w.field("depth", c.depth);
  w.key("tokens_per_s");
  w.begin_object();
  w.field("median", f.median);
  w.field("min", f.low);
  w.field("max", f.high);
  w.end_object();
  w.field("gb_per_s", f.gbps);
  w.field("gop_per_s", f.gops);
  w.field("roofline_share", f.share);
  w.end_object();
  std::cout << w.text() << std::endl;
}

void print_head(const ServingModel& model, Runtime& runtime, const Machine& machine, bool json) {
  if (!json) {
    std::cout << fmt::format(
        "{} on {} threads, {}; machine: {:.1f} GB/s, {:.0f} INT8 GOP/s; load {:.0f} ms, weights {}\n"
        "test          n  batch   depth   tokens/s        min        max     GB/s     GOP/s  roofline\n",
        model.model().config().name, runtime.team().size(), isa_name(runtime.isa()), machine.bandwidth_gbps, machine.int8_gops,
        model.load_ms(), format_bytes(model.model().packed_bytes()));
    return;
  }
  JsonWriter w;
  w.begin_object();
  w.field("test", "machine");
  w.field("isa", isa_name(runtime.isa()));
  w.field("threads", runtime.team().size());
  w.field("bandwidth_gb_per_s", machine.bandwidth_gbps);
  w.field("int8_gop_per_s", machine.int8_gops);
  w.field("load_ms", model.load_ms());
  w.field("packed_weight_bytes", model.model().packed_bytes());
  w.end_object();
  std::cout << w.text() << std::endl;
}

Status run_bench(const BenchOptions& o) {
  PAGODA_ASSIGN_OR_RETURN(const auto model, o.model.load());
  std::vector<Case> cases;
  int32_t max_length = 1, max_batch = 1;
  for (const int32_t depth : o.depth) {
    for (const int32_t batch : o.batch) {
      for (const int32_t n : o.prefill) cases.push_back({true, n, batch, depth});
      for (const int32_t n : o.decode) cases.push_back({false, n, batch, depth});
    }
  }
  std::erase_if(cases, [](const Case& c) { return c.n == 0; });
  for (const Case& c : cases) {
    max_length = std::max(max_length, c.depth + c.n);
    max_batch = std::max(max_batch, c.batch);
  }
  PAGODA_ASSIGN_OR_RETURN(Bench bench, Bench::create(*model, o, max_batch, max_length));
  Machine machine;
  PAGODA_ASSIGN_OR_RETURN(machine.bandwidth_gbps, probe_bandwidth_gbps(model->runtime().team(), 3));
  machine.int8_gops = probe_int8_gops(model->runtime().team(), model->runtime().isa());
  print_head(*model, model->runtime(), machine, o.json);
  const ModelCost cost = model_cost(*model, o.model.engine_options().kv_type);
  for (const Case& c : cases) {
    bench.run(c);  // warm-up: pages, caches, clocks
    std::vector<double> seconds;
    for (int32_t r = 0; r < o.repeats; ++r) {
      seconds.push_back(bench.run(c));
      if (interrupts().is_interrupted()) return cancelled("interrupted");
    }
    print_row(c, figures(c, seconds, cost, machine, o.model.engine.prefill_chunk), o.json);
  }
  return {};
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* app = program.add_subcommand("bench", "measure prefill and decode speed beside the machine's limits");
  o->model.add_to(*app);
  const auto add_list = [&](const char* name, std::vector<int32_t>& values, const char* help, int32_t low) {
    app->add_option(name, values, help)->delimiter(',')->check(CLI::Range(low, 1 << 24))->capture_default_str();
  };
  add_list("--prefill", o->prefill, "prompt lengths to measure; 0: none", 0);
  add_list("--decode", o->decode, "numbers of tokens to decode; 0: none", 0);
  add_list("--batch", o->batch, "sequences computed together", 1);
  add_list("--depth", o->depth, "tokens cached per sequence before the clock starts", 0);
  app->add_option("-r,--repeats", o->repeats, "runs of each test; the median is reported")->check(CLI::Range(1, 1000))->capture_default_str();
  app->add_flag("--json", o->json, "one JSON object a line");
  app->callback([o, &action] {
    action = [o] {
      const Status status = run_bench(*o);
      return status.ok() ? 0 : report_failure(status, o->json);
    };
  });
}

}  // namespace pagoda::cli
