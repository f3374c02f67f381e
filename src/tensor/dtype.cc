#include "tensor/dtype.h"

#include <array>

#include "base/check.h"
#include "tensor/block_codec.h"

namespace pagoda {
namespace {

using namespace block_codec;

constexpr std::array<DTypeTraits, kNumDTypes> kTable = {{
    {DType::kF32, "F32", 0, 1, 4, decode_f32, encode_f32},
    {DType::kF16, "F16", 1, 1, 2, decode_f16, encode_f16},
    {DType::kBF16, "BF16", 30, 1, 2, decode_bf16, encode_bf16},
    {DType::kQ4_0, "Q4_0", 2, 32, 18, decode_q4_0, encode_q4_0},
    {DType::kQ4_1, "Q4_1", 3, 32, 20, decode_q4_1, encode_q4_1},
    {DType::kQ5_0, "Q5_0", 6, 32, 22, decode_q5_0, nullptr},
    {DType::kQ5_1, "Q5_1", 7, 32, 24, decode_q5_1, nullptr},
    {DType::kQ8_0, "Q8_0", 8, 32, 34, decode_q8_0, encode_q8_0},
    {DType::kQ2_K, "Q2_K", 10, 256, 84, decode_q2_k, nullptr},
    {DType::kQ3_K, "Q3_K", 11, 256, 110, decode_q3_k, nullptr},
    {DType::kQ4_K, "Q4_K", 12, 256, 144, decode_q4_k, nullptr},
    {DType::kQ5_K, "Q5_K", 13, 256, 176, decode_q5_k, nullptr},
    {DType::kQ6_K, "Q6_K", 14, 256, 210, decode_q6_k, nullptr},
    {DType::kIQ4_NL, "IQ4_NL", 20, 32, 18, decode_iq4_nl, nullptr},
    {DType::kIQ4_XS, "IQ4_XS", 23, 256, 136, decode_iq4_xs, nullptr},
    {DType::kMXFP4, "MXFP4", 39, 32, 17, decode_mxfp4, nullptr},
}};

constexpr bool table_is_indexed_by_dtype() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<size_t>(kTable[i].dtype) != i) return false;
  }
  return true;
}
static_assert(table_is_indexed_by_dtype());

// Ids 0 to 41 in order. Withdrawn ids keep the name they had, so that an old file's error says what it holds.
constexpr std::string_view kGgufNames[] = {
    "F32",   "F16",   "Q4_0",     "Q4_1",     "Q4_2",     "Q4_3",       "Q5_0",       "Q5_1",       "Q8_0",
    "Q8_1",  "Q2_K",  "Q3_K",     "Q4_K",     "Q5_K",     "Q6_K",       "Q8_K",       "IQ2_XXS",    "IQ2_XS",
    "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",    "IQ2_S",    "IQ4_XS",     "I8",         "I16",        "I32",
    "I64",   "F64",   "IQ1_M",    "BF16",     "Q4_0_4_4", "Q4_0_4_8",   "Q4_0_8_8",   "TQ1_0",      "TQ2_0",
    "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",    "NVFP4",      "Q1_0",
};
static_assert(std::size(kGgufNames) == 42);

}  // namespace

std::span<const DTypeTraits> dtype_table() { return kTable; }

const DTypeTraits& traits(DType dtype) {
  PAGODA_CHECK(static_cast<size_t>(dtype) < kTable.size());
  return kTable[static_cast<size_t>(dtype)];
}

std::optional<DType> dtype_from_gguf_id(uint32_t id) {
  for (const DTypeTraits& row : kTable) {
    if (row.gguf_id == id) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeTraits& row : kTable) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::string_view gguf_type_name(uint32_t id) {
  return id < std::size(kGgufNames) ? kGgufNames[id] : std::string_view("unknown type");
}

size_t dtype_bytes(DType dtype, size_t elements) {
  const DTypeTraits& row = traits(dtype);
  PAGODA_CHECK(elements % row.block_elements == 0);
  return elements / row.block_elements * row.block_bytes;
}

}  // namespace pagoda
