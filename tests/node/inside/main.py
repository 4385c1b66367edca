# SPDX-License-Identifier: Apache-2.0
"""main - the installed build as a systemd service, with the host tests' own helpers; on cgroup v2 and on the v1 hierarchy.

One machine, one daemon, the tests in order: each builds on what is there.  Output is TAP.
"""
import json
import os
import re
import signal
import time
import traceback

import coracle
from coracle import (alive, all_running, check, config_map, contains, container, equal, http_answers, http_get,
                     pod, process_fields, read, run, secret, until)
from node import EXAMPLES, UNIT_CGROUP, cgroup, node, pod_cgroups

VERSION = []  # of cgroups, that this VM should have


def facts(p):
    """What must not change while daemons come and go."""
    pid = node.pid(p)
    return p.uid, p.container_id(), pid, read(f"/proc/{pid}/stat").rpartition(")")[2].split()[19], p.restarts()


def names():
    return [f"pod-{i}" for i in range(10)]


def all_facts(*without):
    pods = node.pods()
    return {n: facts(pods["default", n]) for n in names() if n not in without}


def test_boot():
    """the VM is up: systemd, the cgroups as they should be, no failed unit"""
    state = run("systemctl", "is-system-running", "--wait", ok=False, timeout=60).stdout.strip()
    failed = run("systemctl", "--failed", "--no-legend", "--plain").stdout
    check(state == "running" or not failed, f"{state}: {failed}")
    equal(2 if coracle.cgroup_v2() else 1, VERSION[0], "version of cgroups")
    for module in ("bridge", "veth", "overlay", "sch_tbf", "ifb"):
        run("modprobe", module)


def test_service_starts():
    """the installed units verify, enable and start; READY=1 is said, the pods' unit has the delegated cgroup"""
    result = run("systemd-analyze", "verify", "--man=no", "coracle.service", "coracle-pods.service", ok=False, timeout=60)
    equal((result.returncode, result.stderr), (0, ""), "systemd-analyze verify")
    run("systemctl", "enable", "--now", "coracle.service", timeout=30)
    node.wait_active()
    equal(run("systemctl", "is-active", "coracle-pods").stdout.strip(), "active", "coracle-pods.service")
    equal(run("systemctl", "show", "-P", "Delegate", "coracle-pods").stdout.strip(), "yes", "Delegate")
    if coracle.cgroup_v2():
        equal(read(f"{cgroup(UNIT_CGROUP)}/cgroup.procs").strip(), "", "processes at the top of the delegated cgroup")

    def own():
        """The agent's own cgroup; the kernel cuts a name after 15 characters."""
        return sorted((process_fields(p) or ["gone"])[0] for p in read(f"{cgroup('/system.slice/coracle.service')}/cgroup.procs").split())

    wanted = ["coracle"] if coracle.cgroup_v2() else ["coracle", "coracle-shutdow"]  # on v1 systemd's hierarchy has no leaf for programs
    until(lambda: own() == wanted, 5, lambda: f"processes in the agent's own cgroup: {own()}, wanted {wanted}")
    equal(oct(os.stat("/run/coracle").st_mode & 0o7777), "0o711", "mode of /run/coracle")
    equal(oct(os.stat("/var/lib/coracle").st_mode & 0o7777), "0o700", "mode of /var/lib/coracle")
    equal(read(f"/proc/{node.main_pid}/oom_score_adj").strip(), "-999", "oom_score_adj of the agent")
    contains(node.cli("version").stdout, read("/payload/VERSION").strip(), "version")


def test_reload():
    """systemctl reload reads the configuration anew: the service stays, what is in force is shown"""
    pid, path = node.main_pid, "/etc/coracle/config.yaml"
    before = read(path)
    contains(node.cli("config").stdout, f"# {path}:", "coracle config")
    with open(path, "w", encoding="utf-8") as f:
        f.write(before.replace("#maxPods: 110\n", "maxPods: 90\n"))
    run("systemctl", "reload", "coracle", timeout=30)
    until(lambda: node.get("/configz")["kubeletconfig"]["maxPods"] == 90, 10, "maxPods is taken over")
    with open(path, "w", encoding="utf-8") as f:
        f.write(before)
    run("systemctl", "reload", "coracle", timeout=30)
    until(lambda: node.get("/configz")["kubeletconfig"]["maxPods"] == 110, 10, "maxPods is as it was")
    equal(run("systemctl", "is-active", "coracle").stdout.strip(), "active", "coracle.service")
    equal(node.main_pid, pid, "process of the agent")


def test_examples():
    """the examples run: page by pod IP and hostPort, live edit, shared emptyDir, a job, a crash with back-off"""
    node.import_image()
    for file in sorted(os.listdir(EXAMPLES)):
        node.put(file, read(f"{EXAMPLES}/{file}"))
    web = node.wait_running("web", deadline=30)
    contains(http_answers(web.ip), "Hello from a ConfigMap", "page by pod IP")
    contains(http_get("127.0.0.1", 8080), "Hello from a ConfigMap", "page by hostPort")
    pid = node.pid(web)
    node.put("web-page.yaml", read(f"{EXAMPLES}/web-page.yaml").replace("Hello", "Greetings"))
    until(lambda: "Greetings" in http_get(web.ip), 5, "the edited page")
    equal((node.pid(node.pod("web")), node.pod("web").restarts()), (pid, 0), "process and restarts after the edit")
    node.wait_running("shared")
    until(lambda: "the writer says:" in node.logs("shared", "reader"), 10, "the shared emptyDir")
    node.wait_phase("job", "Succeeded")
    node.wait_pod("crash", lambda p: p.state()[1].get("reason") == "CrashLoopBackOff", what="CrashLoopBackOff")
    lines = node.cli("get", "pods").stdout.splitlines()
    equal(lines[0].split(), ["NAME", "READY", "STATUS", "RESTARTS", "AGE"], "header of get pods")


def test_limits():
    """limits stand in the pod's and the container's cgroup below coracle-pods.service; conmon is outside of the agent's unit"""
    node.put("limits.yaml", pod("limits", container(resources={"requests": {"cpu": "250m", "memory": "24Mi"},
                                                               "limits": {"cpu": "500m", "memory": "48Mi"}})))
    limits = node.wait_running("limits")
    memory, cpu = (node.container_cgroup(limits, controller) for controller in ("memory", "cpu"))
    contains(memory, f"{UNIT_CGROUP}/kubepods/burstable/pod{limits.uid}/", "cgroup path")
    for up in (lambda folder: folder, os.path.dirname):
        if coracle.cgroup_v2():
            equal((read(f"{up(memory)}/memory.max").strip(), read(f"{up(cpu)}/cpu.max").strip()), (str(48 << 20), "50000 100000"), up(memory))
        else:
            equal([read(f"{up(f)}/{n}").strip() for f, n in ((memory, "memory.limit_in_bytes"), (cpu, "cpu.cfs_quota_us"),
                  (cpu, "cpu.cfs_period_us"))], [str(48 << 20), "50000", "100000"], up(memory))
    weight = int(read(f"{os.path.dirname(cpu)}/cpu.{'weight' if coracle.cgroup_v2() else 'shares'}"))
    check(1 < weight < 100 if coracle.cgroup_v2() else weight == 256, f"weight {weight}")
    conmons = run("pgrep", "-x", "conmon").stdout.split()
    check(conmons, "no conmon")
    for pid in conmons:
        contains(read(f"/proc/{pid}/cgroup"), UNIT_CGROUP, f"cgroup of conmon {pid}")
    equal(read(f"/proc/{node.pid(limits)}/oom_score_adj").strip().lstrip("-").isdigit(), True, "oom_score_adj")
    node.remove("limits.yaml")
    node.wait_gone("limits")
    node.wait_no_traces(limits)


def test_usage():
    """`top`, /stats/summary and /metrics show what the kernel counts for a pod, and forget it when it goes"""
    hog = "x=$(head -c 8000000 /dev/zero | tr '\\0' a); echo full; while true; do true; done"
    node.put("hog.yaml", pod("hog", container(command=coracle.shell(hog), resources={"requests": {"cpu": "200m"}, "limits": {"cpu": "300m", "memory": "96Mi"}}),
                             terminationGracePeriodSeconds=0))
    hog = node.wait_running("hog", deadline=60)
    until(lambda: "full" in node.logs("hog"), 120, "memory in use")
    stats = node.get("/stats/summary")
    found = [p for p in stats["pods"] if p["podRef"]["name"] == "hog"][0]["containers"][0]
    check(50e6 < found["cpu"]["usageNanoCores"] < 600e6, lambda: f"300m: {found}")
    folder, v2 = node.container_cgroup(hog, "memory"), coracle.cgroup_v2()
    usage = int(read(f"{folder}/memory.{'current' if v2 else 'usage_in_bytes'}"))
    inactive = int(re.search(rf"^{'' if v2 else 'total_'}inactive_file (\d+)$", read(f"{folder}/memory.stat"), re.MULTILINE).group(1))
    check(abs(found["memory"]["workingSetBytes"] - (usage - inactive)) < 4 << 20, lambda: f"{found['memory']}, {usage} - {inactive}")
    equal(found["memory"]["availableBytes"], (96 << 20) - found["memory"]["workingSetBytes"], "available")
    lines = node.cli("top", "pods", "--sort-by=memory", "--no-headers").stdout.splitlines()
    row = [line.split() for line in lines if line.startswith("hog ")][0]
    check(50 <= int(row[1].removesuffix("m")) <= 600 and 7 <= int(row[2].removesuffix("Mi")) <= 96, lambda: f"top: {lines}")
    check(re.search(r"^\S+ +\d+m +\d+% +\d+Mi +\d+%", node.cli("top", "node", "--no-headers").stdout), "top node")
    labels = r'container="main",id="[^"]*",image="[^"]*",name="[^"]*",namespace="default",pod="hog"'
    text = node.request("GET", "/metrics")[1].decode()
    for name in ("container_memory_working_set_bytes", "container_memory_rss", "container_threads", "container_processes"):
        check(re.search(rf"^{name}{{{labels}}} [1-9]", text, re.MULTILINE), lambda: f"{name} in {text[-3000:]}")  # pylint: disable=cell-var-from-loop
    check(re.search(rf"^container_cpu_cfs_throttled_periods_total{{{labels}}} [1-9]", text, re.MULTILINE), "it was throttled")
    node.remove("hog.yaml")
    node.wait_gone("hog")
    equal([p for p in node.get("/stats/summary")["pods"] if p["podRef"]["name"] == "hog"], [], "the summary after it is gone")


def test_oom():
    """a container over its memory limit is OOMKilled; the unit of the pods lives on"""
    node.put("oom.yaml", pod("oom", container(command=coracle.shell("tail /dev/zero"), resources={"limits": {"memory": "16Mi"}}),
                             restartPolicy="Never"))
    oom = node.wait_phase("oom", "Failed")
    equal((oom.state()[1]["reason"], oom.state()[1]["exitCode"]), ("OOMKilled", 137), "state")
    killed = until(lambda: [e["message"] for e in node.events("oom") if e["reason"] == "OOMKilling"], 10, "the event about the kill")[0]
    check(re.match(r"Memory cgroup out of memory: Killed process \d+ \((tail|sh)\), anon-rss:\d+kB", killed), killed)
    contains(node.cli("describe", "pod", "oom").stdout, killed, "describe")
    equal(run("systemctl", "is-active", "coracle-pods").stdout.strip(), "active", "coracle-pods.service")
    node.remove("oom.yaml")
    node.wait_gone("oom")


def test_kill_9():
    """kill -9 of the agent with ten pods: systemd brings it back, same processes, restart counts unchanged"""
    node.put("config.yaml", config_map("config", text="one"), secret("login", password="grebe-among-the-reeds"))
    for name in names():
        node.put(f"{name}.yaml", pod(name, container(
            env=[{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}],
            volumeMounts=[{"name": "config", "mountPath": "/config"}]),
            volumes=[{"name": "config", "configMap": {"name": "config"}}]))
    node.wait_running(*names(), deadline=40)
    before = all_facts()
    old = node.main_pid
    os.kill(old, signal.SIGKILL)
    node.wait_active(other_than=old)
    node.watch(lambda pods: all(("default", n) in pods and pods["default", n].ready for n in names()), what="ten pods ready")
    equal(all_facts(), before, "facts")
    node.put("config.yaml", config_map("config", text="two"), secret("login", password="grebe-among-the-reeds"))
    until(lambda: node.enter(node.pod("pod-3"), "cat", "/config/text").stdout == "two", 5, "an edit after the restart")


def test_exit_meanwhile():
    """an exit that happened while the agent was stopped is acted on, the others are left alone"""
    before = all_facts("pod-1")
    victim = node.pod("pod-1")
    pid = node.pid(victim)
    node.stop()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), 5, "the victim died")
    node.start()
    again = node.wait_pod("pod-1", lambda p: p.restarts() == 1 and p.state()[0] == "running", what="restart of the victim")
    equal(again.container()["lastState"]["terminated"]["exitCode"], 137, "last exit code")
    equal(all_facts("pod-1"), before, "facts of the others")


def test_systemd_turns():
    """systemctl restart, daemon-reexec and daemon-reload leave every container alone"""
    before = all_facts()
    for argv in (("restart", "coracle"), ("daemon-reexec",), ("daemon-reload",), ("restart", "coracle")):
        run("systemctl", *argv, timeout=60)
        node.wait_active()
        node.watch(lambda pods: all(("default", n) in pods and pods["default", n].ready for n in names()), what="pods ready")
        equal(all_facts(), before, f"facts after systemctl {' '.join(argv)}")
    # Still in charge of its cgroup after re-execution.
    node.put("later.yaml", pod("later"))
    node.wait_running("later")


def test_device_rules():
    """what the cgroup allows a container of a CDI device holds over systemctl daemon-reload, daemon-reexec and a restart of the agent"""
    run("modprobe", "loop")  # loop-control, 10:237: no container has it by default
    os.makedirs("/etc/cdi", exist_ok=True)
    with open("/etc/cdi/loop.json", "w", encoding="ascii") as f:
        json.dump({"cdiVersion": "0.5.0", "kind": "example.com/loop", "devices": [{"name": "control", "containerEdits": {
            "deviceNodes": [{"path": "/dev/reads", "hostPath": "/dev/loop-control", "permissions": "r"}]}}]}, f)
    node.put("reads.yaml", pod("reads", annotations={"cdi.k8s.io/loop": "example.com/loop=control"}))
    node.wait_running("reads")
    script = "for d in reads other; do [ -e /dev/$d ] || mknod /dev/$d b 7 0; (: < /dev/$d) && echo read $d; (: > /dev/$d) && echo write $d; done; true"

    def opens():
        result = node.cli("exec", "reads", "--", "/bin/sh", "-c", script)
        return result.stdout.split("\n")[:-1], result.stderr.count("Operation not permitted")

    equal(opens(), (["read reads"], 3), "what can be opened")
    for argv in (("daemon-reload",), ("daemon-reexec",), ("restart", "coracle"), ("daemon-reload",)):
        run("systemctl", *argv, timeout=60)
        node.wait_active()
        equal(opens(), (["read reads"], 3), f"what can be opened after systemctl {' '.join(argv)}")
    node.remove("reads.yaml")
    node.wait_gone("reads")
    os.unlink("/etc/cdi/loop.json")


def test_watchdog():
    """the watchdog is fed, and an agent that hangs is replaced without a container noticing"""
    before = all_facts()
    os.makedirs("/run/systemd/system/coracle.service.d", exist_ok=True)
    with open("/run/systemd/system/coracle.service.d/watchdog.conf", "w", encoding="ascii") as f:
        f.write("[Service]\nWatchdogSec=10s\n")
    run("systemctl", "daemon-reload")
    run("systemctl", "restart", "coracle", timeout=60)
    node.wait_active()
    pid = node.main_pid

    def last_fed():
        return run("systemctl", "show", "-P", "WatchdogTimestampMonotonic", "coracle").stdout

    first = last_fed()
    until(lambda: last_fed() != first, 2, "the watchdog is fed")
    equal(node.main_pid, pid, "the agent")
    os.kill(pid, signal.SIGSTOP)
    until(lambda: node.main_pid not in (0, pid), 10, "systemd replaces the hanging agent")
    node.wait_active()
    node.watch(lambda pods: all(("default", n) in pods and pods["default", n].ready for n in names()), what="pods ready")
    equal(all_facts(), before, "facts")
    os.unlink("/run/systemd/system/coracle.service.d/watchdog.conf")
    run("systemctl", "daemon-reload")
    run("systemctl", "restart", "coracle", timeout=60)
    node.wait_active()


def test_journal():
    """the journal has the agent's lines with priorities, and no secret value"""
    lines = run("journalctl", "-u", "coracle", "-o", "json", "--no-pager", timeout=60).stdout
    check(lines.count("\n") > 10, "hardly a line in the journal")
    check('"PRIORITY":"6"' in lines, "no line of priority info")
    everything = run("journalctl", "--no-pager", "-o", "export", timeout=60).stdout
    check("grebe-among-the-reeds" not in everything, "a secret value is in the journal")


def test_deletion():
    """deleted manifests leave nothing: no process, mount, cgroup, lease, rule"""
    pods = list(node.pods().values())
    node.remove(*[f for f in os.listdir(node.manifests)])
    node.watch(lambda now: not now, 60, "all pods gone")
    for p in pods:
        node.wait_no_traces(p)
    equal(run("pgrep", "-x", "conmon", ok=False).stdout, "", "supervisors")
    equal(pod_cgroups(), [], "pod cgroups")
    until(lambda: "veth" not in run("ip", "-o", "link").stdout, 5, "veth links gone")


def test_stop_all():
    """stopping coracle-pods.service ends agent and pods and leaves no process; starting brings the pods back"""
    node.put("a.yaml", pod("a"))
    a = node.wait_running("a")
    pid = node.pid(a)
    run("systemctl", "stop", "coracle-pods", timeout=60)
    equal(run("systemctl", "is-active", "coracle", ok=False).stdout.strip(), "inactive", "coracle.service")
    check(process_fields(pid) is None, "the container still runs")
    equal(run("pgrep", "-x", "conmon", ok=False).stdout, "", "supervisors")
    run("systemctl", "start", "coracle", timeout=60)
    node.wait_pod("a", lambda p: all_running(p) and p.uid == a.uid, 30, "the pod is back")
    equal(run("systemctl", "--failed", "--no-legend", "--plain").stdout, "", "failed units")


TESTS = [value for name, value in list(globals().items()) if name.startswith("test_")]


def run_all(version):
    VERSION.append(version)
    print(f"1..{len(TESTS)}", flush=True)
    for number, test in enumerate(TESTS, 1):
        start = time.monotonic()
        try:
            test()
            print(f"ok {number} - {test.__doc__} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception:  # pylint: disable=broad-except
            print(f"not ok {number} - {test.__doc__} ({time.monotonic() - start:.1f} s)")
            text = traceback.format_exc() + "--- journal of coracle\n" + \
                run("journalctl", "-u", "coracle", "-u", "coracle-pods", "-n", "40", "--no-pager", "-o", "short-monotonic", ok=False).stdout
            print("\n".join("# " + line for line in text.rstrip().split("\n")), flush=True)

