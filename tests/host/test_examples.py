# SPDX-License-Identifier: Apache-2.0
"""The pods of examples/ do what their comments say."""
import fcntl
import os
import pty
import signal
import subprocess
import termios
import time

from coracle import (SLOW, TOP, Skip, as_nobody, check, contains, equal, firewall, hierarchies, http_answers, http_get, links,
                     mounts_below, read, run, until, world_processes)

EXAMPLES = f"{TOP}/examples/manifests"


def put_examples(node, *files):
    for file in files:
        node.put(file, read(f"{EXAMPLES}/{file}"))


def test_web(t):
    """the web server answers on pod IP and hostPort, and its page follows the ConfigMap without a restart"""
    node = t.node()
    node.import_image()
    put_examples(node, "web-page.yaml", "web.yaml")
    pod = node.wait_running("web")
    contains(http_answers(pod.ip), "Hello from a ConfigMap", "page by pod IP")
    contains(http_get("127.0.0.1", 8080), "Hello from a ConfigMap", "page by hostPort on loopback")
    contains(http_get("10.77.0.1", 8080), "Hello from a ConfigMap", "page by hostPort on the node's address")

    pid = node.pid(pod)
    node.put("web-page.yaml", read(f"{EXAMPLES}/web-page.yaml").replace("Hello", "Greetings"))
    until(lambda: "Greetings" in http_get(pod.ip), 5, "the new page")
    run("sed", "-i", "s/Greetings/Once more/", f"{node.manifests}/web-page.yaml")  # in place: a temporary file comes and goes
    until(lambda: "Once more" in http_get(pod.ip), 5, "the page after sed -i")
    until(lambda: not node.problems(), 2, lambda: f"no problem is left after sed -i; now {node.problems()}")
    now = node.pod("web")
    equal((node.pid(now), now.restarts(), now.uid), (pid, 0, pod.uid), "process, restarts and uid after the edits")

    node.remove("web.yaml")
    node.wait_gone("web")
    node.wait_no_traces(pod)
    check("8080" not in firewall(), lambda: f"hostPort rules are left:\n{firewall()}")
    node.stop()


def test_shared(t):
    """two containers share an emptyDir"""
    node = t.node()
    node.import_image()
    put_examples(node, "shared.yaml")
    pod = node.wait_running("shared")
    until(lambda: "the writer says:" in node.logs("shared", "reader"), 10, "the reader reads what the writer wrote")
    equal(len(pod.status["containerStatuses"]), 2, "containers")
    equal(node.enter(pod, "touch", "/in/x", container="reader", ok=False).returncode, 1, "writing through the read-only mount")
    node.stop()


def test_job(t):
    """a pod that completes stays Succeeded, with its Secret in an environment variable and in a file"""
    node = t.node()
    node.import_image()
    put_examples(node, "job.yaml")
    pod = node.wait_phase("job", "Succeeded")
    equal(node.logs("job"), "mole logs in with 19 characters\n", "log")
    word, detail = pod.state()
    equal((word, detail.get("exitCode"), detail.get("reason"), pod.restarts()), ("terminated", 0, "Completed", 0), "state")
    node.remove("job.yaml")
    node.wait_gone("job")
    node.wait_no_traces(pod)
    node.stop()


def test_crash(t):
    """a crashing container is started again at once, then after 10 s, with kubelet's reasons and messages"""
    node = t.node()
    node.import_image()
    put_examples(node, "crash.yaml")
    pod = node.wait_pod("crash", lambda p: p.restarts() == 1 and p.state()[0] == "waiting" and
                        p.state()[1].get("reason") == "CrashLoopBackOff", 20, "CrashLoopBackOff after the first restart")
    equal(pod.phase, "Running", "phase in back-off")
    contains(pod.state()[1]["message"], f"back-off 10s restarting failed container=fails pod=crash_default({pod.uid})")
    last = pod.container()["lastState"]["terminated"]
    equal((last["exitCode"], last["reason"]), (3, "Error"), "lastState")
    contains(node.cli("explain", "pod", "crash").stdout, "back-off", "explain")
    start = time.monotonic()
    node.wait_pod("crash", lambda p: p.restarts() == 2, 20, "the second restart")
    waited = time.monotonic() - start
    check(8.5 < waited < 11.5, f"the second restart came after {waited:.1f} s, wanted about 10")
    contains(node.logs("crash", previous=True), "about to fail", "log of the instance before")
    reasons = [e["reason"] for e in node.events("crash")]
    check("BackOff" in reasons, f"events: {reasons}")
    node.stop()


test_crash.seconds = 18


def default_cgroups():
    return [f"{root}/{name}" for root in hierarchies() for name in ("kubepods", "coracle") if os.path.isdir(f"{root}/{name}")]


class MakeRun:
    """The second half of `make run`: examples/run below a shell or make; compares the machine before and after."""

    def __init__(self, t, argv, **popen):
        self.script = open(f"{TOP}/examples/run", "rb")  # pylint: disable=consider-using-with
        fcntl.flock(self.script, fcntl.LOCK_EX)  # one at a time: they have the same cgroups
        run("mount", "-t", "tmpfs", "tmpfs", "/run")  # the default socket path, in this test's own mount namespace
        if default_cgroups():
            raise Skip(f"something else uses the default cgroups here: {default_cgroups()}")
        self.t, self.mounts, self.log_path = t, set(mounts_below("")), f"{t.scratch}/run.log"
        env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True,
                                            env={**env, "TMPDIR": f"{t.scratch}/tmp"}, **popen)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.interrupt()
            self.wait_end()

    def log(self):
        return read(self.log_path)

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)  # as a terminal does

    def pods(self):
        result = run(f"{self.t.build}/coracle", "get", "pods", ok=False)
        return {line.split()[0]: line.split() for line in result.stdout.splitlines()[1:]} if result.returncode == 0 else {}

    def wait_up(self):
        wanted = {"web": "Running", "shared": "Running", "job": "Completed"}
        until(lambda: all(self.pods().get(n, ["", "", ""])[2] == s for n, s in wanted.items()) and "crash" in self.pods(), 40,
              lambda: f"examples up; {self.pods()}\n{self.log()}", interval=0.3)
        until(lambda: "Ctrl-C here takes everything down" in self.log(), 20, "what it says once all are up")

    def daemon(self):
        """Its pid, or None."""
        pids = [pid for pid, line in world_processes(self.t.name) if line.startswith(f"{self.t.build}/coracle run ")]
        return pids[0] if pids else None

    def wait_end(self):
        return self.process.wait(timeout=60 * SLOW)

    def nothing_left(self, scratch=()):
        t = self.t
        equal(os.listdir(f"{t.scratch}/tmp"), list(scratch), "scratch folder")
        equal(os.listdir("/run"), [], "/run")
        equal(set(mounts_below("")) - self.mounts, set(), "new mounts")
        equal(links(), t.before["links"], "links")
        equal(firewall(), t.before["rules"], "firewall rules")
        equal(world_processes(t.name, os.readlink("/proc/self/ns/mnt")), [], "processes")
        equal(default_cgroups(), [], "cgroups")


def test_make_run(t):
    """examples/run starts all examples and restores the machine on Ctrl-C"""
    with MakeRun(t, [f"{TOP}/examples/run", t.build], stdin=subprocess.DEVNULL) as made:
        made.wait_up()
        pods = made.pods()
        equal((pods["web"][1], pods["shared"][1], pods["job"][1]), ("1/1", "2/2", "0/1"), "READY column")
        contains(http_answers("127.0.0.1", 8080), "Hello from a ConfigMap")
        equal(as_nobody(f"{t.build}/coracle", "get", "pods", ok=False).returncode != 0, True, "reading the socket as nobody fails")
        second = run(f"{TOP}/examples/run", t.build, ok=False)
        equal(second.returncode, 1, "a second run beside it")
        contains(second.stderr, "is running already", "its message")
        made.interrupt()
        equal(made.wait_end(), 0, f"exit code after Ctrl-C; its output:\n{made.log()}")
    made.nothing_left()


def test_make_run_killed(t):
    """a daemon of examples/run that is killed by -9 is followed by one that removes everything"""
    with MakeRun(t, [f"{TOP}/examples/run", t.build], stdin=subprocess.DEVNULL) as made:
        made.wait_up()
        os.kill(made.daemon(), signal.SIGKILL)
        equal(made.wait_end(), 128 + signal.SIGKILL, f"exit code; its output:\n{made.log()}")
    contains(made.log(), "run: the daemon ended badly (exit code 137); another one takes down what it left")
    made.nothing_left()


def test_make_run_killed_twice(t):
    """if that one is killed too, the state stays, and the printed command removes everything"""
    with MakeRun(t, [f"{TOP}/examples/run", t.build], stdin=subprocess.DEVNULL) as made:
        made.wait_up()
        first = made.daemon()
        os.kill(first, signal.SIGKILL)
        os.kill(until(lambda: made.daemon() not in (None, first) and made.daemon(), 20, "another daemon"), signal.SIGKILL)
        equal(made.wait_end(), 1, f"exit code; its output:\n{made.log()}")
    scratch = os.listdir(f"{t.scratch}/tmp")
    contains(made.log(), f"run: not all could be taken down; {t.scratch}/tmp/{scratch[0]} stays.", "what it says")
    command = made.log().rpartition("remove ")[2].partition("\n\n")[2]
    with open(f"{t.scratch}/last.log", "wb") as log, subprocess.Popen(["sh", "-c", f"exec {command}"], stderr=log) as last:
        until(lambda: "ready" in read(f"{t.scratch}/last.log"), 20, lambda: read(f"{t.scratch}/last.log"))
        last.send_signal(signal.SIGINT)
        equal(last.wait(timeout=60 * SLOW), 0, "exit code of that command")
    os.rmdir("/run/crun")  # crun makes it and leaves it
    made.nothing_left(scratch)


def test_make_run_without_terminal(t):
    """examples/run removes everything when the terminal is closed and only make, the session's leader, is signalled"""
    ours, theirs = pty.openpty()
    with open(f"{t.scratch}/Makefile", "w", encoding="ascii") as f:
        f.write(f"run:\n\t@{TOP}/examples/run {t.build}\n")
    with MakeRun(t, ["make", "-f", f"{t.scratch}/Makefile"], stdin=theirs,
                 preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) as made:
        os.close(theirs)
        made.wait_up()
        os.close(ours)
        made.wait_end()
    made.nothing_left()


for test in (test_make_run, test_make_run_killed, test_make_run_killed_twice, test_make_run_without_terminal):
    test.seconds = 15
