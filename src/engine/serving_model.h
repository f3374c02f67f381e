#pragma once
// ServingModel: everything that one model file gives: weights, tokenizer, chat template, default sampling values; and the
// engine made from it. What a program that runs a model starts with.
//
// Thread rule: load and make_engine from one thread. It must outlive the engine made from it.

#include <memory>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "engine/memory_plan.h"
#include "engine/model_executor.h"
#include "engine/runtime.h"
#include "formats/gguf/gguf_file.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace pagoda {

/// What the file itself suggests for sampling (general.sampling.*); absent where it says nothing.
struct SamplingDefaults {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<uint64_t> top_k;
};
Result<SamplingDefaults> sampling_defaults(const GgufFile& file);

struct EngineOptions {
  int32_t context = 0;        ///< 0: by the memory plan's rule
  int32_t max_batch = 0;      ///< 0: by rule
  int32_t prefill_chunk = 512;
  KvType kv_type = KvType::kF16;
  AttentionKind attention = AttentionKind::kFlash;
  bool enable_prefix_cache = true;
};

class ServingModel {
 public:
  /// `num_threads` 0: by rule (Runtime::create).
  static Result<std::unique_ptr<ServingModel>> load(const std::string& path, int num_threads, const LoadProgress& progress);

  Result<MemoryPlan> plan(const EngineOptions& options) const;
  Result<std::unique_ptr<Engine>> make_engine(const EngineOptions& options);

  const GgufFile& file() const { return file_; }
  const Model& model() const { return *model_; }
  std::shared_ptr<const Model> shared_model() const { return model_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  Runtime& runtime() { return *runtime_; }
  double load_ms() const { return load_ms_; }

 private:
  ServingModel(GgufFile file) : file_(std::move(file)) {}
  GgufFile file_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<const Model> model_;
  uint64_t free_bytes_ = 0;  // before the weights were loaded
  double load_ms_ = 0;
};

/// Decoder and KV store of a plan behind one executor (also used without an engine: perplexity, benches, tests).
Result<std::unique_ptr<ModelExecutor>> make_model_executor(std::shared_ptr<const Model> model, const MemoryPlan& plan,
                                                           KvType kv_type, AttentionKind attention, Runtime& runtime,
                                                           std::span<const int32_t> end_ids);

}  // namespace pagoda
