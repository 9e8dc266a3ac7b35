#!/usr/bin/env bash
# A run watched in a real browser while it goes on.
source "$PROJECT/tests/e2e/lib.sh"

browser

echo "- charts move, and the last figures are the record's"
# The browser leaves a directory where temporary files go; the name is short, for its socket's sake.
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
TMPDIR=$temporary timeout --kill-after=10 600 "$python" "$PROJECT/tests/e2e/live.py" "$ASSAY" "${SMALL[@]}" \
    --set CACHE_MB=4 --set UPDATE_PCT=20 -s 2 --time 600 --warmup 1
