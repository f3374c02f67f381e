#!/usr/bin/env python3
"""Writes tests/tensor/data/dtype_golden.bin: random blocks of every tensor type with the values that the `gguf`
Python package gives them, and random floats with the blocks that its quantize makes. Made with gguf 0.19.0, numpy 2.4.6.

Record: u8 kind (0 decode, 1 encode), u8 name length, name, u32 block bytes total, bytes, u32 floats, floats.
"""
import pathlib
import struct

import gguf
import numpy as np
from gguf.quants import dequantize, quantize

TYPES = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4".split()
# Byte offsets of the F16 fields, which must stay finite.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0]}


def record(kind, name, blocks, floats):
    data = np.ascontiguousarray(blocks).view(np.uint8).tobytes()
    values = np.ascontiguousarray(floats, dtype=np.float32)
    return (struct.pack("<BB", kind, len(name)) + name.encode() + struct.pack("<I", len(data)) + data +
            struct.pack("<I", values.size) + values.tobytes())


def main():
    rng = np.random.default_rng(20240601)
    out = b""
    for name in TYPES:
        qtype = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[qtype]
        count = 6 if elements > 1 else 64
        if elements == 1:
            values = rng.standard_normal(count).astype(np.float32).reshape(1, -1)
            blocks = quantize(values, qtype)
        else:
            blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
            for at in SCALES.get(name, []):
                scale = (rng.standard_normal(count) * 0.1).astype(np.float16)
                blocks[:, at:at + 2] = scale.view(np.uint8).reshape(count, 2)
        if name == "MXFP4":
            blocks[:, 0] = [0, 1, 2, 120, 127, 200]
        out += record(0, name, blocks, np.asarray(dequantize(blocks, qtype), dtype=np.float32))
        if name in ("F16", "BF16", "Q8_0", "Q4_0", "Q4_1"):
            values = rng.standard_normal((4, 32)).astype(np.float32)
            values[1] = 0
            out += record(1, name, quantize(values, qtype), values)
    path = pathlib.Path(__file__).resolve().parent.parent / "tests/tensor/data/dtype_golden.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(out)


if __name__ == "__main__":
    main()
