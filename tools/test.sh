#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh: everything that has to be true of a commit, in one run; stops at the first stage that fails.
#
# Three builds: release with all tests, address and undefined-behaviour sanitizers with unit tests and fuzz targets,
# thread sanitizer with the tests labelled tsan. One ctest run over all of them; its closing line is the last line printed,
# after a table of what each stage took. JOBS processors (default: all). Cold, on two processors: below 40 minutes.
set -eu -o pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs OUTRIGGER_GO_JOBS=$jobs
names=()
seconds=()

# stage NAME COMMAND…: runs the command and notes what it took; its failure is the run's.
stage() {
  local name=$1 start=$SECONDS code=0
  shift
  echo "== $name"
  "$@" || code=$?
  names+=("$name")
  seconds+=($((SECONDS - start)))
  [ $code -eq 0 ] && return
  print_stages
  echo "stage \"$name\" failed with exit code $code"
  exit $code
}

print_stages() {
  local i
  printf '\n%-52s %8s\n' stage seconds
  for i in "${!names[@]}"; do printf '%-52s %8d\n' "${names[$i]}" "${seconds[$i]}"; done
  printf '%-52s %8d\n\n' all $SECONDS
}

# build PRESET TARGET…: configures always, so that a file which a build tree does not know yet is never left out. Under
# `stage` a failure ends no function by itself.
build() {
  cmake --preset "$1" >/dev/null || return
  tools/build.sh "$@"
}

# A test "folder" that holds the three build trees.
join_trees() {
  mkdir -p build/all
  printf 'subdirs("%s")\n' "$PWD/build/release" "$PWD/build/asan" "$PWD/build/tsan" >build/all/CTestTestfile.cmake
}

# Prints as ctest does, but keeps the lines from the closing one on in build/all/closing.
# One test more than processors: the longest wait most of their time, for a cooldown or a lease.
run_ctest() {
  ctest --test-dir build/all -j $((jobs + 1)) --output-on-failure --no-label-summary --no-tests=error --timeout 300 |
    awk -v closing=build/all/closing 'BEGIN { printf "" >closing }
      /^[0-9]+% tests passed/ { held = 1 }
      held { print >closing; next }
      { print; fflush() }'
}

stage "control plane and Go tools" tests/cluster/build_all.sh
stage "release build, everything" build release
stage "asan build, unit tests and fuzz targets" build asan unit_tests fuzzers
stage "tsan build, tests labelled tsan" build tsan tsan_tests
stage "clang-tidy on what differs from .ci/tidy-base" tools/tidy.sh
join_trees
code=0
start=$SECONDS
run_ctest || code=$?
names+=("ctest over the three builds")
seconds+=($((SECONDS - start)))
print_stages
grep -v '% tests passed' build/all/closing | sed '/^$/d' || true
grep '% tests passed' build/all/closing || code=1
exit $code
