"""Warns at 600 lines a file or 80 a function, fails at 800 and 120 (1000 lines for kernels and tables)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def function_lengths(lines):
    """(first line, length) of bodies that open at column 0 or one indent and close with a brace at the same indent."""
    for start, line in enumerate(lines):
        match = re.match(r"(\s{0,2})[\w:<>*&~,\s\[\]()=]*\)[\w\s]*\{$", line)
        if not match or re.match(r"\s*(if|for|while|switch|else|namespace)\b", line):
            continue
        close = match.group(1) + "}"
        for end in range(start + 1, len(lines)):
            if lines[end].rstrip() in (close, close + ";"):
                yield start + 1, end - start + 1
                break


def main():
    failed = False
    sources = list((ROOT / "src").rglob("*.cc")) + list((ROOT / "src").rglob("*.h")) + list((ROOT / "include").rglob("*.h"))
    for path in sorted(sources):
        lines = path.read_text().splitlines()
        name = path.relative_to(ROOT)
        limit = 1000 if "kernels" in path.parts or "table" in path.name else 800
        if len(lines) > limit:
            print(f"{name}: {len(lines)} lines (limit {limit}): split by idea")
            failed = True
        elif len(lines) > 600:
            print(f"warning: {name}: {len(lines)} lines")
        for line, length in function_lengths(lines):
            if length > 120:
                print(f"{name}:{line}: function of {length} lines (limit 120)")
                failed = True
            elif length > 80:
                print(f"warning: {name}:{line}: function of {length} lines")
    print("sizes: " + ("failed" if failed else "ok"))
    return 1 if failed else 0


sys.exit(main())
