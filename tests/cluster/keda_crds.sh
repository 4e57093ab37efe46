#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copies KEDA's own CRDs out of its Go module into $OUTRIGGER_CACHE/keda-2.21.0/crds, for the tests that show that the
# operator gets on with them too (they prune some of our status fields); those of eventing because KEDA's operator does not
# start without them (tests/bench). Does nothing when they are there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/cache.sh"

version=2.21.0
out=$cache/keda-$version/crds
crds="keda.sh_scaledobjects.yaml keda.sh_scaledjobs.yaml keda.sh_triggerauthentications.yaml keda.sh_clustertriggerauthentications.yaml
eventing.keda.sh_cloudeventsources.yaml eventing.keda.sh_clustercloudeventsources.yaml"

have "$out" $crds && exit 0
lock "$out"
work_folder "$out"
cd "$here/kedacrds"
# Checked against go.sum. Named with its version, so that its own requirements are not loaded.
# Why a download failed stands in the JSON too.
module=$(go mod download -json "github.com/kedacore/keda/v2@v$version" 9>&-) || true
source=$(printf '%s\n' "$module" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
if [ -z "$source" ]; then
  printf 'keda_crds.sh: go mod download: %s\n' "$module" >&2
  exit 1
fi
for crd in $crds; do
  cp "$source/config/crd/bases/$crd" "$work/$crd"
  chmod 644 "$work/$crd"
  mv "$work/$crd" "$out/$crd"
done
