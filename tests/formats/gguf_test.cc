#include "formats/gguf/gguf_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <unistd.h>

#include "formats/gguf/gguf_writer.h"

namespace pagoda {
namespace {

using Bytes = std::vector<uint8_t>;

Result<GgufFile> parse(const Bytes& bytes) {
  return GgufFile::parse(bytes, {});
}

Bytes sample() {
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  writer.add_uint32("a.count", 7);
  writer.add("a.i8", {GgufType::kInt8, int64_t{-3}});
  writer.add("a.f64", {GgufType::kFloat64, 2.5});
  writer.add_bool("a.bool", true);
  GgufStringArray strings;
  strings.push_back("x");
  strings.push_back("");
  writer.add("a.strings", {GgufType::kArray, GgufArray{GgufType::kString, strings}});
  std::vector<GgufArray> nested = {{GgufType::kInt32, std::vector<int64_t>{-1, 2}}};
  writer.add("a.nested", {GgufType::kArray, GgufArray{GgufType::kArray, nested}});
  writer.add_tensor("t1", DType::kQ8_0, {32, 2}, Bytes(68, 1));
  writer.add_tensor("t2", DType::kF32, {4}, Bytes(16, 2));
  return *writer.to_bytes();
}

struct Tensor {
  std::vector<uint64_t> dims;
  uint32_t type;
  uint64_t offset = 0;
};

// A file whose tensor directory says what it likes.
Bytes raw_file(const std::vector<Tensor>& tensors, uint32_t num_dims_override = 0) {
  Bytes out = {'G', 'G', 'U', 'F', 3, 0, 0, 0};
  const auto put = [&](auto v) {
    const auto* p = reinterpret_cast<const uint8_t*>(&v);
    out.insert(out.end(), p, p + sizeof v);
  };
  put(uint64_t{tensors.size()});
  put(uint64_t{0});
  for (size_t i = 0; i < tensors.size(); ++i) {
    put(uint64_t{1});
    out.push_back(static_cast<uint8_t>('a' + i));
    put(num_dims_override != 0 ? num_dims_override : static_cast<uint32_t>(tensors[i].dims.size()));
    for (const uint64_t dim : tensors[i].dims) put(dim);
    put(tensors[i].type);
    put(tensors[i].offset);
  }
  out.resize((out.size() + 31) / 32 * 32 + 256);
  return out;
}

void expect_error(const Bytes& bytes, StatusCode code, std::string_view part) {
  const auto file = parse(bytes);
  ASSERT_FALSE(file.ok()) << part;
  EXPECT_EQ(file.status().code(), code) << file.status().to_string();
  EXPECT_NE(file.status().message().find(part), std::string_view::npos) << file.status().to_string();
}

TEST(Gguf, WrittenFileReadsBack) {
  const Bytes bytes = sample();
  const auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_EQ(**file->get_string("general.architecture"), "llama");
  EXPECT_EQ(*file->get_uint("a.count"), 7u);
  EXPECT_EQ(*file->get_float("a.i8"), -3.0);
  EXPECT_FALSE(file->get_uint("a.i8").ok());
  EXPECT_EQ(*file->get_float("a.f64"), 2.5);
  EXPECT_EQ(*file->get_bool("a.bool"), true);
  EXPECT_EQ(std::get<GgufStringArray>((*file->get_array("a.strings"))->values)[0], "x");
  const auto& nested = std::get<std::vector<GgufArray>>((*file->get_array("a.nested"))->values);
  EXPECT_EQ(std::get<std::vector<int64_t>>(nested[0].values), (std::vector<int64_t>{-1, 2}));
  Bytes data(16);
  ASSERT_TRUE(file->read_tensor(*file->find_tensor("t2"), 0, data).ok());
  EXPECT_EQ(data, Bytes(16, 2));
}

TEST(Gguf, EveryMetadataTypeKeepsItsExtremesOverAWrite) {
  const std::vector<std::pair<std::string, GgufValue>> values = {
      {"u8", {GgufType::kUint8, uint64_t{255}}},
      {"i8", {GgufType::kInt8, int64_t{-128}}},
      {"u16", {GgufType::kUint16, uint64_t{65535}}},
      {"i16", {GgufType::kInt16, int64_t{-32768}}},
      {"u32", {GgufType::kUint32, uint64_t{4294967295}}},
      {"i32", {GgufType::kInt32, int64_t{-2147483648}}},
      {"u64", {GgufType::kUint64, ~uint64_t{0}}},
      {"i64", {GgufType::kInt64, std::numeric_limits<int64_t>::min()}},
      {"f32", {GgufType::kFloat32, 1.17549435e-38f}},
      {"f64", {GgufType::kFloat64, -0.1}},
      {"bool", {GgufType::kBool, false}},
      {"string", {GgufType::kString, std::string("\0 \xff\n", 4)}},
      {"array", {GgufType::kArray, GgufArray{GgufType::kUint64, std::vector<uint64_t>{0, ~uint64_t{0}}}}},
      {"doubles", {GgufType::kArray, GgufArray{GgufType::kFloat64, std::vector<double>{0.1}}}},
      {"floats", {GgufType::kArray, GgufArray{GgufType::kFloat32, std::vector<float>{0.1f}}}},
      {"bools", {GgufType::kArray, GgufArray{GgufType::kBool, std::vector<uint8_t>{1, 0}}}},
  };
  GgufWriter writer;
  for (const auto& [key, value] : values) writer.add(key, value);
  const Bytes bytes = *writer.to_bytes();
  const auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  ASSERT_EQ(file->metadata().size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [key, value] = file->metadata()[i];
    EXPECT_EQ(key, values[i].first);
    EXPECT_EQ(value.type, values[i].second.type) << key;
    const auto* array = std::get_if<GgufArray>(&value.data);
    if (array == nullptr) {
      EXPECT_EQ(value.data.index(), values[i].second.data.index()) << key;
      std::visit(
          [&](const auto& v) {
            using T = std::decay_t<decltype(v)>;
            if constexpr (!std::is_same_v<T, GgufArray>) EXPECT_EQ(v, std::get<T>(values[i].second.data)) << key;
          },
          value.data);
    } else {
      const auto& wanted = std::get<GgufArray>(values[i].second.data);
      EXPECT_EQ(array->element_type, wanted.element_type) << key;
      if (key == "array")
        EXPECT_EQ(std::get<std::vector<uint64_t>>(array->values), std::get<std::vector<uint64_t>>(wanted.values));
      if (key == "doubles") EXPECT_EQ(std::get<std::vector<double>>(array->values)[0], 0.1);
      if (key == "floats") EXPECT_EQ(std::get<std::vector<float>>(array->values)[0], 0.1f);
      if (key == "bools") EXPECT_EQ(std::get<std::vector<uint8_t>>(array->values), (std::vector<uint8_t>{1, 0}));
    }
  }
}

TEST(GgufMalformed, TruncationAtEveryByteOfTheUsedPart) {
  const Bytes bytes = sample();
  const size_t used = bytes.size() - 16;  // the writer pads the last tensor
  for (size_t n = 0; n < used; ++n)
    EXPECT_FALSE(parse(Bytes(bytes.begin(), bytes.begin() + static_cast<long>(n))).ok()) << n;
}

TEST(GgufMalformed, ExtremeValueAtEveryByteNeverCrashes) {
  const uint64_t values[] = {
      0, 1, 0x7fffffff, 0x80000000, 0xffffffff, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 1};
  const Bytes bytes = sample();
  for (size_t at = 0; at + 8 <= bytes.size(); ++at) {
    for (const uint64_t value : values) {
      for (const size_t width : {4, 8}) {
        Bytes changed = bytes;
        std::memcpy(changed.data() + at, &value, width);
        const auto file = parse(changed);
        if (!file.ok()) EXPECT_NE(file.status().message().find("<memory>: "), std::string_view::npos);
      }
    }
  }
}

TEST(GgufMalformed, B09_ShapesThatWrapAreRefused) {
  constexpr auto kLoss = StatusCode::kDataLoss;
  expect_error(raw_file({{{4194305, 4194305, 211106198978564}, 0}}), kLoss, "'a' dimensions at byte");
  expect_error(raw_file({{{1152, (uint64_t{1} << 42) + 1}, 8}}), kLoss, "larger than the file");
  expect_error(raw_file({{{0x7FFFFFFFFFFFFFC0}, 24}, {{0x7FFFFFFFFFFFFFC0}, 24}}), StatusCode::kUnimplemented, "I8");
  expect_error(raw_file({{{0x3FFFFFFFFFFFFFC0}, 0}, {{0x3FFFFFFFFFFFFFC0}, 0}}), kLoss, "larger than the file");
  expect_error(raw_file({{{32}, 0}}, 1000000), kLoss, "1000000 is not in 1 to 4");
  expect_error(raw_file({{{32, 0}, 0}}), kLoss, "zero-size");
}

TEST(GgufMalformed, OverlapAlignmentAndEndAreChecked) {
  EXPECT_TRUE(parse(raw_file({{{8}, 0, 32}, {{8}, 0, 0}})).ok());  // order in the file is free
  expect_error(raw_file({{{16}, 0, 0}, {{8}, 0, 32}}), StatusCode::kDataLoss, "overlap");
  expect_error(raw_file({{{8}, 0, 4}}), StatusCode::kDataLoss, "alignment");
  expect_error(raw_file({{{8}, 0, ~uint64_t{31}}}), StatusCode::kDataLoss, "past the end");
  expect_error(raw_file({{{32}, 16}}), StatusCode::kUnimplemented, "IQ2_XXS");
}

TEST(GgufMalformed, OtherFormatsAreNamed) {
  const auto bytes = [](std::string_view s) { return Bytes(s.begin(), s.end()); };
  expect_error(bytes("PK\x03\x04...."), StatusCode::kDataLoss, "zip");
  expect_error(bytes("version https://git-lfs.github.com"), StatusCode::kDataLoss, "git-lfs");
  expect_error(bytes("<!DOCTYPE html>"), StatusCode::kDataLoss, "HTML");
  expect_error(bytes("\x80\x02}q"), StatusCode::kDataLoss, "pickle");
  expect_error(bytes(std::string_view("\x20\0\0\0\0\0\0\0{\"a\":", 13)), StatusCode::kDataLoss, "safetensors");
  expect_error({}, StatusCode::kDataLoss, "empty");
  expect_error({'G', 'G', 'U', 'F', 9, 0, 0, 0}, StatusCode::kUnimplemented, "version 9");
  expect_error({'G', 'G', 'U', 'F', 1, 0, 0, 0}, StatusCode::kUnimplemented, "version 1");
  expect_error({'G', 'G', 'U', 'F', 0, 0, 0, 3}, StatusCode::kUnimplemented, "big-endian");
}

class GgufSplit : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "pagoda-gguf-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    for (uint64_t i = 0; i < 3; ++i) write_shard(i, i);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(uint64_t i) const { return folder_ + "/x-0000" + std::to_string(i + 1) + "-of-00003.gguf"; }
  void write_shard(uint64_t file, uint64_t number, uint64_t count = 3, int64_t num_tensors = 3,
                   std::string tensor = "") {
    GgufWriter writer;
    writer.add("split.no", {GgufType::kUint16, number});
    writer.add("split.count", {GgufType::kUint16, count});
    writer.add("split.tensors.count", {GgufType::kInt32, num_tensors});
    if (tensor.empty()) tensor = "t" + std::to_string(number);
    writer.add_tensor(tensor, DType::kF32, {1}, Bytes(4, static_cast<uint8_t>(number)));
    ASSERT_TRUE(writer.write(path(file)).ok());
  }
  std::string folder_;
};

TEST_F(GgufSplit, B68_AnyShardOrTheFolderOpensTheWhole) {
  for (const std::string& name : {path(1), path(0), folder_}) {
    const auto file = GgufFile::open(name);
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    ASSERT_EQ(file->tensors().size(), 3u);
    Bytes data(4);
    ASSERT_TRUE(file->read_tensor(*file->find_tensor("t2"), 0, data).ok());
    EXPECT_EQ(data, Bytes(4, 2));
  }
}

TEST_F(GgufSplit, B68_MissingAndForeignShardsAreNamed) {
  write_shard(2, 1);
  const auto foreign = GgufFile::open(path(0));
  ASSERT_FALSE(foreign.ok());
  EXPECT_NE(foreign.status().message().find(path(2)), std::string_view::npos);
  std::filesystem::remove(path(2));
  const auto missing = GgufFile::open(path(0));
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find(path(2)), std::string_view::npos);
}

TEST_F(GgufSplit, B68_CountsThatDisagreeAndTensorsTwiceAreNamed) {
  const auto expect = [&](const std::string& file, const std::string& text) {
    const auto opened = GgufFile::open(path(0));
    ASSERT_FALSE(opened.ok()) << text;
    EXPECT_NE(opened.status().message().find(file), std::string::npos) << opened.status().to_string();
    EXPECT_NE(opened.status().message().find(text), std::string::npos) << opened.status().to_string();
  };
  write_shard(1, 1, 4);
  expect(path(1), "metadata 'split.count' is 4 but should be 3");
  write_shard(1, 1, 3, 5);
  expect(path(1), "metadata 'split.tensors.count' is 5 but should be 3");
  write_shard(1, 1, 3, -1);
  expect(path(1), "metadata 'split.tensors.count' must be an integer that is not negative");
  write_shard(1, 1, 3, 3, "t0");
  expect(path(1), "tensor 't0' is also in an earlier shard");
  for (uint64_t i = 0; i < 3; ++i) write_shard(i, i, 3, 2);
  expect(path(0), "metadata 'split.tensors.count' is 2 but the shards hold 3 tensors");
}

TEST_F(GgufSplit, B68_ASplitOfOneIsAWholeModel) {
  GgufWriter writer;
  writer.add("split.no", {GgufType::kUint16, uint64_t{0}});
  writer.add("split.count", {GgufType::kUint16, uint64_t{1}});
  writer.add_tensor("t", DType::kF32, {1}, Bytes(4));
  const std::string one = folder_ + "/y-00001-of-00001.gguf";
  ASSERT_TRUE(writer.write(one).ok());
  const auto file = GgufFile::open(one);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_EQ(file->tensors().size(), 1u);
}

TEST_F(GgufSplit, ARenamedShardAndAFolderOfTwoModelsAreErrors) {
  std::filesystem::rename(path(1), folder_ + "/part2.gguf");
  const auto renamed = GgufFile::open(folder_ + "/part2.gguf");
  EXPECT_NE(renamed.status().message().find("restore the original names"), std::string::npos)
      << renamed.status().to_string();
  const auto folder = GgufFile::open(folder_);
  EXPECT_NE(folder.status().message().find("holds 2 models"), std::string::npos) << folder.status().to_string();
}

TEST_F(GgufSplit, FileTruncatedAfterOpenIsAnError) {
  const auto file = GgufFile::open(path(0));
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path(2), 8);
  Bytes data(4);
  EXPECT_EQ(file->read_tensor(*file->find_tensor("t2"), 0, data).code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace pagoda
