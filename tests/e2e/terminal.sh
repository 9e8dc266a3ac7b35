#!/usr/bin/env bash
# An answer on a real terminal of 80 columns and 24 rows: no line is broken by the terminal, the headline is on the last screen
# too, it is bold, and NO_COLOR is honoured.
source "$PROJECT/tests/e2e/lib.sh"
command -v tmux >/dev/null || skip "no tmux"

here=$PWD
# A server of its own, with no configuration of the user's.
tm() {
    tmux -S "$here/tmux" -f /dev/null "$@"
}
clean_up() {
    tm kill-server 2>/dev/null || true
}
trap clean_up EXIT

# on_screen NAME ENV COMMAND...: what a terminal shows once the command has ended: in NAME.txt its last screen, in NAME.all all
# of it with its escapes; exit code in NAME.code.
on_screen() {
    local name=$1 env=$2
    shift 2
    tm new-session -d -s "$name" -x 80 -y 24 "env $env bash --norc -c '$* ; echo \$? >$here/$name.code; exec sleep 60'"
    wait_for 60 test -s "$name.code"
    # What is written reaches the screen a moment later.
    sleep 0.5
    tm capture-pane -p -t "$name" >"$name.txt"
    tm capture-pane -p -e -S - -t "$name" >"$name.all"
    # A line that the terminal broke is one line here, longer than the screen.
    tm capture-pane -p -J -S - -t "$name" >"$name.joined"
    [ "$(cat "$name.code")" = 0 ] || { cat "$name.txt"; fail "$name: exit $(cat "$name.code")"; }
}

expect 0 "$ASSAY" run --target null: --time 2s -s 1 -t 2 -o "$here/run"
for command in "report run --format answer" "sync . --time 2s"; do
    name=${command%% *}
    on_screen "$name" TERM=xterm-256color "$ASSAY $command"
    long=$(awk 'length > 80' "$name.joined")
    [ -z "$long" ] || fail "$name: a line of more than 80 columns: $long"
    # Its first line is its last one again where it is longer than the screen.
    first=$(grep -m 1 -E "^(slob|sync) on " "$name.joined") || { cat "$name.joined"; fail "$name: no headline"; }
    grep -qF -- "$first" "$name.txt" || { cat "$name.txt"; fail "$name: the headline is not on the last screen"; }
    grep -qP '\x1b\[1m' "$name.all" || fail "$name: nothing is bold"
    echo "  $name: $first"
done
on_screen plain "TERM=xterm-256color NO_COLOR=1" "$ASSAY report run --format answer"
! grep -qP '\x1b\[[0-9;]*[1-9][0-9;]*m' plain.all || fail "NO_COLOR: colours or bold letters"
