// A generated corpus of damaged GGUF files: every field of a sample file set to every extreme. Each must be refused
// with a text that names file, field and byte, or (where the value happens to be valid) load; nothing is allocated by a
// declared count.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "formats/gguf/gguf_file.h"
#include "largest_allocation.h"

namespace pagoda {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr auto kLoss = StatusCode::kDataLoss;

struct Field {
  std::string name;  // as error texts call it
  size_t offset = 0;
  size_t width = 0;
};

/// Writes a file field by field and remembers where each one stands.
class Builder {
 public:
  template <typename T>
  Builder& put(T value, const std::string& field = "") {
    if (!field.empty()) fields.push_back({field, bytes.size(), sizeof value});
    const auto* p = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), p, p + sizeof value);
    return *this;
  }
  Builder& string(std::string_view text, const std::string& field = "") {
    put(uint64_t{text.size()}, field);
    bytes.insert(bytes.end(), text.begin(), text.end());
    return *this;
  }
  Builder& header(uint64_t num_tensors, uint64_t num_metadata) {
    bytes = {'G', 'G', 'U', 'F'};
    put(uint32_t{3});
    put(num_tensors, "tensor count");
    return put(num_metadata, "metadata count");
  }
  Builder& key(std::string_view name, GgufType type) {
    string(name, "metadata entry " + std::to_string(num_keys_++) + " key");
    return put(static_cast<uint32_t>(type), "metadata '" + std::string(name) + "' type");
  }
  Builder& array(const std::string& name, GgufType element_type, uint64_t count) {
    put(static_cast<uint32_t>(element_type), "metadata '" + name + "' element type");
    return put(count, "metadata '" + name + "' length");
  }
  Builder& tensor(const std::string& name, std::vector<uint64_t> dims, DType dtype, uint64_t offset) {
    string(name, "tensor " + std::to_string(num_tensors_++) + " name");
    put(static_cast<uint32_t>(dims.size()), "tensor '" + name + "' number of dimensions");
    for (const uint64_t dim : dims) put(dim, "tensor '" + name + "' dimension");
    put(static_cast<uint32_t>(traits(dtype).gguf_id), "tensor '" + name + "' type");
    return put(offset, "tensor '" + name + "' offset");
  }
  Builder& data(size_t count) {
    bytes.resize((bytes.size() + 31) / 32 * 32 + count);
    return *this;
  }

  Bytes bytes;
  std::vector<Field> fields;

 private:
  int num_keys_ = 0, num_tensors_ = 0;
};

/// One entry of each kind that the format has.
Builder sample() {
  Builder b;
  b.header(3, 7);
  b.key("text", GgufType::kString).string("abc", "metadata 'text'");
  b.key("flag", GgufType::kBool).put(uint8_t{1}, "metadata 'flag'");
  b.key("small", GgufType::kUint8).put(uint8_t{7});
  b.key("numbers", GgufType::kArray)
      .array("numbers", GgufType::kInt32, 3)
      .put(int32_t{1})
      .put(int32_t{2})
      .put(int32_t{3});
  b.key("texts", GgufType::kArray).array("texts", GgufType::kString, 2).string("x", "metadata 'texts'").string("");
  b.key("flags", GgufType::kArray)
      .array("flags", GgufType::kBool, 2)
      .put(uint8_t{1})
      .put(uint8_t{0}, "metadata 'flags'");
  b.key("nested", GgufType::kArray)
      .array("nested", GgufType::kArray, 1)
      .array("nested", GgufType::kUint8, 1)
      .put(uint8_t{9});
  b.tensor("a", {32, 2}, DType::kQ8_0, 0);
  b.tensor("b", {2, 2, 1, 2}, DType::kF32, 96);
  b.tensor("c", {4}, DType::kF16, 128);
  return b.data(136);
}

std::string prefix_of(const Field& field) {
  return field.name + " at byte " + std::to_string(field.offset) + ":";
}

Status parse(const Bytes& bytes) {
  const auto file = GgufFile::parse(bytes, {});
  return file.ok() ? Status() : file.status();
}

void expect_error(const Bytes& bytes, StatusCode code, std::string_view text) {
  const Status status = parse(bytes);
  EXPECT_EQ(status.code(), code) << status.to_string();
  EXPECT_NE(status.message().find(text), std::string_view::npos) << status.to_string() << "\nlacks: " << text;
}

TEST(GgufMalformed, TheSampleItselfLoads) {
  const auto file = GgufFile::parse(sample().bytes, {});
  EXPECT_TRUE(parse(sample().bytes).ok()) << parse(sample().bytes).to_string();
}

// Values that no field of a file this small can hold: the error must name that very field and its byte.
TEST(GgufMalformed, B09_AFieldThatIsFarTooLargeIsNamedWithItsByte) {
  const Builder b = sample();
  const uint64_t values[] = {uint64_t{1} << 31, (uint64_t{1} << 31) - 1, uint64_t{1} << 40, uint64_t{1} << 62,
                             uint64_t{1} << 63, ~uint64_t{0} - 31,       ~uint64_t{0}};
  int num_cases = 0;
  for (const Field& field : b.fields) {
    for (const uint64_t value : values) {
      if (field.width < 8 && value >> (8 * field.width) != 0 && value != ~uint64_t{0}) continue;
      Bytes bytes = b.bytes;
      std::memcpy(bytes.data() + field.offset, &value, field.width);
      test::reset_largest_allocation();
      const Status status = parse(bytes);
      EXPECT_FALSE(status.ok()) << prefix_of(field) << " " << value;
      EXPECT_LE(test::largest_allocation(), size_t{16} << 10) << prefix_of(field) << " " << value;
      EXPECT_TRUE(status.message().starts_with("<memory>: ")) << status.to_string();
      // Dimensions and types are judged together once all are read: the field then carries the tensor's name.
      const std::string stem = field.name.substr(0, field.name.rfind("' dimension"));
      const bool is_dimension = stem != field.name;
      EXPECT_NE(status.message().find(is_dimension ? stem : prefix_of(field)), std::string_view::npos)
          << status.to_string() << "\nshould name " << prefix_of(field);
      EXPECT_NE(status.message().find(" at byte "), std::string_view::npos) << status.to_string();
      ++num_cases;
    }
  }
  EXPECT_GE(num_cases, 150);
}

// Small changes may leave a valid file; whatever is refused says where.
TEST(GgufMalformed, SmallChangesOfEachFieldNeverGoUnexplained) {
  const Builder b = sample();
  for (const Field& field : b.fields) {
    uint64_t old = 0;
    std::memcpy(&old, b.bytes.data() + field.offset, field.width);
    for (const uint64_t value :
         {uint64_t{0}, uint64_t{1}, old - 1, old + 1, old + 2, old ^ 0x80, old + 31, old + 32, old * 2}) {
      Bytes bytes = b.bytes;
      std::memcpy(bytes.data() + field.offset, &value, field.width);
      test::reset_largest_allocation();
      const Status status = parse(bytes);
      EXPECT_LE(test::largest_allocation(), size_t{16} << 10) << prefix_of(field) << " " << value;
      if (status.ok()) continue;
      EXPECT_TRUE(status.message().starts_with("<memory>: ")) << status.to_string();
      EXPECT_NE(status.message().find(" at byte "), std::string_view::npos) << status.to_string();
    }
  }
}

TEST(GgufMalformed, TruncationAtEveryByteSaysSo) {
  const Bytes whole = sample().bytes;
  for (size_t n = 0; n < whole.size(); ++n) {
    const Status status = parse(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n)));
    EXPECT_EQ(status.code(), kLoss) << n;
    if (n < 4) continue;  // no magic yet
    const bool is_explained = status.message().find("truncated or damaged") != std::string_view::npos;
    EXPECT_TRUE(is_explained) << n << ": " << status.to_string();
  }
}

TEST(GgufMalformed, ZeroCountsWhereTheFormatAllowsThem) {
  EXPECT_TRUE(parse(Builder().header(0, 0).bytes).ok());
  Builder b;
  b.header(0, 1).key("none", GgufType::kArray).array("none", GgufType::kString, 0);
  EXPECT_TRUE(parse(b.bytes).ok());
}

TEST(GgufMalformed, B11_DuplicateKeysAndTensorsAreRefused) {
  Builder keys;
  keys.header(0, 2).key("k", GgufType::kUint8).put(uint8_t{1}).key("k", GgufType::kUint8).put(uint8_t{2});
  expect_error(keys.bytes, kLoss, "metadata 'k' at byte 38: the key occurs twice");
  Builder tensors;
  tensors.header(2, 0).tensor("t", {4}, DType::kF32, 0).tensor("t", {4}, DType::kF32, 32).data(64);
  expect_error(tensors.bytes, kLoss, "tensor 't' at byte 57: the name occurs twice");
}

TEST(GgufMalformed, EmptyNamesAreRefused) {
  Builder key;
  key.header(0, 1).key("", GgufType::kUint8).put(uint8_t{1});
  expect_error(key.bytes, kLoss, "metadata entry 0 key at byte 24: empty");
  Builder tensor;
  tensor.header(1, 0).tensor("", {4}, DType::kF32, 0).data(64);
  expect_error(tensor.bytes, kLoss, "tensor 0 name at byte 24: empty");
}

TEST(GgufMalformed, NamesInErrorsAreCutAndPrintable) {
  Builder b;
  const std::string name = "\x1b[31m" + std::string(5000, 'n');
  b.header(1, 0).tensor(name, {0}, DType::kF32, 0).data(64);
  const Status status = parse(b.bytes);
  EXPECT_LT(status.message().size(), 300u);
  EXPECT_EQ(status.message().find('\x1b'), std::string_view::npos);
}

// The sum of two sizes, and of offset and size, must not wrap (CVE-2025-53630, CVE-2026-27940).
TEST(GgufMalformed, B09_SumsThatWrapAreRefused) {
  for (const uint64_t offset : {~uint64_t{0} - 31, ~uint64_t{0} - 63, uint64_t{1} << 63, ~uint64_t{31} - 256}) {
    Builder b;
    b.header(2, 0).tensor("a", {8}, DType::kF32, 0).tensor("b", {64}, DType::kF32, offset).data(512);
    expect_error(b.bytes, kLoss, "tensor 'b' offset at byte");
  }
  Builder b;
  b.header(2, 0)
      .tensor("a", {uint64_t{1} << 62}, DType::kF32, 0)
      .tensor("b", {uint64_t{1} << 62}, DType::kF32, 32)
      .data(64);
  expect_error(b.bytes, kLoss, "tensor 'a' dimensions at byte");
}

TEST(GgufMalformed, BlocksMustDivideRows) {
  for (const auto& [dtype, row] :
       {std::pair{DType::kQ8_0, 33}, {DType::kQ4_K, 32}, {DType::kMXFP4, 31}, {DType::kQ6_K, 255}}) {
    Builder b;
    b.header(1, 0).tensor("t", {static_cast<uint64_t>(row)}, dtype, 0).data(4096);
    expect_error(b.bytes, kLoss, "is not a multiple of the " + std::string(traits(dtype).name) + " block");
  }
}

TEST(GgufMalformed, AlignmentIsAPowerOfTwoOfTypeUint32) {
  for (const uint32_t alignment : {0u, 1u, 4u, 24u, 33u, 1u << 17, 0xffffffffu}) {
    Builder b;
    b.header(0, 1).key("general.alignment", GgufType::kUint32).put(alignment);
    expect_error(b.bytes, kLoss, "metadata 'general.alignment'");
  }
  Builder wrong_type;
  wrong_type.header(0, 1).key("general.alignment", GgufType::kUint64).put(uint64_t{32});
  expect_error(wrong_type.bytes, kLoss, "metadata 'general.alignment'");
  for (const uint32_t alignment : {8u, 64u, 65536u}) {
    Builder b;
    b.header(1, 1).key("general.alignment", GgufType::kUint32).put(alignment).tensor("t", {1}, DType::kF32, 0);
    b.bytes.resize((b.bytes.size() + alignment - 1) / alignment * alignment + 4);
    EXPECT_TRUE(parse(b.bytes).ok()) << alignment << parse(b.bytes).to_string();
  }
}

TEST(GgufMalformed, DeeplyNestedArraysDoNotUseUpTheStack) {
  Builder b;
  b.header(0, 1).key("deep", GgufType::kArray);
  for (int i = 0; i < 100000; ++i) b.put(static_cast<uint32_t>(GgufType::kArray)).put(uint64_t{1});
  b.put(static_cast<uint32_t>(GgufType::kUint8)).put(uint64_t{1}).put(uint8_t{0});
  expect_error(b.bytes, kLoss, "arrays nested deeper than 8");
}

// Declared counts cost nothing; real arrays cost at most eight times their bytes (integers are held as 64 bits).
TEST(GgufMalformed, MemoryIsInProportionToTheBytesPresent) {
  for (const GgufType type : {GgufType::kUint8, GgufType::kInt16, GgufType::kFloat64, GgufType::kBool}) {
    Builder b;
    b.header(0, 1).key("big", GgufType::kArray).array("big", type, 50000);
    b.bytes.resize(b.bytes.size() + 50000 * 8);
    test::reset_largest_allocation();
    EXPECT_TRUE(parse(b.bytes).ok());
    EXPECT_LE(test::largest_allocation(), 8 * b.bytes.size());
  }
}

TEST(GgufMalformed, LimitsAreEnforced) {
  GgufFile::Options options;
  const auto expect_over = [&](const GgufLimits& limits, std::string_view field) {
    options.limits = limits;
    const auto file = GgufFile::parse(sample().bytes, options);
    ASSERT_FALSE(file.ok()) << field;
    EXPECT_NE(file.status().message().find(field), std::string_view::npos) << file.status().to_string();
    EXPECT_NE(file.status().message().find("over the limit"), std::string_view::npos) << file.status().to_string();
  };
  expect_over({.max_tensors = 2}, "tensor count at byte 8");
  expect_over({.max_metadata = 6}, "metadata count at byte 16");
  expect_over({.max_key_bytes = 3}, "metadata entry 0 key at byte 24");
  expect_over({.max_string_bytes = 2}, "metadata 'text' at byte 40");
  expect_over({.max_array_elements = 2}, "metadata 'numbers' length");
}

TEST(GgufMalformed, UnknownTensorTypesAreListedForInspection) {
  Builder b;
  b.header(1, 0).tensor("t", {32}, DType::kF32, 0).data(128);
  const uint32_t iq2_xxs = 16;
  for (const Field& field : b.fields) {
    if (field.name == "tensor 't' type") std::memcpy(b.bytes.data() + field.offset, &iq2_xxs, 4);
  }
  expect_error(b.bytes, StatusCode::kUnimplemented, "tensor 't' type at byte 45: IQ2_XXS");
  GgufFile::Options options;
  options.unknown_types = GgufUnknownTypes::kList;
  const auto file = GgufFile::parse(b.bytes, options);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  ASSERT_EQ(file->unsupported_tensors().size(), 1u);
  EXPECT_EQ(file->unsupported_tensors()[0].gguf_type_id, 16u);
}

}  // namespace
}  // namespace pagoda
