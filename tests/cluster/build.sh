#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the programs of the test control plane from pinned Go modules: kube-apiserver, kube-controller-manager and
# kubectl, into $OUTRIGGER_CACHE/kubernetes-<version>/bin. Does nothing when they are there. Safe to call from several
# builds at once: the first one builds, the others wait for it.
#
# Costs 5 to 8 minutes of two cores with a cold Go build cache, and 250 MB of programs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/cache.sh"

version=1.36.3
programs="kube-apiserver kube-controller-manager kubectl"
out=$cache/kubernetes-$version/bin

have "$out" $programs && exit 0
lock "$out"
work_folder "$out"

# Without these clients see version v0.0.0, which they judge as too old.
flags=""
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags="$flags -X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=36"
done

cd "$here/controlplane"
for program in $programs; do
  go_build "$out" "$program" "k8s.io/kubernetes/cmd/$program" "$flags"
done
