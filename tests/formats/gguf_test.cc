#include "formats/gguf/gguf_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "formats/gguf/gguf_writer.h"

namespace pagoda {
namespace {

using Bytes = std::vector<uint8_t>;

Result<GgufFile> parse(const Bytes& bytes) { return GgufFile::parse(bytes, {}); }

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

TEST(GgufMalformed, TruncationAtEveryByteOfTheUsedPart) {
  const Bytes bytes = sample();
  const size_t used = bytes.size() - 16;  // the writer pads the last tensor
  for (size_t n = 0; n < used; ++n) EXPECT_FALSE(parse(Bytes(bytes.begin(), bytes.begin() + static_cast<long>(n))).ok()) << n;
}

TEST(GgufMalformed, ExtremeValueAtEveryByteNeverCrashes) {
  const uint64_t values[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 1};
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
  void write_shard(uint64_t file, uint64_t number) {
    GgufWriter writer;
    writer.add("split.no", {GgufType::kUint16, number});
    writer.add("split.count", {GgufType::kUint16, uint64_t{3}});
    writer.add("split.tensors.count", {GgufType::kInt32, int64_t{3}});
    writer.add_tensor("t" + std::to_string(number), DType::kF32, {1}, Bytes(4, static_cast<uint8_t>(number)));
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

TEST_F(GgufSplit, FileTruncatedAfterOpenIsAnError) {
  const auto file = GgufFile::open(path(0));
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path(2), 8);
  Bytes data(4);
  EXPECT_EQ(file->read_tensor(*file->find_tensor("t2"), 0, data).code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace pagoda
