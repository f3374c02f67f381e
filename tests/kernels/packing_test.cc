#include "kernels/packing.h"

#include <gtest/gtest.h>

#include <bit>

#include "matmul_data.h"

namespace pagoda {
namespace {

using test::kAllWeightKinds;
using test::make_matrix;
using test::TestMatrix;

class PackingTest : public testing::TestWithParam<DType> {
 protected:
  int k() const { return packed_k_multiple(GetParam()) == 256 ? 768 : 160; }
};

TEST_P(PackingTest, UnpackRowEqualsTheDecoderBitForBit) {
  for (const test::WeightKind kind : kAllWeightKinds) {
    const TestMatrix matrix = make_matrix(GetParam(), 37, k(), kind, 3);
    std::vector<float> want(k()), got(k());
    for (int row = 0; row < 37; ++row) {
      const DTypeTraits& type = traits(GetParam());
      type.decode(&matrix.rows[row * matrix.row_bytes], want.data(), k() / type.block_elements);
      unpack_row(matrix.packed, row, got.data());
      ASSERT_EQ(memcmp(want.data(), got.data(), want.size() * 4), 0) << "row " << row;
    }
  }
}

TEST_P(PackingTest, BlocksReadBackByteForByte) {
  const DTypeTraits& type = traits(GetParam());
  TestMatrix matrix = make_matrix(GetParam(), 20, k(), test::WeightKind::kOrdinary, 4);
  for (size_t i = 0; i < matrix.rows.size(); ++i) matrix.rows[i] = static_cast<uint8_t>(i * 131 + i / 251);
  pack_panel(GetParam(), matrix.rows.data(), matrix.row_bytes, 16, k(), matrix.panels.data());
  std::vector<uint8_t> block(type.block_bytes);
  for (int row = 0; row < 16; ++row) {
    for (int b = 0; b < k() / type.block_elements; ++b) {
      unpack_block(matrix.packed, row, b, block.data());
      ASSERT_EQ(memcmp(block.data(), &matrix.rows[row * matrix.row_bytes + b * block.size()], block.size()), 0);
    }
  }
}

TEST_P(PackingTest, PanelsHoldNoMoreThanTheFileAndSomePadding) {
  const DTypeTraits& type = traits(GetParam());
  const size_t file_bytes = dtype_bytes(GetParam(), 16 * static_cast<size_t>(k()));
  const size_t bytes = packed_panel_bytes(GetParam(), k());
  EXPECT_EQ(bytes % 64, 0u);
  EXPECT_GE(bytes, file_bytes);
  // At most one dword a row and block (a scale widened or in a line of its own), and one line.
  EXPECT_LE(bytes, file_bytes + (type.block_elements == 1 ? 0 : 16 * 2 * k() / type.block_elements) + 64);
}

std::string type_name(const testing::TestParamInfo<DType>& info) {
  return std::string(traits(info.param).name);
}
INSTANTIATE_TEST_SUITE_P(Types, PackingTest, testing::ValuesIn(test::all_dtypes()), type_name);

TEST(PackingTest, ActivationFormatFollowsTheBlock) {
  EXPECT_EQ(act_format(DType::kF32), ActFormat::kF32);
  EXPECT_EQ(act_format(DType::kF16), ActFormat::kF32);
  EXPECT_EQ(act_format(DType::kBF16), ActFormat::kBF16);
  for (const DType dtype : test::all_dtypes()) {
    if (traits(dtype).block_elements == 1) continue;
    const bool group32 = traits(dtype).block_elements == 32;
    EXPECT_EQ(act_format(dtype), group32 ? ActFormat::kQ8Group32 : ActFormat::kQ8Group256);
  }
}

}  // namespace
}  // namespace pagoda
