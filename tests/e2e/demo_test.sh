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
# Processes of a run that is over: they have our TMPDIR in their environment, or (Redis, which writes over its own) work
# in our folder.
left_behind() {
  env -u TMPDIR grep -lzxF "TMPDIR=$work" /proc/[0-9]*/environ 2>/dev/null
  find /proc -maxdepth 2 -name cwd -lname "$work*" 2>/dev/null
}
leftover=$(left_behind)
[ -z "$leftover" ] || fail "processes are left: $leftover"
[ "$(ls "$work")" = out ] || fail "files are left: $(ls "$work")"

# Each gives one line for each thing that is wrong, which names it; ends at once; and is no success.
wrong_lines() {
  local count=$1 what=$2
  shift 2
  timeout 20 "$OUTRIGGER_BIN_DIR/outriggerctl" "$@" >"$work/out" 2>&1
  local code=$?
  [ $code -ne 0 ] && [ $code -ne 124 ] || fail "$what: exit code $code"
  [ "$(wc -l <"$work/out")" -eq "$count" ] || fail "$what: want $count lines"
  grep -qF -- "$what" "$work/out" || fail "want a line with: $what"
}
wrong() { wrong_lines 1 "$1" local "${@:2}"; }
worker=examples/redis-queue/worker.yaml
scaled=examples/redis-queue/scaledobject.yaml
wrong 'absent.yaml: want a YAML file that can be read, got none' -f "$work/absent.yaml"
wrong 'want a YAML file, got a folder' -f "$work"
: >"$work/empty.yaml"
wrong 'empty.yaml: want at least one object, got none' -f "$work/empty.yaml"
echo '{kind: Widget, metadata: {name: a}}' >"$work/kind.yaml"
wrong 'document 1, line 1: kind: want one of Deployment' -f "$work/kind.yaml"
printf 'a: [\n' >"$work/broken.yaml"
wrong 'broken.yaml: line' -f "$work/broken.yaml"
sed 's/apps.v1/apps\/v9/' "$worker" >"$work/version.yaml"
wrong 'apiVersion: want apps/v1 for a Deployment, got "apps/v9"' -f "$work/version.yaml" -f "$scaled"
wrong 'want each file once, got it twice' -f "$worker" -f "$worker"
sed 's/"sh"/"no-such-program"/' "$worker" >"$work/command.yaml"
wrong 'command[0]: want a program that can be run on this machine, got "no-such-program"' -f "$work/command.yaml"
wrong 'ScaledObject default/worker: spec.scaleTargetRef.name: want a Deployment that one of the files has' -f "$scaled"
sed 's/maxReplicaCount: 10/maxReplicaCount: 0/; s/pollingInterval: 1/pollingInterval: 0/' "$scaled" >"$work/bounds.yaml"
wrong_lines 3 'spec.pollingInterval: want an integer >= 1, got 0' local -f "$work/kind.yaml" -f "$worker" -f "$work/bounds.yaml"
sed 's/stabilizationWindowSeconds: 0/stabilizationWindowSeconds: 4000/' "$scaled" >"$work/behavior.yaml"
wrong 'behavior.scaleDown.stabilizationWindowSeconds: want an integer from 0 to 3600, got 4000' -f "$worker" -f "$work/behavior.yaml"
wrong 'wants the program of plugin redis' -f "$worker" -f "$scaled" --plugin-bin-dir "$work"
wrong 'exit-after-idle: want a duration' -f "$scaled" --exit-after-idle soon
wrong '--log-dir: want a folder that is there' -f "$worker" -f "$scaled" --log-dir "$work/absent"
wrong_lines 1 'got "lokal" (did you mean local?); for help: outriggerctl --help' lokal
wrong_lines 1 'unknown flag --file-name; for help: outriggerctl local --help' local --file-name a
echo "the demo and its errors are as they should be"
