#pragma once
// A quantised weight block as integers: the values, sub-scales and float scales that the matmul rule works on.

#include <cstdint>

#include "tensor/dtype_id.h"

namespace pagoda {

/// weight k of the block = scale * sub_scale[k / sub_block] * value[k] - min_scale * sub_min[k / sub_block], where
/// groups of 32 have sub-scale 1 and *add* their minimum: weight = scale * value + min_scale.
struct WeightBlock {
  int block_k = 0;
  int sub_block = 0;
  int value[256];
  int sub_scale[16];
  int sub_min[16];
  float scale = 0.0f;
  float min_scale = 0.0f;
  bool has_minimum = false;
};

/// `bytes` is one GGUF block of `dtype`, a quantised type.
void read_weight_block(DType dtype, const uint8_t* bytes, WeightBlock& block);

}  // namespace pagoda
