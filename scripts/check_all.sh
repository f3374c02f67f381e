#!/usr/bin/env bash
# The structural checks: layers, symbols, sizes, map. Each prints what broke and how to mend it.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 scripts/check_layers.py
python3 scripts/check_sizes.py
python3 scripts/check_map.py
scripts/check_symbols.sh
