# SPDX-License-Identifier: Apache-2.0
"""reboot - what comes and goes below pods that stay: agents, units, limits, and the whole machine.  Called by test_reboot.py."""
import json
import os
import re
import signal
import subprocess

import coracle
import sound
from coracle import alive, check, config_map, container, contains, equal, http_answers, pod, read, run, shell, until
from node import EXAMPLES, node

DROPIN = "/run/systemd/system/coracle.service.d"
STEADY = ("one", "two", "three", "critical")
ENDED = "/var/tmp/ended"


def facts():
    """{pod: what must not change while agents come and go}."""
    found = {}
    for name in STEADY + ("web", "shared"):
        p = node.pod(name)
        cid = p.container_id() or p.container_id("writer")
        pid = int(read(f"{node.run_dir}/containers/{cid}/pid"))
        found[name] = [p.uid, cid, pid, read(f"/proc/{pid}/stat").rpartition(")")[2].split()[19],
                       [c["restartCount"] for c in p.status["containerStatuses"]], p.status["conditions"], p.ip]
    return found


def all_back(deadline=40):
    node.wait_running(*STEADY, "web", "shared", deadline=deadline)
    node.watch(lambda pods: all(("default", n) in pods and pods["default", n].ready for n in STEADY + ("web", "shared")), what="pods ready")


def begin():
    """The examples and three more; what they are."""
    run("systemctl", "enable", "--now", "coracle.service")
    node.wait_active()
    node.import_image()
    for file in sorted(os.listdir(EXAMPLES)):
        node.put(file, read(f"{EXAMPLES}/{file}"))
    node.put("config.yaml", config_map("config", text="one"))
    for name in STEADY:
        priority = {"priorityClassName": "system-node-critical", "priority": 2000001000} if name == "critical" else {}
        slowly = "" if priority else "sleep 1; "
        node.put(f"{name}.yaml", pod(name, container(
            command=shell(f"date >> /keep/starts; trap '{slowly}echo {name} >> /ended; sync; exit 0' TERM; while true; do sleep 3600 & wait $!; done"),
            volumeMounts=[{"name": "config", "mountPath": "/config"}, {"name": "keep", "mountPath": "/keep"},
                          {"name": "ended", "mountPath": "/ended"}]),
            volumes=[{"name": "config", "configMap": {"name": "config"}}, {"name": "keep", "emptyDir": {}},
                     {"name": "ended", "hostPath": {"path": ENDED, "type": "FileOrCreate"}}], **priority))
    all_back()
    node.wait_phase("job", "Succeeded")
    return facts()


def same(before):
    """The agent serves, and no pod noticed anything."""
    all_back()
    now = facts()
    for name, wanted in before.items():
        equal(now[name], wanted, name)


def new_agent(old):
    node.wait_active(other_than=old)
    until(lambda: node.request("GET", "/healthz")[0] == 200, 20, "the agent answers")


def upgrade(before):
    """New programs in place of the old, as a package does it: renamed over them while they run."""
    old = node.main_pid
    for path in ["/usr/bin/coracle"] + [f"/usr/libexec/coracle/{n}" for n in os.listdir("/usr/libexec/coracle")]:
        run("cp", "-p", path, f"{path}.new")
        os.rename(f"{path}.new", path)
    run("systemctl", "daemon-reload")
    run("systemctl", "restart", "coracle", timeout=60)
    new_agent(old)
    check(not os.readlink(f"/proc/{node.main_pid}/exe").endswith("(deleted)"), "the agent is not the new program")
    same(before)


def turns(before):
    """systemd's own turns."""
    for argv in (("daemon-reload",), ("daemon-reexec",)):
        run("systemctl", *argv, timeout=60)
        same(before)
    for argv in (("kill", "coracle"), ("kill", "--signal=KILL", "--kill-whom=all", "coracle")):
        old = node.main_pid
        run("systemctl", *argv)
        new_agent(old)
        same(before)


def oom_kills():
    return int(re.search(r"^oom_kill (\d+)", read("/sys/fs/cgroup/system.slice/coracle.service/memory.events", "oom_kill 0"), re.MULTILINE).group(1))


def memory_max(before):
    """A limit of the agent's own unit is the agent's alone: pods are not charged to it; an OOM of the agent ends none."""
    run("systemctl", "set-property", "--runtime", "coracle.service", "MemoryMax=40M")
    node.put("big.yaml", pod("big", container(command=shell("head -c 80m /dev/zero > /memory/file && " + " ".join(coracle.STAY[2:])),
                                              volumeMounts=[{"name": "memory", "mountPath": "/memory"}]),
                             volumes=[{"name": "memory", "emptyDir": {"medium": "Memory"}}]))
    big = node.wait_running("big")
    until(lambda: int(run("nsenter", "-t", node.pid(big), "-m", "/bin/busybox", "stat", "-c", "%s", "/memory/file", ok=False).stdout or 0)
          == 80 << 20, 20, "80 MiB in a pod beside an agent that may have 40")
    equal(oom_kills(), 0, "OOM kills of the agent")
    node.remove("big.yaml")
    node.wait_gone("big")
    old = node.main_pid
    run("systemctl", "set-property", "--runtime", "coracle.service", "MemoryMax=1M", ok=False)
    until(lambda: not alive(old), 20, "the agent's OOM")
    run("systemctl", "set-property", "--runtime", "coracle.service", "MemoryMax=infinity")
    contains(run("journalctl", "-u", "coracle", "-n", "50", "--no-pager", "-o", "cat").stdout, "oom-kill", "journal")
    node.wait_active(other_than=old)  # without anybody's help, however often it was killed
    same(before)
    equal(run("systemctl", "is-active", "coracle-pods").stdout.strip(), "active", "coracle-pods.service")


# ---- by the unit and by hand ----------------------------------------------------------------------------------------

def seen_inside(name):
    """What a container sees of itself, without what differs from one run to the next."""
    p = node.wait_running(name)
    pid = node.pid(p)
    marks = [(p.uid, "UID"), (p.container_id(), "CID"), (p.ip, "IP"), (name, "POD")]

    def look(*argv):
        text = run("nsenter", "-t", pid, "-a", "/bin/busybox", *argv).stdout
        for mark, word in marks:
            text = text.replace(mark, word)
        return text

    status = [line for line in look("cat", "/proc/1/status").splitlines()
              if not re.match(r"(Name|Pid|PPid|Tgid|Ngid|NS\w+|Vm\w+|Rss\w+|State|\w*voluntary_ctxt_switches|HugetlbPages|SigQ)\b", line)]
    mounts = []
    for line in look("cat", "/proc/1/mountinfo").splitlines():
        fields = line.split()
        line = " ".join(fields[3:])  # ids and device numbers go
        line = re.sub(r"\b(shared|master):\d+", r"\1", line)
        line = re.sub(r"/[0-9a-f]{8}(?= /dev/termination-log)", "/RANDOM", line)
        mounts.append(re.sub(r"(lowerdir|upperdir|workdir)=[^,]*", r"\1", line))
    stat = look("cat", "/proc/1/stat").rpartition(")")[2].split()
    return {"status": status, "limits": look("cat", "/proc/1/limits").splitlines(), "mounts": mounts,
            "environment": sorted(look("cat", "/proc/1/environ").split("\0")), "cgroup": look("cat", "/proc/1/cgroup"),
            "oom_score_adj": look("cat", "/proc/1/oom_score_adj"), "nice": stat[16], "policy": stat[38],
            "descriptors": look("ls", "/proc/1/fd").split(),
            "sysctls": look("sysctl", "net.ipv4.ip_forward", "net.ipv4.ip_unprivileged_port_start"),
            "supervisor's OOM": [read(f"/proc/{c}/oom_score_adj") for c in coracle.processes()
                                 if p.container_id() in read(f"/proc/{c}/cmdline", "")]}


def by_hand(before):
    """A container started by the unit and one started by an agent from somebody's shell show the same."""
    node.put("by-unit.yaml", pod("by-unit"))
    unit = seen_inside("by-unit")
    argv = [a for a in read(f"/proc/{node.main_pid}/cmdline").split("\0") if a]
    argv = [a for i, a in enumerate(argv) if a != "--log-format" and argv[i - 1] != "--log-format"]
    node.stop()
    with open("/run/by-hand.log", "w", encoding="ascii") as log, open("/etc/hostname", "rb") as leak:
        hand = subprocess.Popen(["nohup", "sh", "-c", 'umask 077; ulimit -n 512; ulimit -S -s 1024; ulimit -c unlimited; cd /tmp; '
                                 'export EXTRA=1; exec "$@"', "sh", *argv],
                                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(leak.fileno(),), start_new_session=True)
    try:
        until(lambda: hand.poll() is not None or "ready" in read("/run/by-hand.log"), 20, "the agent by hand")
        check(hand.poll() is None, lambda: read("/run/by-hand.log"))
        same(before)
        node.put("by-hand.yaml", pod("by-hand"))
        other = seen_inside("by-hand")
    finally:
        hand.send_signal(signal.SIGTERM)
        hand.wait()
        node.start()
    node.wait_active()
    print(f"# {len(unit['mounts'])} mounts, {len(unit['limits']) - 1} limits, {len(unit['status'])} lines of status compared")
    for what, seen in unit.items():
        equal(other[what], seen, f"{what} of a container started by hand")
    node.remove("by-unit.yaml", "by-hand.yaml")
    node.wait_gone("by-unit", "by-hand")
    same(before)


# ---- the machine ----------------------------------------------------------------------------------------------------

def checked():
    """Before: all is sound, and what is there is on the disk."""
    sound.wait()
    os.sync()
    equal(read(ENDED), "", "what ended before the shutdown")
    return facts()


def after(before):
    """After a boot: all pods are back as the same pods, in new sandboxes; what had ended stays ended; nothing is left of the old boot."""
    node.wait_active()
    all_back(60)
    now = facts()
    for name, (uid, cid, _pid, _start, restarts, conditions, _ip) in before.items():
        equal(now[name][0], uid, f"uid of {name}")
        check(now[name][1] != cid, f"{name} shows the container of before")
        equal(now[name][4], [n + 1 for n in restarts], f"restart counts of {name}")
        was, is_now = ({c["type"]: c for c in cs} for cs in (conditions, now[name][5]))
        equal(is_now["PodScheduled"], was["PodScheduled"], f"PodScheduled of {name}")
        last = node.pod(name).status["containerStatuses"][0]["lastState"].get("terminated", {})
        check(last.get("containerID", "").endswith(cid) and last.get("finishedAt"), f"lastState of {name}: {json.dumps(last)}")
    ended = read(ENDED).split()
    equal(sorted(ended[:3]) + ended[3:], sorted(STEADY[:3]) + ["critical"], "pods that ended themselves at the shutdown, in order")
    job = node.pod("job")
    equal((job.phase, job.restarts(), job.state()[1].get("reason")), ("Succeeded", 0, "Completed"), "the job")
    for name in STEADY:
        equal(len(node.enter(node.pod(name), "cat", "/keep/starts").stdout.splitlines()), now[name][4][0] + 1, f"starts in the emptyDir of {name}")
        equal(node.enter(node.pod(name), "cat", "/config/text").stdout, "one", "ConfigMap")
    contains(http_answers(node.pod("web").ip), "Hello from a ConfigMap", "page by pod IP")
    contains(http_answers("127.0.0.1", 8080), "Hello from a ConfigMap", "page by hostPort")
    until(lambda: "the writer says:" in node.logs("shared", "reader"), 10, "the shared emptyDir")
    sound.wait()
    equal(run("systemctl", "--failed", "--no-legend", "--plain").stdout, "", "failed units")
    return facts()
