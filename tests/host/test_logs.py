# SPDX-License-Identifier: Apache-2.0
"""Logs of containers: rotation by the real conmon, the output of `coracle logs`, and disks that do not fill."""
import contextlib
import glob
import os
import re
import subprocess
import threading
import time

from coracle import check, contains, container, equal, mount, pod, read, run, shell, until

ENTRY = re.compile(r"\S+ stdout ([FP]) (.*)")
LINE = re.compile(r"line (\d+) x{100}")
FAST = "i=0; while [ $i -lt {lines} ]; do echo line $i {pad}; i=$((i+1)); done; while :; do sleep 1000; done"
# Writes as many lines as it is told to by its standard input's file, a FIFO.
TOLD = "i=0; exec 3<>/ctl/fifo; while read n <&3; do [ $n = end ] && exit 0; e=$((i+n)); while [ $i -lt $e ]; do echo line $i {pad}; i=$((i+1)); done; done"
PAD = "x" * 100
SECONDS = float(os.environ.get("LOG_SECONDS", "1"))


def folder(node, p, name="main"):
    return f"{node.pod_logs}/default_{p.name}_{p.uid}/{name}"


def kept(path, attempt=0):
    """The files of a run, the oldest first."""
    return sorted(glob.glob(f"{path}/{attempt}.log.2*")) + [f"{path}/{attempt}.log"]


def texts(files):
    """The written lines.  conmon splits a line into parts (P) at the end of its buffer, even across files."""
    found, begun = [], ""
    for file in files:
        with open(file, encoding="ascii") as f:
            for entry in f.read().splitlines():
                tag, text = ENTRY.fullmatch(entry).groups()
                begun += text
                if tag == "F":
                    found.append(begun)
                    begun = ""
    return found


def numbers(lines):
    """The numbers of the lines; None if they are not consecutive.  The first line may have begun in a file that is gone."""
    if lines and not LINE.fullmatch(lines[0]):
        lines = lines[1:]
    found = [LINE.fullmatch(line) for line in lines]
    if None in found:
        return None
    found = [int(m.group(1)) for m in found]
    return found if found == list(range(found[0], found[0] + len(found))) else None


def rotating(t, size="64Ki", files="3"):
    node = t.node("--container-log-max-size", size, "--container-log-max-files", files)
    node.import_image()
    return node


def ready(path):
    """Whether the next file exists and all names are in order."""
    return os.path.exists(f"{path}/0.log.tmp") and os.path.exists(f"{path}/.0.log.kept")


def test_full_speed(t):
    """a container that writes as fast as it can stays within its files; each is whole, and lost lines are reported"""
    node = rotating(t, "256Ki")
    lines = 20000
    node.put("fast.yaml", pod("fast", container(command=shell(FAST.format(lines=lines, pad=PAD))), terminationGracePeriodSeconds=1))
    p = node.wait_running("fast")
    path = folder(node, p)
    last = f"line {lines - 1} {PAD}"
    until(lambda: last in node.cli("logs", "fast", "--tail", "1").stdout, 60, "the last line")
    until(lambda: ready(path) and len(kept(path)) == 3, 20, "the next file")
    files = kept(path)
    sizes = [os.stat(f).st_size for f in files]
    check(max(sizes) <= 256 << 10, f"files of at most 256 KiB: {sizes}")
    check(min(sizes[:-1]) > 250 << 10, f"and full ones: {sizes}")
    written = texts(files)
    equal(written[-1], last, "the last line")
    check(numbers(written) or "lines may be missing" in node.log(), "files that follow each other")
    said = node.cli("logs", "fast").stdout.splitlines()
    check(said == written, "what `logs` shows is what stands in all files")
    node.remove("fast.yaml")
    node.wait_gone("fast")
    node.wait_no_traces(p)
    node.stop()


def test_killed(t):
    """the agent is killed repeatedly while logs are rotated: the kept files have consecutive lines"""
    node = rotating(t)
    ctl = f"{t.scratch}/tmp"
    os.mkfifo(f"{ctl}/fifo")
    node.put("told.yaml", pod("told", container(command=shell(TOLD.format(pad=PAD)), volumeMounts=[mount("ctl", "/ctl")]),
                              volumes=[{"name": "ctl", "hostPath": {"path": ctl}}], restartPolicy="Never"))
    path = folder(node, node.wait_running("told"))
    written = 0

    def rotate():
        """Makes the container write lines until the log is rotated once."""
        nonlocal written
        before = os.stat(f"{path}/0.log").st_ino
        while os.stat(f"{path}/0.log").st_ino == before:
            with open(f"{ctl}/fifo", "w", encoding="ascii") as f:
                f.write("50\n")
            written += 50
            until(lambda: f"line {written - 1} x" in open(f"{path}/0.log", encoding="ascii").read(), 20, "the lines")

    for _ in range(3):
        until(lambda: ready(path), 20, "the next file")
        rotate()
        until(lambda: ready(path), 20, "the next file")
        node.kill()
        rotate()  # while no daemon runs
        node.start()
    until(lambda: ready(path) and len(kept(path)) == 3, 20, "files put in order")
    files = kept(path)
    found = numbers(texts(files))
    check(found, "kept files that follow each other")
    equal(found[-1], written - 1, "the last line")
    check("lines may be missing" not in node.log(), "nothing was said to be lost")
    shown = node.cli("logs", "told", "--tail", "600").stdout.splitlines()
    equal(numbers(shown), list(range(written - 600, written)), "a tail over several files")
    begin, seen = written - 1, []
    follow = subprocess.Popen([node.coracle, "--socket", node.socket, "logs", "told", "-f", "--tail", "1"],
                              stdout=subprocess.PIPE, text=True)
    reader = threading.Thread(target=lambda: seen.extend(iter(follow.stdout.readline, "")), daemon=True)
    reader.start()
    until(lambda: seen, 20, "the line before")
    for _ in range(4):
        rotate()
        until(lambda: f"line {written - 1} x" in seen[-1], 20, "what was written, at the follower")
    with open(f"{ctl}/fifo", "w", encoding="ascii") as f:
        f.write("end\n")
    follow.wait(timeout=60)
    reader.join(timeout=60)
    equal(numbers([line.rstrip("\n") for line in seen]), list(range(begin, written)), "what a follower saw")
    equal(follow.returncode, 0, "its end, with the container's")
    until(lambda: not os.path.exists(f"{path}/0.log.tmp") and not os.path.exists(f"{path}/.0.log.kept"), 10,
          "only written files are left")
    node.stop()


def test_several(t):
    """logs -l, --all-containers and --prefix: of several pods, followed side by side until the last one ends"""
    node = t.node()
    node.import_image()
    say = "echo {0} one; echo {0} two; until [ -e /ctl/end ]; do sleep 0.1; done; echo {0} end"
    volumes = [{"name": "ctl", "hostPath": {"path": f"{t.scratch}/tmp"}}]
    for name in ("a", "b"):
        containers = [container(c, shell(say.format(f"{name}-{c}")), volumeMounts=[mount("ctl", "/ctl")]) for c in ("x", "y")]
        node.put(f"{name}.yaml", pod(name, *containers, volumes=volumes, labels={"app": "say"}, restartPolicy="Never"))
    node.wait_running("a", "b")
    who = [(p, c) for p in "ab" for c in "xy"]

    def lines(*words):
        return sorted(f"[pod/{p}/{c}] {p}-{c} {w}" for p, c in who for w in words)

    logs = ["logs", "-l", "app=say", "--all-containers", "--prefix"]
    until(lambda: sorted(node.cli(*logs).stdout.splitlines()) == lines("one", "two"), 20, "what all have said")
    equal(sorted(node.cli(*logs, "--tail", "1").stdout.splitlines()), lines("two"), "the last line of each")
    equal(node.cli("logs", "-l", "app=say", "-c", "y").stdout, "a-y one\na-y two\nb-y one\nb-y two\n", "one container of each")
    events = node.cli("events", "--for", "pod/a", "--no-headers").stdout.splitlines()
    check(any(line.split()[1:4] == ["Normal", "Started", "Pod/a"] for line in events), f"events of the pod: {events}")
    check(not [line for line in events if "Pod/b" in line], f"and of no other: {events}")
    follow = subprocess.Popen([node.coracle, "--socket", node.socket, *logs, "-f"], stdout=subprocess.PIPE, text=True)
    open(f"{t.scratch}/tmp/end", "w", encoding="ascii").close()
    equal(sorted(follow.communicate(timeout=60)[0].splitlines()), lines("one", "two", "end"), "what was followed")
    equal(follow.returncode, 0, "its end")
    node.stop()


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def written(pid):
    """Bytes that a process has written."""
    return int(re.search(r"^wchar: (\d+)$", read(f"/proc/{pid}/io"), re.MULTILINE).group(1))


def offered(seconds):
    """MB/s of the flood's writer to a reader that discards everything as fast as it can."""
    result = run("busybox", "sh", "-c", f"timeout {seconds} busybox yes {PAD} | wc -c", timeout=seconds + 20)
    return int(result.stdout) / seconds / 1e6


def used(path):
    """Bytes of the files of a log folder, each counted once."""
    sizes = {}
    for entry in os.scandir(path):
        with contextlib.suppress(FileNotFoundError):
            st = entry.stat(follow_symlinks=False)
            sizes[st.st_ino] = st.st_size
    return sum(sizes.values())


def test_flood(t):
    """a container that writes without a pause for LOG_SECONDS: its logs never take more than their files may"""
    size, files = (10 << 20, 5) if SECONDS > 5 else (1 << 20, 3)
    node = rotating(t, str(size), str(files))
    could = f" of {offered(3):.0f} that it could write" if SECONDS > 5 else ""
    node.put("flood.yaml", pod("flood", container(command=shell(f"exec yes {PAD}")), terminationGracePeriodSeconds=0))
    p = node.wait_running("flood")
    path, writer = folder(node, p), node.pid(p)
    begin, cpu, most, rotated = time.monotonic(), processor_seconds(node.process.pid), 0, set()
    before = written(writer)
    while time.monotonic() - begin < SECONDS or len(rotated) <= files:
        check(time.monotonic() - begin < SECONDS + 60, "rotations")
        most = max(most, used(path))
        rotated.add(os.stat(f"{path}/0.log").st_ino)
        time.sleep(0.01)
    took, cpu = time.monotonic() - begin, processor_seconds(node.process.pid) - cpu
    through = (written(writer) - before) / took / 1e6
    node.remove("flood.yaml")
    node.wait_gone("flood")
    # A look at a folder takes time: files that disappear meanwhile may be counted together with new ones.
    check(most <= 2 * files * size, f"at most {files} files of {size} bytes: {most}")
    lost = node.log().count("lines may be missing")
    print(f"# {took:.1f} s: at most {most >> 10} KiB of {files * size >> 10}; agent {100 * cpu / took:.1f} % of a processor; "
          f"the writer got {through:.1f} MB/s through{could}; {lost} times files were lost")
    node.stop()


def test_bytes(t):
    """bytes of all values, a line of a million bytes and an end without newline come back as they were written"""
    node = rotating(t, "512Ki", "100")
    out = f"{t.scratch}/tmp"
    write = "head -c 1000000 /dev/zero | tr '\\0' a; head -c 500000 /dev/urandom | tee /out/random; printf end"
    node.put("bytes.yaml", pod("bytes", container(command=shell(write), volumeMounts=[mount("out", "/out")]),
                               volumes=[{"name": "out", "hostPath": {"path": out}}], restartPolicy="Never"))
    p = node.wait_phase("bytes", "Succeeded")
    with open(f"{out}/random", "rb") as f:
        wanted = b"a" * 1000000 + f.read() + b"end"
    got = subprocess.run([node.coracle, "--socket", node.socket, "logs", "bytes"], stdout=subprocess.PIPE, check=True,
                         timeout=120).stdout
    check(got == wanted or "lines may be missing" in node.log(), f"{len(got)} bytes, wanted {len(wanted)}")
    check(len(kept(folder(node, p))) >= 3, "rotated files")
    until(lambda: sorted(os.listdir(folder(node, p))) == sorted(os.path.basename(f) for f in kept(folder(node, p))), 10,
          "only written files are left")
    node.stop()


def test_full(t):
    """a full disk costs lines but no container: it keeps running, and later lines are logged when there is room again"""
    run("mount", "-t", "tmpfs", "-o", "size=1m", "logs", f"{t.scratch}/log/pods")
    node = rotating(t, "10Mi")
    ctl = f"{t.scratch}/tmp"
    os.mkfifo(f"{ctl}/fifo")
    told = container(command=shell(TOLD.format(pad=PAD) + "; sleep 1000"), volumeMounts=[mount("ctl", "/ctl")])
    node.put("told.yaml", pod("told", told, volumes=[{"name": "ctl", "hostPath": {"path": ctl}}], restartPolicy="Never",
                              terminationGracePeriodSeconds=0))
    p = node.wait_running("told")
    path = folder(node, p)

    def write(lines):
        with open(f"{ctl}/fifo", "w", encoding="ascii") as f:
            f.write(f"{lines}\n")

    write(20000)
    until(lambda: os.statvfs(path).f_bavail == 0, 20, "a full disk")
    contains(node.cli("logs", "told", "--limit-bytes", "1000").stdout, "line 0 x", "the log's beginning")
    run("mount", "-o", "remount,size=8m", f"{t.scratch}/log/pods")
    write(100)
    until(lambda: "line 20099 x" in node.cli("logs", "told", "--tail", "1").stdout, 30, "the last line")
    equal(node.pod("told").state()[0], "running", "the container's state")
    node.remove("told.yaml")
    node.wait_gone("told")
    node.stop()
    run("umount", f"{t.scratch}/log/pods")
