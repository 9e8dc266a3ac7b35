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

echo "- the full-screen view of a run: its figures, another size, left by q, by Ctrl-C, by a stop and by a kill"
# screen: what the shell's terminal shows.
screen() {
    tm capture-pane -p -t shell
}
shows() {
    screen | grep -qE -- "$1"
}
# What an answer has pushed off the screen counts too; it is as long as the host gives it reasons to be.
showed() {
    tm capture-pane -p -J -S - -t shell | grep -qE -- "$1"
}
typed() {
    tm send-keys -t shell "$@"
}
# view OPTION...: types a run that goes on until it is stopped, and waits for its figures.
view() {
    rm -rf view
    typed "clear; $* $ASSAY run --target null: --time 10m --warmup 0 --set RATE=100 -o $here/view --live=tty" Enter
    wait_for 60 shows "^Operations +[0-9.,]+ 1/s +[0-9.,]+ 1/s"
}
# as_before: the terminal gathers lines, echoes them and shows its cursor on the first screen.
as_before() {
    typed "clear; stty -a | tr ' ' '\n' | grep -xE -- '-?(echo|icanon|ixon)' | sort | xargs echo terminal:" Enter
    wait_for 20 shows "^terminal: echo icanon ixon"
    [ "$(tm display-message -p -t shell '#{alternate_on} #{cursor_flag}')" = "0 1" ] || { screen; fail "not the first screen"; }
}
tm new-session -d -s shell -x 80 -y 24 "env TERM=xterm-256color bash --norc -i"
view
shows "^Operations asked for +100 1/s" || { screen; fail "no rate that was asked for"; }
for word in p50 p99 "Limited by" "Errors" "Driver CPU" "at second [0-9]+ of 600"; do
    shows "$word" || { screen; fail "no $word"; }
done
tm resize-window -t shell -x 64 -y 12
wait_for 20 eval "screen | awk 'length > 64 { exit 1 }' && screen | tail -n 1 | grep -q '^q leaves'"
tm resize-window -t shell -x 80 -y 24
wait_for 20 shows "Driver CPU"
typed q
wait_for 20 shows "the run goes on; Ctrl-C stops it and saves"
! shows "^q leaves" || fail "the view is not left"
pgrep -f "$here/view --live=tty" >/dev/null || fail "the run has ended with its view"
typed C-c
wait_for 60 test -s view/record.json
wait_for 20 shows "Whole report"
as_before

view NO_COLOR=1
! tm capture-pane -p -e -t shell | grep -qP '\x1b\[[0-9;]*[1-9][0-9;]*m' || fail "NO_COLOR: colours or bold letters in the view"
typed C-c
wait_for 60 test -s view/record.json
wait_for 20 showed "stopping and saving the results"
as_before

view
typed C-z
wait_for 20 shows "Stopped"
as_before
typed "kill -INT %1; fg" Enter
wait_for 60 test -s view/record.json

view
running=$(pgrep -f "$here/view --live=tty" | head -n 1)
kill -QUIT "$running"
wait_for 20 shows "Quit"
as_before

typed "clear; $ASSAY run --target null: --live=tty -o view3 & wait" Enter
wait_for 20 shows "in the background"
expect 2 setsid --wait "$ASSAY" run --target null: --live=tty -o view3
has err.txt "there is no terminal"
TERM=dumb expect 2 "$ASSAY" run --target null: --live=tty -o view3
has err.txt "TERM is dumb"
[ ! -e view3 ] || fail "a run was begun all the same"
