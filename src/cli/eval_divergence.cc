// pagoda eval divergence: how far a model's next-token distributions are from a reference's, position by position:
// Kullback-Leibler divergence KL(reference || model), and how often both rank the same token first.
//
// The reference is a GGUF file (bench/kl_divergence.py makes one from Hugging Face's F32 computation): for i = 0, 1,
// ... the key `ids.<i>` (int32 array: the tokens given) and the tensor `logits.<i>` (F32, [vocab, rows]: the
// reference's logits after the last `rows` of those tokens).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

#include "base/checked_math.h"
#include "cli/common.h"
#include "cli/eval.h"

namespace pagoda::cli {

namespace {

struct DivergenceOptions {
  ModelOptions model;
  std::string reference_file;
  bool json = false;
};

struct ReferenceSequence {
  std::vector<int32_t> ids;
  const GgufTensorInfo* logits = nullptr;
  int32_t num_rows = 0;  // of logits: the last positions
};

struct Divergence {
  std::vector<double> kl;  // by position
  int64_t num_same_argmax = 0;

  double mean() const { return std::accumulate(kl.begin(), kl.end(), 0.0) / static_cast<double>(kl.size()); }
  double quantile(double q) {
    const auto at = kl.begin() + static_cast<ptrdiff_t>(q * static_cast<double>(kl.size() - 1));
    std::nth_element(kl.begin(), at, kl.end());
    return *at;
  }
};

/// Logarithm of the sum of exp(logit).
double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float v : logits) sum += std::exp(v - largest);
  return largest + std::log(sum);
}

double kl_divergence(std::span<const float> reference, std::span<const float> logits) {
  const double reference_norm = log_sum_exp(reference), norm = log_sum_exp(logits);
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double log_p = reference[i] - reference_norm;
    sum += std::exp(log_p) * (log_p - (logits[i] - norm));
  }
  return sum;
}

Result<std::vector<int32_t>> read_ids(const GgufFile& file, const std::string& key, int32_t vocab_size) {
  PAGODA_ASSIGN_OR_RETURN(const GgufArray* array, file.get_array(key));
  const auto* values = array == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(&array->values);
  if (values == nullptr || values->empty())
    return data_loss(file.path() + ": key '" + key + "' is no array of signed integers");
  for (const int64_t id : *values) {
    if (id < 0 || id >= vocab_size) {
      return data_loss(file.path() + ": key '" + key + "' holds token " + std::to_string(id) + ", the model has " +
                       std::to_string(vocab_size));
    }
  }
  return std::vector<int32_t>(values->begin(), values->end());
}

Result<std::vector<ReferenceSequence>> read_reference(const GgufFile& file, int32_t vocab_size) {
  std::vector<ReferenceSequence> sequences;
  while (file.find("ids." + std::to_string(sequences.size())) != nullptr) {
    const std::string number = std::to_string(sequences.size());
    ReferenceSequence s;
    PAGODA_ASSIGN_OR_RETURN(s.ids, read_ids(file, "ids." + number, vocab_size));
    s.logits = file.find_tensor("logits." + number);
    if (s.logits == nullptr) return data_loss(file.path() + ": has no tensor 'logits." + number + "'");
    const auto& dims = s.logits->dims;
    if (s.logits->dtype != DType::kF32 || dims.size() != 2 || dims[0] != static_cast<uint64_t>(vocab_size) ||
        dims[1] > s.ids.size()) {
      return data_loss(file.path() + ": tensor 'logits." + number + "' must be F32 [" + std::to_string(vocab_size) +
                       ", at most " + std::to_string(s.ids.size()) + " rows]");
    }
    s.num_rows = static_cast<int32_t>(dims[1]);
    sequences.push_back(std::move(s));
  }
  if (sequences.empty()) return data_loss(file.path() + ": has no key 'ids.0'; is it a file of reference logits?");
  return sequences;
}

/// A decoder with a cache for one sequence, used without an engine: it needs the logits of every position.
struct Scorer {
  std::unique_ptr<Decoder> decoder;
  KvStore kv;
  std::vector<std::vector<int32_t>> tables;  // [group]: block i of the sequence is block i of the pool
  std::vector<const int32_t*> table_pointers;
};

Result<Scorer> make_scorer(const DivergenceOptions& o, ServingModel& model, int32_t max_tokens) {
  EngineOptions options = o.model.engine_options();
  options.context = max_tokens;
  options.max_batch = 1;
  PAGODA_ASSIGN_OR_RETURN(const MemoryPlan plan, model.plan(options));
  const ModelConfig& config = model.model().config();
  const int32_t num_blocks = ceil_div(max_tokens, plan.kv.block_tokens);
  const KvLayout layout = kv_layout(config, options.kv_type, plan.kv.block_tokens);
  const std::vector<int32_t> pools(plan.kv.groups.size(), num_blocks);
  PAGODA_ASSIGN_OR_RETURN(KvStore kv, KvStore::create(config, options.kv_type, plan.kv.block_tokens, pools));
  PAGODA_ASSIGN_OR_RETURN(auto decoder, Decoder::create(model.shared_model(), plan.limits, layout, options.attention,
                                                        model.runtime().kernels(), model.runtime().team()));
  Scorer scorer{std::move(decoder), std::move(kv), {}, {}};
  scorer.tables.assign(pools.size(), std::vector<int32_t>(static_cast<size_t>(num_blocks)));
  for (auto& table : scorer.tables) {
    std::iota(table.begin(), table.end(), 0);
    scorer.table_pointers.push_back(table.data());
  }
  return scorer;
}

Status score_sequence(const GgufFile& reference, const ReferenceSequence& sequence, Scorer& scorer, size_t vocab_size,
                      Divergence& result) {
  const auto num_tokens = static_cast<int32_t>(sequence.ids.size());
  const int32_t first_scored = num_tokens - sequence.num_rows;
  std::vector<float> expected(vocab_size);
  for (int32_t begin = 0; begin < num_tokens; begin += scorer.decoder->limits().max_rows) {
    const int32_t count = std::min(num_tokens - begin, scorer.decoder->limits().max_rows);
    const StepSequence rows = {0, count, begin, scorer.table_pointers.data()};
    scorer.decoder->forward({std::span(sequence.ids).subspan(begin, count), {&rows, 1}}, scorer.kv);
    for (int32_t row = std::max(0, first_scored - begin); row < count; ++row) {
      scorer.decoder->compute_logits({&row, 1});
      const std::span<const float> logits(scorer.decoder->logits(), vocab_size);
      const uint64_t at = static_cast<uint64_t>(begin + row - first_scored) * vocab_size * sizeof(float);
      PAGODA_RETURN_IF_ERROR(reference.read_tensor(
          *sequence.logits, at, {reinterpret_cast<uint8_t*>(expected.data()), vocab_size * sizeof(float)}));
      const auto is_finite = [](float v) { return std::isfinite(v); };
      if (!std::all_of(expected.begin(), expected.end(), is_finite)) {
        return data_loss(reference.path() + ": tensor '" + sequence.logits->name +
                         "' holds a value that is not finite");
      }
      result.kl.push_back(kl_divergence(expected, logits));
      result.num_same_argmax += std::max_element(expected.begin(), expected.end()) - expected.begin() ==
                                std::max_element(logits.begin(), logits.end()) - logits.begin();
    }
  }
  return {};
}

Result<Divergence> score(const DivergenceOptions& o, ServingModel& model) {
  const int32_t vocab_size = model.model().config().vocab_size;
  PAGODA_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(o.reference_file));
  PAGODA_ASSIGN_OR_RETURN(const auto sequences, read_reference(file, vocab_size));
  size_t longest = 0;
  for (const ReferenceSequence& s : sequences) longest = std::max(longest, s.ids.size());
  PAGODA_ASSIGN_OR_RETURN(Scorer scorer, make_scorer(o, model, static_cast<int32_t>(longest)));
  ProgressBar bar("scoring");
  Divergence result;
  for (size_t i = 0; i < sequences.size(); ++i) {
    PAGODA_RETURN_IF_ERROR(score_sequence(file, sequences[i], scorer, static_cast<size_t>(vocab_size), result));
    bar.update(i + 1, sequences.size());
    if (interrupts().is_interrupted()) return cancelled("interrupted");
  }
  return result;
}

int run_divergence(const DivergenceOptions& o) {
  auto model = o.model.load();
  if (!model.ok()) return report_failure(model.status(), o.json);
  auto result = score(o, **model);
  if (!result.ok()) return report_failure(result.status(), o.json);
  const auto count = static_cast<int64_t>(result->kl.size());
  const double same = static_cast<double>(result->num_same_argmax) / static_cast<double>(count);
  const double median = result->quantile(0.5), q99 = result->quantile(0.99), largest = result->quantile(1);
  if (!o.json) {
    std::cout << fmt::format(
        "KL divergence mean {:.6f}, median {:.6f}, 99 % {:.6f}, largest {:.6f} nats; same first token at "
        "{:.2f} % of {} positions\n",
        result->mean(), median, q99, largest, 100 * same, count);
    return 0;
  }
  JsonWriter w;
  w.begin_object();
  w.field("mean_kl", result->mean());
  w.field("median_kl", median);
  w.field("p99_kl", q99);
  w.field("max_kl", largest);
  w.field("same_argmax", same);
  w.field("positions", count);
  w.end_object();
  std::cout << w.text() << std::endl;
  return 0;
}

}  // namespace

void add_divergence(CLI::App& eval, Action& action) {
  auto o = std::make_shared<DivergenceOptions>();
  CLI::App* app = eval.add_subcommand("divergence", "KL divergence from a reference's logits");
  o->model.add_to(*app);
  app->add_option("-r,--reference", o->reference_file, "GGUF file of reference logits (bench/kl_divergence.py)")
      ->required();
  app->add_flag("--json", o->json, "the result as a JSON object");
  app->callback([o, &action] { action = [o] { return run_divergence(*o); }; });
}

}  // namespace pagoda::cli
