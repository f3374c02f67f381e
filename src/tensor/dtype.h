#pragma once
// The tensor types Pagoda can hold, one table row each: names, block geometry, reference decoder and encoder.
// Block formats are those of ggml's GGUF specification; a row of a tensor is a whole number of blocks along its
// fastest dimension.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/dtype_id.h"

namespace pagoda {


struct DTypeTraits {
  DType dtype;
  std::string_view name;   ///< as GGUF tools print it: "Q4_K"
  uint32_t gguf_id;        ///< ggml_type in a GGUF file
  uint16_t block_elements; ///< elements along K in one block
  uint16_t block_bytes;    ///< bytes of one block
  /// Writes `num_blocks * block_elements` floats. `src` needs no alignment.
  void (*decode)(const uint8_t* src, float* dst, size_t num_blocks);
  /// Round-to-nearest encoding, or null where Pagoda only reads the type.
  void (*encode)(const float* src, uint8_t* dst, size_t num_blocks);
};

/// All rows, indexed by DType.
std::span<const DTypeTraits> dtype_table();
const DTypeTraits& traits(DType dtype);
std::optional<DType> dtype_from_gguf_id(uint32_t id);
std::optional<DType> dtype_from_name(std::string_view name);
/// Name of any ggml type id, supported or not, for error texts ("IQ2_XXS", "type 99").
std::string_view gguf_type_name(uint32_t id);

/// Bytes of `elements` values (a multiple of block_elements).
size_t dtype_bytes(DType dtype, size_t elements);

}  // namespace pagoda
