# SPDX-License-Identifier: Apache-2.0
"""coracle - the base of the host tests: the real daemon in a scratch world of its own.

A World is one test's piece of the machine: a separate network and mount namespace (entered by the test's
process, so that everything it starts lives there), a scratch folder, and a cgroup root named after the test.
A Node is a daemon in it.  Tests wait for events with deadlines: the watch of the status socket and sd_notify;
they poll only where the kernel offers no event.  At the end, World.leaks() compares the world with its
initial state.

Python 3.11's standard library only.
"""
import contextlib
import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
IMAGE = "localhost/busybox:1"
SLOW = float(os.environ.get("CORACLE_TEST_SLOW", "1"))
CGROUP_FS = "/sys/fs/cgroup"

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_REC, MS_PRIVATE, MS_SHARED = 0x4000, 1 << 18, 1 << 20
MNT_DETACH = 2


class Failed(AssertionError):
    """A test's expectation did not hold."""


class Skip(Exception):
    """The test cannot run here; the text says why."""


def check(condition, text):
    if not condition:
        raise Failed(text() if callable(text) else text)


def equal(got, wanted, what):
    check(got == wanted, lambda: f"{what}: got {short(got)}, wanted {short(wanted)}")


def short(value):
    text = repr(value)
    return text if len(text) < 2000 else text[:2000] + f"... ({len(text)} characters)"


def contains(text, part, what="text"):
    check(part in text, lambda: f"{what} does not contain {part!r}:\n{text}")


def run(*argv, timeout=30, ok=True, **kwargs):
    """A command's result with text output; a failing one fails the test unless ok=False."""
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    result = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                            timeout=timeout * SLOW, text=True, errors="replace", **kwargs)
    if ok and result.returncode != 0:
        raise Failed(f"{' '.join(str(a) for a in argv)}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result


def until(condition, deadline=10, what="condition", interval=0.02):
    """Waits for condition() to become true and returns its value, for facts that send no event.  Polling takes at most a quarter of the time."""
    end = time.monotonic() + deadline * SLOW
    while True:
        start = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > end:
            raise Failed(f"{what() if callable(what) else what}: not within {deadline * SLOW:g} s")
        time.sleep(max(interval, 3 * (now - start)))


def read(path, default=None):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        if default is None:
            raise
        return default


# ---- the world ------------------------------------------------------------------------------------------------------

def _libc_call(name, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def enter_namespaces():
    """Enters new network and mount namespaces; mounts are shared below, as systemd leaves them on a node."""
    _libc_call("unshare", CLONE_NEWNS | CLONE_NEWNET)
    _libc_call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    _libc_call("mount", b"none", b"/", None, MS_REC | MS_SHARED, None)
    run("ip", "link", "set", "lo", "up")


def hierarchies():
    """The mounted cgroup hierarchies (one on v2)."""
    found = []
    for line in read("/proc/self/mountinfo").splitlines():
        fields = line.split()
        kind = fields[fields.index("-") + 1]
        if kind in ("cgroup", "cgroup2") and fields[4].startswith(CGROUP_FS) and fields[4] not in found:
            found.append(fields[4])
    return found


def cgroup_v2():
    return os.path.exists(CGROUP_FS + "/cgroup.controllers")


def world_cgroups(name):
    """All folders of a world's cgroup root, in all hierarchies, deepest first."""
    found = []
    for root in hierarchies():
        for folder, _, _ in os.walk(root + "/" + name, topdown=False):
            found.append(folder)
    return found


def process_fields(pid):
    """(name, state), or None if the process is gone."""
    with contextlib.suppress(OSError):
        text = read(f"/proc/{pid}/stat")
        name = text[text.index("(") + 1:text.rindex(")")]
        return name, text[text.rindex(")") + 2:].split()[0]
    return None


def alive(pid):
    """Whether the process exists and is not a zombie that waits for its parent."""
    fields = process_fields(pid)
    return fields is not None and fields[1] not in "ZX"


def processes():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def world_processes(name, mnt_ns=None):
    """Living processes of a world: in its cgroups, in its mount namespace, or with its name on the command line."""
    found = []
    cgroup = re.compile(rf"/{re.escape(name)}(/|$)", re.MULTILINE)
    for pid in processes():
        fields = process_fields(pid)
        if pid == os.getpid() or fields is None or fields[1] in "ZX":
            continue
        try:
            inside = cgroup.search(read(f"/proc/{pid}/cgroup", "")) or f"/{name}/" in read(f"/proc/{pid}/cmdline", "")
            if not inside and mnt_ns is not None:
                inside = os.readlink(f"/proc/{pid}/ns/mnt") == mnt_ns
        except OSError:
            continue
        if inside:
            found.append((pid, read(f"/proc/{pid}/cmdline", "").replace("\0", " ").strip() or fields[0]))
    return found


def mounts_below(path):
    found = []
    for line in read("/proc/self/mountinfo").splitlines():
        fields = line.split()
        if fields[4] == path or fields[4].startswith(path + "/"):
            found.append(fields[4])
    return found


def firewall():
    """The rules without their counters, comments and (once made) empty default tables."""
    text = ""
    for tool in ("iptables-save", "ip6tables-save"):
        result = run(tool, ok=False)
        lines = [re.sub(r"\[\d+:\d+\]", "", line).strip() for line in result.stdout.splitlines()
                 if not line.startswith(("#", "*")) and line != "COMMIT"]
        # A table that a tool has read exists from then on, with its empty built-in chains.
        text += "\n".join(line for line in lines if not re.fullmatch(r":[A-Z]+ ACCEPT", line)) + "\n"
    return text.strip()


def links():
    return sorted(line.split(":")[1].strip().split("@")[0] for line in run("ip", "-o", "link").stdout.splitlines())


def unmount_below(path):
    """Detaches all mounts below a folder.  Must not fail.  A program for each would read the list of all mounts each time."""
    for point in reversed(mounts_below(path)):
        with contextlib.suppress(OSError):
            _libc_call("umount2", point.encode(), MNT_DETACH)


def tree(path):
    """Every path below a folder, without what is mounted there."""
    found = set()
    device = os.stat(path).st_dev
    for folder, names, files in os.walk(path):
        if os.lstat(folder).st_dev != device:
            names[:] = []
            continue
        found.update(os.path.relpath(os.path.join(folder, n), path) for n in names + files)
    return found


def sweep(name, scratch):
    """Ends and removes everything that a world may have left, from any namespace.  Must not fail."""
    for _ in range(50):
        left = world_processes(name)
        if not left:
            break
        for pid, _ in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for folder in world_cgroups(name):  # a frozen one would never die
            with contextlib.suppress(OSError):
                with open(folder + "/freezer.state", "w", encoding="ascii") as f:
                    f.write("THAWED")
        time.sleep(0.05)
    for _ in range(20):
        folders = world_cgroups(name)
        for folder in folders:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        if not folders:
            break
        time.sleep(0.05)
    unmount_below(scratch)
    if not mounts_below(scratch):
        shutil.rmtree(scratch, ignore_errors=True)


def devices():
    found = {}
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        with contextlib.suppress(OSError):
            st = os.stat(f"/dev/{name}")
            found[name] = (oct(st.st_mode), st.st_uid, st.st_gid)
    return found


class World:
    """One test's piece of the machine."""

    def __init__(self, name, scratch, build):
        self.name, self.scratch, self.build = name, scratch, build
        self.nodes = []
        for folder in ("manifests", "cni", "log/pods", "log/containers", "tmp"):
            os.makedirs(f"{scratch}/{folder}")
        shutil.copy(f"{TOP}/examples/cni/10-coracle.conflist", f"{scratch}/cni/")
        self.before = None

    def remember(self):
        self.before = {"links": links(), "rules": firewall(), "ip_forward": read("/proc/sys/net/ipv4/ip_forward"),
                       "devices": devices()}

    def node(self, *flags, wait=True, **kwargs):
        """A started daemon; the only one of the world at a time."""
        node = Node(self, flags, **kwargs)
        self.nodes.append(node)
        return node.start(wait)

    def check_host(self):
        """Checks the machine's device nodes: a runtime that passes standard input to a container may change their owner by mistake."""
        equal(devices(), self.before["devices"], "owner and mode of the host's devices")

    def leaks(self):
        """The differences from the initial state, in words; [] if there are none."""
        found = [f"process {pid}: {line}" for pid, line in world_processes(self.name, os.readlink("/proc/self/ns/mnt"))]
        found += [f"mount {p}" for p in mounts_below(self.scratch)]
        found += [f"cgroup {c}" for c in world_cgroups(self.name)]
        found += [f"link {link}" for link in links() if link not in self.before["links"]]
        rules = firewall()
        if rules != self.before["rules"]:
            found.append(f"firewall rules:\n{rules}")
        if read("/proc/sys/net/ipv4/ip_forward") != self.before["ip_forward"]:
            found.append("ip_forward is on")
        return found


# ---- the daemon -----------------------------------------------------------------------------------------------------

class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Waits for a place in the queue.  A timeout of Python would not, because it makes the socket
        # non-blocking.
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(self.timeout), 0))
        self.sock.connect(self.path)
        self.sock.settimeout(self.timeout)


class Pod(dict):
    """A pod's JSON with shortcuts."""

    @property
    def name(self):
        return self["metadata"]["name"]

    @property
    def uid(self):
        return self["metadata"]["uid"]

    @property
    def status(self):
        return self.get("status", {})

    @property
    def phase(self):
        return self.status.get("phase", "")

    @property
    def ip(self):
        return self.status.get("podIP", "")

    @property
    def ready(self):
        return any(c["type"] == "Ready" and c["status"] == "True" for c in self.status.get("conditions", []))

    def container(self, name=None):
        """The status of a container, by default the only one; {} if there is none yet."""
        found = [c for c in self.status.get("containerStatuses", []) + self.status.get("initContainerStatuses", [])
                 + self.status.get("ephemeralContainerStatuses", []) if name is None or c["name"] == name]
        return found[0] if found else {}

    def state(self, name=None):
        """("running", {...}), ("waiting", {...}), ("terminated", {...}) or ("", {})."""
        for word, detail in self.container(name).get("state", {}).items():
            return word, detail
        return "", {}

    def restarts(self, name=None):
        return self.container(name).get("restartCount", 0)

    def condition(self, kind):
        """A condition; {} when the pod has none of that type."""
        return next((c for c in self.status.get("conditions", []) if c["type"] == kind), {})

    def container_id(self, name=None):
        return self.container(name).get("containerID", "").rpartition("//")[2]


class Node:
    """A daemon of a world; it may be stopped, killed and started again."""

    def __init__(self, world, flags=(), ephemeral=False, path=None, env=None):
        self.world, self.flags, self.ephemeral = world, list(flags), ephemeral
        self.path, self.extra_env = path, env or {}
        s = world.scratch
        self.manifests, self.run_dir, self.state_dir = f"{s}/manifests", f"{s}/run", f"{s}/state"
        self.root_dir, self.socket = f"{s}/kubelet", f"{s}/run/coracle.sock"
        self.pod_logs, self.container_logs = f"{s}/log/pods", f"{s}/log/containers"
        self.log_path = f"{s}/daemon.log"
        self.coracle = f"{world.build}/coracle"
        self.process = None
        self.cgroup_root = "/" + world.name
        if cgroup_v2() and os.environ.get("CORACLE_TEST_CGROUP"):
            self.cgroup_root = os.environ["CORACLE_TEST_CGROUP"] + self.cgroup_root

    def argv(self):
        s = self.world.scratch
        argv = [self.coracle, "run", "--pod-manifest-path", self.manifests, "--root-dir", self.root_dir,
                "--state-dir", self.state_dir, "--run-dir", self.run_dir, "--pod-logs-dir", self.pod_logs,
                "--container-logs-dir", self.container_logs, "--cni-conf-dir", f"{s}/cni",
                "--cgroup-root", self.cgroup_root, "--hostname-override", "test-node", "--log-level", "debug",
                "--image-gc-high-threshold", "100"]  # no matter how full this machine's disk is
        if "CORACLE_TEST_RUNTIME" in os.environ and "--runtime" not in self.flags and self.path is None:
            argv += ["--runtime", os.environ["CORACLE_TEST_RUNTIME"]]
        return argv + (["--ephemeral"] if self.ephemeral else []) + self.flags

    def start(self, wait=True):
        """Starts it and waits for READY=1.  The notify socket doubles as a test that children do not inherit it."""
        notify_path = f"{self.world.scratch}/notify"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(notify_path)
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(notify_path)
        env = {**os.environ, "NOTIFY_SOCKET": notify_path, **self.extra_env}
        if self.path is not None:
            env["PATH"] = self.path
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.argv(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                                            start_new_session=True)
        try:
            if wait:
                self._wait_ready(notify)
        finally:
            notify.close()
        return self

    def _wait_ready(self, notify):
        notify.settimeout(0.1)
        end = time.monotonic() + 15 * SLOW
        while time.monotonic() < end:
            with contextlib.suppress(TimeoutError):
                if "READY=1" in notify.recv(4096).decode().splitlines():
                    return
            check(self.process.poll() is None, lambda: f"the daemon ended with {self.process.returncode}:\n{self.log()}")
        raise Failed(f"the daemon did not say READY=1:\n{self.log()}")

    def log(self):
        return read(self.log_path, "")

    def stop(self, signo=signal.SIGTERM, deadline=15):
        """Sends the signal, waits for the end, and returns the exit code.  A sanitizer's report fails the test here."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            os.kill(self.process.pid, signo)
        try:
            code = self.process.wait(timeout=deadline * SLOW)
        except subprocess.TimeoutExpired:
            raise Failed(f"the daemon did not end within {deadline * SLOW:g} s of {signo!r}") from None
        self.process = None
        check("ERROR: AddressSanitizer" not in self.log() and "runtime error:" not in self.log()
              and "ERROR: LeakSanitizer" not in self.log(), lambda: f"sanitizer report:\n{self.log()[-6000:]}")
        return code

    def kill(self):
        """kill -9, as an OOM killer would."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    # -- clients of the socket

    def request(self, method, path, body=None, timeout=10):
        connection = UnixConnection(self.socket, timeout * SLOW)
        try:
            connection.request(method, path, body=body)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def get(self, path):
        code, body = self.request("GET", path)
        equal(code, 200, f"GET {path}: {body[:400]!r}")
        return json.loads(body)

    def cli(self, *argv, ok=True, timeout=20, **kwargs):
        return run(self.coracle, "--socket", self.socket, *argv, ok=ok, timeout=timeout, **kwargs)

    def import_image(self, path=None):
        """The test image, through the socket (the tests of the command line import it by `coracle image import`)."""
        source = urllib.parse.quote(path or os.environ["CORACLE_TEST_IMAGE"], safe="")
        code, body = self.request("POST", f"/images?source={source}", timeout=30)
        check(code in (200, 201), f"POST /images: {code} {body!r}")

    def pods(self):
        return {(p["metadata"]["namespace"], p["metadata"]["name"]): Pod(p) for p in self.get("/api/v1/pods")["items"]}

    def pod(self, name, namespace="default"):
        return self.pods().get((namespace, name))

    def events(self, name=None):
        return [e for e in self.get("/api/v1/events")["items"] if name is None or e["involvedObject"]["name"] == name]

    def watch(self, condition, deadline=20, what="pods", timeline=None):
        """Follows the pods until condition({key: Pod}) is true and returns its value.  timeline: a list that gets every object seen."""
        end = time.monotonic() + deadline * SLOW
        connection = UnixConnection(self.socket, deadline * SLOW)
        pods = {}
        try:
            connection.request("GET", "/api/v1/pods?watch=1")
            response = connection.getresponse()
            equal(response.status, 200, "GET /api/v1/pods?watch=1")
            pods = self.pods()
            while True:
                value = condition(pods)
                if value:
                    return value
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                connection.sock.settimeout(left)
                line = response.readline()
                if not line:
                    raise Failed(f"the watch ended; {self.log()[-3000:]}")
                event = json.loads(line)
                pod = Pod(event["object"])
                key = (pod["metadata"]["namespace"], pod.name)
                if timeline is not None:
                    timeline.append((event["type"], pod))
                if event["type"] == "DELETED":
                    pods.pop(key, None)
                else:
                    pods[key] = pod
        except TimeoutError:
            now = json.dumps({k[1]: p.status for k, p in pods.items()}, indent=1) if len(pods) < 4 else \
                ", ".join(f"{k[1]}:{p.phase}" for k, p in pods.items())
            raise Failed(f"{what}: not within {deadline * SLOW:g} s; now:\n{now}") from None
        finally:
            connection.close()

    def wait_pod(self, name, condition, deadline=20, what=None, namespace="default", timeline=None):
        def test(pods):
            pod = pods.get((namespace, name))
            return pod if pod is not None and condition(pod) else None
        return self.watch(test, deadline, what or f"pod {name}", timeline)

    def wait_running(self, *names, deadline=20):
        """Waits until all containers of these pods run the image's program instead of the runtime; returns
        the last pod.

        A container is "running" from the runtime's `start` on, as with kubelet: its init may not have exec'd yet by then.
        """
        ids = set()
        for name in names:
            pod = self.wait_pod(name, all_running, deadline, f"pod {name} running")
            ids |= {pod.container_id(c["name"]) for c in pod["spec"]["containers"]}
        until(lambda: not self.inits(ids), 5, lambda: f"the runtime gives way to the programs of {', '.join(names)}: {self.inits(ids)}")
        return pod

    def inits(self, ids):
        """The processes of these containers that still run the runtime's program."""
        roots = [root + self.cgroup_root for root in hierarchies() if os.path.isdir(root + self.cgroup_root)]
        pids = [pid for folder, _, _ in os.walk(roots[0]) if os.path.basename(folder) in ids
                for pid in read(folder + "/cgroup.procs", "").split()]
        return [pid for pid in pids if read(f"/proc/{pid}/comm", "").startswith(("crun", "runc"))]

    def wait_phase(self, name, phase, deadline=20):
        return self.wait_pod(name, lambda p: p.phase == phase, deadline, f"pod {name} {phase}")

    def wait_gone(self, *names, deadline=20):
        self.watch(lambda pods: not any(("default", n) in pods for n in names), deadline, f"{', '.join(names)} gone")

    def finish(self, *pods):
        """Removes the manifests of pods, each in a file of the pod's name, and waits until nothing is left of them."""
        self.remove(*[f"{p.name}.yaml" for p in pods])
        self.wait_gone(*[p.name for p in pods])
        for p in pods:
            self.wait_no_traces(p)

    def wait_log(self, text, deadline=10, since=0):
        until(lambda: text in self.log()[since:], deadline, lambda: f"log line {text!r}; the log:\n{self.log()[since:][-4000:]}")

    # -- the manifest folder

    def put(self, file, *objects):
        """Puts a file into the folder by rename, as a careful writer does.  Objects: YAML or JSON text, or Python values."""
        texts = [o if isinstance(o, str) else json.dumps(o) for o in objects]
        hidden = f"{self.manifests}/.{file}.new"
        with open(hidden, "w", encoding="utf-8") as f:
            f.write("\n---\n".join(texts))
        os.rename(hidden, f"{self.manifests}/{file}")

    def remove(self, *files):
        for file in files:
            os.unlink(f"{self.manifests}/{file}")

    def clear(self, deadline=30):
        """Removes all manifests and waits until no pod is left."""
        self.remove(*os.listdir(self.manifests))
        until(lambda: not self.pods(), deadline, lambda: f"pods are gone: {list(self.pods())}")

    def problems(self):
        """{file: ["field.path: what is wrong"...]} of the manifest folder, as the socket reports it."""
        return {f["name"]: [": ".join(filter(None, [p.get("field"), p["message"]])) for p in f["problems"]]
                for f in self.get("/manifests")["items"] if f.get("problems")}

    # -- facts behind the daemon's back

    def pid(self, pod, container=None):
        """The first process of a container: the one in its cgroup whose parent is outside of it (pids may have wrapped)."""
        pids = self.container_pids(pod, container)
        inside = {str(p) for p in pids}
        for pid in pids:
            if read(f"/proc/{pid}/stat", ") X 0 ").rpartition(")")[2].split()[1] not in inside:
                return pid
        return 0

    def container_pids(self, pod, container=None):
        cid = pod.container_id(container)
        check(cid, f"{pod.name} has no container id")
        for folder in self.cgroups_of(cid):
            text = read(folder + "/cgroup.procs", "")
            if text.strip():
                return [int(p) for p in text.split()]
        return []

    def cgroups_of(self, cid):
        found = []
        for root in hierarchies():
            for folder, _, _ in os.walk(root + self.cgroup_root):
                if os.path.basename(folder) == cid:
                    found.append(folder)
        return found

    def container_cgroup(self, pod, controller, container=None):
        """The folder of a container in a controller's hierarchy."""
        cid = pod.container_id(container)
        for folder in self.cgroups_of(cid):
            if cgroup_v2() or controller in folder[len(CGROUP_FS) + 1:].split("/")[0].split(","):  # "cpu,cpuacct"
                return folder
        raise Failed(f"no cgroup of {cid} in {controller}")

    def enter(self, pod, *argv, container=None, ok=True, timeout=10):
        """Runs a command of the image in a container's namespaces, without the daemon."""
        pid = self.pid(pod, container)
        check(pid, f"{pod.name} has no process")
        return run("nsenter", "-t", pid, "-a", "/bin/busybox", *argv, ok=ok, timeout=timeout)

    def logs(self, pod, container=None, previous=False):
        argv = ["logs", pod] + (["-c", container] if container else []) + (["-p"] if previous else [])
        return self.cli(*argv).stdout

    def traces(self, pod):
        """All traces of a pod outside the manifest folder and the daemon's own log."""
        uid = pod.uid
        ids = [c["containerID"].rpartition("//")[2] for c in pod.status.get("containerStatuses", []) if c.get("containerID")]
        marks = [uid] + ids
        found = []
        for where in (self.run_dir, self.state_dir, self.root_dir, self.pod_logs, self.container_logs):
            for folder, names, files in os.walk(where):
                found += [f"{folder}/{n}" for n in names + files if any(m in n for m in marks)]
        for root in hierarchies():
            for folder, _, _ in os.walk(root + self.cgroup_root):
                found += [f"cgroup {folder}" for m in marks if m in os.path.basename(folder)]
        found += [f"mount {p}" for p in mounts_below(self.world.scratch) if any(m in p for m in marks)]
        for pid in processes():
            line = read(f"/proc/{pid}/cmdline", "")
            found += [f"process {pid}: {line}" for m in marks if m in line]
        rules = firewall()
        if pod.ip and re.search(rf"\b{re.escape(pod.ip)}\b", rules):
            found.append(f"firewall rules with {pod.ip}:\n{rules}")
        for folder, _, files in os.walk(self.state_dir):
            found += [f"lease {folder}/{f}" for f in files if pod.ip and f == pod.ip]
        for folder, _, files in os.walk("/var/lib/cni/networks"):
            found += [f"lease {folder}/{f}" for f in files if pod.ip and f == pod.ip and any(
                m in read(f"{folder}/{f}", "") for m in marks)]
        return found

    def wait_no_traces(self, pod, deadline=10):
        """Waits for all traces to disappear: the API object goes first, logs and links may follow within moments."""
        try:
            until(lambda: not self.traces(pod), deadline, "", interval=0.1)
        except Failed:
            raise Failed(f"traces of {pod.name} are left:\n" + "\n".join(self.traces(pod))) from None


def all_running(pod):
    wanted = len(pod["spec"]["containers"])
    states = pod.status.get("containerStatuses", [])
    return len(states) == wanted and all("running" in c.get("state", {}) for c in states)


# ---- manifests ------------------------------------------------------------------------------------------------------

STAY = ["/bin/sh", "-c", "trap 'exit 0' TERM; while true; do sleep 3600 & wait $!; done"]


def container(name="main", command=None, **more):
    return {"name": name, "image": IMAGE, "command": command if command is not None else STAY, **more}


def mount(name, path, **more):
    """A volumeMount."""
    return {"name": name, "mountPath": path, **more}


def shell(text):
    return ["/bin/sh", "-c", text]


def pod(name, *containers, labels=None, annotations=None, namespace=None, **spec):
    """A Pod as Python values; without containers, it gets one that keeps running.  Grace periods are short, for tests."""
    meta = {"name": name}
    if labels:
        meta["labels"] = labels
    if annotations:
        meta["annotations"] = annotations
    if namespace:
        meta["namespace"] = namespace
    spec.setdefault("terminationGracePeriodSeconds", 5)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta,
            "spec": {"containers": list(containers) or [container()], **spec}}


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name, **data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def http_get(address, port=80, path="/", timeout=5):
    connection = http.client.HTTPConnection(address, port, timeout=timeout * SLOW)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def http_answers(address, port=80, path="/", deadline=10):
    """The body of the first answer.  Retries, because a container runs before its server listens."""
    def attempt():
        with contextlib.suppress(OSError, http.client.HTTPException):
            return http_get(address, port, path, timeout=2)
    return until(attempt, deadline, f"http://{address}:{port}{path} answers")


def as_nobody(*argv, **kwargs):
    return run(*argv, user=65534, group=65534, extra_groups=[], **kwargs)
