"""A file system that acknowledges a sync and keeps what was written in memory for a while: kill it, and that is lost.

usage: lying_disk.py BACKING MOUNTPOINT honest|lying|shuffling

honest: a sync writes everything back. lying: in the order of the writes, some behind. shuffling: in an order by chance.
"""
import errno, os, random, sys
from fusepy import FUSE, FuseOSError, Operations

# Writes that stay in memory.
BEHIND = 24


class Disk(Operations):
    def __init__(self, backing, mood):
        self.backing, self.mood = backing, mood
        self.cache = {}

    def at(self, path):
        return os.path.join(self.backing, path.lstrip("/"))

    def back(self, most):
        while len(self.cache) > most:
            keys = list(self.cache)
            path, offset = random.choice(keys) if self.mood == "shuffling" else keys[0]
            data = self.cache.pop((path, offset))
            with open(self.at(path), "r+b") as file:
                file.seek(offset)
                file.write(data)

    def getattr(self, path, fh=None):
        try:
            st = os.lstat(self.at(path))
        except OSError:
            raise FuseOSError(errno.ENOENT)
        return {name: getattr(st, name) for name in ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_mtime")}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self.at(path))]

    def statfs(self, path):
        found = os.statvfs(self.backing)
        return {name: getattr(found, name) for name in ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_frsize", "f_namemax")}

    def create(self, path, mode, fi=None):
        return os.open(self.at(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def open(self, path, flags):
        return os.open(self.at(path), os.O_RDWR)

    def release(self, path, fh):
        os.close(fh)

    def unlink(self, path):
        self.cache = {key: data for key, data in self.cache.items() if key[0] != path}
        os.unlink(self.at(path))

    def truncate(self, path, length, fh=None):
        os.truncate(self.at(path), length)

    def write(self, path, data, offset, fh):
        self.cache.pop((path, offset), None)
        self.cache[path, offset] = data
        # What is larger than a stamp is the making of the file.
        self.back(BEHIND if len(data) == 8192 else 0)
        return len(data)

    def read(self, path, size, offset, fh):
        self.back(0)
        return os.pread(fh, size, offset)

    def fsync(self, path, datasync, fh):
        if self.mood == "honest":
            self.back(0)
        return 0

    def fsyncdir(self, path, datasync, fh):
        return 0

    def flush(self, path, fh):
        return 0


FUSE(Disk(sys.argv[1], sys.argv[3]), sys.argv[2], foreground=True, nothreads=True, direct_io=True)
