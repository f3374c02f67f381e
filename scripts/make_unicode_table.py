"""Writes src/chat_template/unicode_table.cc: the character classes and case mappings of Python's str methods.

Usage: python scripts/make_unicode_table.py   (the Unicode version is the one of the Python that runs it)
"""
import pathlib
import sys
import unicodedata

OUT = pathlib.Path(__file__).resolve().parent.parent / "src/chat_template/unicode_table.cc"
CHARS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(accept):
    out = []
    for ch in CHARS:
        if accept(ch):
            c = ord(ch)
            if out and out[-1][1] == c - 1:
                out[-1][1] = c
            else:
                out.append([c, c])
    return out


def deltas(mapping):
    """Runs of (first, last, stride, delta) for characters whose mapping is one other character."""
    out = []
    for ch in CHARS:
        m = mapping(ch)
        if len(m) != 1 or m == ch:
            continue
        c, d = ord(ch), ord(m) - ord(ch)
        if out and out[-1][3] == d and c - out[-1][1] in (1, 2) and (out[-1][2] in (0, c - out[-1][1])):
            out[-1][2] = c - out[-1][1]
            out[-1][1] = c
        else:
            out.append([c, c, 0, d])
    return [[a, b, s or 1, d] for a, b, s, d in out]


def specials(mapping):
    return [(ord(ch), mapping(ch)) for ch in CHARS if len(mapping(ch)) > 1]


def emit_ranges(name, rows):
    body = ", ".join(f"{{0x{a:X}, 0x{b:X}}}" for a, b in rows)
    return f"const std::array<Range, {len(rows)}> {name} = {{{{{body}}}}};\n"


def emit_runs(name, rows):
    body = ", ".join(f"{{0x{a:X}, 0x{b:X}, {s}, {d}}}" for a, b, s, d in rows)
    return f"const std::array<CaseRun, {len(rows)}> {name} = {{{{{body}}}}};\n"


def emit_specials(name, rows):
    def text(s):
        return "".join(f"\\x{b:02x}" for b in s.encode())
    body = ", ".join(f'{{0x{c:X}, "{text(s)}"}}' for c, s in rows)
    return f"const std::array<SpecialCase, {len(rows)}> {name} = {{{{{body}}}}};\n"


def wrap(line):
    import textwrap
    return "\n".join(textwrap.wrap(line, 118, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)) + "\n"


def main():
    parts = [
        emit_ranges("kAlpha", ranges(str.isalpha)),
        emit_ranges("kNumeric", ranges(str.isnumeric)),
        emit_ranges("kDecimal", ranges(str.isdecimal)),
        emit_ranges("kDigit", ranges(str.isdigit)),
        emit_ranges("kNotPrintable", ranges(lambda c: not c.isprintable())),
        emit_ranges("kLower", ranges(str.islower)),
        emit_ranges("kUpper", ranges(str.isupper)),
        emit_runs("kToLower", deltas(str.lower)),
        emit_runs("kToUpper", deltas(str.upper)),
        emit_runs("kToTitle", deltas(str.title)),
        emit_specials("kLowerSpecial", specials(str.lower)),
        emit_specials("kUpperSpecial", specials(str.upper)),
        emit_specials("kTitleSpecial", specials(str.title)),
    ]
    OUT.write_text(
        f"// Made by scripts/make_unicode_table.py with Unicode {unicodedata.unidata_version} "
        f"(Python {sys.version.split()[0]}). Do not edit.\n\n"
        "#include \"chat_template/unicode_table.h\"\n\nnamespace pagoda::jinja::unicode {\n\n"
        + "\n".join(wrap(p.strip()) for p in parts) + "\n}  // namespace pagoda::jinja::unicode\n")
    header = ("#pragma once\n// The arrays of unicode_table.cc. Ranges are inclusive and rising.\n\n#include <array>\n"
              "#include <cstdint>\n\nnamespace pagoda::jinja::unicode {\n\nstruct Range {\n  uint32_t first, last;\n};\n"
              "/// Every `stride`-th character of [first, last] maps to itself plus delta.\nstruct CaseRun {\n"
              "  uint32_t first, last, stride;\n  int32_t delta;\n};\n/// A character that maps to several.\n"
              "struct SpecialCase {\n  uint32_t code_point;\n  const char* text;\n};\n\n")
    for p in parts:
        header += "extern " + p.split(" = ")[0] + ";\n"
    OUT.with_suffix(".h").write_text(header + "\n}  // namespace pagoda::jinja::unicode\n")


main()
