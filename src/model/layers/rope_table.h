#pragma once
// RopeTable: cosines and sines for the positions of one step, one set per RoPE configuration of the model.
// Su et al., RoFormer (2021). Angles are computed in double precision with the project's own sine and cosine.

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_team.h"
#include "model/model_config.h"

namespace pagoda {

class RopeTable {
 public:
  RopeTable(const ModelConfig& config, int32_t max_rows);

  /// Fills the table for rows at these positions.
  void fill(std::span<const int32_t> positions, ThreadTeam& team);
  /// [rope_dim / 2] cosines, then as many sines.
  const float* row(int32_t rope_idx, int32_t row) const {
    return table_.data() + (static_cast<size_t>(rope_idx) * max_rows_ + row) * rope_dim_;
  }
  uint64_t bytes() const { return table_.size() * sizeof(float); }

 private:
  int32_t max_rows_;
  int32_t rope_dim_;
  std::vector<std::vector<double>> frequencies_;  // by rope_idx: radians per position, [rope_dim / 2]
  std::vector<float> table_;
};

}  // namespace pagoda
