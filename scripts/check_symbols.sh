#!/usr/bin/env bash
# Fails when a kernel object compiled for one instruction set carries a weak symbol (the linker could pick it for every CPU),
# or when the library prints, exits or aborts anywhere but in base/check.cc.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
status=0
while IFS= read -r object; do
  weak=$(nm -C "$object" | grep -E ' [WVu] ' || true)
  if [ -n "$weak" ]; then echo "$object: weak symbols in a file compiled for one instruction set:"; echo "$weak"; status=1; fi
done < <(find "$build" -path '*kernels/x86/*' -name '*.o')
banned='^(printf|puts|putchar|exit|_exit|abort)$'
for library in "$build"/src/*/libpagoda_*.a "$build"/src/libpagoda_*.a; do
  [ -f "$library" ] || continue
  while IFS= read -r line; do
    echo "$library: $line: the library never prints, exits or aborts (only base/check.cc may)"; status=1
  done < <(nm -C -A "$library" 2> /dev/null | grep ' U ' | grep -v 'check.cc.o' | awk '{file=$1; sub(/.* U /, ""); print file " " $0}' \
           | awk -v b="$banned" '{name=$0; sub(/^[^ ]+ /, "", name); if (name ~ b) print $0}')
done
[ $status = 0 ] && echo "symbols: ok"
exit $status
