#!/usr/bin/env bash
# Disks that lie, as file systems in user space that keep acknowledged writes in memory: killed, they have lost them. `assay durability`
# says so with its witness, and says nothing of the kind of one that keeps its word. Under ./test.sh --long and by hand.
source "$PROJECT/tests/e2e/lib.sh"

[ -e /dev/fuse ] && [ "$(id -u)" = 0 ] || skip "file systems in user space need root here"
/usr/bin/python3 -c 'import fusepy' 2>/dev/null || skip "no python3-fusepy"

disk="" witness="" writer=""
clean_up() {
    for one in $disk $witness $writer; do kill -9 "$one" 2>/dev/null || true; done
    umount --lazy disk 2>/dev/null || true
}
trap clean_up EXIT
mkdir disk journals
port=$((20000 + $$ % 20000))
"$ASSAY" durability witness --port $port --journal journals 2>witness.txt &
witness=$!
wait_for 20 grep -q "listens on 127" witness.txt

# mounted MOOD
mounted() {
    /usr/bin/python3 "$PROJECT/tests/e2e/long/lying_disk.py" backing disk "$1" 2>disk.txt &
    disk=$!
    wait_for 20 mountpoint -q disk
}
acknowledged() {
    [ "$(od -An -v -t u8 -w16 -j 65536 "$1"/*.journal | awk '$1 > 0' | wc -l)" -ge 200 ]
}
# cut MOOD: stamps on such a disk until it is killed; out.txt has what was read back.
cut() {
    rm -rf backing journals/* && mkdir backing
    mounted "$1"
    "$ASSAY" durability disk --witness localhost:$port --time 10m >writer.txt 2>&1 &
    writer=$!
    wait_for 60 acknowledged journals
    kill -9 $disk
    wait $disk 2>/dev/null || true
    umount --lazy disk
    # Its disk is gone: the writer ends by itself.
    wait $writer && fail "it went on without its disk"
    mounted honest
    expect 0 "$ASSAY" durability disk --resume --witness localhost:$port --format full
    # Without the columns of a page.
    tr -s '\n ' '  ' <out.txt >told.txt
    kill $disk && wait $disk 2>/dev/null || true
    disk="" writer=""
}

cut honest
has told.txt "unknown: no cut seen"
hasnt told.txt "missing"
cut lying
has told.txt "lying: "
hasnt told.txt "of them older"
grep -o "Acknowledged stamps are missing[^.]*" told.txt
cut shuffling
has told.txt "lying: "
has told.txt "of them older"
grep -o "Acknowledged stamps are missing[^.]*" told.txt
