#include "model/layers/rope_table.h"

#include "kernels/math.h"

namespace pagoda {

namespace {

std::vector<double> frequencies(const RopeConfig& rope, int32_t rope_dim) {
  std::vector<double> result(rope_dim / 2);
  for (int32_t i = 0; i < rope_dim / 2; ++i) {
    double f = math::pow(rope.base, -2.0 * i / rope_dim);
    if (rope.scaling == RopeScalingKind::kLinear) f /= rope.linear_factor;
    if (rope.scaling == RopeScalingKind::kLlama3) f /= rope.frequency_divisors[i];
    result[i] = f;
  }
  return result;
}

}  // namespace

RopeTable::RopeTable(const ModelConfig& config, int32_t max_rows) : max_rows_(max_rows), rope_dim_(config.rope_dim) {
  for (const RopeConfig& rope : config.ropes) frequencies_.push_back(frequencies(rope, config.rope_dim));
  table_.resize(frequencies_.size() * static_cast<size_t>(max_rows) * rope_dim_);
}

void RopeTable::fill(std::span<const int32_t> positions, ThreadTeam& team) {
  const int32_t half = rope_dim_ / 2;
  team.parallel_for(static_cast<int64_t>(positions.size()), 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      for (size_t k = 0; k < frequencies_.size(); ++k) {
        float* out = table_.data() + (k * max_rows_ + r) * rope_dim_;
        for (int32_t i = 0; i < half; ++i) {
          const double angle = positions[r] * frequencies_[k][i];
          out[i] = static_cast<float>(math::cos(angle));
          out[half + i] = static_cast<float>(math::sin(angle));
        }
      }
    }
  });
}

}  // namespace pagoda
