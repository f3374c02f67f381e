#include "tensor/dtype.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pagoda {
namespace {

// Format: scripts/make_tensor_golden.py.
TEST(DType, DecodesAndEncodesAsTheGgufPackage) {
  std::ifstream in(std::string(PAGODA_TEST_DATA) + "/tensor/data/dtype_golden.bin", std::ios::binary);
  const std::vector<char> file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const char* p = file.data();
  const auto length = [&] {
    uint32_t n;
    std::memcpy(&n, p, 4);
    p += 4;
    return n;
  };
  std::set<std::string> decoded, encoded;
  while (p != file.data() + file.size()) {
    const bool encode = *p++ != 0;
    const auto name_bytes = static_cast<size_t>(*p++);
    const std::string name(p, name_bytes);
    p += name_bytes;
    std::vector<uint8_t> blocks(length());
    std::memcpy(blocks.data(), p, blocks.size());
    p += blocks.size();
    std::vector<float> floats(length());
    std::memcpy(floats.data(), p, floats.size() * 4);
    p += floats.size() * 4;
    ASSERT_TRUE(dtype_from_name(name)) << name;
    const DTypeTraits& row = traits(*dtype_from_name(name));
    const size_t num_blocks = floats.size() / row.block_elements;
    ASSERT_EQ(num_blocks * row.block_bytes, blocks.size()) << name;
    if (encode) {
      std::vector<uint8_t> made(blocks.size());
      row.encode(floats.data(), made.data(), num_blocks);
      EXPECT_EQ(made, blocks) << name;
      encoded.insert(name);
    } else {
      std::vector<float> made(floats.size());
      row.decode(blocks.data(), made.data(), num_blocks);
      EXPECT_EQ(std::memcmp(made.data(), floats.data(), made.size() * 4), 0) << name;
      decoded.insert(name);
    }
  }
  EXPECT_EQ(decoded.size(), size_t{kNumDTypes});
  EXPECT_EQ(encoded, (std::set<std::string>{"F16", "BF16", "Q8_0", "Q4_0", "Q4_1"}));
}

TEST(DType, NamesTypesThatItCannotDecode) {
  EXPECT_EQ(gguf_type_name(16), "IQ2_XXS");
  EXPECT_EQ(gguf_type_name(41), "Q1_0");
  EXPECT_EQ(gguf_type_name(99), "unknown type");
  EXPECT_FALSE(dtype_from_gguf_id(16));
  for (const DTypeTraits& row : dtype_table()) EXPECT_EQ(gguf_type_name(row.gguf_id), row.name);
}

}  // namespace
}  // namespace pagoda
