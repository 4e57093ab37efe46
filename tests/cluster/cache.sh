# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts beside it: the folder of the tests' big downloads, and what makes filling it safe.
cache=${OUTRIGGER_CACHE:-$HOME/.cache/outrigger}

# have FOLDER NAME…: whether all the files are there.
have() {
  folder=$1
  shift
  for name in "$@"; do
    [ -e "$folder/$name" ] || return 1
  done
}

# lock FOLDER: waits until no other script fills FOLDER; held until this one ends.
lock() {
  mkdir -p "$1"
  exec 9>"$1.lock"
  flock 9
}

# work_folder FOLDER: sets $work to a temporary folder in FOLDER (so that mv is one step), removed at exit.
work_folder() {
  work=$(mktemp -d "$1/unfinished.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT TERM
}

# go_build FOLDER NAME PACKAGE [LDFLAGS]: builds one program of the module in the current folder. It appears in FOLDER
# when it is whole. A build takes OUTRIGGER_GO_JOBS (2) processors.
go_build() {
  [ -x "$1/$2" ] && return 0
  echo "building $2" >&2
  CGO_ENABLED=0 go build -trimpath -mod=readonly -p "${OUTRIGGER_GO_JOBS:-2}" -ldflags "-s -w ${4:-}" -o "$work/$2" "$3" 9>&-
  mv "$work/$2" "$1/$2"
}
