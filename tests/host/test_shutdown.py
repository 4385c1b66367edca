# SPDX-License-Identifier: Apache-2.0
"""Shutdowns of the machine, announced by a fake logind on a private bus."""
import json
import os
import signal
import subprocess
import threading

from coracle import HERE, SLOW, check, container, contains, equal, pod, read, run, shell, until

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
<allow send_requested_reply="true"/><allow receive_requested_reply="true"/></policy></busconfig>
"""
CRITICAL = 2000000000


class Machine:
    """A bus with a logind that can be told to shut down."""

    def __init__(self, t, delay_s=600):
        self.t = t
        self.address = f"unix:path={t.scratch}/tmp/bus"
        self.env = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": self.address}
        run("cc", "-o", f"{t.scratch}/tmp/fake_logind", f"{HERE}/fake_logind.c", "-lsystemd", timeout=60)
        with open(f"{t.scratch}/tmp/bus.conf", "w", encoding="ascii") as f:
            f.write(BUS.format(path=f"{t.scratch}/tmp/bus"))
        self.bus = subprocess.Popen(["dbus-daemon", "--nofork", f"--config-file={t.scratch}/tmp/bus.conf"],
                                    stderr=subprocess.DEVNULL)
        until(lambda: os.path.exists(f"{t.scratch}/tmp/bus"), 10, "the bus")
        self.delay_s = delay_s
        self.start_logind()

    def start_logind(self):
        self.said = []
        self.logind = subprocess.Popen([f"{self.t.scratch}/tmp/fake_logind", str(self.delay_s * 1000000)], env=self.env,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read, args=(self.logind, self.said), daemon=True)
        self.reader.start()
        self.wait("ready")

    @staticmethod
    def _read(process, said):
        for line in process.stdout:
            said.append(line.strip())

    def wait(self, text, times=1, deadline=20):
        until(lambda: self.said.count(text) >= times, deadline, lambda: f"logind sees {text!r}; it saw {self.said}")

    def tell(self, word):
        self.logind.stdin.write(word + "\n")
        self.logind.stdin.flush()

    def stop_logind(self):
        self.logind.stdin.close()
        self.logind.wait(timeout=10 * SLOW)
        self.reader.join()

    def stop(self):
        self.stop_logind()
        self.bus.terminate()
        self.bus.wait(timeout=10 * SLOW)


HELD = "inhibit shutdown coracle delay"


def node_of(t, machine, config, *flags, **kwargs):
    path = f"{t.scratch}/tmp/config.yaml"
    with open(path, "w", encoding="ascii") as f:
        f.write("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + config)
    node = t.node("--config", path, *flags, env={"DBUS_SYSTEM_BUS_ADDRESS": machine.address}, **kwargs)
    node.import_image()
    return node


def step(node, name):
    steps = node.get("/explain")["steps"]
    return next((s for s in steps if s["name"] == name), {})


def on_term(name, seconds, code=0):
    """A pod that records when it gets its signal and when it ends; all pods write into one file."""
    return shell(f"trap 'echo {name} told >> /all/order; sleep {seconds}; echo {name} ends >> /all/order; exit {code}' TERM; "
                 f"echo {name} up >> /all/order; echo up >> /own/starts; "
                 "while true; do sleep 3600 & wait $!; done")


def watched(t, name, seconds=1, code=0, **spec):
    os.makedirs(f"{t.scratch}/tmp/all", exist_ok=True)
    mounts = [{"name": "all", "mountPath": "/all"}, {"name": "own", "mountPath": "/own"}]
    return pod(name, container(command=on_term(name, seconds, code), volumeMounts=mounts),
               volumes=[{"name": "all", "hostPath": {"path": f"{t.scratch}/tmp/all"}}, {"name": "own", "emptyDir": {}}],
               terminationGracePeriodSeconds=30, **spec)


def wait_up(t, node, *names):
    """Waits until the pods run and have installed their signal handlers."""
    node.wait_running(*names)
    until(lambda: all(f"{name} up" in order(t) for name in names), 20, lambda: f"all are up; so far {order(t)}")


def order(t):
    return read(f"{t.scratch}/tmp/all/order", "").split("\n")[:-1]


def test_order(t):
    """pods end by priority, the critical ones last; then the lock is released; the record survives"""
    machine = Machine(t)
    try:
        node = node_of(t, machine, "shutdownGracePeriod: 40s\nshutdownGracePeriodCriticalPods: 20s\n")
        machine.wait(HELD)
        until(lambda: step(node, "shutdown inhibitor").get("state") == "done", 10, "the lock is explained")
        node.put("a.yaml", watched(t, "plain", code=3))
        node.put("b.yaml", watched(t, "critical", priority=CRITICAL, priorityClassName="system-cluster-critical"))
        node.put("c.yaml", watched(t, "once", restartPolicy="Never"))
        node.put("e.yaml", watched(t, "removed"))
        wait_up(t, node, "plain", "critical", "once", "removed")
        removed = node.pod("removed")
        machine.tell("shutdown")
        until(lambda: step(node, "shutdown").get("state") == "running" or order(t), 20, "the shutdown is explained")
        until(lambda: node.request("GET", "/readyz")[0] == 503, 5, "not ready while it goes down")
        node.put("d.yaml", watched(t, "late"))
        late = node.wait_phase("late", "Failed")
        equal((late.status["reason"], late.status["message"]),
              ("NodeShutdown", "Pod was rejected: Pod was rejected as the node is shutting down."), "a new pod")
        machine.wait("released", deadline=60)
        seen = order(t)
        check(max(seen.index("plain ends"), seen.index("once ends")) < seen.index("critical told"), f"order: {seen}")
        for name in ("plain", "critical", "once"):
            p = node.pod(name)
            equal((p.phase, p.status["reason"], p.status["message"]),
                  ("Failed", "Terminated", "Pod was terminated in response to imminent node shutdown."), name)
            equal(p.condition("DisruptionTarget").get("reason"), "TerminationByKubelet", name)
            record = json.loads(read(f"{node.state_dir}/pods/{p.uid}.json"))
            equal((record["state"], record["phase"], record["reason"]), ("terminated", "Failed", "Terminated"), "record")
        equal(node.pod("plain").state()[1]["exitCode"], 3, "how its container ended")
        reasons = {(e["involvedObject"]["kind"], e["message"]) for e in node.events() if e["reason"] == "NodeShutdown"}
        check(("Node", "Shutdown manager detected shutdown event") in reasons, f"events: {reasons}")
        check("NodeNotReady" in {e["reason"] for e in node.events()}, f"events: {node.events()}")
        # A pod that starts again keeps its volumes; a pod whose manifest is removed meanwhile leaves nothing.
        node.remove("e.yaml")
        node.wait_gone("removed")
        node.wait_no_traces(removed)
        # A new start of the agent while the machine still goes down starts no pod.
        since = len(node.log())
        node.kill()
        node.start()
        node.wait_log("a shutdown is already in progress", since=since)
        until(lambda: step(node, "shutdown").get("state") == "done", 10, "the shutdown is known of again")
        equal(node.pod("plain").phase, "Failed", "after a restart of the agent")
        # Cancelled: all pods come back with their history, except the one that must not run twice.
        machine.tell("cancel")
        machine.wait(HELD, times=2)
        node.wait_running("plain", "critical", "late", deadline=40)
        equal(node.pod("plain").container()["lastState"]["terminated"]["exitCode"], 3, "its last run")
        equal(node.pod("plain").restarts(), 1, "restarts")
        until(lambda: node.enter(node.pod("plain"), "cat", "/own/starts").stdout == "up\nup\n", 10, "its emptyDir is the one of before")
        equal(node.pod("once").phase, "Failed", "restartPolicy Never")
        contains(step(node, "last shutdown").get("detail", ""), "4 pods ended", "explain node")
        equal(node.stop(), 0, "exit code")
    finally:
        machine.stop()


def test_stubborn(t):
    """a pod that does not end is killed at its group's time and recorded; the next group goes on; preStop hooks run"""
    machine = Machine(t)
    try:
        node = node_of(t, machine, "shutdownGracePeriodByPodPriority:\n- {priority: 100, shutdownGracePeriodSeconds: 10}\n"
                       "- {priority: 0, shutdownGracePeriodSeconds: 3}\n")
        machine.wait(HELD)
        node.put("a.yaml", pod("stubborn", container(command=shell("trap '' TERM; while true; do sleep 1; done")),
                               terminationGracePeriodSeconds=300))
        node.put("b.yaml", watched(t, "high", seconds=0, priority=150))
        hook = {"preStop": {"exec": {"command": ["/bin/sh", "-c", "echo hook >> /all/order"]}}}
        high = watched(t, "hooked", seconds=0, priority=100)
        high["spec"]["containers"][0]["lifecycle"] = hook
        node.put("c.yaml", high)
        wait_up(t, node, "high", "hooked")
        node.wait_running("stubborn")
        machine.tell("shutdown")
        machine.wait("released", deadline=60)
        stubborn = node.pod("stubborn")
        equal((stubborn.phase, stubborn.status["reason"], stubborn.state()[1]["exitCode"]), ("Failed", "Terminated", 137), "killed")
        seen = order(t)
        check("hook" in seen and seen.index("hook") < seen.index("hooked told"), f"order: {seen}")
        ended = {name: node.pod(name).state()[1]["finishedAt"] for name in ("stubborn", "high", "hooked")}
        check(ended["stubborn"] <= ended["high"] and ended["stubborn"] <= ended["hooked"], f"ends: {ended}")
        node.stop()
    finally:
        machine.stop()


def test_reboot(t):
    """pods ended by a shutdown start again after the boot, even if that shutdown was cut off"""
    machine = Machine(t)
    try:
        node = node_of(t, machine, "shutdownGracePeriod: 20s\nshutdownGracePeriodCriticalPods: 10s\n")
        machine.wait(HELD)
        node.put("a.yaml", watched(t, "job", seconds=0, restartPolicy="OnFailure"))
        wait_up(t, node, "job")
        machine.tell("shutdown")
        machine.wait("released", deadline=40)
        equal(node.pod("job").phase, "Failed", "ended")
        uid = node.pod("job").uid
        node.stop()
        path = f"{node.state_dir}/pods/{uid}.json"
        record = json.loads(read(path))
        record["bootID"] = "another"
        with open(path, "w", encoding="ascii") as f:
            json.dump(record, f)
        machine.stop_logind()
        machine.start_logind()
        node.start()
        job = node.wait_running("job", deadline=40)
        equal((job.uid, job.restarts()), (uid, 1), "the same pod, a restart")
        equal(job.container()["lastState"]["terminated"]["exitCode"], 0, "a job that ended with 0 at SIGTERM was not done")
        node.stop()
    finally:
        machine.stop()


def test_lost(t):
    """the lock is taken again when logind or the helper is restarted; the helper has no rights, containers keep theirs"""
    machine = Machine(t)
    try:
        node = node_of(t, machine, "shutdownGracePeriod: 20s\nshutdownGracePeriodCriticalPods: 10s\n")
        machine.wait(HELD)
        machine.stop_logind()
        machine.start_logind()
        machine.wait(HELD)
        helper = helper_of(node)
        status = dict(line.split(":\t", 1) for line in read(f"/proc/{helper}/status").splitlines() if ":\t" in line)
        equal([status[k].strip() for k in ("CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")], ["0" * 16] * 4 + ["1"], "its rights")
        node.put("a.yaml", pod("plain", container(securityContext={"privileged": True})))
        inside = read(f"/proc/{node.pid(node.wait_running('plain'))}/status")
        contains(inside, "NoNewPrivs:\t0", "a container")
        equal(inside.split("CapBnd:\t")[1].split()[0], read("/proc/self/status").split("CapBnd:\t")[1].split()[0], "its bounding set")
        os.kill(helper, signal.SIGKILL)
        machine.wait("released")
        machine.wait(HELD, times=2)
        node.kill()  # and it ends with the agent
        machine.wait("released", times=2)
        node.start()
        machine.wait(HELD, times=3)
        node.stop()
    finally:
        machine.stop()


def helper_of(node):
    for pid in os.listdir("/proc"):
        if pid.isdigit() and read(f"/proc/{pid}/cmdline", "").startswith(f"{node.world.build}/coracle-shutdown\0"):
            parent = read(f"/proc/{pid}/stat", ") X 0 ").rpartition(")")[2].split()[1]
            if parent == str(node.process.pid):
                return int(pid)
    check(False, "there is no coracle-shutdown")
    return 0


def test_no_bus(t):
    """without a system bus there is one warning, and pods run"""
    path = f"{t.scratch}/tmp/config.yaml"
    with open(path, "w", encoding="ascii") as f:
        f.write("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nshutdownGracePeriod: 20s\n")
    node = t.node("--config", path, env={"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={t.scratch}/nothing"})
    node.import_image()
    node.put("a.yaml", pod("plain", container()))
    node.wait_running("plain")
    until(lambda: step(node, "shutdown inhibitor").get("state") == "failed", 10, "explained")
    contains(step(node, "shutdown inhibitor")["detail"], "connect to the system bus", "explain node")
    node.wait_log("a shutdown of the machine will not wait for pods")
    equal(node.log().count("a shutdown of the machine will not wait for pods"), 1, "warnings")
    node.stop()
