#!/usr/bin/env bash
# Builds what a release consists of into a folder: an archive of the binary with its pages, completions and documents,
# an archive of the Helm chart, the Debian package, the bill of materials, and SHA256SUMS of all of them. Archives of
# the same binary and commit are equal to the byte. What this machine has no tool for is named and left out.
#
#   packaging/release.sh [--out DIR] [--target TRIPLE]   builds and strips the binary (DIR: target/release-files), which
#                                                        must run here: it writes its own pages. With
#                                                        x86_64-unknown-linux-musl it needs no C library of the machine;
#                                                        that takes `cargo zigbuild`: pip install cargo-zigbuild ziglang
#   packaging/release.sh [--out DIR] --binary FILE       packs a binary that is there, as it is; it must run here
#   packaging/release.sh ... --archives-only             no Debian package and no bill of materials
set -euo pipefail
asked_in="$PWD"
cd "$(dirname "$0")/.."

# from_there FILE: what whoever asked means by it.
from_there() {
    case "$1" in /*) echo "$1" ;; *) echo "$asked_in/$1" ;; esac
}

target="${CARGO_TARGET_DIR:-target}"
out="$target/release-files"
binary="" triple="" archives_only=""
while [ $# -gt 0 ]; do
    case "$1" in
        --out) out="$(from_there "$2")"; shift 2 ;;
        --binary) binary="$(from_there "$2")"; shift 2 ;;
        --target) triple="$2"; shift 2 ;;
        --archives-only) archives_only=yes; shift ;;
        *)
            sed -n '2,11s/^# \?//p' "$0" >&2
            exit 2
            ;;
    esac
done

# Whoever packs the same commit, whenever and wherever, gets the same times.
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
[ -z "$(git status --porcelain)" ] || echo "the tree has changes that are in no commit: they are packed, too" >&2

stage="$(mktemp -d)"
trap 'rm -rf "$stage"' EXIT

if [ -z "$binary" ]; then
    # Paths of this machine would be in the binary otherwise.
    cargo_home="${CARGO_HOME:-$HOME/.cargo}"
    export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/ensue --remap-path-prefix=$cargo_home=/cargo"
    mapped="-ffile-prefix-map=$PWD=/ensue -ffile-prefix-map=$cargo_home=/cargo"
    export CFLAGS="${CFLAGS:-} $mapped" CXXFLAGS="${CXXFLAGS:-} $mapped"
    # Another C library than the machine's needs compilers of C and C++ for it: zig has them.
    builder=build
    case "$triple" in
        *-musl*) ! command -v cargo-zigbuild >/dev/null || builder=zigbuild ;;
    esac
    cargo "$builder" --release --locked --package ensue ${triple:+--target "$triple"}
    binary="$stage/ensue"
    strip --strip-debug -o "$binary" "$target/${triple:+$triple/}release/ensue"
    unset RUSTFLAGS CFLAGS CXXFLAGS
fi
version="$("$binary" --version | cut -d' ' -f2)"
name="ensue-$version-${triple:-$(uname -m)-linux}"

folder="$stage/$name"
mkdir -p "$folder/completions" "$folder/docs"
install -m 755 "$binary" "$folder/ensue"
"$binary" man --out "$folder/man" >/dev/null
for shell in bash zsh fish; do
    "$binary" completions "$shell" > "$folder/completions/$shell"
done
cp README.md CHANGELOG.md SECURITY.md LICENSE packaging/ensue.conf packaging/systemd/ensue.service "$folder/"
cp -R docs/*.md docs/decisions docs/figures docs/pictures "$folder/docs/"
mkdir "$folder/examples"
cp -R examples/prometheus examples/grafana examples/trods "$folder/examples/"

# pack FOLDER FILE: the folder, whose parent is the working directory, without what differs between two machines.
pack() {
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=gnu \
        --create --file=- "$1" | gzip --no-name -9 > "$2"
}

mkdir -p "$out"
out="$(cd "$out" && pwd)"
rm -f "$out"/ensue-*.tar.gz "$out"/ensue-chart-*.tgz "$out"/ensue-*.cdx.json "$out"/ensue_*.deb "$out/SHA256SUMS"
(cd "$stage" && pack "$name" "$out/$name.tar.gz")
(cd packaging/helm && pack ensue "$out/ensue-chart-$version.tgz")

if [ -z "$archives_only" ]; then
    cargo xtask sbom --out "$out/ensue-$version.cdx.json"
    if command -v cargo-deb >/dev/null; then
        cp "$(packaging/deb.sh --binary "$binary" | tail -1)" "$out/"
    else
        echo "left out: the Debian package, because cargo-deb is not installed" >&2
    fi
fi
(cd "$out" && LC_ALL=C sha256sum -- ensue[-_]*.* > SHA256SUMS && cat SHA256SUMS)
echo "$out"
