#include "model/weight_loader.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/thread_team.h"
#include "kernels/packing.h"
#include "tensor/dtype.h"

namespace pagoda {

namespace {

constexpr uint64_t kAlignment = AlignedBuffer::kAlignment;
// Read sizes near 1 MiB keep the kernel's read path at full speed and the staging buffers small.
constexpr uint64_t kPieceBytes = 1u << 20;

std::string shape_text(const std::vector<uint64_t>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

uint64_t row_bytes(const GgufTensorInfo& tensor) { return dtype_bytes(tensor.dtype, tensor.dims[0]); }

}  // namespace

Status WeightLoader::add_matrix(const std::string& name, int32_t n, int32_t k, PackedMatrix* matrix, Need need) {
  const GgufTensorInfo* tensor = file_.find_tensor(name);
  if (tensor == nullptr) {
    if (need == Need::kOptional) return {};
    return data_loss(file_.path() + ": tensor " + name + " is missing");
  }
  const std::vector<uint64_t> wanted = {static_cast<uint64_t>(k), static_cast<uint64_t>(n)};
  if (tensor->dims != wanted) {
    return data_loss(file_.path() + ": tensor " + name + " has shape " + shape_text(tensor->dims) + ", the metadata asks for " +
                     shape_text(wanted));
  }
  if (k % packed_k_multiple(tensor->dtype) != 0) {
    return unimplemented(file_.path() + ": tensor " + name + ": rows of " + std::to_string(k) + " " +
                         std::string(traits(tensor->dtype).name) + " values: Pagoda needs a multiple of " +
                         std::to_string(packed_k_multiple(tensor->dtype)));
  }
  *matrix = PackedMatrix{tensor->dtype, n, k, nullptr, packed_panel_bytes(tensor->dtype, k)};
  const auto bytes = checked_mul(matrix->panel_bytes, static_cast<uint64_t>(num_panels(n)));
  const auto end = bytes ? checked_add(total_bytes_, *bytes) : std::nullopt;
  if (!end) return data_loss(file_.path() + ": tensor " + name + " is too large");
  items_.push_back({tensor, matrix, nullptr, total_bytes_});
  total_bytes_ = *end;
  return {};
}

Status WeightLoader::add_vector(const std::string& name, int32_t n, const float** vector, Need need) {
  const GgufTensorInfo* tensor = file_.find_tensor(name);
  if (tensor == nullptr) {
    if (need == Need::kOptional) return {};
    return data_loss(file_.path() + ": tensor " + name + " is missing");
  }
  if (tensor->num_elements() != static_cast<uint64_t>(n) || tensor->dims[0] != static_cast<uint64_t>(n)) {
    return data_loss(file_.path() + ": tensor " + name + " has shape " + shape_text(tensor->dims) + ", the metadata asks for [" +
                     std::to_string(n) + "]");
  }
  if (n % traits(tensor->dtype).block_elements != 0) {
    return data_loss(file_.path() + ": tensor " + name + ": " + std::to_string(n) + " values are no whole number of blocks");
  }
  items_.push_back({tensor, nullptr, vector, total_bytes_});
  total_bytes_ += round_up<uint64_t>(static_cast<uint64_t>(n) * sizeof(float), kAlignment);
  return {};
}

Status WeightLoader::plan_layer(int32_t index) {
  const ModelConfig& c = model_.config_;
  LayerWeights& w = model_.layers_[index];
  const std::string p = "blk." + std::to_string(index) + ".";
  const Need qk = c.has_qk_norm ? Need::kRequired : Need::kOptional;
  const Need post = c.has_post_norms ? Need::kRequired : Need::kOptional;
  const int32_t q_rows = c.num_heads * c.key_dim;
  const int32_t k_rows = c.num_kv_heads * c.key_dim;
  const int32_t v_rows = c.num_kv_heads * c.value_dim;
  PAGODA_RETURN_IF_ERROR(add_vector(p + "attn_norm.weight", c.hidden_size, &w.attention_norm, Need::kRequired));
  PAGODA_RETURN_IF_ERROR(add_vector(p + "ffn_norm.weight", c.hidden_size, &w.ffn_norm, Need::kRequired));
  PAGODA_RETURN_IF_ERROR(add_matrix(p + "attn_q.weight", q_rows, c.hidden_size, &w.q, Need::kRequired));
  PAGODA_RETURN_IF_ERROR(add_matrix(p + "attn_k.weight", k_rows, c.hidden_size, &w.k, Need::kRequired));
  PAGODA_RETURN_IF_ERROR(add_matrix(p + "attn_v.weight", v_rows, c.hidden_size, &w.v, Need::kRequired));
  PAGODA_RETURN_IF_ERROR(add_vector(p + "attn_q.bias", q_rows, &w.q_bias, Need::kOptional));
  PAGODA_RETURN_IF_ERROR(add_vector(p + "attn_k.bias", k_rows, &w.k_bias, Need::kOptional));
  PAGODA_RETURN_IF_ERROR(add_vector(p + "attn_v.bias", v_rows, &w.v_bias, Need::kOptional));
  if (c.has_qk_norm) {
    PAGODA_RETURN_IF_ERROR(add_vector(p + "attn_q_norm.weight", c.key_dim, &w.q_norm, qk));
    PAGODA_RETURN_IF_ERROR(add_vector(p + "attn_k_norm.weight", c.key_dim, &w.k_norm, qk));
  }
  PAGODA_RETURN_IF_ERROR(add_matrix(p + "attn_output.weight", c.hidden_size, c.num_heads * c.value_dim, &w.attention_output,
                                    Need::kRequired));
  PAGODA_RETURN_IF_ERROR(add_vector(p + "attn_output.bias", c.hidden_size, &w.attention_output_bias, Need::kOptional));
  if (c.has_post_norms) {
    PAGODA_RETURN_IF_ERROR(add_vector(p + "post_attention_norm.weight", c.hidden_size, &w.post_attention_norm, post));
    PAGODA_RETURN_IF_ERROR(add_vector(p + "post_ffw_norm.weight", c.hidden_size, &w.post_ffn_norm, post));
  }
  PAGODA_RETURN_IF_ERROR(add_matrix(p + "ffn_gate.weight", c.ffn_size, c.hidden_size, &w.gate, Need::kRequired));
  PAGODA_RETURN_IF_ERROR(add_matrix(p + "ffn_up.weight", c.ffn_size, c.hidden_size, &w.up, Need::kRequired));
  PAGODA_RETURN_IF_ERROR(add_matrix(p + "ffn_down.weight", c.hidden_size, c.ffn_size, &w.down, Need::kRequired));
  PAGODA_RETURN_IF_ERROR(add_vector(p + "ffn_gate.bias", c.ffn_size, &w.gate_bias, Need::kOptional));
  PAGODA_RETURN_IF_ERROR(add_vector(p + "ffn_up.bias", c.ffn_size, &w.up_bias, Need::kOptional));
  return add_vector(p + "ffn_down.bias", c.hidden_size, &w.down_bias, Need::kOptional);
}

// A tensor that nothing asked for means that the file holds a variant of the architecture that would run wrongly.
Status WeightLoader::check_no_leftovers() const {
  std::unordered_set<std::string_view> used = {"rope_freqs.weight"};  // read with the configuration
  for (const Item& item : items_) used.insert(item.tensor->name);
  for (const GgufTensorInfo& tensor : file_.tensors()) {
    if (!used.contains(tensor.name)) {
      return unimplemented(file_.path() + ": tensor " + tensor.name + " belongs to a variant of architecture \"" +
                           model_.config_.architecture + "\" that Pagoda does not run");
    }
  }
  return {};
}

Status WeightLoader::plan() {
  const ModelConfig& c = model_.config_;
  model_.layers_.resize(c.num_layers());
  PAGODA_RETURN_IF_ERROR(add_matrix("token_embd.weight", c.vocab_size, c.hidden_size, &model_.token_embedding_, Need::kRequired));
  PAGODA_RETURN_IF_ERROR(add_vector("output_norm.weight", c.hidden_size, &model_.output_norm_, Need::kRequired));
  PAGODA_RETURN_IF_ERROR(add_matrix("output.weight", c.vocab_size, c.hidden_size, &model_.output_, Need::kOptional));
  for (int32_t i = 0; i < c.num_layers(); ++i) PAGODA_RETURN_IF_ERROR(plan_layer(i));
  return check_no_leftovers();
}

void WeightLoader::bind() {
  for (const Item& item : items_) {
    uint8_t* at = model_.buffer_.data() + item.offset;
    if (item.matrix != nullptr) {
      item.matrix->data = at;
    } else {
      *item.vector = reinterpret_cast<const float*>(at);
    }
    model_.num_parameters_ += item.tensor->num_elements();
  }
  if (model_.output_.data == nullptr) model_.output_ = model_.token_embedding_;
}

std::vector<WeightLoader::Piece> WeightLoader::cut_pieces() const {
  std::vector<Piece> pieces;
  for (uint32_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    const int32_t total = item.matrix != nullptr ? num_panels(item.matrix->n) : 1;
    const uint64_t panel_source = item.matrix != nullptr ? row_bytes(*item.tensor) * kPanelRows : item.tensor->num_bytes;
    const auto step = static_cast<int32_t>(std::clamp<uint64_t>(kPieceBytes / std::max<uint64_t>(panel_source, 1), 1, total));
    for (int32_t begin = 0; begin < total; begin += step) pieces.push_back({i, begin, std::min(begin + step, total)});
  }
  return pieces;
}

Status WeightLoader::load_vector(const Item& item) {
  std::vector<uint8_t> bytes(item.tensor->num_bytes);
  PAGODA_RETURN_IF_ERROR(file_.read_tensor(*item.tensor, 0, bytes));
  const DTypeTraits& type = traits(item.tensor->dtype);
  auto* dst = reinterpret_cast<float*>(model_.buffer_.data() + item.offset);
  type.decode(bytes.data(), dst, item.tensor->num_elements() / type.block_elements);
  return {};
}

Status WeightLoader::load_piece(const Piece& piece, std::vector<uint8_t>& rows) {
  const Item& item = items_[piece.item];
  if (item.matrix == nullptr) return load_vector(item);
  const PackedMatrix& m = *item.matrix;
  const uint64_t bytes_a_row = row_bytes(*item.tensor);
  const int32_t row_begin = piece.panel_begin * kPanelRows;
  const int32_t row_end = std::min(piece.panel_end * kPanelRows, m.n);
  rows.resize((row_end - row_begin) * bytes_a_row);
  PAGODA_RETURN_IF_ERROR(file_.read_tensor(*item.tensor, row_begin * bytes_a_row, rows));
  for (int32_t panel = piece.panel_begin; panel < piece.panel_end; ++panel) {
    const int32_t first = panel * kPanelRows;
    const uint8_t* source = rows.data() + (first - row_begin) * bytes_a_row;
    uint8_t* target = model_.buffer_.data() + item.offset + panel * m.panel_bytes;
    pack_panel(m.dtype, source, bytes_a_row, std::min(kPanelRows, m.n - first), m.k, target);
  }
  return {};
}

Status WeightLoader::load(ThreadTeam& team, const LoadProgress& progress) {
  PAGODA_ASSIGN_OR_RETURN(model_.buffer_, AlignedBuffer::create(total_bytes_));
  bind();
  const std::vector<Piece> pieces = cut_pieces();
  uint64_t total = 0;
  for (const Item& item : items_) total += item.tensor->num_bytes;
  std::vector<std::vector<uint8_t>> staging(team.size());
  std::atomic<uint64_t> done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  Status first_error;  // guarded by mutex
  team.parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end, int member) {
    for (int64_t i = begin; i < end && !stop.load(std::memory_order_relaxed); ++i) {
      const Status status = load_piece(pieces[i], staging[member]);
      const Item& item = items_[pieces[i].item];
      const uint64_t panels = item.matrix != nullptr ? num_panels(item.matrix->n) : 1;
      done.fetch_add(item.tensor->num_bytes * (pieces[i].panel_end - pieces[i].panel_begin) / panels);
      const bool cancel = member == 0 && progress && !progress(done.load(), total);
      if (status.ok() && !cancel) continue;
      const std::lock_guard lock(mutex);
      if (first_error.ok()) first_error = status.ok() ? cancelled("loading was cancelled") : status;
      stop.store(true);
    }
  });
  if (progress && first_error.ok()) progress(total, total);
  return first_error;
}

Result<std::shared_ptr<const Model>> Model::load(const GgufFile& file, ThreadTeam& team, const LoadProgress& progress) {
  std::shared_ptr<Model> model(new Model());
  PAGODA_ASSIGN_OR_RETURN(model->config_, model_config_from_gguf(file));
  WeightLoader loader(file, *model);
  PAGODA_RETURN_IF_ERROR(loader.plan());
  PAGODA_RETURN_IF_ERROR(loader.load(team, progress));
  return std::shared_ptr<const Model>(std::move(model));
}

Result<uint64_t> packed_weight_bytes(const GgufFile& file) {
  Model model;
  PAGODA_ASSIGN_OR_RETURN(model.config_, model_config_from_gguf(file));
  WeightLoader loader(file, model);
  PAGODA_RETURN_IF_ERROR(loader.plan());
  return loader.total_bytes();
}

}  // namespace pagoda
