#!/usr/bin/env bash
# The image of a static program: every blob has its digest, the one layer unpacks to a root in which the program runs as nobody in
# particular, and packed again it is the same. A stand-in is packed, because the real program takes minutes to build.
source "$PROJECT/tests/e2e/lib.sh"
for tool in cc objdump dpkg-deb jq; do
    command -v "$tool" >/dev/null || skip "no $tool"
done
export SOURCE_DATE_EPOCH=1700000000

cat >stand-in.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int n, char **words) {
    if (n > 3 && !strcmp(words[2], "man")) {
        char command[4096];
        snprintf(command, sizeof command, "mkdir -p '%s' && echo page >'%s/assay.1'", words[3], words[3]);
        return system(command) != 0;
    }
    FILE *written = n > 1 && !strcmp(words[1], "write") ? fopen("written", "w") : stdout;
    if (!written) return 3;
    return fprintf(written, "uid %d in %s\n", getuid(), getcwd((char[4096]){0}, 4096)) < 0;
}
C
cc -static -o stand-in stand-in.c 2>/dev/null || skip "no static C library"
expect 0 "$XTASK" dist --binary stand-in --target "$(uname -m)-unknown-linux-musl" --to packages
expect 0 "$XTASK" dist --binary stand-in --target "$(uname -m)-unknown-linux-musl" --to again
cmp packages/SHA256SUMS again/SHA256SUMS || fail "a second packing differs"

echo "- the layout"
image=(packages/assay-*.oci.tar)
mkdir layout root
tar -xf "${image[0]}" -C layout
[ "$(jq -r .imageLayoutVersion layout/oci-layout)" = 1.0.0 ] || fail "no OCI layout"
for blob in layout/blobs/sha256/*; do
    [ "$(sha256sum <"$blob" | cut -d ' ' -f 1)" = "${blob##*/}" ] || fail "$blob has another digest"
done
# described QUERY FILE: the blob that a descriptor names, if it has the size that is told.
described() {
    local digest size
    read -r digest size < <(jq -r "$1 | \"\\(.digest) \\(.size)\"" "$2")
    [ "$(stat -c %s "layout/blobs/${digest/://}")" = "$size" ] || fail "$digest has another size"
    echo "layout/blobs/${digest/://}"
}
manifest=$(described '.manifests[0]' layout/index.json)
config=$(described .config "$manifest")
layer=$(described '.layers[0]' "$manifest")
[ "sha256:$(gzip -dc "$layer" | sha256sum | cut -d ' ' -f 1)" = "$(jq -r '.rootfs.diff_ids[0]' "$config")" ] || fail "another layer than the configuration names"
# Older dockers read a list of their own.
[ "layout/$(jq -r '.[0].Layers[0]' layout/manifest.json) layout/$(jq -r '.[0].Config' layout/manifest.json)" = "$layer $config" ] || fail "two lists differ"
user=$(jq -r .config.User "$config")
[ "$user" = 65532:65532 ] || fail "it runs as $user"

echo "- the root"
tar --numeric-owner -tvzf "$layer" | awk '{ print $1, $2, $NF }' | sort -k 3 >holds.txt
diff - holds.txt <<'TXT' || fail "the layer holds something else"
drwxr-xr-x 0/0 ./
drwxr-xr-x 65532/65532 ./data/
drwxr-xr-x 0/0 ./etc/
-rw-r--r-- 0/0 ./etc/group
-rw-r--r-- 0/0 ./etc/passwd
drwxrwxrwt 0/0 ./tmp/
drwxr-xr-x 0/0 ./usr/
drwxr-xr-x 0/0 ./usr/bin/
-rwxr-xr-x 0/0 ./usr/bin/assay
drwxr-xr-x 0/0 ./usr/share/
drwxr-xr-x 0/0 ./usr/share/doc/
drwxr-xr-x 0/0 ./usr/share/doc/assay/
-rw-r--r-- 0/0 ./usr/share/doc/assay/copyright
-rw-r--r-- 0/0 ./usr/share/doc/assay/third-party.gz
TXT
[ "$(id -u)" = 0 ] || skip "no right to enter the root"
tar --numeric-owner -xzpf "$layer" -C root
place=$(jq -r .config.WorkingDir "$config")
program=$(jq -r '.config.Entrypoint[0]' "$config")
expect 0 unshare --root=root --wd="$place" --setgid="${user#*:}" --setuid="${user%:*}" "$program"
has out.txt "uid 65532 in /data"
expect 0 unshare --root=root --wd="$place" --setgid="${user#*:}" --setuid="${user%:*}" "$program" write
[ -s "root$place/written" ] || fail "it did not write to $place"
expect 3 unshare --root=root --wd=/etc --setgid="${user#*:}" --setuid="${user%:*}" "$program" write
