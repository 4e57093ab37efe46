#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz_smoke.sh TARGET CORPUS: 10,000 cases of one fuzz target from its seed corpus, in a folder of its own. Fails where
# a case does, and where not all of them were run; how long it may take is ctest's business.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/corpus"
"$1" -runs=10000 -seed=1 -artifact_prefix="$work/" "$work/corpus" "$2" 2>"$work/log" || {
  tail -n 40 "$work/log"
  for crash in "$work"/crash-* "$work"/leak-* "$work"/timeout-* "$work"/oom-*; do
    [ -e "$crash" ] && { echo "input of $crash (base64):"; base64 "$crash"; }
  done
  exit 1
}
tail -n 2 "$work/log"
grep -q '^Done 10000 runs ' "$work/log" || { echo "want 10000 runs"; exit 1; }
