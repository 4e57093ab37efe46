#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tidy.sh [--all]: clang-tidy, warnings are errors. Without --all only the files that differ from the commit named in
# .ci/tidy-base, which is known to be clean (all of them where .clang-tidy differs); --all takes every file and, when all
# are clean and committed, moves that name forward. A header is judged through the source file of the same name, or by
# itself where there is none.
set -eu -o pipefail
shopt -s inherit_errexit  # a git that fails is no empty list of files
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}

# Everything tracked or new, deleted files left out.
all_files() { git ls-files --cached --others --exclude-standard -- '*.cc' '*.h'; }

# Falls back to all files where the base is unknown (a shallow clone, a rewritten history) or was judged by other rules.
changed_files() {
  local base
  base=$(cat .ci/tidy-base 2>/dev/null || true)
  if [ -n "$base" ] && git cat-file -e "$base^{commit}" 2>/dev/null && git diff --quiet "$base" -- .clang-tidy; then
    git diff --name-only --diff-filter=d "$base" -- '*.cc' '*.h'
    git ls-files --others --exclude-standard -- '*.cc' '*.h'
  else
    all_files
  fi
}

# The files to hand to clang-tidy for the names on stdin.
units() {
  local file
  while read -r file; do
    [ -e "$file" ] || continue
    if [[ $file == *.h && -e ${file%.h}.cc ]]; then echo "${file%.h}.cc"; else echo "$file"; fi
  done | sed '/^cmake\//d' | sort -u
}

# The tidy tree has no precompiled header, so a file that does not include what it names is found here too. Of it only
# the generated headers are built.
prepare() {
  cmake --preset tidy >/dev/null
  ninja -C build/tidy -t targets all | sed -n 's/: CUSTOM_COMMAND$//p' | grep '\.pb\.h$' | sort -u |
    xargs ninja -C build/tidy >/dev/null
}

case "${1:-}" in
  --all) files=$(all_files | units) ;;
  "") files=$(changed_files | units) ;;
  *) echo "usage: tidy.sh [--all]" >&2; exit 2 ;;
esac
if [ -z "$files" ]; then
  echo "clang-tidy: no file differs from $(cat .ci/tidy-base)"
  exit 0
fi
prepare
echo "clang-tidy: $(wc -l <<<"$files") files"
xargs -P "$jobs" -n 1 clang-tidy-19 -p build/tidy --quiet <<<"$files" 2>&1 | sed -E '/ warnings? generated|^Suppressed |^Use -header-filter/d'
if [ "${1:-}" = --all ] && git diff --quiet HEAD -- '*.cc' '*.h' .clang-tidy; then git rev-parse HEAD >.ci/tidy-base; fi
