#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo_test.sh: `make demo` without its build, and what `outriggerctl local` says to wrong input. Needs OUTRIGGER_BIN_DIR.
set -u
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
fail() {
  echo "FAIL: $1" >&2
  cat "$work/out" >&2
  exit 1
}

timeout 90 tools/demo.sh >"$work/out" 2>&1 || fail "the demo ended with exit code $?"
grep -q 'worker: 0 -> 1 replicas  (operator: .*activate -> scale to 1)' "$work/out" || fail "no step from 0 with its reason"
grep -Eq 'worker: 1 -> [2-9] replicas  \(HPA: New size' "$work/out" || fail "the HPA did not scale out"
grep -q 'worker: 1 -> 0 replicas  (operator: .*cooled down -> scale to 0)' "$work/out" || fail "no step to 0 with its reason"
leftover=$(pgrep -f "$work" | grep -v "^$$\$" || true)
[ -z "$leftover" ] || fail "processes are left: $leftover"
[ "$(ls "$work")" = out ] || fail "files are left: $(ls "$work")"

# Each gives one line that names what is wrong, ends at once, and is no success.
wrong() {
  local what=$1
  shift
  timeout 20 "$OUTRIGGER_BIN_DIR/outriggerctl" local "$@" >"$work/out" 2>&1
  local code=$?
  [ $code -ne 0 ] && [ $code -ne 124 ] || fail "$what: exit code $code"
  [ "$(wc -l <"$work/out")" -eq 1 ] || fail "$what: want one line"
  grep -q "$what" "$work/out" || fail "want a line with: $what"
}
scaled=examples/redis-queue/scaledobject.yaml
wrong 'absent.yaml: cannot be read' -f "$work/absent.yaml"
echo '{kind: Widget, metadata: {name: a}}' >"$work/kind.yaml"
wrong 'document 1: kind: want Deployment' -f "$work/kind.yaml"
printf 'a: [\n' >"$work/broken.yaml"
wrong 'broken.yaml: line' -f "$work/broken.yaml"
sed 's/apps.v1/apps\/v9/' examples/redis-queue/worker.yaml >"$work/version.yaml"
wrong 'apps/v9' -f "$work/version.yaml" -f "$scaled"
wrong 'plugin redis' -f examples/redis-queue/worker.yaml -f "$scaled" --plugin-bin-dir "$work"
wrong 'exit-after-idle: want a duration' -f "$scaled" --exit-after-idle soon
echo "the demo and its errors are as they should be"
