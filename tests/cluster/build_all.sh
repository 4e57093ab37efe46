#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fills the cache with all that the tests on the real control plane run; see the scripts for what each costs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
"$here/build.sh"
"$here/build_grpcurl.sh"
"$here/keda_crds.sh"
