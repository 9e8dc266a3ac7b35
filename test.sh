#!/usr/bin/env bash
# The one command that checks everything: ./test.sh          (what continuous integration runs)
#                                         ./test.sh --long   (adds what finds nothing new each time: a soak, set-ups, kills, many
#                                                             schemas, packages, documentation, fuzzing, Miri, licences, benches)
#
# On a fresh Debian box with Rust it first installs the Debian packages it needs, as root only; without root it says
# which are missing and skips what needs them, loudly. It leaves nothing behind but ./target and the caches of cargo, mvn, pip and npm.
# Last it tells the time of each phase and script, the tests that took longest, and why what failed did. CONTRIBUTING.md says how
# long it takes.
set -euo pipefail
cd "$(dirname "$0")"
export PATH="$PATH:$HOME/.cargo/bin:/usr/sbin:/sbin"
export CARGO_TERM_PROGRESS_WHEN=never
export LC_ALL=C

long=no
case "${1:-}" in
    "") ;;
    --long) long=yes ;;
    *)
        echo "usage: ./test.sh [--long]" >&2
        exit 2
        ;;
esac

# Of all attacks and fuzz targets side by side, with --long; `ATTACK_S` says another time.
attack_s=${ATTACK_S:-3600}
started=$SECONDS
phase=""
phases=0
skipped=()
scratch=""
places=""
unpacked=""
installing=""
# What runs side by side: the names by process.
declare -A beside=()
# Seconds, CPU seconds and name of each phase that ended.
spent=()

summary() {
    local code=$?
    trap - EXIT
    set +e
    # What still runs beside one that failed; a script ends with its children and takes its mounts along.
    kill "${!beside[@]}" ${installing:+"$installing"} 2>/dev/null
    wait
    booked
    clean_up "$places"
    echo
    echo "  wall s    CPU s  phase or script"
    printf '%s\n' "${spent[@]}" | awk 'NF { wall = $1; cpu = $2; $1 = $2 = ""; printf "%8.1f %8.1f%s\n", wall, cpu, $0 }'
    slowest
    [ "$code" = 0 ] || reasons
    rm -rf --one-file-system ${scratch:+"$scratch"} ${unpacked:+"$unpacked"}
    local took=$((SECONDS - started)) failed=0
    [ "${#skipped[@]}" = 0 ] || printf 'SKIPPED: %s\n' "${skipped[@]}"
    if [ "$code" = 0 ]; then
        echo "test.sh: PASSED, $phases phases, ${#skipped[@]} skipped, ${took} s"
    else
        echo "test.sh: FAILED in phase \"$phase\" after ${took} s (exit $code)"
        failed=1
    fi
    echo "$((phases - failed - ${#skipped[@]})) passed, $failed failed, ${#skipped[@]} skipped"
    exit "$code"
}

# reasons: what the phase that failed said of it, again: last, where a part of a long output still has it.
reasons() {
    local log="$scratch/${phase##*/}.txt"
    [ -s "$log" ] || return 0
    echo
    echo "  what \"$phase\" said of its failure"
    if grep -q '^failures:$' "$log"; then
        # The first list has what each test said, the second their names.
        awk '/^failures:$/ { list = !list; next } list' "$log" | head -n 60
    else
        tail -n 20 "$log"
    fi
}

# slowest: the tests that took longest, as libtest timed them.
slowest() {
    local log logs=()
    for log in "$scratch"/{unit,integration}" tests"{," of servers"}.txt; do
        [ ! -s "$log" ] || logs+=("$log")
    done
    [ "${#logs[@]}" -gt 0 ] || return 0
    echo
    echo "  wall s  the 20 slowest tests"
    # shellcheck disable=SC2016
    cat "${logs[@]}" | awk '
        $1 == "Running" { program = $NF; sub(/.*\//, "", program); sub(/-[0-9a-f]+\)$/, "", program) }
        $1 == "test" && match($NF, /^<[0-9.]+s>$/) { printf "%8.1f  %s %s\n", substr($NF, 2), program, $2 }' | sort -rn | sed -n 1,20p
}

# clean_up DIRECTORY: removes it with whatever an interrupted script left mounted below it.
clean_up() {
    [ -n "$1" ] || return 0
    local point
    while read -r point; do
        umount "$point" || umount --lazy "$point" || true
    done < <(awk -v below="$1/" 'index($2, below) == 1 { print $2 }' /proc/self/mounts)
    rm -rf --one-file-system "$1"
}

trap summary EXIT
trap 'exit 130' INT TERM

# now: the time in us_now, and the CPU time of this shell and of all its children that ended in ticks_now.
now() {
    local stat
    read -ra stat </proc/self/stat
    ticks_now=$((stat[13] + stat[14] + stat[15] + stat[16]))
    us_now=${EPOCHREALTIME/./}
}
hertz=$(getconf CLK_TCK)

# booked: the phase that runs by itself has ended, if one was running.
running=""
booked() {
    now
    [ -z "$running" ] || spent+=("$(((us_now - us_then) / 1000))e-3 $(((ticks_now - ticks_then) * 1000 / hertz))e-3 $running")
    running=""
}

title() {
    phase=$1
    phases=$((phases + 1))
    echo
    echo "== $phases. $phase ($((SECONDS - started)) s)"
}

begin() {
    booked
    running=$1 us_then=$us_now ticks_then=$ticks_now
    title "$1"
}

skip() {
    echo "!! skipped: $1"
    skipped+=("$1")
}

# --- the checks -----------------------------------------------------------------------------------------------------

begin "packages and tools"
source tests/needs.sh
# Of a box that builds it once: what would make the next build quicker is a third of all room that is needed.
[ -d target/debug/incremental ] || export CARGO_INCREMENTAL=0
# A full disk fails anything, anywhere. Debian's packages and a build of everything take 6 GB.
need_mb=8000 free_mb=$(df --output=avail -B 1000000 . | tail -n 1 | tr -d ' ')
if [ ! -d target/debug ] && [ "$free_mb" -lt "$need_mb" ]; then
    echo "$PWD: the build, its tests and their servers take up to $need_mb MB, and only $free_mb MB are free: make room" >&2
    exit 3
fi
command -v cc >/dev/null || fetched
if ! command -v cc >/dev/null; then
    echo "no C linker (package gcc): Rust cannot link without one" >&2
    exit 3
fi
if ! command -v cargo >/dev/null; then
    echo "no cargo: install Rust from https://rustup.rs, then run this again" >&2
    exit 3
fi
for component in fmt:rustfmt clippy:clippy; do
    if ! cargo "${component%%:*}" --version >/dev/null 2>&1; then
        echo "adding the Rust component ${component##*:}"
        rustup component add "${component##*:}"
    fi
done
rustc --version

begin "format"
cargo fmt --all --check

# The packages of one command decide which features a dependency gets, and each set of features is a build of its own: so every
# command names the whole workspace, whose crates have all their features then.
# One small test is among what is built, because without one a dependency has not the features that tests ask of it.
# Optimised a little, with its checks on. Scripts need no more; the tests are compiled beside them.
begin "build"
cargo build --locked --quiet --workspace --bins --test kill

begin "tidy"
target/debug/xtask tidy

begin "packages that tests need"
fetched
require_fetched

# The end-to-end scripts ask whether things work, not how fast: the binary that the tests use (optimised a little, with its
# checks on) saves the minutes of a release build, which the long part makes.
profile=debug
if [ "$long" = yes ]; then
    profile=release
    begin "release build"
    cargo build --release --locked --quiet --package assay --package xtask --features assay/full
fi

# --- the tests ------------------------------------------------------------------------------------------------------

export ASSAY="$PWD/target/$profile/assay"
export XTASK="$PWD/target/$profile/xtask"
export PROJECT="$PWD"
# Most tests wait more than they compute: for timers, servers and the disk. So they run side by side.
export RUST_TEST_THREADS=$((2 * $(nproc)))
lanes=3

# start NAME SECONDS COMMAND...: runs it beside the others, in an empty directory of its own below target, with a limit.
places=$(mktemp -d "$PWD/target/test.XXXXXX")
# The servers of scripts and benches run as a user of their own, who must get there.
chmod 755 "$places"
start() {
    while [ "${#beside[@]}" -ge "$lanes" ]; do
        finish
    done
    local name=$1 limit=$2 id=${1##*/}
    shift 2
    mkdir "$places/$id"
    # Added to the file: a test that says what it skips opens it anew, and who writes at a place of its own would write over that.
    # What it took goes to a file of its own; a process that somebody else waits for, such as a server's, is not in it.
    # shellcheck disable=SC2016
    (cd "$places/$id" && exec timeout --kill-after=20 "$limit" bash -c \
        'TIMEFORMAT="%R %U %S"; { time "$@" 2>&3 3>&-; } 3>&2 2>"$0"' "$scratch/$id.time" "$@") >>"$scratch/$id.txt" 2>&1 &
    beside[$!]=$name
}

# Waits until one of them has ended, and shows what it said.
finish() {
    local pid name id code=0 wall="" user=0 system=0
    while :; do
        for pid in "${!beside[@]}"; do
            kill -0 "$pid" 2>/dev/null || break 2
        done
        sleep 0.2
    done
    wait "$pid" || code=$?
    name=${beside[$pid]} id=${beside[$pid]##*/}
    unset "beside[$pid]"
    title "$name"
    cat "$scratch/$id.txt"
    # None of one that was killed at its limit.
    read -r wall user system < <(tail -n 1 "$scratch/$id.time" 2>/dev/null) || true
    [ -z "$wall" ] || spent+=("$wall $(awk "BEGIN { print $user + $system }") $name")
    # 77: this box cannot run it.
    case "$code" in
        0) ;;
        77) skip "$name" ;;
        *) exit 1 ;;
    esac
    phase="side by side"
    clean_up "$places/$id"
}

under_way() { # name
    local name
    for name in "${beside[@]}"; do
        [ "$name" != "$1" ] || return 0
    done
    return 1
}

tests=(env ASSAY_PG_BIN="$POSTGRES_BINS" cargo test --manifest-path "$PWD/Cargo.toml" --locked --workspace)
# part only|without NAME: of the test programs, that of this name or the others.
part() {
    echo "target.\"cfg(all())\".runner = [\"bash\", \"$PWD/tests/runner.sh\", \"$1\", \"$2\"]"
}
timed=(-- -Z unstable-options --report-time)
[ "$long" = no ] || timed+=(--include-ignored)
booked
phase="side by side"

queue=()
for script in tests/e2e/*.sh; do
    [ "$script" = tests/e2e/lib.sh ] || queue+=("$script")
done
[ "$long" = no ] || queue+=(tests/e2e/long/{soak,many-schemas,push}.sh)
next_script() {
    local script=${queue[0]}
    queue=("${queue[@]:1}")
    start "$script" 1200 bash "$PROJECT/$script"
}

# One compiler at a time, for minutes: each goes beside what waits. The tests wait most, so they begin as soon as they can.
start "build of the tests" 3600 "${tests[@]}" --quiet --no-run --tests
while under_way "build of the tests"; do
    if [ "${#queue[@]}" -gt 0 ] && [ "${#beside[@]}" -lt "$lanes" ]; then next_script; else finish; fi
done
# The servers' tests wait for them most of all: they have a lane of their own.
start "unit tests of servers" 1800 "${tests[@]}" --config "$(part only assay_sql)" --lib "${timed[@]}"
start "integration tests" 1800 "${tests[@]}" --config "$(part without none)" --test '*' "${timed[@]}"
start "unit tests" 1800 "${tests[@]}" --config "$(part without assay_sql)" --lib --bins "${timed[@]}"
start "clippy" 1800 cargo clippy --manifest-path "$PWD/Cargo.toml" --locked --quiet --workspace --all-targets -- -D warnings
[ "$long" = no ] || start "documentation" 900 env RUSTDOCFLAGS="-D warnings" cargo doc --manifest-path "$PWD/Cargo.toml" \
    --workspace --no-deps --document-private-items --locked --quiet
while [ "${#queue[@]}" -gt 0 ]; do
    next_script
done
while [ "${#beside[@]}" -gt 0 ]; do
    finish
done

# --- the long part --------------------------------------------------------------------------------------------------

if [ "$long" = yes ]; then
    begin "licences, registries, doubles"
    command -v cargo-deny >/dev/null || cargo install --locked --quiet cargo-deny
    cargo deny --log-level error check licenses bans sources

    begin "advisories"
    # They lie in a repository of their own, which a box without that network cannot read.
    if cargo deny fetch db >/dev/null 2>&1; then
        cargo deny --log-level error check advisories
    else
        skip "advisories: their repository cannot be reached"
    fi

    begin "what is handed on, built for it"
    mkdir "$places/dist"
    (cd "$places/dist" && bash "$PROJECT/tests/e2e/long/dist.sh")

    begin "twelve set-ups, and what the answer names"
    mkdir "$places/answers"
    (cd "$places/answers" && ASSAY_PG_BIN="$POSTGRES_BINS" bash "$PROJECT/tests/e2e/long/answers.sh")

    begin "eight questions, and what the answer says"
    mkdir "$places/questions"
    (cd "$places/questions" && ASSAY_PG_BIN="$POSTGRES_BINS" bash "$PROJECT/tests/e2e/long/questions.sh") || [ $? = 77 ]

    begin "a volume that is slow once"
    mkdir "$places/first-touch"
    (cd "$places/first-touch" && bash "$PROJECT/tests/e2e/long/first-touch.sh") || [ $? = 77 ]

    begin "a box in one command, behind a limit"
    mkdir "$places/platform"
    (cd "$places/platform" && bash "$PROJECT/tests/e2e/long/platform.sh") || [ $? = 77 ]

    begin "a database carried to two boxes"
    mkdir "$places/fit"
    (cd "$places/fit" && ASSAY_PG_BIN="$POSTGRES_BINS" bash "$PROJECT/tests/e2e/long/fit.sh") || [ $? = 77 ]

    begin "a box and its passport"
    mkdir "$places/accept"
    (cd "$places/accept" && bash "$PROJECT/tests/e2e/long/accept.sh") || [ $? = 77 ]

    begin "disks that lie"
    mkdir "$places/lying"
    (cd "$places/lying" && bash "$PROJECT/tests/e2e/long/lying-disk.sh") || [ $? = 77 ]

    begin "200 kills"
    ASSAY_KILLS=200 cargo test --locked --workspace --test kill

    begin "fault harness: 100,000 seeds and every cut of all workloads"
    "$XTASK" faults --seeds 0..100000
    "$XTASK" faults --exhaustive

    begin "property tests, many cases"
    # The crates whose tests start no server: the others' were run above.
    PROPTEST_CASES=1000 cargo test --locked --quiet --lib \
        --package assay-measure --package assay-awr --package assay-import --package assay-report \
        --package assay-run --package assay-slob --package assay-block

    begin "undefined behaviour"
    rustup toolchain install nightly --profile minimal --component miri --no-self-update
    # The tests that make no system call; Miri knows few of them.
    MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --package assay-block --lib -- pool:: mapping:: lanes::tests::memory

    begin "attacks and fuzzing side by side: $attack_s s"
    command -v cargo-fuzz >/dev/null || cargo install --locked --quiet cargo-fuzz
    # The code is safe Rust with its checks on: a sanitizer would find nothing more and try half as much.
    cargo +nightly fuzz build --sanitizer none
    seed=$(date +%s)000
    echo "- first seed of the attacks: $seed"
    # What `timeout` started ends with it, when a target fails too.
    env ASSAY_ATTACK_S="$attack_s" ASSAY_ATTACK_SEED="$seed" ASSAY_PG_BIN="$POSTGRES_BINS" RUST_TEST_THREADS=16 \
        timeout --kill-after=20 $((2 * attack_s + 1800)) cargo test --locked --workspace --test cli -- --ignored attacks:: >>"$scratch/attacks.txt" 2>&1 &
    attacks=$!
    beside[$attacks]="attacks"
    mapfile -t targets < <(cargo +nightly fuzz list)
    for target in "${targets[@]}"; do
        mkdir -p "fuzz/corpus/$target" "fuzz/seeds/$target"
        # What it tried is told, and found input is kept below fuzz/artifacts.
        if ! cargo +nightly fuzz run --sanitizer none "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
            -max_total_time="$((attack_s / ${#targets[@]}))" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 >"$scratch/fuzz.txt" 2>&1; then
            tail -40 "$scratch/fuzz.txt"
            exit 1
        fi
        echo "- $target: $(awk '/number_of_executed_units/ { n = $2 } /average_exec_per_sec/ { s = $2 } END { print n " executions, " s " a second" }' "$scratch/fuzz.txt")"
    done
    code=0
    wait "$attacks" || code=$?
    unset "beside[$attacks]"
    grep '^- attack' "$scratch/attacks.txt" || true
    [ "$code" = 0 ] || { tail -60 "$scratch/attacks.txt"; exit 1; }

    begin "benches"
    "$XTASK" bench --pairs 2 --dir "$places/bench" --program "$ASSAY"
fi

phase="end"
