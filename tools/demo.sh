#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh: a Redis list drives local worker processes 0 -> N -> 0, without a cluster. Ends by itself; leaves nothing behind.
# OUTRIGGER_BIN_DIR: programs that are built already; else they are built first.
set -eu
cd "$(dirname "$0")/.."
bin=${OUTRIGGER_BIN_DIR:-}
if [ -z "$bin" ]; then
  tools/build.sh release outriggerctl outrigger-scaler-redis
  bin=build/release/bin
fi
work=$(mktemp -d)
redis=""
local_operator=""
# end PID: asks a child to end and waits for it; nothing where there is none.
end() {
  [ -n "$1" ] || return 0
  kill "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}
cleanup() {
  end "$local_operator"
  end "$redis"
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
# A port that nobody listens on; if somebody does, the next one. They lie below those that the kernel takes for outgoing
# connections.
start_redis() {
  local try port
  for try in 1 2 3 4 5; do
    port=$((12000 + RANDOM % 20000))
    redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$work" --logfile "$work/redis.log" &
    redis=$!
    for _ in $(seq 50); do
      redis-cli -p "$port" INFO server 2>/dev/null | grep -qx "process_id:$redis." && { address=127.0.0.1:$port; return; }
      kill -0 "$redis" 2>/dev/null || break
      read -r -t 0.1 <> <(:) || true
    done
    end "$redis"
    redis=""
  done
  echo "demo: redis-server does not start" >&2
  exit 1
}
start_redis
for file in worker scaledobject; do
  sed "s/127.0.0.1:6379/$address/" "examples/redis-queue/$file.yaml" >"$work/$file.yaml"
done
"$bin/outriggerctl" local -f "$work/worker.yaml" -f "$work/scaledobject.yaml" --exit-after-idle 2s --timeout 80s &
local_operator=$!
# The list is empty at first, so that the step from 0 is seen.
for _ in $(seq 30); do read -r -t 0.1 <> <(:) || true; done
echo "30 orders come into the Redis list \"orders\"; a worker takes 2 a second; one worker is wanted per 5 orders"
redis-cli -p "${address##*:}" RPUSH orders $(seq -f 'order-%g' 30) >/dev/null
wait "$local_operator"
local_operator=""
