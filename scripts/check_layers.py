"""Fails when a source file includes a layer that docs/map.md does not allow, or a third-party header outside its folder."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
THIRD_PARTY = {  # header prefix -> the only folder that may include it
    "boost/": "base", "spdlog/": "base", "fmt/": "cli", "CLI/": "cli", "pcre2.h": "tokenizer", "unicode/": "tokenizer",
    "readline/": "cli",
}


def allowed_layers():
    """Rows of the table in docs/map.md: | `src/x/` | may include |"""
    table = {}
    for line in (ROOT / "docs/map.md").read_text().splitlines():
        match = re.match(r"\| `src/(\w+)/` \| ([^|]*) \|", line)
        if match:
            table[match.group(1)] = set(re.findall(r"\w+", match.group(2)))
    return table


def main():
    allowed, errors = allowed_layers(), []
    for path in sorted(list((ROOT / "src").rglob("*.h")) + list((ROOT / "src").rglob("*.cc"))):
        layer = path.relative_to(ROOT / "src").parts[0]
        if layer not in allowed:
            errors.append(f"{layer}: folder missing from the table in docs/map.md")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            where = f"{path.relative_to(ROOT)}:{number}"
            match = re.match(r'#include "(\w+)/', line)
            if match and match.group(1) not in allowed[layer] | {layer, "pagoda"}:
                errors.append(f"{where}: {layer} must not include {match.group(1)} (docs/map.md)")
            match = re.match(r"#include <([^>]+)>", line)
            for prefix, owner in THIRD_PARTY.items():
                if match and match.group(1).startswith(prefix) and layer != owner:
                    errors.append(f"{where}: <{match.group(1)}> belongs to {owner} only")
    for path in sorted((ROOT / "include").rglob("*.h")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.match(r"#include <[^>]*[/.]", line):
                errors.append(f"{path.relative_to(ROOT)}:{number}: public headers include only the standard library")
    print("\n".join(errors) or "layers: ok")
    return 1 if errors else 0


sys.exit(main())
