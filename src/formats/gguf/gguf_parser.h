#pragma once
// Parses and validates one GGUF file (one shard). GgufFile joins shards.

#include <string>
#include <utility>
#include <vector>

#include "formats/gguf/byte_source.h"
#include "formats/gguf/gguf_file.h"

namespace pagoda {

struct ParsedGguf {
  uint32_t version = 0;
  std::vector<std::pair<std::string, GgufValue>> metadata;
  std::vector<GgufTensorInfo> tensors;
  std::vector<GgufUnsupportedTensor> unsupported;
};

/// Statuses as GgufFile::open.
Result<ParsedGguf> parse_gguf(const ByteSource& source, const GgufFile::Options& options);

}  // namespace pagoda
