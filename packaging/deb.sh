#!/usr/bin/env bash
# Builds the Debian package of this tree and says where it is. Needs cargo-deb (`cargo install cargo-deb`).
#
#   packaging/deb.sh                      builds the release binary and packs it
#   packaging/deb.sh --binary FILE        packs a binary that is there, as it is; this machine must be able to run it
set -euo pipefail
cd "$(dirname "$0")/.."

command -v cargo-deb >/dev/null || {
    echo "cargo-deb is not installed: cargo install cargo-deb --locked" >&2
    exit 1
}
target="${CARGO_TARGET_DIR:-target}"
options=(--package ensue --no-build)
case "${1:-}" in
    "") cargo build --release --locked --package ensue ;;
    --binary)
        mkdir -p "$target/release"
        [ "$2" -ef "$target/release/ensue" ] || install -m 755 "$2" "$target/release/ensue"
        options+=(--no-strip)
        ;;
    *)
        sed -n '2,5s/^# \?//p' "$0" >&2
        exit 2
        ;;
esac

# What the command line says of itself: the pages of the manual, and the completions of the shells.
binary="$target/release/ensue"
made="$target/release/ensue-made"
rm -rf "$made"
mkdir -p "$made/completions"
"$binary" man --out "$made/man" >/dev/null
for shell in bash zsh fish; do
    "$binary" completions "$shell" > "$made/completions/$shell"
done
exec cargo deb "${options[@]}"
