#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Takes one order after another; each takes half a second of work.
trap 'exit 0' TERM INT
host=${REDIS_ADDRESS%:*} port=${REDIS_ADDRESS##*:}
while :; do
  redis-cli -h "$host" -p "$port" LPOP orders >/dev/null
  sleep 0.5 &
  wait $!
done
