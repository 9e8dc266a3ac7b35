#!/usr/bin/env python3
"""A file system of one file, parts of which are slow at their first read: slow_once.py MOUNTPOINT MIB EXTENT_KIB DELAY_MS COLD...

COLD is FROM-TO in MiB. The file `volume` reads as zeroes; an extent in a cold part answers its first read after a delay, every other
read after a tenth of a millisecond. It speaks the kernel's FUSE protocol and ends when it is unmounted.
"""
import os, struct, subprocess, sys, threading, time

mountpoint, mib, extent_kib, delay_ms, *parts = sys.argv[1:]
SIZE, EXTENT, DELAY = int(mib) << 20, int(extent_kib) << 10, float(delay_ms) / 1e3
cold = [tuple(int(edge) << 20 for edge in part.split('-')) for part in parts]
touched, lock = set(), threading.Lock()

device = os.open('/dev/fuse', os.O_RDWR)
os.set_inheritable(device, True)
options = f'fd={device},rootmode=40000,user_id=0,group_id=0,max_read=1048576'
subprocess.run(['mount', '-i', '-t', 'fuse', '-o', options, 'slow_once', mountpoint], pass_fds=[device], check=True)

ROOT, VOLUME = 1, 2
LOOKUP, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR = (
    1, 3, 14, 15, 17, 18, 25, 26, 27, 28, 29)
FORGET, BATCH_FORGET, INTERRUPT = 2, 42, 36
ENOENT, ENOSYS = 2, 38


def attributes(node):
    mode, size = (0o40755, 0) if node == ROOT else (0o100444, SIZE)
    return struct.pack('<6Q10I', node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(unique, body=b'', error=0):
    try:
        os.writev(device, [struct.pack('<IiQ', 16 + len(body), -error, unique), body])
    except FileNotFoundError:
        pass  # the request was interrupted


def read(unique, at, length):
    begin, end = at, min(at + length, SIZE)
    delay = 1e-4
    for extent in range(begin // EXTENT, (max(end, begin + 1) - 1) // EXTENT + 1):
        place = extent * EXTENT
        with lock:
            is_new = extent not in touched
            touched.add(extent)
        if is_new and any(low <= place < high for low, high in cold):
            delay += DELAY
    time.sleep(delay)
    answer(unique, bytes(max(0, end - begin)))


def serve():
    while True:
        try:
            request = os.read(device, (1 << 20) + 4096)
        except OSError:
            return  # unmounted
        length, opcode, unique, node = struct.unpack_from('<IIQQ', request)
        body = request[40:length]
        if opcode == INIT:
            major, minor, readahead, flags = struct.unpack_from('<4I', body)
            answer(unique, struct.pack('<4IHHIIHH8I', 7, 31, 0, 1 | 1 << 22, 64, 48, 1 << 20, 1, 256, 0, *[0] * 8))
        elif opcode == LOOKUP:
            if body.rstrip(b'\0') == b'volume':
                answer(unique, struct.pack('<4Q2I', VOLUME, 0, 3600, 3600, 0, 0) + attributes(VOLUME))
            else:
                answer(unique, error=ENOENT)
        elif opcode == GETATTR:
            answer(unique, struct.pack('<Q2I', 3600, 0, 0) + attributes(node))
        elif opcode in (OPEN, OPENDIR):
            answer(unique, struct.pack('<Q2I', 0, 1 if opcode == OPEN else 0, 0))
        elif opcode == READ:
            _, at, wanted = struct.unpack_from('<2QI', body)
            read(unique, at, wanted)
        elif opcode == READDIR:
            _, at = struct.unpack_from('<2Q', body)
            entry = struct.pack('<2Q2I', VOLUME, 1, 6, 8) + b'volume\0\0'
            answer(unique, entry if at == 0 else b'')
        elif opcode == STATFS:
            answer(unique, struct.pack('<5Q4I6I', SIZE // 4096, 0, 0, 1, 0, 4096, 255, 4096, 0, *[0] * 6))
        elif opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            pass
        elif opcode in (RELEASE, RELEASEDIR, FLUSH):
            answer(unique)
        else:
            answer(unique, error=ENOSYS)


threads = [threading.Thread(target=serve) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
