# SPDX-License-Identifier: Apache-2.0
"""shutdown - the machine goes down and comes up again.  Called by test_shutdown.py."""
import json
import os

from coracle import check, container, contains, equal, pod, read, run, shell, until
from node import node

ORDER = "/var/lib/order/log"
CONFIG = "/etc/coracle/config.yaml"
SETTINGS = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriodByPodPriority:
- priority: 2000000000
  shutdownGracePeriodSeconds: 20
- priority: 1000
  shutdownGracePeriodSeconds: 20
- priority: 0
  shutdownGracePeriodSeconds: 20
"""
RUNNING = ("plain", "high", "critical", "once")


def script(name, code):
    return shell(f"trap 'echo {name} told >> /order/log; echo {name} ends >> /order/log; sync; exit {code}' TERM; "
                 f"echo {name} up >> /order/log; while true; do sleep 3600 & wait $!; done")


def one(name, code=0, **spec):
    c = container(command=script(name, code), volumeMounts=[{"name": "order", "mountPath": "/order"}],
                  lifecycle={"preStop": {"exec": {"command": ["/bin/sh", "-c", f"echo {name} hook >> /order/log"]}}})
    return pod(name, c, volumes=[{"name": "order", "hostPath": {"path": os.path.dirname(ORDER), "type": "DirectoryOrCreate"}}],
               **{"terminationGracePeriodSeconds": 15, **spec})


def property_of(name):
    return run("busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager",
               name).stdout.split()[1]


def lock_is_held():
    until(lambda: "coracle" in run("systemd-inhibit", "--list", "--no-pager", "--no-legend", ok=False).stdout, 30, "the lock")


def step(name):
    return next((s for s in node.get("/explain")["steps"] if s["name"] == name), {})


def wait_up(times):
    until(lambda: all(read(ORDER, "").count(f"{n} up") == times for n in ("plain", "high", "critical")), 60,
          lambda: f"all are up: {read(ORDER, '')}")


def begin():
    equal(property_of("InhibitDelayMaxUSec"), "5000000", "logind as Debian has it")
    with open(CONFIG, "w", encoding="ascii") as f:
        f.write(SETTINGS)
    run("systemctl", "enable", "--now", "coracle.service")
    node.wait_active()
    lock_is_held()
    check(int(property_of("InhibitDelayMaxUSec")) >= 60000000, "logind waits long enough")
    until(lambda: step("shutdown inhibitor").get("state") == "done", 10, lambda: node.get("/explain"))
    node.import_image()
    node.put("plain.yaml", one("plain", code=3))
    node.put("high.yaml", one("high", priority=1500))
    node.put("critical.yaml", one("critical", priority=2000000000, priorityClassName="system-cluster-critical"))
    node.put("once.yaml", one("once", restartPolicy="Never"))
    node.wait_running(*RUNNING, deadline=60)
    wait_up(1)
    return {n: node.pod(n).uid for n in RUNNING}


def lines(*matches):
    return run("journalctl", "-u", "coracle", "-o", "json", "--no-pager", *matches).stdout.splitlines()


def journal():
    found = [json.loads(line) for line in lines("CORACLE_POD=default/high")]
    check(found, "no line of the pod")
    check(all("default/plain" not in e["MESSAGE"] for e in found), "another pod's lines")
    started = [e for e in found if e["MESSAGE"].startswith("container started")]
    equal(len(started), 1, "container started")
    equal((started[0]["CORACLE_CONTAINER"], started[0]["PRIORITY"], started[0]["SYSLOG_IDENTIFIER"]), ("main", "6", "coracle"), "fields")
    contains(started[0]["CORACLE_OPERATION"], "start", "operation")
    check(lines(f"CORACLE_POD_UID={node.pod('high').uid}"), "no line by uid")
    check(lines("CORACLE_CONTAINER=main", "CORACLE_POD=default/once"), "no line by container")


def helper_pid():
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and "coracle-shutdown" in read(f"/proc/{p}/cmdline", "")]
    equal(len(pids), 1, "coracle-shutdown")
    return pids[0]


def confined():
    status = dict(line.split(":\t", 1) for line in read(f"/proc/{helper_pid()}/status").splitlines() if ":\t" in line)
    equal([status[k].strip() for k in ("CapPrm", "CapEff", "CapBnd", "NoNewPrivs")], ["0" * 16] * 3 + ["1"], "its rights")
    inside = read(f"/proc/{node.pid(node.pod('plain'))}/status")
    contains(inside, "NoNewPrivs:\t0", "a container")
    contains(inside, "Seccomp:\t0", "a container")
    for process in (node.main_pid, node.pid(node.pod("plain"))):
        check(process > 0, "a process")
    agent = read(f"/proc/{node.main_pid}/status")
    equal(agent.split("CapBnd:\t")[1].split()[0], read("/proc/1/status").split("CapBnd:\t")[1].split()[0], "the agent's bounding set")
    equal(os.readlink(f"/proc/{node.main_pid}/ns/mnt"), os.readlink("/proc/1/ns/mnt"), "the agent's mount namespace")


def logind_restarts():
    since = len(node.log())
    run("systemctl", "restart", "systemd-logind")
    node.wait_log("a shutdown of the machine waits for the pods", deadline=30, since=since)
    lock_is_held()
    run("mkdir", "-p", "/var/log/journal")
    run("journalctl", "--flush")


def after(before):
    order = read(ORDER).splitlines()
    first = order[:order.index("critical ends") + 1]
    for earlier, later in (("plain ends", "high told"), ("once ends", "high told"), ("high ends", "critical told")):
        check(first.index(earlier) < first.index(later), f"order: {first}")
    for name in RUNNING:
        check(first.index(f"{name} hook") < first.index(f"{name} told"), f"order: {first}")
    node.wait_active()
    node.wait_running("plain", "high", "critical", deadline=60)
    wait_up(2)
    for name in ("plain", "high", "critical"):
        p = node.pod(name)
        equal((p.uid, p.restarts()), (before[name], 1), name)
        equal(p.container()["lastState"]["terminated"]["exitCode"], 3 if name == "plain" else 0, name)
    once = node.pod("once")
    equal((once.phase, once.status["reason"], once.status["message"], once.restarts()),
          ("Failed", "Terminated", "Pod was terminated in response to imminent node shutdown.", 0), "the job that runs once")
    equal(once.condition("DisruptionTarget").get("reason"), "TerminationByKubelet", "its condition")
    contains(step("last shutdown")["detail"], "4 pods ended", "explain node")
    equal(step("last shutdown")["state"], "done", "explain node")
    lock_is_held()
