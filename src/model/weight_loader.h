#pragma once
// WeightLoader: which tensors a decoder needs, where they go, and the parallel read-and-pack that fills them.

#include <atomic>
#include <string>
#include <vector>

#include "formats/gguf/gguf_file.h"
#include "model/model.h"

namespace pagoda {

class WeightLoader {
 public:
  WeightLoader(const GgufFile& file, Model& model) : file_(file), model_(model) {}

  /// Finds every tensor, checks its shape and type, and lays out the buffer. kDataLoss or kUnimplemented name the tensor.
  Status plan();
  uint64_t total_bytes() const { return total_bytes_; }
  /// Allocates and fills.
  Status load(ThreadTeam& team, const LoadProgress& progress);

 private:
  enum class Need { kRequired, kOptional };
  struct Item {
    const GgufTensorInfo* tensor;
    PackedMatrix* matrix;   // either this
    const float** vector;   // or this
    uint64_t offset;        // in the buffer
  };
  struct Piece {            // a run of panels of one item: the unit that threads take
    uint32_t item;
    int32_t panel_begin;
    int32_t panel_end;
  };

  Status plan_layer(int32_t layer);
  Status add_matrix(const std::string& name, int32_t n, int32_t k, PackedMatrix* matrix, Need need);
  Status add_vector(const std::string& name, int32_t n, const float** vector, Need need);
  Status check_no_leftovers() const;
  void bind();
  std::vector<Piece> cut_pieces() const;
  Status load_piece(const Piece& piece, std::vector<uint8_t>& rows);
  Status load_vector(const Item& item);

  const GgufFile& file_;
  Model& model_;
  std::vector<Item> items_;
  uint64_t total_bytes_ = 0;
};

}  // namespace pagoda
