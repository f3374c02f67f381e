#include "kernels/packing.h"

#include <string.h>

#include "base/check.h"
#include "kernels/matmul_layout.h"
#include "tensor/dtype.h"

namespace pagoda {

namespace {

// What a dword goes through on its way into the panel; all are reversible.
enum class Recode : uint8_t {
  kNone,
  kFlipSigns,  // Q8_0: signed bytes become unsigned with offset 128, as the integer dot product wants them
  kBitPlane,   // Q5_0, Q5_1: bit 4i+b moves to byte b, bit i: the fifth bits of vector i sit at bit i of every byte
};

struct Line {
  uint8_t offset;  // of the dword in the GGUF block
  Recode recode = Recode::kNone;
};

inline constexpr int kMaxLines = 53;

// One type's block: a scale kept apart (groups of 32 only), then payload lines in order of use.
struct BlockLayout {
  int block_k = 0;
  int block_bytes = 0;
  int scale_bytes = 0;        // 2 or 4: the first bytes of the block; MXFP4's single byte is widened to 2
  int half_line_offset = -1;  // super-blocks whose F16 scale stands alone: 2 bytes a row in a line of their own, first
  int num_lines = 0;          // payload lines, without scale and half line
  Line lines[kMaxLines] = {};
};

class LayoutBuilder {
 public:
  constexpr LayoutBuilder(int block_k, int block_bytes) {
    layout_.block_k = block_k, layout_.block_bytes = block_bytes;
  }
  constexpr LayoutBuilder scale(int bytes) const {
    LayoutBuilder next = *this;
    next.layout_.scale_bytes = bytes;
    return next;
  }
  constexpr LayoutBuilder half_line(int offset) const {
    LayoutBuilder next = *this;
    next.layout_.half_line_offset = offset;
    return next;
  }
  // `count` consecutive dwords of the block, from byte `offset`.
  constexpr LayoutBuilder dwords(int offset, int count, Recode recode = Recode::kNone) const {
    LayoutBuilder next = *this;
    for (int i = 0; i < count; ++i) {
      next.layout_.lines[next.layout_.num_lines++] = Line{static_cast<uint8_t>(offset + 4 * i), recode};
    }
    return next;
  }
  constexpr BlockLayout build() const { return layout_; }

 private:
  BlockLayout layout_;
};

using B = LayoutBuilder;
constexpr BlockLayout kQ4_0 = B(32, 18).scale(2).dwords(2, 4).build();
constexpr BlockLayout kQ4_1 = B(32, 20).scale(4).dwords(4, 4).build();
constexpr BlockLayout kQ5_0 = B(32, 22).scale(2).dwords(2, 1, Recode::kBitPlane).dwords(6, 4).build();
constexpr BlockLayout kQ5_1 = B(32, 24).scale(4).dwords(4, 1, Recode::kBitPlane).dwords(8, 4).build();
constexpr BlockLayout kQ8_0 = B(32, 34).scale(2).dwords(2, 8, Recode::kFlipSigns).build();
constexpr BlockLayout kMxfp4 = B(32, 17).scale(2).dwords(1, 4).build();
// d and dmin, scales, quants.
constexpr BlockLayout kQ2K = B(256, 84).dwords(80, 1).dwords(0, 4).dwords(16, 16).build();
// d; scales, high bits, quants.
constexpr BlockLayout kQ3K = B(256, 110).half_line(108).dwords(96, 3).dwords(0, 8).dwords(32, 16).build();
constexpr BlockLayout kQ4K = B(256, 144).dwords(0, 36).build();
constexpr BlockLayout kQ5K = B(256, 176).dwords(0, 44).build();
// d; scales, then high and low bits of each half of 128, so that a pass over the panel reads memory in order.
constexpr BlockLayout kQ6K =
    B(256, 210).half_line(208).dwords(192, 4).dwords(128, 8).dwords(0, 16).dwords(160, 8).dwords(64, 16).build();
constexpr BlockLayout kIq4Xs = B(256, 136).dwords(0, 34).build();

const BlockLayout& block_layout(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kIQ4_NL:
      return kQ4_0;
    case DType::kQ4_1:
      return kQ4_1;
    case DType::kQ5_0:
      return kQ5_0;
    case DType::kQ5_1:
      return kQ5_1;
    case DType::kQ8_0:
      return kQ8_0;
    case DType::kQ2_K:
      return kQ2K;
    case DType::kQ3_K:
      return kQ3K;
    case DType::kQ4_K:
      return kQ4K;
    case DType::kQ5_K:
      return kQ5K;
    case DType::kQ6_K:
      return kQ6K;
    case DType::kIQ4_XS:
      return kIq4Xs;
    case DType::kMXFP4:
      return kMxfp4;
    default:
      break;
  }
  PAGODA_CHECK(false);
  return kQ4_0;
}

uint32_t load_u32(const uint8_t* p) {
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

uint32_t to_bit_plane(uint32_t bits) {
  uint32_t plane = 0;
  for (int k = 0; k < 32; ++k) plane |= ((bits >> k) & 1u) << (8 * (k % 4) + k / 4);
  return plane;
}

uint32_t from_bit_plane(uint32_t plane) {
  uint32_t bits = 0;
  for (int k = 0; k < 32; ++k) bits |= ((plane >> (8 * (k % 4) + k / 4)) & 1u) << k;
  return bits;
}

uint32_t encode(uint32_t dword, Recode recode) {
  switch (recode) {
    case Recode::kFlipSigns:
      return dword ^ 0x80808080u;
    case Recode::kBitPlane:
      return to_bit_plane(dword);
    case Recode::kNone:
      break;
  }
  return dword;
}

uint32_t decode(uint32_t dword, Recode recode) {
  return recode == Recode::kBitPlane ? from_bit_plane(dword) : encode(dword, recode);
}

// MXFP4 stores the exponent e of a scale 2^(e-128) (half of 2^(e-127): the codebook holds doubled values). Its upper
// 16 bits as an F32 are exact, subnormals included, and need only a shift in the kernel.
uint16_t mxfp4_scale(uint8_t e) {
  return e < 2 ? static_cast<uint16_t>(0x20u << e) : static_cast<uint16_t>((e - 1u) << 7);
}

uint8_t mxfp4_exponent(uint16_t scale) {
  if (scale < 0x80) return scale == 0x20 ? 0 : 1;
  return static_cast<uint8_t>((scale >> 7) + 1);
}

// Positions of one row's parts of one block within its panel.
struct BlockPlace {
  size_t scale = 0;      // 2 or 4 bytes, for groups of 32
  size_t half_line = 0;  // 2 bytes
  size_t lines = 0;      // first payload dword; the next is kLineBytes on
};

BlockPlace place_of(const BlockLayout& layout, int block, int row) {
  BlockPlace place;
  if (layout.scale_bytes > 0) {
    place.scale = group_scales_offset(layout.scale_bytes, layout.num_lines, block) + layout.scale_bytes * row;
    place.lines = group_lines_offset(layout.scale_bytes, layout.num_lines, block) + 4 * row;
    return place;
  }
  const int num_half_lines = layout.half_line_offset >= 0 ? 1 : 0;
  const size_t base = static_cast<size_t>(block) * (layout.num_lines + num_half_lines) * kLineBytes;
  place.half_line = base + 2 * row;
  place.lines = base + num_half_lines * kLineBytes + 4 * row;
  return place;
}

void pack_block(DType dtype, const BlockLayout& layout, const uint8_t* src, const BlockPlace& place, uint8_t* panel) {
  if (dtype == DType::kMXFP4) {
    const uint16_t scale = mxfp4_scale(src[0]);
    memcpy(panel + place.scale, &scale, 2);
  } else if (layout.scale_bytes > 0) {
    memcpy(panel + place.scale, src, layout.scale_bytes);
  }
  if (layout.half_line_offset >= 0) memcpy(panel + place.half_line, src + layout.half_line_offset, 2);
  for (int i = 0; i < layout.num_lines; ++i) {
    const uint32_t dword = encode(load_u32(src + layout.lines[i].offset), layout.lines[i].recode);
    memcpy(panel + place.lines + static_cast<size_t>(i) * kLineBytes, &dword, 4);
  }
}

size_t float_position(DType dtype, int32_t row, int32_t k) {
  const auto column = static_cast<size_t>(k);
  switch (dtype) {
    case DType::kF32:
      return column * 64 + 4 * row;
    case DType::kF16:
      return column * 32 + 2 * row;
    default:
      return column / 2 * 64 + 4 * row + 2 * (column & 1);
  }
}

size_t float_bytes(DType dtype) {
  return dtype == DType::kF32 ? 4 : 2;
}

}  // namespace

ActFormat act_format(DType weight_type) {
  if (weight_type == DType::kBF16) return ActFormat::kBF16;
  if (is_float_type(weight_type)) return ActFormat::kF32;
  return is_super_block_type(weight_type) ? ActFormat::kQ8Group256 : ActFormat::kQ8Group32;
}

size_t packed_panel_bytes(DType dtype, int32_t k) {
  if (is_float_type(dtype)) {
    const size_t bytes = static_cast<size_t>(k) * kPanelRows * float_bytes(dtype);
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  const BlockLayout& layout = block_layout(dtype);
  const int num_blocks = k / layout.block_k;
  if (layout.scale_bytes > 0) return groups_bytes(layout.scale_bytes, layout.num_lines, num_blocks);
  const int lines = layout.num_lines + (layout.half_line_offset >= 0 ? 1 : 0);
  return static_cast<size_t>(num_blocks) * lines * kLineBytes;
}

int32_t packed_k_multiple(DType dtype) {
  if (dtype == DType::kBF16) return 2;
  return is_float_type(dtype) ? 1 : block_layout(dtype).block_k;
}

void pack_panel(DType dtype, const uint8_t* rows, size_t row_bytes, int32_t num_rows, int32_t k, uint8_t* panel) {
  PAGODA_CHECK(num_rows >= 1 && num_rows <= kPanelRows && k % packed_k_multiple(dtype) == 0);
  memset(panel, 0, packed_panel_bytes(dtype, k));
  for (int32_t row = 0; row < num_rows; ++row) {
    const uint8_t* src = rows + row * row_bytes;
    if (is_float_type(dtype)) {
      const size_t bytes = float_bytes(dtype);
      for (int32_t i = 0; i < k; ++i) memcpy(panel + float_position(dtype, row, i), src + i * bytes, bytes);
      continue;
    }
    const BlockLayout& layout = block_layout(dtype);
    for (int32_t block = 0; block < k / layout.block_k; ++block) {
      pack_block(dtype, layout, src + static_cast<size_t>(block) * layout.block_bytes, place_of(layout, block, row),
                 panel);
    }
  }
}

void unpack_block(const PackedMatrix& matrix, int32_t row, int32_t block, uint8_t* dst) {
  const uint8_t* panel = matrix.data + row / kPanelRows * matrix.panel_bytes;
  const int32_t lane = row % kPanelRows;
  if (is_float_type(matrix.dtype)) {
    memcpy(dst, panel + float_position(matrix.dtype, lane, block), float_bytes(matrix.dtype));
    return;
  }
  const BlockLayout& layout = block_layout(matrix.dtype);
  const BlockPlace place = place_of(layout, block, lane);
  if (matrix.dtype == DType::kMXFP4) {
    uint16_t scale;
    memcpy(&scale, panel + place.scale, 2);
    dst[0] = mxfp4_exponent(scale);
  } else if (layout.scale_bytes > 0) {
    memcpy(dst, panel + place.scale, layout.scale_bytes);
  }
  if (layout.half_line_offset >= 0) memcpy(dst + layout.half_line_offset, panel + place.half_line, 2);
  for (int i = 0; i < layout.num_lines; ++i) {
    const uint32_t dword =
        decode(load_u32(panel + place.lines + static_cast<size_t>(i) * kLineBytes), layout.lines[i].recode);
    memcpy(dst + layout.lines[i].offset, &dword, 4);
  }
}

void unpack_row(const PackedMatrix& matrix, int32_t row, float* dst) {
  PAGODA_CHECK(row >= 0 && row < matrix.n);
  const DTypeTraits& type = traits(matrix.dtype);
  uint8_t block_bytes[256];
  for (int32_t block = 0; block < matrix.k / type.block_elements; ++block) {
    unpack_block(matrix, row, block, block_bytes);
    type.decode(block_bytes, dst + static_cast<size_t>(block) * type.block_elements, 1);
  }
}

}  // namespace pagoda
