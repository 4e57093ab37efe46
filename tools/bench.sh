#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench.sh: builds for release, measures (tests/bench/README.md), prints tables and writes build/bench/results.json.
# BENCH_SIZES="1 100 1000": numbers of ScaledObjects. BENCH_OUTAGES=0: without the stopped plugin and the hung entry.
# PEER=1: KEDA too, built from its Go module the first time.
set -eu -o pipefail
cd "$(dirname "$0")/.."
tests/cluster/build_all.sh
[ "${PEER:-0}" = 0 ] || tests/bench/peer/build_keda.sh
cmake --preset release >/dev/null
tools/build.sh release outrigger_bench
mkdir -p build/bench
OUTRIGGER_BIN_DIR=$PWD/build/release/bin OUTRIGGER_SOURCE_DIR=$PWD build/release/bin/outrigger_bench build/bench/results.json
echo "written: build/bench/results.json"
