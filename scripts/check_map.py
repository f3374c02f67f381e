"""Fails when a file or function that docs/map.md names on the way from prompt to token does not exist."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    errors, steps = [], 0
    for line in (ROOT / "docs/map.md").read_text().splitlines():
        match = re.match(r"\d+\. `([\w/.]+\.(?:cc|h))` `([\w:~]+)`", line)
        if not match:
            continue
        steps += 1
        path, function = ROOT / match.group(1), match.group(2)
        if not path.exists():
            errors.append(f"docs/map.md: {match.group(1)} does not exist")
        elif not re.search(r"\b" + re.escape(function.split("::")[-1]) + r"\b", path.read_text()):
            errors.append(f"docs/map.md: {match.group(1)} has no {function}")
    if not 6 <= steps <= 12:
        errors.append(f"docs/map.md: the way from prompt to token has {steps} steps, it should have 6 to 12")
    print("\n".join(errors) or f"map: ok ({steps} steps)")
    return 1 if errors else 0


sys.exit(main())
