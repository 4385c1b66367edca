# SPDX-License-Identifier: Apache-2.0
"""quota - project quotas on real disks: what volumes/quota counts, limits, assigns and frees, against du, xfs_quota and repquota.  Called by test_quota.py."""
import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

os.environ.setdefault("CORACLE_TEST_SLOW", "8")
sys.path.insert(0, "/payload/tests/host")
import coracle  # noqa: E402
from coracle import check, contains, equal, run, until  # noqa: E402

SLOW = int(os.environ["CORACLE_TEST_SLOW"])
TOOL = "/payload/programs/quota_tool"
FIRST = 1048577
MIB = 1 << 20
EXHAUSTED, PRECONDITION, UNAVAILABLE = 8, 9, 14  # enum err_code
BSOFTWARN, BHARDWARN = 6, 4  # linux/quota.h
FILES = {"/etc/projects": "# of the administrator\n7:/srv/seven\nbroken\n", "/etc/projid": "seven:7\nwithout number\n"}


def tool(command, *args, code=0, old=False, timeout=400):
    """The lines of one command; another exit code than `code` fails."""
    result = run(TOOL, *(["--old"] if old else []), command, *args, ok=False, timeout=timeout)
    equal(result.returncode, code, f"exit code of {command} {args}: {result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()] if code == 0 else result.stderr


def usage(fs, number):
    return tool("get", f"/mnt/{fs}", number)[0]


def table(fs):
    return {x["path"]: x for x in tool("table", f"/mnt/{fs}")}


def files():
    found = {}
    for path in FILES:
        with open(path, encoding="ascii") as f:
            found[path] = f.read()
    return found


@contextlib.contextmanager
def trees(fs, *names):
    """Folders with projects, as a pod's start makes them; gone without a trace at the end."""
    paths = [f"/mnt/{fs}/{name}" for name in names]
    tool("start", f"/mnt/{fs}", "owner", *paths)
    numbers = [table(fs)[path]["id"] for path in paths]
    for path, number in zip(paths, numbers):
        tool("set", f"/mnt/{fs}", number, 0, 0, 0)
        os.chmod(path, 0o777)
    yield [*zip(paths, numbers)] if len(paths) > 1 else (paths[0], numbers[0])
    tool("end", f"/mnt/{fs}", *paths)
    until(lambda: tool("sweep", f"/mnt/{fs}")[0]["waiting"] == 0, 20, "the ids are free")
    equal(files(), FILES, "files in /etc")
    equal(table(fs), {}, "table")
    equal([x for x in tool("each", f"/mnt/{fs}") if x["id"] >= FIRST], [], "projects in use")


def begin():
    for path, text in FILES.items():
        with open(path, "w", encoding="ascii") as f:
            f.write(text)


def kinds(fs):
    """What is found out about the disk; with quotactl(2) as well."""
    for old in (False, True):
        found = tool("fs", f"/mnt/{fs}", old=old)[0]
        equal((found["type"], found["enforces"], found["warns"], found["way"]),
              (fs, True, True, "quotactl" if old else "quotactl_fd"), "file system")
    contains(tool("fs", "/", code=PRECONDITION), "/: ext4 without project quotas", "the root disk")
    contains(tool("fs", "/run", code=PRECONDITION), "/run: not XFS or ext4", "tmpfs")


def du(path):
    os.sync()
    return int(run("du", "-s", "-x", "--block-size=1", path).stdout.split()[0])


def inodes(path):
    return len({os.lstat(os.path.join(d, n)).st_ino for d, dirs, names in os.walk(path) for n in dirs + names}) + 1


def exact(fs):
    """Usage is du's, to the byte; also of removed files, by both calls, and for content that was there before."""
    with trees(fs, "exact") as (path, number):
        for i in range(20):
            os.makedirs(f"{path}/d{i % 4}/e{i}")
            with open(f"{path}/d{i % 4}/e{i}/file", "wb") as f:
                f.write(b"x" * 4096 * (i * 7 % 64))
        with open(f"{path}/sparse", "wb") as f:
            f.truncate(1 << 30)
            f.seek(100 << 20)
            f.write(b"x" * 65536)
        with open(f"{path}/reserved", "wb") as f:
            os.posix_fallocate(f.fileno(), 0, 3 * MIB)
        os.link(f"{path}/sparse", f"{path}/d1/again")
        os.symlink("/etc/passwd", f"{path}/link")
        os.mkfifo(f"{path}/pipe")
        expected = {"bytes": du(path), "inodes": inodes(path)}
        for old in (False, True):
            found = tool("get", f"/mnt/{fs}", number, old=old)[0]
            equal({k: found[k] for k in expected}, expected, "usage")
        with open(f"{path}/removed", "wb") as f:
            f.write(b"x" * 8 * MIB)
            f.flush()
            os.fsync(f.fileno())
            size = os.fstat(f.fileno()).st_blocks * 512
            os.unlink(f"{path}/removed")
            equal(du(path), expected["bytes"], "du does not see it")
            equal(usage(fs, number)["bytes"], expected["bytes"] + size, "usage with a removed file that is open")
            equal(usage(fs, number)["inodes"], expected["inodes"] + 1, "inodes with it")
        until(lambda: usage(fs, number)["bytes"] == expected["bytes"], 20, "usage after it was closed")
    content(fs)


def content(fs):
    """A folder with content gets its project; other file systems and what symlinks name do not."""
    path, outside = f"/mnt/{fs}/content", f"/mnt/{fs}/outside"
    os.makedirs(f"{path}/a/b")
    os.makedirs(outside)
    for name in (f"{path}/a/b/file", f"{path}/file", f"{outside}/file"):
        with open(name, "wb") as f:
            f.write(b"x" * 65536)
    os.symlink(outside, f"{path}/link")
    os.mkdir(f"{path}/mount")
    run("mount", "--bind", outside, f"{path}/mount")
    tool("assign", f"/mnt/{fs}", path, 4242)
    tool("assign", f"/mnt/{fs}", path, 4242)
    equal(project(f"{outside}/file"), 0, "project of a file beyond a symlink and a mount")
    equal(project(f"{path}/a/b/file"), 4242, "project of a file")
    run("umount", f"{path}/mount")
    with open(f"{path}/a/b/new", "wb") as f:
        f.write(b"x" * 65536)
    os.unlink(f"{path}/link")  # symlinks keep their project
    os.sync()
    found = usage(fs, 4242)
    equal((found["bytes"], found["inodes"]), (du(path) - du(f"{path}/mount"), inodes(path) - 1), "usage but for the mount point")
    deep = path
    for _ in range(140):
        deep += "/d"
        os.mkdir(deep)
    contains(tool("assign", f"/mnt/{fs}", path, 4243, code=EXHAUSTED), "more than 128 folders", "a deep tree")
    shutil.rmtree(path)
    shutil.rmtree(outside)


def project(path):
    return int(run("lsattr", "-p", "-d", path).stdout.split()[0])


HOG = """
import os, sys
held, done = [], 0
try:
    for i in range(200):
        f = os.open(f"{sys.argv[1]}/{i}", os.O_RDWR | os.O_CREAT)
        os.unlink(f"{sys.argv[1]}/{i}")
        held.append(f)
        for _ in range(16):
            done += os.write(f, b"x" * 65536)
except OSError as e:
    print(e.errno, done, i)
else:
    print(0, done, i)
"""


def hog(fs):
    """A hard limit stops who removes his files and keeps them open; the tree beside it is not concerned.  Likewise inodes."""
    with trees(fs, "hog", "beside") as ((path, number), (beside, _)):
        tool("set", f"/mnt/{fs}", number, 16 * MIB, 0, 0)
        code, done, _ = (int(x) for x in coracle.as_nobody(sys.executable, "-c", HOG, path).stdout.split())
        equal(code, errno.ENOSPC if fs == "xfs" else errno.EDQUOT, "errno")
        check(14 * MIB <= done <= 16 * MIB, lambda: f"{done} bytes of 16 MiB")
        coracle.as_nobody("dd", "if=/dev/zero", f"of={beside}/file", "bs=1M", "count=32", "conv=fsync")
        until(lambda: usage(fs, number)["inodes"] == 1, 20, "the hog's files are gone")
        tool("set", f"/mnt/{fs}", number, 0, 0, 10)
        code, _, made = (int(x) for x in coracle.as_nobody(sys.executable, "-c", HOG, path).stdout.split())
        equal((code, made), (errno.ENOSPC if fs == "xfs" else errno.EDQUOT, 9), "errno, and files that were made")
        until(lambda: usage(fs, number)["inodes"] == 1, 20, "the hog's files are gone")


def roomy(fs, count):
    """Room for so many inodes: ext4 is made anew."""
    if fs == "xfs":
        run("xfs_growfs", "-m", "50", f"/mnt/{fs}")
    elif os.statvfs(f"/mnt/{fs}").f_ffree < count + count // 100:
        device = run("findmnt", "-n", "-o", "SOURCE", f"/mnt/{fs}").stdout.strip()
        run("umount", f"/mnt/{fs}")
        run("mkfs.ext4", "-q", "-O", "project,quota", "-E", "quotatype=prjquota", "-N", count + count // 10, device, timeout=300)
        run("mount", f"/mnt/{fs}")


def many_begin(fs, count):
    """A tree that will have many files: its project.  Its disk is free for the machine outside, which fills it (fill.py)."""
    roomy(fs, count)
    tool("start", f"/mnt/{fs}", "owner", f"/mnt/{fs}/many")
    number = table(fs)[f"/mnt/{fs}/many"]["id"]
    run("umount", f"/mnt/{fs}")
    return number


def many(fs, missing):
    """A tree of many files: its usage is read within a millisecond, and is what a scan finds, whose slices keep to their time.  The last
    thing on its disk: the tree stays, for its removal takes longer than all else."""
    path, times = f"/mnt/{fs}/many", [time.monotonic()]
    run("mount", f"/mnt/{fs}", timeout=3600)  # XFS counts what is there
    times.append(time.monotonic())
    number = table(fs)[path]["id"]
    tool("set", f"/mnt/{fs}", number, 0, 0, 0)
    if missing:
        tool("fill", f"/mnt/{fs}", path, missing, timeout=3600)
    os.mkdir(f"{path}/inside")
    tool("fill", f"/mnt/{fs}", f"{path}/inside", 1000)  # the VM's kernel goes on counting
    os.sync()
    times.append(time.monotonic())
    took = tool("time", f"/mnt/{fs}", number)[0]
    found = usage(fs, number)
    scan = tool("scan", f"/mnt/{fs}", path, timeout=3600)[0]
    print(f"# {fs}: {scan['inodes']} inodes: quota {took['first'] / 1e6:.3f} ms at first, {took['median'] / 1e6:.3f} ms (median), "
          f"{took['p99'] / 1e6:.3f} ms (p99); scan {scan['ms']} ms, {scan['cpu_ms']} ms of CPU in {scan['slices']} slices, the longest "
          f"{scan['longest_us'] / 1e3:.1f} ms of {scan['slice_us'] / 1e3:.0f}; mounted in {times[1] - times[0]:.0f} s, filled in {times[2] - times[1]:.0f} s",
          flush=True)
    equal((found["bytes"], found["inodes"]), (scan["bytes"], scan["inodes"]), "usage by quota and by scan")
    check(took["median"] < 1e6, lambda: f"{took} ns for a read")
    # The agent rests for a multiple of what a slice took; a single one has what this machine takes from the VM, too.
    check(scan["cpu_ms"] * 1000 < SLOW * scan["slices"] * scan["slice_us"], lambda: f"{scan}: slices are too long")
    begin()


def kills(fs, what):
    """kill -9 after each system call of a start or an end."""
    folder = f"/mnt/{fs}/kills"
    os.mkdir(folder)
    points = tool("kill", f"/mnt/{fs}", folder, what)[0]["points"]
    check(points > 50, lambda: f"{points} system calls only")
    print(f"# {fs}: killed at {points} system calls ({what})", flush=True)
    os.rmdir(folder)
    equal(table(fs), {}, "table")
    equal(files(), FILES, "files in /etc")
    left = [name for name in os.listdir("/etc") + os.listdir(f"/mnt/{fs}") if name.endswith(".coracle")]
    equal(left, [], "temporary files")


def reports(fs):
    """xfs_quota and repquota say of each tree what the table and quota_get() say."""
    names = [f"tree{i}" for i in range(8)]
    with trees(fs, *names) as pairs:
        for i, (path, number) in enumerate(pairs):
            with open(f"{path}/file", "wb") as f:
                f.write(b"x" * 4096 * (i + 1))
            tool("set", f"/mnt/{fs}", number, (i + 1) * MIB, 0, 100 + i)
        os.sync()
        expected = {}
        for _, number in pairs:
            u = usage(fs, number)
            expected[f"coracle{number}"] = (u["bytes"] // 1024, u["hard"] // 1024, u["inodes"], u["hard_inodes"])
        equal(sorted(x["id"] for x in table(fs).values()), sorted(number for _, number in pairs), "table")
        found = {}
        for line in run("repquota", "-P", f"/mnt/{fs}").stdout.splitlines():
            m = re.match(r"(coracle\d+)\s+\S\S\s+(\d+)\s+\d+\s+(\d+)\s+(\d+)\s+\d+\s+(\d+)", line)
            if m:
                found[m.group(1)] = tuple(int(x) for x in m.groups()[1:])
        equal(found, expected, "repquota")
        if fs == "xfs":
            found = {}
            for line in run("xfs_quota", "-x", "-c", "report -p -b -i -N", f"/mnt/{fs}").stdout.splitlines():
                m = re.match(r"(coracle\d+)\s+(\d+)\s+\d+\s+(\d+)\s+\d+\s+\[\S+\]\s+(\d+)\s+\d+\s+(\d+)", line)
                if m:
                    found[m.group(1)] = tuple(int(x) for x in m.groups()[1:])
            equal(found, expected, "xfs_quota")


def foreign(fs):
    """Ids of others, in the files and on the disk, are not given out; their lines stay; their locks are respected."""
    with open("/etc/projects", "a", encoding="ascii") as f:
        f.write(f"{FIRST}:/srv/first\n")
    with open("/etc/projid", "a", encoding="ascii") as f:
        f.write(f"volume{FIRST + 1}:{FIRST + 1}\n")
    other, limited = f"/mnt/{fs}/other", FIRST + 3
    os.mkdir(other)
    run("chattr", "-p", FIRST + 2, "+P", other)
    run("setquota", "-P", limited, 0, 1024, 0, 0, f"/mnt/{fs}")
    before = files()
    tree = f"/mnt/{fs}/tree"
    tool("start", f"/mnt/{fs}", "owner", tree)
    equal(table(fs)[tree]["id"], FIRST + 4, "the first id that is free")
    equal(files(), {"/etc/projects": f"{before['/etc/projects']}{FIRST + 4}:{tree}\n",
                    "/etc/projid": f"{before['/etc/projid']}coracle{FIRST + 4}:{FIRST + 4}\n"}, "files")
    with open("/etc/projects", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        contains(tool("start", f"/mnt/{fs}", "owner", f"{tree}2", code=UNAVAILABLE), "locked by another program", "files that are locked")
    tool("end", f"/mnt/{fs}", tree)
    until(lambda: tool("sweep", f"/mnt/{fs}")[0]["waiting"] == 0, 20, "the id is free")
    equal(files(), before, "files after the end")
    equal((project(other), usage(fs, limited)["hard"]), (FIRST + 2, MIB), "what others have")
    os.rename("/etc/projid", "/etc/projid.real")
    os.symlink("projid.real", "/etc/projid")
    contains(tool("start", f"/mnt/{fs}", "owner", tree, code=PRECONDITION), "/etc/projid is a symbolic link", "a symlink")
    os.rename("/etc/projid.real", "/etc/projid")
    equal((files(), table(fs)), (before, {}), "files and table after the symlink")
    os.rmdir(other)
    run("setquota", "-P", limited, 0, 0, 0, 0, f"/mnt/{fs}")
    begin()


@contextlib.contextmanager
def watching(fs):
    """The kernel's warnings as a list that grows."""
    with subprocess.Popen([TOOL, "watch", f"/mnt/{fs}", "600"], stdout=subprocess.PIPE, text=True) as process:
        try:
            equal(json.loads(process.stdout.readline()), {"ready": True}, "watch")
            os.set_blocking(process.stdout.fileno(), False)
            seen, data = [], ""

            def more():
                nonlocal data
                with contextlib.suppress(BlockingIOError):
                    data += os.read(process.stdout.fileno(), 1 << 16).decode()
                lines, _, data = data.rpartition("\n")
                seen.extend(json.loads(line) for line in lines.splitlines())
                return seen
            yield process, more
        finally:
            process.kill()


def write(path, size, ok=True):
    """As somebody without privileges, for ext4 lets others pass."""
    return coracle.as_nobody("dd", "if=/dev/zero", f"of={path}", "bs=64k", f"count={size // 65536}", "conv=fsync", ok=ok)


def lost(path, process, more):
    """Warnings that nobody reads in time are reported as lost; XFS sends one with each allocation."""
    process.send_signal(signal.SIGSTOP)
    coracle.as_nobody(sys.executable, "-c", "import sys\nfor i in range(1500):\n  open(f'{sys.argv[1]}/{i}', 'wb').write(b'x' * 4096)", path)
    process.send_signal(signal.SIGCONT)
    until(lambda: any(w["lost"] for w in more()), 10, "lost warnings are reported")


def soft(fs):
    """A soft limit warns once it is passed, and does not stop: the moment from which the kernel would enforce it is set to be far away."""
    run("setquota", "-P", "-t", "7200", "7200", f"/mnt/{fs}")
    device = os.stat(f"/mnt/{fs}").st_dev
    with trees(fs, "soft", "control") as ((path, number), (control, other)), watching(fs) as (process, more):
        for n in (number, other):
            tool("set", f"/mnt/{fs}", n, 64 * MIB, 4 * MIB, 0)
        write(f"{path}/below", 2 * MIB)
        start = time.monotonic()
        write(f"{path}/above", 4 * MIB)
        until(lambda: any(w["type"] == BSOFTWARN for w in more()), 10, "a warning")
        print(f"# {fs}: {len(more())} warnings within {time.monotonic() - start:.2f} s", flush=True)
        check(all(w["lost"] or (w["project"], w["device"]) == (number, device) for w in more()), lambda: f"of this project: {more()}")
        write(f"{control}/above", 6 * MIB)
        tool("set", f"/mnt/{fs}", number, 64 * MIB, 4 * MIB, 0)  # what a warning asks for
        seconds = time.time()
        run("date", "-s", f"@{int(seconds) + 86400}")
        try:
            check(write(f"{control}/more", MIB, ok=False).returncode != 0, "without that, the kernel enforces it after the grace time")
            write(f"{path}/more", MIB)
        finally:
            run("date", "-s", f"@{int(seconds) + 5}")
        if fs == "xfs":
            lost(path, process, more)
        before = len(more())
        write(f"{path}/hard", 64 * MIB, ok=False)
        until(lambda: any(w["type"] == BHARDWARN or w["lost"] for w in more()[before:]), 10, "a warning of the hard limit")
        tool("set", f"/mnt/{fs}", number, 0, 0, 0)
        run("setquota", "-P", "-t", "5", "5", f"/mnt/{fs}")
        equal(tool("fs", f"/mnt/{fs}")[0]["warns"], False, "warnings with a grace time of seconds")
        contains(tool("set", f"/mnt/{fs}", number, 64 * MIB, 4 * MIB, 0, code=PRECONDITION), "would be enforced", "a soft limit then")
        run("setquota", "-P", "-t", "604800", "604800", f"/mnt/{fs}")


def unprivileged(fs):
    """Whoever owns a file gives it another project without any capability, and takes the flag off a folder; in a user namespace nobody can."""
    none = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all", "--no-new-privs", "--reuid", "0", "--regid", "0", "--clear-groups"]
    inside = ["unshare", "--user", "--map-root-user"]
    with trees(fs, "owned") as (path, number):
        file, folder = f"{path}/file", f"{path}/folder"
        run("touch", file)
        os.mkdir(folder)
        for argv in (["-p", "77", file], ["-p", "0", file], ["-P", folder]):
            result = run(*inside, "chattr", *argv, ok=False)
            check(result.returncode != 0, lambda r=result: f"in a user namespace: {r}")
        run(*inside, "chattr", "+d", file)  # what else an owner may set
        run(*inside, "touch", f"{folder}/inside")
        equal([project(x) for x in (file, folder, f"{folder}/inside")], [number] * 3, "projects after tries in a user namespace")
        for argv in (["-p", "77", file], ["-P", folder]):
            result = run(TOOL, "confined", f"/mnt/{fs}", *none, "chattr", *argv, ok=False)
            check(result.returncode != 0 and "Operation not permitted" in result.stderr, lambda r=result: f"with a filter of system calls: {r}")
        equal([project(x) for x in (file, folder)], [number] * 2, "projects after tries with a filter")
        run(*none, "chattr", "-p", "77", file)
        run(*none, "chattr", "-P", folder)
        run(*none, "touch", f"{folder}/escaped")
        equal([project(x) for x in (file, f"{folder}/escaped")], [77, 0], "projects after their owner changed them")
        run("chattr", "-p", number, file)


def broken(fs):
    """Quotas switched off, a full disk, a disk that is read-only or mounted without quotas: errors that say so, and no id."""
    mnt = f"/mnt/{fs}"
    with trees(fs, "work") as (path, number):
        before = usage(fs, number)
        if fs == "xfs":
            run("xfs_quota", "-x", "-c", "disable -p", mnt)
        else:
            run("quotaoff", "-P", mnt)
        equal(tool("fs", mnt)[0]["enforces"], False, "enforcement is off")
        equal(tool("fs", mnt)[0]["warns"], False, "no warnings then")
        equal(usage(fs, number), before, "usage is still counted")
        if fs == "xfs":
            run("xfs_quota", "-x", "-c", "enable -p", mnt)
        else:
            run("quotaon", "-P", mnt)
        run("fallocate", "-l", str(64 * MIB), f"{mnt}/spare")
        with open(f"{mnt}/filler", "wb") as f, contextlib.suppress(OSError):
            step = 256 * MIB
            at = 0
            while step >= 4096:
                try:
                    os.posix_fallocate(f.fileno(), at, step)
                    at += step
                except OSError:
                    step //= 2
        with contextlib.suppress(OSError):
            for i in range(2000):  # what is left for small files
                with open(f"{path}/{i}", "wb") as f:
                    f.write(b"x" * 4096)
                    os.fsync(f.fileno())
        contains(tool("start", mnt, "owner", f"{mnt}/full", code=EXHAUSTED), "No space left", "a full disk")
        equal(os.path.exists(f"{mnt}/full"), False, "the tree")
        equal(set(table(fs)), {path}, "table on a full disk")
        os.unlink(f"{mnt}/spare")
        os.unlink(f"{mnt}/filler")
        equal(set(x["path"] for x in tool("table", mnt)), {path}, "table")
        run("mount", "-o", "remount,ro", mnt)
        if fs == "xfs":
            for command in (["start", mnt, "owner", f"{mnt}/read-only"], ["set", mnt, number, MIB, 0, 0]):
                result = run(TOOL, *command, ok=False)
                check(result.returncode != 0 and "Read-only file system" in result.stderr, lambda r=result: f"read-only: {r}")
            check(usage(fs, number)["inodes"] > 0, "usage on a read-only disk")
        else:  # it suspends its quotas
            contains(tool("get", mnt, number, code=PRECONDITION), "ext4 without project quotas", "read-only")
        run("mount", "-o", "remount,rw", mnt)
        check(usage(fs, number)["inodes"] > 0, "usage on a disk that is writable again")
    without(fs)


def without(fs):
    """Mounted without quotas, and without being mounted at all: an id of a tree that cannot be seen stays."""
    mnt = f"/mnt/{fs}"
    tool("start", mnt, "owner", f"{mnt}/tree")
    number = table(fs)[f"{mnt}/tree"]["id"]
    identity = tool("fs", mnt)[0]["identity"]
    check(re.fullmatch(r"(xfs-[0-9a-f]{32}|ext4-[0-9a-f]{16})", identity) and not re.search(r"-0+$", identity), lambda: identity)
    run("umount", mnt)
    run("mount", "-o", "noquota", f"/dev/disk/by-id/virtio-{fs}", mnt)
    if fs == "xfs":
        contains(tool("fs", mnt, code=PRECONDITION), "xfs without project quotas", "mounted without quotas")
    else:  # the feature of the file system counts always
        equal(tool("fs", mnt)[0]["enforces"], False, "mounted without quotas")
    run("umount", mnt)
    run("mount", mnt)
    equal(tool("fs", mnt)[0]["identity"], identity, "identity after it was mounted again")
    until(lambda: usage(fs, number)["inodes"] == 1, 20, "counted again")
    tool("end", mnt, f"{mnt}/tree")
    until(lambda: tool("sweep", mnt)[0]["waiting"] == 0, 20, "the id is free")
    equal((table(fs), files()), ({}, FILES), "table and files")
