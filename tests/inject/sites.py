# SPDX-License-Identifier: Apache-2.0
"""sites - the memory shared with inject.so, the sites that were seen, and the faults that each of them gets."""
import errno
import mmap
import struct
import subprocess
import time
import zlib

# The same layout as in inject.h.
CONTROL = struct.Struct("<IiQQIIII24s24s")
SITE = struct.Struct("<QII4Q24s24s")
SITES = 16384
OFF, RECORD, ONCE, UNTIL, KILL_BEFORE, KILL_AFTER = range(6)
ACTIONS = {"once": ONCE, "seconds": UNTIL, "kill-before": KILL_BEFORE, "kill-after": KILL_AFTER}
SYSCALLS = {"39": "getpid", "56": "clone", "61": "wait4", "155": "pivot_root", "217": "getdents64", "424": "pidfd_send_signal",
            "434": "pidfd_open", "435": "clone3", "436": "close_range", "437": "openat2", "442": "mount_setattr"}
OPEN = ("EIO", "EMFILE", "ENOMEM")
LOOK = ("EIO", "ENOMEM")
WRITE = ("ENOSPC", "EIO")
ERRNOS = {
    "open": OPEN, "openat": OPEN, "openat2": OPEN, "opendir": OPEN, "fdopendir": ("ENOMEM",), "readdir": LOOK, "scandir": OPEN,
    "scandirat": OPEN, "getdents64": LOOK, "stat": LOOK, "lstat": LOOK, "fstat": LOOK, "fstatat": LOOK, "statx": LOOK, "statfs": LOOK,
    "statvfs": LOOK, "fstatvfs": LOOK, "access": LOOK, "faccessat": LOOK, "readlink": LOOK, "readlinkat": LOOK,
    "read": ("EIO", "EINTR"), "pread": LOOK, "pread64": LOOK, "write": ("ENOSPC", "EIO", "EINTR"), "pwrite": WRITE, "writev": ("EIO",),
    "rename": WRITE, "renameat": WRITE, "renameat2": WRITE, "unlink": ("EIO",), "unlinkat": ("EIO",), "rmdir": ("EIO", "EBUSY"), "mkdir": WRITE,
    "mkdirat": WRITE, "linkat": WRITE, "symlink": WRITE, "symlinkat": WRITE, "ftruncate": WRITE, "fsync": ("EIO",), "fdatasync": ("EIO",),
    "mount": ("ENOMEM", "EBUSY"), "umount2": ("ENOMEM", "EBUSY"), "move_mount": ("ENOMEM",), "open_tree": ("ENOMEM", "EMFILE"),
    "mount_setattr": ("ENOMEM",), "pivot_root": ("EBUSY",), "setns": ("ENOMEM",), "unshare": ("ENOMEM", "ENOSPC"),
    "socket": ("EMFILE", "ENOMEM"), "socketpair": ("EMFILE",), "connect": ("EAGAIN", "ENOMEM"), "bind": ("ENOMEM",),
    "listen": ("ENOMEM",), "accept4": ("EMFILE", "ENOMEM", "EINTR"), "send": ("ENOBUFS", "EINTR"), "sendto": ("ENOBUFS", "EINTR"), "sendmsg": ("ENOBUFS",),
    "recv": ("ENOBUFS", "EINTR"), "recvmsg": ("ENOBUFS", "EINTR"), "fork": ("EAGAIN", "ENOMEM"), "clone3": ("EAGAIN", "ENOMEM"),
    "execve": ("ENOMEM", "EIO"), "execv": ("ENOMEM", "EIO"), "memfd_create": ("EMFILE", "ENOMEM"),
    "inotify_init1": ("EMFILE", "ENOMEM"), "inotify_add_watch": ("ENOSPC", "ENOMEM"), "eventfd": ("EMFILE",), "signalfd": ("EMFILE",),
    "pipe2": ("EMFILE", "ENFILE"), "dup": ("EMFILE",), "dup2": ("EBUSY",), "dup3": ("EBUSY",), "fcntl": ("EMFILE",),
    "waitid": ("EINTR",), "malloc": ("ENOMEM",), "realloc": ("ENOMEM",), "ioctl": LOOK, "pidfd_open": ("EMFILE", "ENOMEM"),
    "close_range": ("ENOMEM",), "timerfd_create": ("EMFILE", "ENOMEM"), "mknod": WRITE, "pidfd_send_signal": ("ENOMEM",), "flock": ("EINTR", "ENOMEM"), "kill": ("EPERM",),
}
# err_is_shortage() treats these alike, so each site gets only one of them.
SHORTAGE = ("EMFILE", "ENFILE", "ENOMEM")
# The effect of these calls ends with the process, so an end after the call equals an end before it.
NO_TRACE = {"stat", "lstat", "fstat", "fstatat", "statx", "statfs", "statvfs", "fstatvfs", "access", "faccessat", "readlink", "readlinkat",
            "opendir", "fdopendir", "readdir", "scandir", "scandirat", "getdents64", "pread", "pread64", "socket", "socketpair", "pipe2",
            "eventfd", "signalfd", "inotify_init1", "inotify_add_watch", "dup", "dup2", "dup3", "fcntl", "pidfd_open", "memfd_create",
            "close_range", "open_tree", "timerfd_create", "timerfd_settime"}
SECONDS = 3


class Control:
    """The file that the library maps: the requested fault, and the sites that were seen."""

    def __init__(self, path):
        with open(path, "wb") as f:
            f.truncate(CONTROL.size + SITES * SITE.size)
        with open(path, "r+b") as f:
            self.memory = mmap.mmap(f.fileno(), 0)

    def _mode(self, mode):
        struct.pack_into("<I", self.memory, 0, mode)

    def record(self):
        self._mode(RECORD)

    def arm(self, job):
        self._mode(OFF)
        until = time.monotonic_ns() + int(SECONDS * 10**9)
        error = getattr(errno, job["errno"]) if job["errno"] else 0
        CONTROL.pack_into(self.memory, 0, OFF, error, int(job["site"], 16), until, job["nth"], 0, 0, 0, job["call"].encode(),
                          job["program"].encode())
        self._mode(ACTIONS[job["action"]])

    def disarm(self):
        """How often the fault occurred."""
        self._mode(OFF)
        return CONTROL.unpack_from(self.memory, 0)[6]

    def sites(self):
        found = []
        for i in range(SITES):
            number, count, n, *rest = SITE.unpack_from(self.memory, CONTROL.size + i * SITE.size)
            if number:
                found.append(Site(number, count, rest[:n], text(rest[4]), text(rest[5])))
        return found


def text(data):
    return data.partition(b"\0")[0].decode()


class Site:
    """A call and the addresses above it."""

    def __init__(self, number, count, frames, call, program):
        self.id, self.count, self.frames, self.call, self.program = f"{number:016x}", count, frames, call, program
        self.label = ""

    def dump(self):
        return [self.id, self.count, self.label, self.call, self.program, self.frames]

    @staticmethod
    def load(fields):
        number, count, label, call, program, frames = fields
        site = Site(int(number, 16), count, frames, call, program)
        site.label = label
        return site

    @property
    def name(self):
        """The call's name for looking up its errors: openat2 for syscall:437."""
        head, _, number = self.call.partition(":")
        return SYSCALLS.get(number, self.call) if number else head

    @property
    def of_libuv(self):
        return bool(self.frames) and self.frames[0] >> 48 == 1

    def matches(self, wanted):
        return not wanted or self.id == wanted or wanted in self.label


def label_sites(sites, build):
    """Names for the addresses: coracle openat fs_open_at:31<img_list:77<img_collect:140."""
    for program in {s.program for s in sites}:
        offsets = sorted({f - 1 for s in sites if s.program == program for f in s.frames if f >> 48 == 0})
        lines = subprocess.run(["addr2line", "-f", "-s", "-e", f"{build}/{program}", *map(hex, offsets)], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.splitlines() if offsets else []
        names = {o: f"{lines[2 * i].partition('.')[0]}:{lines[2 * i + 1].rpartition(':')[2].split()[0]}" for i, o in enumerate(offsets)}
        for s in sites:
            if s.program == program:
                frames = [names[f - 1] if f >> 48 == 0 else f"libuv+{f & 0xffffffffffff:x}" if f >> 48 == 1 else "libc" for f in s.frames]
                s.label = f"{s.program} {s.name} {'<'.join(frames)}"


def places(sites):
    """One site for each source line: the compiler makes several sites of a line that it unrolls or inlines."""
    found = {}
    for s in sorted(sites, key=lambda s: (s.label, s.id)):
        found.setdefault(s.label, s)
    return sorted(found.values(), key=lambda s: s.label)


def errnos(site, every):
    """The errors for a site's call, one of each family."""
    errors = ERRNOS.get(site.name, ())
    short = [e for e in errors if e in SHORTAGE]
    if every or len(short) < 2:
        return list(errors)
    chosen = short[zlib.crc32(site.label.encode()) % len(short)]
    return [e for e in errors if e not in SHORTAGE or e == chosen]


def faults(site, every, first_of_kind):
    """Pairs of action and errno."""
    found = [("once", e) for e in errnos(site, every)]
    if site.name not in ("malloc", "realloc"):
        found.append(("kill-before", ""))
        if every or site.name not in NO_TRACE:
            found.append(("kill-after", ""))
    if ERRNOS.get(site.name) and first_of_kind:
        found.append(("seconds", ERRNOS[site.name][0]))
    return found


def plan(phase, sites, args):
    """The jobs of a phase.  A fault requested by name applies to every site that matches."""
    jobs, kinds = [], set()
    every = bool(args.every or args.errno or args.action)
    for s in sites:
        if not s.matches(args.site):
            continue
        first = (s.program, s.call) not in kinds
        kinds.add((s.program, s.call))
        for action, error in faults(s, every, first):
            if args.action and action != args.action or args.errno and error != args.errno and (error or not args.action):
                continue
            jobs.append({"phase": phase, "site": s.id, "call": s.call, "program": s.program, "label": s.label, "action": action,
                         "errno": error, "nth": args.nth, "libuv": s.of_libuv})
    return jobs
