// GGUF parser: any bytes give a file or an error status; the tensors of an accepted file can all be read and decoded.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/gguf/gguf_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pagoda;
  GgufFile::Options options;
  options.unknown_types = size % 2 == 0 ? GgufUnknownTypes::kRefuse : GgufUnknownTypes::kList;
  const auto file = GgufFile::parse({data, size}, options);
  if (!file.ok()) {
    if (file.status().message().empty()) std::abort();
    return 0;
  }
  for (const GgufTensorInfo& tensor : file->tensors()) {
    const DTypeTraits& row = traits(tensor.dtype);
    std::vector<uint8_t> block(row.block_bytes);
    std::vector<float> values(row.block_elements);
    if (!file->read_tensor(tensor, tensor.num_bytes - block.size(), block).ok()) std::abort();
    row.decode(block.data(), values.data(), 1);
  }
  return 0;
}
