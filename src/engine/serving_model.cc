#include "engine/serving_model.h"

#include <chrono>

#include "base/cpu.h"

namespace pagoda {

Result<SamplingDefaults> sampling_defaults(const GgufFile& file) {
  SamplingDefaults d;
  PAGODA_ASSIGN_OR_RETURN(d.temperature, file.get_float("general.sampling.temp"));
  PAGODA_ASSIGN_OR_RETURN(d.top_p, file.get_float("general.sampling.top_p"));
  PAGODA_ASSIGN_OR_RETURN(d.min_p, file.get_float("general.sampling.min_p"));
  PAGODA_ASSIGN_OR_RETURN(d.repetition_penalty, file.get_float("general.sampling.penalty_repeat"));
  PAGODA_ASSIGN_OR_RETURN(d.top_k, file.get_uint("general.sampling.top_k"));
  return d;
}

Result<std::unique_ptr<ServingModel>> ServingModel::load(const std::string& path, int num_threads,
                                                         const LoadProgress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  PAGODA_ASSIGN_OR_RETURN(GgufFile file, GgufFile::open(path));
  std::unique_ptr<ServingModel> m(new ServingModel(std::move(file)));
  m->free_bytes_ = available_memory_bytes();
  PAGODA_ASSIGN_OR_RETURN(m->runtime_, Runtime::create(num_threads));
  PAGODA_ASSIGN_OR_RETURN(const uint64_t weight_bytes, packed_weight_bytes(m->file_));
  if (weight_bytes > m->free_bytes_) {
    return resource_exhausted(path + ": the weights need " + format_bytes(weight_bytes) + ", free memory is " +
                              format_bytes(m->free_bytes_));
  }
  PAGODA_ASSIGN_OR_RETURN(TokenizerSpec spec, tokenizer_spec_from_gguf(m->file_));
  PAGODA_ASSIGN_OR_RETURN(m->tokenizer_, Tokenizer::create(std::move(spec)));
  PAGODA_ASSIGN_OR_RETURN(m->model_, Model::load(m->file_, m->runtime_->team(), progress));
  m->load_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return m;
}

Result<MemoryPlan> ServingModel::plan(const EngineOptions& options) const {
  MemoryRequest request;
  request.weight_bytes = model_->packed_bytes();
  request.free_bytes = free_bytes_;
  request.kv_type = options.kv_type;
  request.context = options.context;
  request.max_batch = options.max_batch;
  request.prefill_chunk = options.prefill_chunk;
  request.num_threads = runtime_->team().size();
  return plan_memory(model_->config(), runtime_->kernels(), request);
}

Result<std::unique_ptr<ModelExecutor>> make_model_executor(std::shared_ptr<const Model> model, const MemoryPlan& plan,
                                                           KvType kv_type, AttentionKind attention, Runtime& runtime,
                                                           std::span<const int32_t> end_ids) {
  std::vector<int32_t> num_blocks;
  for (const KvGroupConfig& group : plan.kv.groups) num_blocks.push_back(group.num_blocks);
  const ModelConfig& config = model->config();
  const KvLayout layout = kv_layout(config, kv_type, plan.kv.block_tokens);
  PAGODA_ASSIGN_OR_RETURN(KvStore kv, KvStore::create(config, kv_type, plan.kv.block_tokens, num_blocks));
  PAGODA_ASSIGN_OR_RETURN(auto decoder, Decoder::create(model, plan.limits, layout, attention, runtime.kernels(), runtime.team()));
  return std::make_unique<ModelExecutor>(std::move(decoder), std::move(kv), std::vector<int32_t>(end_ids.begin(), end_ids.end()),
                                         config, runtime.kernels(), runtime.team());
}

Result<std::unique_ptr<Engine>> ServingModel::make_engine(const EngineOptions& options) {
  PAGODA_ASSIGN_OR_RETURN(const MemoryPlan memory, plan(options));
  PAGODA_ASSIGN_OR_RETURN(auto executor, make_model_executor(model_, memory, options.kv_type, options.attention, *runtime_,
                                                             tokenizer_->end_of_generation_ids()));
  EngineConfig config;
  config.scheduler.max_batch = memory.max_batch;
  config.scheduler.max_step_tokens = memory.limits.max_rows;
  config.scheduler.prefill_chunk = options.prefill_chunk;
  config.scheduler.max_context = memory.context;
  config.scheduler.kv = memory.kv;
  config.scheduler.enable_prefix_cache = options.enable_prefix_cache;
  return Engine::create(std::move(executor), *tokenizer_, std::move(config));
}

}  // namespace pagoda
