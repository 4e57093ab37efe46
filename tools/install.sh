#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs from Debian 12 what build and tests need. Does nothing (and needs no root) when all of it is there.
set -eu
packages=(
  clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev llvm-19 mold ninja-build ccache cmake pkg-config
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc grpc-proto libabsl-dev
  libboost1.81-dev libboost-json1.81-dev libboost-url1.81-dev libcurl4-openssl-dev libssl-dev zlib1g-dev
  libhiredis-dev libyaml-cpp-dev libcli11-dev libspdlog-dev prometheus-cpp-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  redis-server redis-tools etcd-server curl iproute2 openssl procps python3 git ca-certificates
)
missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo
echo "installing: ${missing[*]}"
# Services of the packages must not start: a policy-rc.d that says no, unless the machine has one of its own.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
  $sudo chmod 755 "$policy"
  trap '$sudo rm -f "$policy"' EXIT
fi
$sudo apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
