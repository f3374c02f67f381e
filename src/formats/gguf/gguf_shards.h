#pragma once
// Finds and joins the files of a split model ("NAME-00001-of-00003.gguf").

#include <memory>
#include <string>
#include <vector>

#include "formats/gguf/gguf_parser.h"

namespace pagoda {

struct GgufShards {
  std::vector<std::unique_ptr<ByteSource>> sources;  ///< in shard order
  ParsedGguf joined;  ///< metadata of the first shard, tensors of all; GgufTensorInfo::shard indexes `sources`
};

/// `path` and statuses as GgufFile::open. kNotFound names a missing shard.
Result<GgufShards> open_gguf_shards(const std::string& path, const GgufFile::Options& options);

}  // namespace pagoda
