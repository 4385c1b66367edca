# SPDX-License-Identifier: Apache-2.0
"""storage - the agent on a disk with project quotas: usage of pods, limits, ids over kills.  Called by test_storage.py."""
import json
import os
import random
import re
import signal
import threading
import time

import coracle
from coracle import check, contains, container, equal, mount, pod, read, run, shell, until
from node import node

DROPIN = "/etc/systemd/system/coracle.service.d"
FIRST = 1048577
E = [mount("e", "/e")]
STAY = coracle.STAY[2]
MIB = 1 << 20


# Idmapped mounts of a tmpfs, which pods with hostUsers: false need, are there since Linux 6.3.
USERS = tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 3)


def volume(**more):
    return [{"name": "e", "emptyDir": more}]


def limited(amount):
    return {"limits": {"ephemeral-storage": amount}}


def place(fs):
    node.state_dir, node.root_dir, node.pod_logs = f"/mnt/{fs}/coracle", f"/mnt/{fs}/kubelet", f"/mnt/{fs}/logs"


def configure(fs, *flags):
    start = re.search(r"^ExecStart=(.*)$", read("/usr/lib/systemd/system/coracle.service"), re.MULTILINE).group(1)
    os.makedirs(DROPIN, exist_ok=True)
    with open(f"{DROPIN}/disk.conf", "w", encoding="ascii") as f:
        f.write(f"[Unit]\nRequiresMountsFor=/mnt/{fs}\n[Service]\nExecStart=\nRestartSec=100ms\n"
                f"ExecStart={start} --state-dir {node.state_dir} --root-dir {node.root_dir} --pod-logs-dir {node.pod_logs} {' '.join(flags)}\n"
                "[Unit]\nStartLimitIntervalSec=0\n")
    run("systemctl", "daemon-reload")


def begin(fs):
    place(fs)
    configure(fs)
    run("systemctl", "enable", "--now", "coracle.service")
    node.wait_active()
    node.import_image()
    text = node.cli("explain", "node").stdout
    for kind in ("volumes", "layers", "logs"):
        check(re.search(rf"quota of {kind}\s.*{fs}, enforces limits", text), text)


def report(fs):
    """Projects in use on the disk, as another program sees them: {id: bytes}."""
    os.sync()
    lines = run("repquota", "-P", "-n", f"/mnt/{fs}").stdout.splitlines()
    found = [re.match(r"#(\d+)\s+\S+\s+(\d+)\s", line) for line in lines]
    return {int(m.group(1)): int(m.group(2)) * 1024 for m in found if m and int(m.group(1)) >= FIRST}


def rows():
    with open(f"{node.state_dir}/projects.json", encoding="utf-8") as f:
        return json.load(f)["projects"]


def table():
    """The agent's: {path: id}."""
    return {row["path"]: row["id"] for row in rows() if not row.get("released")}


def etc():
    with open("/etc/projects", encoding="ascii") as f:
        return dict(reversed(line.strip().split(":", 1)) for line in f if ":" in line)


def trees(p, volumes=("e",), containers=("main",)):
    """The folders of a pod that have projects."""
    logs = f"{node.pod_logs}/default_{p.name}_{p.uid}"
    return [*(f"{node.root_dir}/pods/{p.uid}/volumes/kubernetes.io~empty-dir/{v}" for v in volumes),
            *(f"{logs}/{c}" for c in containers), *(f"{node.state_dir}/containers/{p.container_id(c)}" for c in containers)]


def project(path):
    return int(run("lsattr", "-p", "-d", path).stdout.split()[0])


def du(path):
    os.sync()
    inodes = len({os.lstat(os.path.join(d, n)).st_ino for d, dirs, names in os.walk(path) for n in dirs + names}) + 1
    return int(run("du", "-sx", "--block-size=1", path).stdout.split()[0]), inodes


def summary(name):
    return [p for p in node.get("/stats/summary")["pods"] if p["podRef"]["name"] == name][0]


def used(stats):
    return stats["usedBytes"], stats["inodesUsed"]


def exact(fs):
    """Pods without limits are known as well, also with hostUsers: false."""
    place(fs)
    write = "for i in 1 2 3 4 5 6 7; do dd if=/dev/zero of=/e/$i bs=64k count=$i; dd if=/dev/zero of=/f$i bs=4k count=$i; done; sync; echo full; "
    # Then files that are removed while they are open, in the volume and in the layer.
    write += ("while [ ! -e /e/go ]; do usleep 10000; done; exec 3> /e/r 4> /r; rm /e/go /e/r /r; "
              "dd if=/dev/zero bs=64k count=16 >&3; dd if=/dev/zero bs=64k count=9 >&4; sync; echo open; ")
    node.put("plain.yaml", pod("plain", container(command=shell(write + STAY), volumeMounts=E), volumes=volume()))
    node.put("users.yaml", *[pod("users", container(command=shell(write + STAY), volumeMounts=E), volumes=volume(), hostUsers=False)] * USERS)
    names = ["plain", *(["users"] if USERS else [])]
    for name in names:
        p = node.wait_running(name, deadline=15)
        until(lambda: "full" in node.logs(name), 15, "its files")  # pylint: disable=cell-var-from-loop
        paths, ids = trees(p), table()
        equal({path: project(path) for path in paths}, {path: ids.get(path) for path in paths}, "projects of the trees")
        equal(len(set(ids.values())), len(ids), "ids of their own")
        equal({path: int(etc()[path]) for path in paths}, {path: ids[path] for path in paths}, "/etc/projects")
        equal(project(f"{paths[0]}/3"), ids[paths[0]], "project of a file that the container wrote")
        expected = [du(path) for path in paths]
        stats = summary(name)
        equal([used(stats["volume"][0]), used(stats["containers"][0]["logs"]), used(stats["containers"][0]["rootfs"])], expected, "summary")
        equal(used(stats["ephemeral-storage"]), tuple(map(sum, zip(*expected))), "sum")
        in_use = report(fs)
        for path, (size, _) in zip(paths, expected):
            equal(in_use[ids[path]], size, f"repquota about {path}")
        removed_but_open(p, paths)
    node.remove("plain.yaml", "users.yaml")
    node.wait_gone(*names, deadline=15)
    until(lambda: not table() and not report(fs), 10, lambda: f"nothing is left: {table()}, {report(fs)}")


def removed_but_open(p, paths):
    """Such files count: what du sees, and their blocks."""
    with open(f"{paths[0]}/go", "w", encoding="ascii"):
        pass
    until(lambda: "open" in node.logs(p.name), 15, "files that are removed")
    os.sync()
    held = [os.stat(f"/proc/{node.pid(p)}/fd/{fd}").st_blocks * 512 for fd in (3, 4)]
    check(held[0] >= 16 << 16 and held[1] >= 9 << 16, f"blocks of removed files: {held}")
    expected = [(size + more, inodes + 1) for (size, inodes), more in zip((du(paths[0]), du(paths[2])), held)]
    stats = summary(p.name)
    equal([used(stats["volume"][0]), used(stats["containers"][0]["rootfs"])], expected, "summary with files that are removed, but open")


def kept(fs):
    """A container changes neither the project of a file nor what new ones inherit, with a profile or without; usage stays counted. A privileged one can."""
    place(fs)
    tries = ["-p 77 /media/f", "-p 0 /media/f", "-P /media/d"]
    script = ("mkdir /e/d; touch /e/f; " + "".join(f"chroot /host chattr {t} && echo changed; " for t in tries)
              + "dd if=/dev/zero of=/e/d/late bs=64k count=16; sync; echo full; " + STAY)
    mounts = [*E, mount("host", "/host", readOnly=True), mount("e", "/host/media")]
    volumes = [*volume(), {"name": "host", "hostPath": {"path": "/"}}]
    contexts = {"open": {}, "confined": {"seccompProfile": {"type": "RuntimeDefault"}}, "trusted": {"privileged": True}}
    for name, context in contexts.items():
        node.put(f"{name}.yaml", pod(name, container(command=shell(script), volumeMounts=mounts, securityContext=context), volumes=volumes))
    for name, context in contexts.items():
        p = node.wait_running(name, deadline=15)
        until(lambda: "full" in node.logs(name), 15, "its files")  # pylint: disable=cell-var-from-loop
        tree, log = trees(p)[0], node.logs(name)
        number = table()[tree]
        projects = [project(path) for path in (tree, f"{tree}/f", f"{tree}/d", f"{tree}/d/late")]
        if name == "trusted":
            equal((log.count("changed"), projects), (len(tries), [number, 0, number, 0]), f"what {name} did: {log}")
            continue
        equal((log.count("Operation not permitted"), log.count("changed")), (len(tries), 0), f"what {name} did: {log}")
        equal(projects, [number] * 4, f"projects of {name}")
        equal(report(fs)[number], du(tree)[0], f"usage of {name}")
        equal(used(summary(name)["volume"][0]), du(tree), f"summary of {name}")
    node.remove(*[f"{name}.yaml" for name in contexts])
    node.wait_gone(*contexts, deadline=15)


class Crossing(threading.Thread):
    """Looks at a file until it has more than a number of bytes, then until a process is gone."""

    def __init__(self, path, size, pid):
        super().__init__(daemon=True)
        self.path, self.size, self.pid = path, size, pid
        self.crossed = self.gone = None
        self.start()

    def run(self):
        while self.crossed is None:
            try:
                if os.stat(self.path).st_blocks * 512 > self.size:
                    self.crossed = time.time()
            except OSError:
                pass
            time.sleep(0.001)
        while os.path.exists(f"/proc/{self.pid}"):
            time.sleep(0.001)
        self.gone = time.time()


def logged(text, since):
    """When the agent logged that."""
    lines = run("journalctl", "-u", "coracle", "-o", "json", "--no-pager", f"--since=@{since:.0f}").stdout.splitlines()
    times = [int(x.get("_SOURCE_REALTIME_TIMESTAMP", x["__REALTIME_TIMESTAMP"])) / 1e6 for x in map(json.loads, lines) if text in str(x.get("MESSAGE"))]
    return times[0] if times else None


def evicts(fs):
    """Of one tree and of a sum; the time from the moment of the crossing."""
    place(fs)
    wait = "while [ ! -e /e/go ]; do usleep 10000; done; "
    fill = "dd if=/dev/zero of=%s bs=64k count=10000; "
    cases = {"volume": (container(command=shell(wait + fill % "/e/big" + STAY), volumeMounts=E), volume(sizeLimit="24Mi"),
                        'Usage of EmptyDir volume "e" exceeds the limit "24Mi". '),
             "layer": (container(command=shell(wait + fill % "/big" + STAY), volumeMounts=E, resources=limited("24Mi")), volume(),
                       "Pod ephemeral local storage usage exceeds the total limit of containers 24Mi. ")}
    for name, (c, volumes, message) in cases.items():
        node.put("hog.yaml", pod(f"hog-{name}", c, volumes=volumes))
        p = node.wait_running(f"hog-{name}", deadline=15)
        paths = trees(p)
        limits = run("repquota", "-P", "-n", f"/mnt/{fs}").stdout
        began = time.time()
        watch = Crossing(f"{paths[0]}/big" if name == "volume" else f"{paths[2]}/upper/big", 24 * MIB, node.pid(p))
        with open(f"{paths[0]}/go", "w", encoding="ascii"):
            pass
        p = node.wait_phase(p.name, "Failed", deadline=15)
        equal((p.status.get("reason"), p.status.get("message")), ("Evicted", message), f"{name}; {limits}")
        watch.join(30)
        decided = logged("evicting a pod", began - 1)
        check(watch.crossed is not None and decided is not None, f"{watch.crossed}, {decided}")
        print(f"# {fs} {name}: decided {1000 * (decided - watch.crossed):.1f} ms after the crossing, "
              f"gone after {1000 * ((watch.gone or 0) - watch.crossed):.0f} ms", flush=True)
        check(decided - watch.crossed < 1.5, f"decided {decided - watch.crossed} s after the crossing")  # emulated; a scan takes 10 s to begin
        node.remove("hog.yaml")
        node.wait_gone(p.name, deadline=15)
    until(lambda: not table() and not report(fs), 10, lambda: f"nothing is left: {table()}, {report(fs)}")


def refuses(fs):
    """By annotation: what is refused is seen by the container only; the host's and mapped users alike."""
    place(fs)
    hog = "exec 3> /e/f; rm /e/f; dd if=/dev/zero bs=64k count=400 >&3; echo result $?; dd if=/dev/zero of=/g bs=64k count=400; echo layer $?; "
    for name, more in (("hard", {}), ("hard-users", {"hostUsers": False}))[:1 + USERS]:
        node.put("hard.yaml", pod(name, container(command=shell(hog + STAY), volumeMounts=E, resources=limited("12Mi")),
                                  volumes=volume(sizeLimit="8Mi"), annotations={"coracle.dev/storage-limits": "enforce"}, **more))
        p = node.wait_running(name, deadline=15)
        until(lambda: "layer" in node.logs(name), 15, "both were tried")  # pylint: disable=cell-var-from-loop
        text = node.logs(name)
        contains(text, "result 1", "removed file")
        contains(text, "layer 1", "layer")
        check(re.search(r"No space left on device|Disk quota exceeded", text), text)
        stats = summary(name)
        check(7 * MIB < stats["volume"][0]["usedBytes"] <= 8 * MIB, f"volume: {stats['volume']}")
        layer = stats["containers"][0]["rootfs"]["usedBytes"]  # less by the volume's usage if the agent was quick enough
        check(layer <= 12 * MIB, f"layer: {layer}")
        check(du(trees(p)[0])[0] < MIB, "du sees nothing of a removed file")
        time.sleep(1)
        equal((node.pod(name).phase, node.pod(name).restarts()), ("Running", 0), "it goes on")
        until(lambda: [e for e in node.events(name) if e["reason"] == "StorageLimitReached"], 10, "event")  # pylint: disable=cell-var-from-loop
        node.remove("hard.yaml")
        node.wait_gone(name, deadline=15)
    until(lambda: not table() and not report(fs), 10, lambda: f"nothing is left: {table()}, {report(fs)}")


def flood(fs):
    """A program that tries again and again what is refused costs the agent little, and does not delay the end of another pod."""
    place(fs)
    spin = "head -c 9000000 /dev/zero > /e/f; echo full; while true; do echo x; done >> /e/g 2> /dev/null"
    node.put("spin.yaml", pod("spin", container(command=shell(spin), volumeMounts=E), volumes=volume(sizeLimit="8Mi"),
                              annotations={"coracle.dev/storage-limits": "enforce"}, terminationGracePeriodSeconds=0))
    node.wait_running("spin", deadline=15)
    until(lambda: "full" in node.logs("spin"), 15, "it is full")

    def cpu_s():
        fields = read(f"/proc/{node.main_pid}/stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    before = cpu_s()
    time.sleep(10)
    share = (cpu_s() - before) / 10
    print(f"# {fs}: the agent takes {100 * share:.1f}% of a processor", flush=True)
    check(share < 0.15, f"{100 * share:.1f}% of a processor")
    node.put("hog.yaml", pod("hog", container(command=shell("head -c 9000000 /dev/zero > /e/f; " + STAY), volumeMounts=E), volumes=volume(sizeLimit="8Mi")))
    equal(node.wait_phase("hog", "Failed", deadline=5).status.get("reason"), "Evicted", "reason")
    equal(node.pod("spin").phase, "Running", "the other one")
    node.remove("hog.yaml", "spin.yaml")
    node.wait_gone("hog", "spin", deadline=15)
    until(lambda: not table() and not report(fs), 10, lambda: f"nothing is left: {table()}, {report(fs)}")


def killed(fs, rounds=4):
    """Pods start and end while the agent is killed at random moments."""
    place(fs)
    rng = random.Random(7)
    for i in range(rounds):
        for k in range(3):
            node.put(f"k{k}.yaml", pod(f"k{k}-{i}", container(command=shell("echo x > /e/x; echo y > /y; " + STAY), volumeMounts=E),
                                       volumes=volume(sizeLimit="8Mi"), terminationGracePeriodSeconds=0))
        for _ in range(3):
            time.sleep(rng.random() * 1.5)
            old = node.main_pid
            if old:
                os.kill(old, signal.SIGKILL)
                node.wait_active(other_than=old)
    names = [f"k{k}-{rounds - 1}" for k in range(3)]
    until(lambda: node.cli("get", "pods", ok=False).returncode == 0, 15, "the agent answers")  # "active" may be the state of the one before
    began = time.monotonic()
    node.wait_running(*names, deadline=30)
    until(lambda: len(node.pods()) == 3, 15, "only the last ones")

    def consistent():
        """A tree whose agent was killed before it wrote down where the id is used has one that is not free, and no other tree has it."""
        ids, known, in_use = table(), [row["id"] for row in rows()], report(fs)
        wanted = [path for name in names for path in trees(node.pod(name))]
        given = [project(path) for path in wanted if project(path) != 0]
        return set(ids) <= set(wanted) and len(set(known)) == len(known) and set(in_use) == set(given) <= set(known) and \
            len(set(given)) == len(given) and all(project(path) == number for path, number in ids.items())
    until(consistent, 15, lambda: f"table, disk and trees agree: {table()}, {report(fs)}, {[trees(node.pod(n)) for n in names]}")
    print(f"# agreed after {time.monotonic() - began:.1f} s", flush=True)
    node.remove("k0.yaml", "k1.yaml", "k2.yaml")
    node.wait_gone(*names, deadline=15)
    until(lambda: not table() and not report(fs) and not etc(), 15, lambda: f"nothing is left: {table()}, {report(fs)}, {etc()}")


def upgraded(fs):
    """A pod from before there were quotas: its trees have no project; they are scanned, and its limit acts."""
    place(fs)
    node.put("old.yaml", pod("old", container(command=shell("dd if=/dev/zero of=/e/x bs=64k count=9; sync; echo full; "
                                                            "while [ ! -e /e/go ]; do usleep 10000; done; dd if=/dev/zero of=/e/big bs=64k count=500; " + STAY),
                                              volumeMounts=E), volumes=volume(sizeLimit="24Mi")))
    p = node.wait_running("old", deadline=15)
    until(lambda: "full" in node.logs("old"), 15, "its files")
    run("systemctl", "stop", "coracle")
    paths = trees(p)
    for path in paths:
        run("chattr", "-R", "-f", "-p", "0", "-P", path, ok=False)  # neither for links nor for the folders of overlayfs
    os.unlink(f"{node.state_dir}/projects.json")
    for path in ("/etc/projects", "/etc/projid"):
        os.unlink(path)
    run("systemctl", "start", "coracle")
    node.wait_active()
    equal(project(paths[0]), 0, "project of the old volume")
    until(lambda: [v["usedBytes"] for v in summary("old").get("volume", [])] == [du(paths[0])[0]], 15, "it is scanned")
    check(paths[0] not in table(), "it gets no project")
    with open(f"{paths[0]}/go", "w", encoding="ascii"):
        pass
    p = node.wait_phase("old", "Failed", deadline=15)
    equal(p.status.get("reason"), "Evicted", "reason")
    node.remove("old.yaml")
    node.wait_gone("old", deadline=15)


def counts_only(fs):
    """Limits are switched off on the disk: usage is read from time to time."""
    place(fs)
    run("systemctl", "stop", "coracle")
    switch = ["xfs_quota", "-x", "-c"] if fs == "xfs" else None
    run(*([*switch, "disable -p", f"/mnt/{fs}"] if switch else ["quotaoff", "-P", f"/mnt/{fs}"]))
    run("systemctl", "start", "coracle")
    node.wait_active()
    contains(node.cli("explain", "node").stdout, f"{fs}, only counts", "explain")
    node.put("late.yaml", pod("late", container(command=shell("dd if=/dev/zero of=/e/big bs=64k count=500; " + STAY), volumeMounts=E),
                              volumes=volume(sizeLimit="24Mi"), annotations={"coracle.dev/storage-limits": "enforce"}))
    p = node.wait_phase("late", "Failed", deadline=15)
    equal(p.status.get("reason"), "Evicted", "reason")
    node.remove("late.yaml")
    node.wait_gone("late", deadline=15)
    run("systemctl", "stop", "coracle")
    run(*([*switch, "enable -p", f"/mnt/{fs}"] if switch else ["quotaon", "-P", f"/mnt/{fs}"]))
    run("systemctl", "start", "coracle")
    node.wait_active()
    contains(node.cli("explain", "node").stdout, f"{fs}, enforces limits", "explain")


def end(fs):
    place(fs)
    until(lambda: not table() and not report(fs), 15, lambda: f"nothing is left: {table()}, {report(fs)}")
    run("systemctl", "disable", "--now", "coracle.service")
    run("systemctl", "stop", "coracle-pods.service", timeout=60)
    run("umount", f"/mnt/{fs}")
    run("mount", f"/mnt/{fs}")
