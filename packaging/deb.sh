#!/usr/bin/env bash
# Builds the Debian package of this tree and says where it is. Needs cargo-deb (`cargo install cargo-deb`).
#
#   packaging/deb.sh                      builds the release binary and packs it
#   packaging/deb.sh --binary FILE        packs a binary that is there, as it is
set -euo pipefail
cd "$(dirname "$0")/.."

command -v cargo-deb >/dev/null || {
    echo "cargo-deb is not installed: cargo install cargo-deb --locked" >&2
    exit 1
}
target="${CARGO_TARGET_DIR:-target}"
options=(--package ensue)
case "${1:-}" in
    "") ;;
    --binary)
        mkdir -p "$target/release"
        [ "$2" -ef "$target/release/ensue" ] || install -m 755 "$2" "$target/release/ensue"
        options+=(--no-build --no-strip)
        ;;
    *)
        sed -n '2,5s/^# \?//p' "$0" >&2
        exit 2
        ;;
esac
exec cargo deb "${options[@]}"
