# SPDX-License-Identifier: Apache-2.0
"""Volumes of small files follow their ConfigMap or Secret: as a whole, at once, and untouched when nothing changed.

`make soak` runs the long form: SWAP_SECONDS=30 SWAP_KILLS=10.  Counted are swaps of the volume, as inotify tells of them:
200 for each second of the whole run, the seconds in which the daemon is down included.  It takes the newest version that
there is, so a version that is overtaken while it is busy (or dead) is none; the writer makes more of them when it lags.
"""
import ctypes
import os
import random
import signal
import select
import statistics
import struct
import threading
import time

from coracle import SLOW, check, config_map, container, contains, equal, mount, pod, run, secret, shell, until

SECONDS, KILLS = float(os.environ.get("SWAP_SECONDS", "4")), int(os.environ.get("SWAP_KILLS", "3"))
RATE = 200
FILES = [f"f{i:02}" for i in range(20)]

IN_MODIFY, IN_ATTRIB, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
CHANGES = IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE


class Inotify:
    """The kernel's events of folders: (time, path of the folder, name)."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        check(self.fd >= 0, "inotify_init1")
        self.paths = {}

    def add(self, path, mask):
        wd = self.libc.inotify_add_watch(self.fd, path.encode(), mask)
        check(wd >= 0, f"inotify_add_watch {path}")
        self.paths[wd] = path

    def read(self, timeout=0.0):
        if not select.select([self.fd], [], [], timeout)[0]:
            return []
        data, now, found, at = os.read(self.fd, 1 << 20), time.monotonic(), [], 0
        while at < len(data):
            wd, _mask, _cookie, size = struct.unpack_from("iIII", data, at)
            name = data[at + 16:at + 16 + size].rstrip(b"\0").decode()
            found.append((now, self.paths.get(wd), name))
            at += 16 + size
        return found

    def close(self):
        os.close(self.fd)


def folder(node, p, volume):
    return f"{node.run_dir}/volumes/{p.uid}/{volume}"


def generations(path):
    return [name for name in os.listdir(path) if name.startswith("..2")]


def version(number):
    """Twenty files that all name the version, each whole only with its last word; their length changes, too."""
    return {name: f"{number} {'x' * (number * 7 % 50)} end\n" for name in FILES}


# Only builtins: a snapshot of twenty files takes a millisecond.  It is read from the folder that ..data showed, once;
# besides, one file in the plain way, which must be there at any moment.
READER = f"""
n=0; mixed=0; missing=0
trap 'echo TOTAL $n $mixed $missing; exit 0' TERM
while :; do
    if ! cd /config/..data; then missing=$((missing + 1)); echo "MISSING ..data"; continue; fi
    first=
    for f in {' '.join(FILES)}; do
        v=
        read -r v < $f || {{ missing=$((missing + 1)); echo "MISSING $f: $v"; }}
        case "$v" in *' end') ;; *) missing=$((missing + 1)); echo "HALF $f: $v";; esac
        [ -n "$first" ] || first=${{v%% *}}
        [ "$first" = "${{v%% *}}" ] || {{ mixed=$((mixed + 1)); echo "MIXED $first ${{v%% *}} in $f"; }}
    done
    read -r v < /config/f07 || {{ missing=$((missing + 1)); echo "MISSING /config/f07"; }}
    n=$((n + 1))
done
"""


class Writer(threading.Thread):
    """Renames the ConfigMap's manifest into the folder, each time with the next version: as often as swaps are asked for, and
    up to four times as often while the swaps so far are too few."""

    def __init__(self, node, swaps):
        super().__init__(daemon=True)
        self.node, self.swaps, self.number, self.over = node, swaps, 0, False

    def run(self):
        due = start = time.monotonic()
        while not self.over:
            self.number += 1
            self.node.put("config.yaml", config_map("config", **version(self.number)))
            now = time.monotonic()
            pace = RATE if len(self.swaps) >= RATE * (now - start + 0.5) else 4 * RATE  # half a second ahead
            due = max(due + 1 / pace, now - 0.1)
            time.sleep(max(0, due - now))


def count_swaps(seen, stop, path, found):
    seen.add(path, IN_MOVED_TO)
    while not stop.is_set():
        found.extend(at for at, _, name in seen.read(0.2) if name == "..data")


def nothing_else_runs():
    """Whether the machine is idle enough for absolute limits."""
    return os.getloadavg()[0] < os.cpu_count()


def test_storm(t):
    """200 swaps a second of 20 files, the daemon killed at random meanwhile: no reader sees a mixture, a missing or a half file"""
    idle = nothing_else_runs()
    node = t.node()
    node.import_image()
    node.put("config.yaml", config_map("config", **version(0)))
    mounts = [mount("config", "/config")]
    node.put("readers.yaml", pod("readers", *[container(f"reader-{i}", shell(READER), volumeMounts=mounts) for i in range(2)],
                                 volumes=[{"name": "config", "configMap": {"name": "config"}}], restartPolicy="Never"))
    readers = node.wait_running("readers")
    path = folder(node, readers, "config")
    rng = random.Random(int(os.environ.get("SWAP_SEED", str(random.randrange(1 << 30)))))
    swaps, stop, seen = [], threading.Event(), Inotify()
    counter = threading.Thread(target=count_swaps, args=(seen, stop, path, swaps), daemon=True)
    writer = Writer(node, swaps)
    counter.start()
    writer.start()
    start, downs = time.monotonic(), []
    for at in sorted(rng.uniform(0.3, SECONDS - 0.3) for _ in range(KILLS)):
        time.sleep(max(0, start + at - time.monotonic()))
        node.kill()
        down = time.monotonic()
        node.start()
        downs.append((down - start, time.monotonic() - start))
    time.sleep(max(0, start + SECONDS - time.monotonic()))
    took = time.monotonic() - start
    writer.over = True
    writer.join()
    last = version(writer.number)
    until(lambda: open(f"{path}/f00", encoding="ascii").read() == last["f00"], 10, "the last version is there")
    stop.set()
    counter.join()
    seen.close()
    up = took - sum(end - begin for begin, end in downs)
    whole = [sum(1 for at in swaps if second <= at - start < second + 1) for second in range(int(took))
             if not any(begin < second + 1 and end > second for begin, end in downs)]
    print(f"MEASURED {len(swaps)} swaps in {took:.1f} s ({len(swaps) / took:.0f} a second) of {writer.number} versions; killed {KILLS} "
          f"times, {len(swaps) / up:.0f} a second while it ran; seconds without a kill: {min(whole, default=0)} to "
          f"{max(whole, default=0)}, half of them above {statistics.median(whole or [0]):.0f}{'' if idle else '; the machine was busy'}")
    for name in FILES:
        equal(open(f"{path}/{name}", encoding="ascii").read(), last[name], f"{name} at the end")
    until(lambda: len(generations(path)) == 1, 5, lambda: f"one generation is left, not {os.listdir(path)}")
    equal(sorted(os.listdir(path)), sorted(FILES + ["..data"] + generations(path)), "nothing is left over")
    texts = {c["name"]: "" for c in readers["spec"]["containers"]}
    for name in texts:  # the pod stays, and its logs with it
        os.kill(node.pid(readers, name), signal.SIGTERM)

    def totals():
        for name in texts:
            texts[name] = node.cli("logs", "readers", "-c", name, ok=False).stdout or texts[name]
        return all("TOTAL" in text for text in texts.values())
    until(totals, 10, lambda: f"the readers' account: {texts}")
    for name, text in texts.items():
        snapshots, mixed, missing = text.split("TOTAL ")[1].split()[:3]
        equal((mixed, missing), ("0", "0"), f"mixed and missing of {name} in {snapshots} snapshots: {text[-1000:]}")
        check(int(snapshots) > 20, f"{name} read {snapshots} snapshots")
        print(f"MEASURED {name}: {snapshots} snapshots, {mixed} mixed, {missing} missing")
    least = RATE * SECONDS if SECONDS >= 30 and SLOW == 1 and idle else 10 * (SECONDS - KILLS)
    check(len(swaps) >= least, f"{len(swaps)} swaps were seen, not {least:.0f}")
    node.remove("readers.yaml")
    node.wait_gone("readers")
    node.stop()


test_storm.seconds = 40 + SECONDS


def test_untouched(t):
    """an edit that does not change a volume's files makes no new folder and no event; any other is one swap"""
    node = t.node()
    node.import_image()
    node.put("config.yaml", config_map("config", used="one\n", other="a"))
    node.put("mark.yaml", config_map("mark", count="0"))
    volumes = [{"name": "config", "configMap": {"name": "config", "items": [{"key": "used", "path": "deep/used"}]}},
               {"name": "mark", "configMap": {"name": "mark"}}]
    spec = container(volumeMounts=[mount(v["name"], f"/{v['name']}") for v in volumes])
    node.put("pod.yaml", pod("still", spec, volumes=volumes, labels={"v": "0"}))
    p = node.wait_running("still")
    path = folder(node, p, "config")
    before = sorted(os.listdir(path))
    seen = Inotify()
    for top, _, _ in os.walk(path):
        seen.add(top, CHANGES)

    def marked(count):
        node.put("mark.yaml", config_map("mark", count=str(count)))
        until(lambda: open(f"{folder(node, p, 'mark')}/count", encoding="ascii").read() == str(count), 10, f"mark {count}")

    def nothing(what):
        equal((sorted(os.listdir(path)), seen.read()), (before, []), f"entries and events of the volume after {what}")

    node.put("config.yaml", config_map("config", used="one\n", other="a"))
    marked(1)
    nothing("the same manifest again")
    node.put("config.yaml", config_map("config", used="one\n", other="b"))
    marked(2)
    nothing("a change of a key that it does not show")
    node.put("pod.yaml", pod("still", spec, volumes=volumes, labels={"v": "1"}))
    node.wait_pod("still", lambda p: p["metadata"]["labels"]["v"] == "1")
    marked(3)
    nothing("an edit of the pod in place")
    node.kill()
    node.start()
    marked(4)
    nothing("kill -9 and start")
    node.remove("config.yaml")
    marked(5)
    until(lambda: "volume keeps its content" in node.log(), 10, "the volume without its source is looked at")
    nothing("the removal of the ConfigMap")
    equal(node.enter(p, "cat", "/config/deep/used").stdout, "one\n", "what the container reads")
    node.kill()
    node.start()
    marked(6)
    nothing("kill -9 and start without the ConfigMap")
    os.kill(node.pid(p), 9)
    p = node.wait_pod("still", lambda p: p.restarts() == 1 and p.ready, what="a restart of the container all the same")
    equal(node.enter(p, "cat", "/config/deep/used").stdout, "one\n", "what it reads then")
    node.put("config.yaml", config_map("config", used="two\n"))
    until(lambda: open(f"{path}/deep/used", encoding="ascii").read() == "two\n", 10, "the new content")
    marked(7)
    names = [name for _, where, name in seen.read() if where == path]
    equal(names.count("..data"), 1, f"switches of one change: {names}")
    until(lambda: len(generations(path)) == 1, 5, "one generation is left")
    seen.close()
    node.stop()


def test_full(t):
    """a full file system keeps the old version, an event and explain say so, and an edit that fits goes through"""
    node = t.node()
    node.import_image()
    node.put("login.yaml", secret("login", a="small"))
    node.put("pod.yaml", pod("keeper", container(volumeMounts=[mount("login", "/login")]),
                             volumes=[{"name": "login", "secret": {"secretName": "login"}}]))
    p = node.wait_running("keeper")
    run("mount", "-o", "remount,size=256k", f"{node.run_dir}/volumes")
    node.put("login.yaml", secret("login", a="big", b="x" * 500000))
    event = until(lambda: [e for e in node.events("keeper") if e["reason"] == "FailedMount"], 10, "the event")[-1]
    contains(event["message"], "MountVolume.SetUp failed for volume \"login\"")
    contains(event["message"], "No space left on device")
    contains(node.cli("explain", "pod", "keeper", ok=False).stdout, "No space left on device")
    equal(node.enter(p, "cat", "/login/a").stdout, "small", "what the container reads")
    equal(node.enter(p, "ls", "/login").stdout.split(), ["a"], "names that it sees")
    node.put("login.yaml", secret("login", a="fits", c="new"))
    until(lambda: node.enter(p, "cat", "/login/a").stdout == "fits", 10, "the version that fits")
    equal(node.enter(p, "ls", "/login").stdout.split(), ["a", "c"], "names that it sees then")
    check("No space left" not in node.cli("explain", "pod", "keeper", ok=False).stdout, "explain says so no longer")
    node.stop()


def test_propagation(t):
    """a ConfigMap that 100 pods mount reaches all of them within milliseconds of its file's rename"""
    idle = nothing_else_runs()
    node = t.node("--max-pods", "120")
    node.import_image()
    node.put("shared.yaml", config_map("shared", version="0", text="y" * 2000))
    volumes = [{"name": "shared", "configMap": {"name": "shared"}}]
    names = [f"p{i}" for i in range(100)]
    for name in names:
        node.put(f"{name}.yaml", pod(name, container(volumeMounts=[mount("shared", "/shared")]), volumes=volumes,
                                     hostNetwork=True, terminationGracePeriodSeconds=0))
    pods = node.watch(lambda pods: pods if len(pods) == len(names) and all(p.ready for p in pods.values()) else None, 100,
                      "100 pods ready")
    seen = Inotify()
    for p in pods.values():
        seen.add(folder(node, p, "shared"), IN_MOVED_TO)
    took = []
    for number in range(1, ROUNDS + 1):
        time.sleep(0.03)
        node.put(".next.yaml", config_map("shared", version=str(number), text="y" * 2000))
        start = time.monotonic()
        os.rename(f"{node.manifests}/.next.yaml", f"{node.manifests}/shared.yaml")
        left, last = {folder(node, p, "shared") for p in pods.values()}, start
        while left:
            events = seen.read(10)
            check(events, f"{len(left)} volumes did not follow version {number}")
            for at, path, name in events:
                if name == "..data":
                    left.discard(path)
                    last = at
        took.append((last - start) * 1000)
    seen.close()
    took.sort()
    p99 = took[int(len(took) * 0.99) - 1]
    print(f"MEASURED a ConfigMap in 100 pods, {len(took)} changes, rename to the last swap: p50 {statistics.median(took):.1f} ms, "
          f"p99 {p99:.1f} ms, max {took[-1]:.1f} ms{'' if idle else '; the machine was busy'}")
    check(p99 < 50 or not idle or SLOW != 1, f"p99 is {p99:.1f} ms, not below 50 ms")
    for p in pods.values():
        equal(open(f"{folder(node, p, 'shared')}/version", encoding="ascii").read(), str(ROUNDS), f"the last version in {p.name}")
    node.remove(*[f"{name}.yaml" for name in names])
    node.watch(lambda pods: not pods, 60, "all pods gone")
    node.stop()


ROUNDS = int(os.environ.get("PROPAGATION_ROUNDS", "50"))
test_propagation.seconds = 60
