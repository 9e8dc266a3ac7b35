#!/bin/sh
# pgio 1.0 as the peer of `cargo xtask bench postgres`: its own scripts, unchanged, in ./pgio.
#   unpack PLACE SCALE SECONDS SCHEMAS   from its directory, its release archive, or a git repository that holds either
#   load     its setup.sh, and then what assay does and pgio leaves to others; times
#   choose   lets it have the plan that serves it best, by a short run of each
#   run      its runit.sh; selects and its own result line
set -e
archive=pgio-2019.09.21-v_1.0.tar.gz

query() { psql -XAtq -v ON_ERROR_STOP=1 -c "$1"; }
# The third column of its session table: mypid | loop_iterations | sql_selects | ...
selects() { awk -F'|' 'NF == 8 && $3 + 0 > 0 { s += $3 } END { print s + 0 }' pgio/pgio_session_detail.out; }
runit() { (cd pgio && PGOPTIONS=$(cat ../plan) bash ./runit.sh); }
seconds() { sed -i "s/^RUN_TIME=.*/RUN_TIME=$1/" pgio/pgio.conf; }
elapsed() { awk "BEGIN { print $2 - $1 }"; }

case $1 in
unpack)
    if [ -f "$2/runit.sh" ]; then cp -r "$2" pgio
    elif [ -f "$2" ]; then tar xzf "$2"
    elif [ -f "$2/$archive" ]; then tar xzf "$2/$archive"
    else git -C "$2" cat-file blob "HEAD:$archive" | tar xz
    fi
    cat >pgio/pgio.conf <<EOF
UPDATE_PCT=0
RUN_TIME=$4
NUM_SCHEMAS=$5
NUM_THREADS=2
WORK_UNIT=64
UPDATE_WORK_UNIT=8
SCALE=$3
DBNAME=postgres
CONNECT_STRING=postgres
CREATE_BASE_TABLE=TRUE
EOF
    ;;
load)
    # Timed by the lines it prints: its drops of 8192 names and its final sleep do not count.
    (cd pgio && bash ./setup.sh 2>/dev/null) | while read -r line; do echo "$(date +%s.%N) $line"; done >lines
    at() { awk "/$1/ { print \$1; exit }" lines; }
    info=$(at 'Batching info') base=$(at 'Base table loading') group=$(at 'Waiting for batch') end=$(at 'loading phase complete')
    echo "group_s=$(elapsed "$group" "$end")"
    loaded=$(awk "BEGIN { print $base - $info + $end - $group }")
    echo "loaded_s=$loaded"
    begin=$(date +%s.%N)
    for table in 1 2; do query "vacuum (freeze, analyze) pgio$table" & done
    wait
    query checkpoint
    echo "settled_s=$(awk "BEGIN { print $loaded + $(date +%s.%N) - $begin }")"
    ;;
choose)
    sed -i 's/^NUM_THREADS=.*/NUM_THREADS=1/' pgio/pgio.conf
    time=$(sed -n 's/^RUN_TIME=//p' pgio/pgio.conf)
    seconds $(((time + 2) / 3))
    echo "" >plan; runit >/dev/null; own=$(selects)
    echo "-c enable_bitmapscan=off" >plan; runit >/dev/null
    [ "$(selects)" -gt "$own" ] || echo "" >plan
    seconds "$time"
    echo "plan=$(grep . plan || echo "the planner's, a bitmap heap scan unless random_page_cost is low")"
    ;;
run)
    runit | awk '/^DBNAME:/ { print "line=" $0 }'
    echo "selects=$(selects)"
    ;;
esac
