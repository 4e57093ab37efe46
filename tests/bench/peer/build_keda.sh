#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds KEDA's operator and metrics adapter from its Go module into $OUTRIGGER_CACHE/keda-<version>/bin, for PEER=1 of
# tools/bench.sh. Does nothing when they are there. Safe to call from several builds at once.
#
# Costs about 6 minutes of two cores with a cold Go build cache, and 300 MB of programs. No test needs it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../cluster/cache.sh"

version=2.21.0
out=$cache/keda-$version/bin
have "$out" keda keda-adapter && exit 0
lock "$out"
work_folder "$out"

cd "$here"
# As in its Makefile: without it the version is "main".
flags="-X github.com/kedacore/keda/v2/version.Version=$version"
go_build "$out" keda github.com/kedacore/keda/v2/cmd/operator "$flags"
go_build "$out" keda-adapter github.com/kedacore/keda/v2/cmd/adapter "$flags"
