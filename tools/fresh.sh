#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fresh.sh [COMMAND]: proves that nothing installed by hand is needed. Makes a bare Debian 12 root, clones the committed
# state of this repository into it, runs COMMAND there (default: the README's `make demo` and `make test`) with empty
# caches, and removes everything. Needs root; 15 GB of disk, in $TMPDIR.
#
# Taken from this machine, read-only: toolchains that Debian 12 does not have in the version needed (Go; Node, Rust, JDK
# and Maven where found), the apt sources, the CA bundle, and the settings that say where packages come from. All of them
# are found by asking the tools.
set -eu -o pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "fresh.sh needs root, for chroot and mounts" >&2; exit 1; }
command=${1:-make demo && make test}
home=/srv/home  # inside
clone=$home/outrigger

binds=()      # "HOST INSIDE": mounted read-only
path=()       # folders of toolchains, before the system's
variables=()  # NAME=VALUE of the environment inside

bind() { binds+=("$1 ${2:-$1}"); }
has() { command -v "$1" >/dev/null 2>&1; }

take_toolchains() {
  has go || { echo "fresh.sh: no go on this machine" >&2; exit 1; }
  take_tree "$(go env GOROOT)"
  if has rustc && [ -d "$(rustc --print sysroot 2>/dev/null)/bin" ]; then take_tree "$(rustc --print sysroot)"; fi
  if has javac; then take_tree "$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")"; fi
  if has mvn; then take_tree "$(dirname "$(dirname "$(readlink -f "$(command -v mvn)")")")"; fi
  if has node; then take_node; fi
}

# A folder with bin/ in it. Debian's packages of Java link to their settings in /etc and to shared jars.
take_tree() {
  local target
  bind "$1"
  path+=("$1/bin")
  while read -r target; do bind "$target"; done < <(
    find "$1" -maxdepth 4 -type l -exec readlink -f {} + | sed -nE 's#^(/etc/[^/]+/|/usr/share/java/).*#\1#p' | sort -u)
}

# Node may lie in /usr/bin, which belongs to the new root: the program goes elsewhere, its modules where they were.
take_node() {
  bind "$(readlink -f "$(command -v node)")" /opt/host/bin/node
  path+=(/opt/host/bin)
  if has npm && [ -d "$(npm root -g)" ]; then bind "$(npm root -g)"; fi
}

take_settings() {
  local name value file
  for name in GOPROXY GOSUMDB GONOSUMDB GOPRIVATE GONOPROXY GOFLAGS; do
    value=$(go env "$name")
    [ -z "$value" ] || variables+=("$name=$value")
  done
  # Proxies, and where programs find certificates and packages.
  while IFS='=' read -r name value; do
    [[ $name =~ ^(https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY|NPM_CONFIG_.*|npm_config_.*|PIP_.*|CARGO_.*|.*_CA_CERTS|.*_CA_BUNDLE|SSL_CERT_.*|PIP_CERT)$ ]] || continue
    variables+=("$name=$value")
    [[ $value != /* || ! -e $value ]] || bind "$value"
  done < <(env)
  bind /etc/ssl/certs/ca-certificates.crt
  for file in "$HOME/.m2/settings.xml" "$HOME/.npmrc" "$HOME/.cargo/config.toml" /etc/pip.conf "$HOME/.config/pip/pip.conf"; do
    [ ! -e "$file" ] || bind "$file" "${file/#$HOME/$home}"
  done
}

apt_sources() {
  find /etc/apt/sources.list /etc/apt/sources.list.d -type f \( -name '*.list' -o -name '*.sources' \) -size +0 2>/dev/null
}

make_root() {
  has mmdebstrap || apt-get install -y -qq --no-install-recommends mmdebstrap >/dev/null
  local sources
  mapfile -t sources < <(apt_sources)
  mmdebstrap --quiet --variant=minbase --include=ca-certificates,make,git bookworm "$root" "${sources[@]}"
  apt-config dump | grep -E '^Acquire::(http|https|Retries)' >"$root/etc/apt/apt.conf.d/99host" || true
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  git clone -q --no-hardlinks . "$root$clone"
}

# Runs in namespaces of its own: whatever is still mounted or running at its end goes with them.
enter() {
  local bind host inside
  for inside in proc sys dev; do mount --rbind "/$inside" "$root/$inside"; done
  mount -t proc proc "$root/proc"
  for bind in "${binds[@]}"; do
    read -r host inside <<<"$bind"
    if [ -d "$host" ]; then
      mkdir -p "$root$inside"
    else
      mkdir -p "$root$(dirname "$inside")"
      [ -e "$root$inside" ] || : >"$root$inside"
    fi
    mount --bind "$host" "$root$inside"
    mount -o remount,bind,ro "$root$inside"
  done
  exec chroot "$root" /usr/bin/env -i HOME="$home" LANG=C.UTF-8 TERM="${TERM:-dumb}" "${variables[@]}" \
    PATH="$(IFS=:; echo "${path[*]}"):/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    bash -c "cd $clone && { $command; }"
}

root=$(mktemp -d -t outrigger-fresh.XXXXXX)
trap 'rm -rf --one-file-system "$root"' EXIT
trap 'exit 130' INT TERM
take_toolchains
take_settings
make_root
echo "== in a bare Debian 12: $command"
export root home clone command
declare -a binds path variables
unshare --mount --pid --fork --kill-child --propagation private \
  bash -eu -c "$(declare -p binds path variables); $(declare -f enter); enter"
