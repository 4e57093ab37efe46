#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds grpcurl 1.9.4 and grpc_health_probe from pinned Go modules into $OUTRIGGER_CACHE/go-tools. Does nothing when
# they are there. Safe to call from several builds at once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/cache.sh"

out=$cache/go-tools
have "$out" grpcurl grpc_health_probe && exit 0
lock "$out"
work_folder "$out"
cd "$here/grpctools"
go_build "$out" grpcurl github.com/fullstorydev/grpcurl/cmd/grpcurl "-X main.version=v1.9.4"
go_build "$out" grpc_health_probe github.com/grpc-ecosystem/grpc-health-probe
