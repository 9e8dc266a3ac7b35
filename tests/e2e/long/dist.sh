#!/usr/bin/env bash
# What is handed on: built as for a release and of its size, the packages hold what belongs and nothing else, and what is
# unpacked from them works.
source "$PROJECT/tests/e2e/lib.sh"
for tool in dpkg-deb dpkg rpmbuild rpm objdump gzip; do
    command -v "$tool" >/dev/null || skip "no $tool"
done
export SOURCE_DATE_EPOCH=1700000000

expect 0 "$XTASK" dist --to "$PWD/packages"
size=$(awk '/: the program$/ { print $1 }' out.txt)
[ "$size" -le $((30 * 1024 * 1024)) ] || fail "the program has $size bytes, more than 30 MiB"
(cd packages && sha256sum --quiet -c SHA256SUMS)

echo "- the package is installed into a root of its own"
deb=(packages/assay_*.deb)
tarball=(packages/assay-*.tar.gz)
[ "${#deb[@]}:${#tarball[@]}" = 1:1 ] || fail "$(ls packages)"
root=$PWD/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
touch "$root/var/lib/dpkg/status"
if [ "$(id -u)" = 0 ]; then
    # The root has no libc of its own; which one the package asks for is looked at below.
    expect 0 dpkg --root="$root" --force-depends --log=/dev/null --install "${deb[0]}"
    expect 0 dpkg --root="$root" --verify assay
else
    echo "  (unpacked only: no right to install)"
    expect 0 dpkg-deb --extract "${deb[0]}" "$root"
fi
(cd "$root" && find . -path ./var -prune -o -type f -printf '%M %P\n') | sort -k 2 >laid.txt
sed -E 's/assay-[a-z-]+\.1\.gz/assay-COMMAND.1.gz/' laid.txt | uniq >shape.txt
cat >wanted.txt <<'EOF'
-rwxr-xr-x usr/bin/assay
-rw-r--r-- usr/lib/systemd/system/assay-fleet-agent.service
-rw-r--r-- usr/lib/systemd/system/assay-server@.service
-rw-r--r-- usr/share/bash-completion/completions/assay
-rw-r--r-- usr/share/doc/assay/README.md
-rw-r--r-- usr/share/doc/assay/changelog.gz
-rw-r--r-- usr/share/doc/assay/copyright
-rw-r--r-- usr/share/doc/assay/examples/assay.toml
-rw-r--r-- usr/share/doc/assay/third-party.gz
-rw-r--r-- usr/share/fish/vendor_completions.d/assay.fish
-rw-r--r-- usr/share/man/man1/assay-COMMAND.1.gz
-rw-r--r-- usr/share/man/man1/assay.1.gz
-rw-r--r-- usr/share/zsh/vendor-completions/_assay
EOF
diff wanted.txt shape.txt || fail "the package holds something else"
expect 0 dpkg-deb --field "${deb[0]}" Depends
has out.txt "libc6 (>= 2."

echo "- the rpm, installed into a root of its own, holds the same files"
rpm=(packages/assay-*.rpm)
if [ "$(id -u)" = 0 ]; then
    # The root has no libc here either.
    expect 0 rpm --root="$PWD/rpm-root" --nodeps --install "$PWD/${rpm[0]}"
    expect 0 rpm --root="$PWD/rpm-root" --verify --nodeps assay
else
    echo "  (unpacked only: no right to install)"
    mkdir rpm-root
    rpm2cpio "${rpm[0]}" | (cd rpm-root && cpio --extract --make-directories --quiet)
fi
# Systems with rpm look for zsh's completions elsewhere.
mv rpm-root/usr/share/zsh/site-functions rpm-root/usr/share/zsh/vendor-completions
diff -r root/usr rpm-root/usr || fail "the rpm holds something else"
expect 0 rpm --query --package --requires "${rpm[0]}"
has out.txt "libc.so.6(GLIBC_2."

echo "- the servers of probes, and a host of a fleet, as services"
units=root/usr/lib/systemd/system
for server in net ping redo; do
    "$root/usr/bin/assay" "$server" --help >out.txt
    has out.txt "assay $server server"
done
if command -v systemd-analyze >/dev/null; then
    cp "$units/assay-server@.service" assay-server@net.service
    cp "$units/assay-fleet-agent.service" .
    for unit in assay-server@net assay-fleet-agent; do
        systemd-analyze security --no-pager --offline=true "$PWD/$unit.service" >out.txt
        exposure=$(sed -nE 's/.*Overall exposure level.*: ([0-9.]+) .*/\1/p' out.txt)
        awk "BEGIN { exit !($exposure <= 3) }" || fail "$unit: exposure $exposure, more than 3"
    done
else
    echo "  (no systemd-analyze: how exposed they are is not judged)"
fi

echo "- under a systemd of its own they start at boot, take a run of a fleet and a test, and end with the system"
if [ "$(id -u)" = 0 ] && command -v debootstrap systemd-nspawn >/dev/null &&
    debootstrap --variant=minbase --include=systemd-sysv bookworm booted http://deb.debian.org/debian >bootstrap.txt 2>&1; then
    dpkg --root="$PWD/booted" --log=/dev/null --install "${deb[0]}" >/dev/null
    systemctl --quiet --root="$PWD/booted" enable assay-fleet-agent assay-server@net
    mkdir -p booted/var/log/journal
    "$root/usr/bin/assay" fleet up --listen 127.0.0.1:14222 >up.txt 2>up-err.txt &
    controller=$!
    trap 'kill "${booted:-$controller}" "$controller" 2>/dev/null' EXIT
    wait_for 30 test -s assay-fleet/agent.url
    (umask 077; printf 'NATS_URL=%s\nOPTIONS=--name boxed\n' "$(cat assay-fleet/agent.url)" >booted/etc/default/assay-fleet-agent)
    echo "OPTIONS=--port 15201" >booted/etc/default/assay-server-net
    systemd-nspawn --quiet --directory=booted --register=no --keep-unit --console=pipe --boot </dev/null >boot.txt 2>&1 &
    booted=$!
    wait_for 120 "$root/usr/bin/assay" net 127.0.0.1 --port 15201 --time 1 -o net
    expect 0 "$root/usr/bin/assay" fleet run --hosts 1 -o boxed -- run -s 2 "${SMALL[@]}" --time 2s --warmup 0.5s
    has boxed/report.txt "1 of 1 hosts"
    kill "$booted"
    wait "$booted" || fail "the system did not end in order: $(tail -n 3 boot.txt)"
    kill "$controller"
    wait "$controller" || true
    trap - EXIT
    journalctl --directory=booted/var/log/journal --output=cat --unit=assay-fleet-agent --unit='assay-server@net' >out.txt
    has out.txt "assay-fleet-agent.service: Deactivated successfully"
    has out.txt "assay-server@net.service: Deactivated successfully"
else
    echo "  (not booted: it wants root, debootstrap, systemd-container and Debian's packages)"
fi

echo "- packed again it is the same, byte for byte"
program=$root/usr/bin/assay
expect 0 "$XTASK" dist --binary "$program" --to "$PWD/again"
cmp packages/SHA256SUMS again/SHA256SUMS || fail "a second packing differs"

echo "- the installed program tells its version and runs"
expect 0 "$program" --version
has out.txt "assay $(dpkg-deb --field "${deb[0]}" Version)"
expect 0 "$program" run "${SMALL[@]}" --time 1s --warmup 0 -o run
has out.txt "operations/s"
expect 0 "$program" report run
expect 0 "$program" run -c "$root/usr/share/doc/assay/examples/assay.toml" --target native:new --dry-run

echo "- bash completes its commands"
bash -c 'source "$1"; complete -p assay' _ "$root/usr/share/bash-completion/completions/assay" >out.txt
has out.txt "assay"

echo "- the tarball has the same program"
mkdir unpacked
tar -xzf "${tarball[0]}" -C unpacked --strip-components=1
cmp unpacked/assay "$program" || fail "another program"
for file in README.md LICENSE-MIT LICENSE-APACHE assay.toml third-party.gz man/assay.1.gz \
    completions/assay.bash completions/_assay completions/assay.fish; do
    [ -s "unpacked/$file" ] || fail "no $file in the tarball"
done

# unpacked TRIPLE: builds and packs the static program; what is in the tarball then lies in a directory of that name.
unpacked() {
    expect 0 "$XTASK" dist --target "$1" --to "$PWD/packages-$1"
    size=$(awk '/: the program$/ { print $1 }' out.txt)
    [ "$size" -le $((30 * 1024 * 1024)) ] || fail "the program of $1 has $size bytes, more than 30 MiB"
    mkdir "$1"
    tar -xzf "packages-$1"/assay-*.tar.gz -C "$1" --strip-components=1
}
installed=$(rustup target list --installed 2>/dev/null || true)

echo "- the static program runs in a root that has nothing else"
if [[ $installed == *x86_64-unknown-linux-musl* ]] && command -v musl-gcc >/dev/null && [ "$(id -u)" = 0 ]; then
    unpacked x86_64-unknown-linux-musl
    mkdir -p bare/bin bare/tmp bare/proc
    cp x86_64-unknown-linux-musl/assay bare/bin
    expect 0 chroot bare /bin/assay run "${SMALL[@]}" --target native:/tmp/data --time 1s --warmup 0 -o /tmp/run
    has out.txt "operations/s"
else
    echo "  (not built: it wants root, musl-gcc and the target x86_64-unknown-linux-musl of rustup)"
fi

echo "- the program of another processor runs emulated"
if [[ $installed == *aarch64-unknown-linux-musl* ]] && command -v aarch64-linux-gnu-gcc qemu-aarch64-static >/dev/null; then
    unpacked aarch64-unknown-linux-musl
    expect 0 qemu-aarch64-static aarch64-unknown-linux-musl/assay run --target null: -s 1 --time 1s --warmup 0 -o emulated
    has out.txt "operations/s"
else
    echo "  (not built: it wants gcc-aarch64-linux-gnu, qemu-user-static and the target aarch64-unknown-linux-musl of rustup)"
fi
