# SPDX-License-Identifier: Apache-2.0
"""golden - runs one recorded case of tests/fixtures/golden through the daemon and compares.

A case passes if the common lists name all differences.  It is "argued" if its own `allow` names the rest, and
"not yet" if its file `not-yet` does, each with the reason in a comment.  A `not-yet` that is no longer needed
fails the case.  The runner prints the counts ("COUNT golden ...").
"""
import glob
import importlib.util
import json
import os
import re
import subprocess
import threading
import time

import coracle
from coracle import Failed, Pod, SLOW, UnixConnection, check, hierarchies, read, run

FIXTURES = f"{coracle.TOP}/tests/fixtures/golden"
NODE_IP, GATEWAY, POD_NET = "192.0.2.10", "10.77.0.1", "10.77.0.0/16"
HOSTS = "127.0.0.1\tlocalhost\n192.0.2.200\tnode.example.test node\n"
RESOLV = "nameserver 192.0.2.53\nsearch example.test\noptions timeout:2\n"
CGROUP_FILES = {"cpu": ("cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
                "memory": ("memory.limit_in_bytes", "memory.soft_limit_in_bytes"),
                "pids": ("pids.max",), "cpuset": ("cpuset.cpus",)}


def _tool(name):
    spec = importlib.util.spec_from_file_location(name, f"{FIXTURES}/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


normalise, compare = _tool("normalise"), _tool("compare")


def cases():
    return sorted(os.path.basename(os.path.dirname(p)) for p in glob.glob(f"{FIXTURES}/cases/*/case.json"))


def seconds(case):
    """The approximate maximum duration of a case."""
    with open(f"{FIXTURES}/cases/{case}/case.json", encoding="utf-8") as f:
        how = json.load(f)
    return 30 + how.get("timeout", 15) + sum(a.get("timeout", 30) for a in how.get("actions", []))


def documents(path):
    """The documents of a YAML file as text.  Each becomes a separate file for the daemon, so that a rejected one affects no other."""
    with open(path, encoding="utf-8") as f:
        return [d for d in re.split(r"(?m)^---\s*$", f.read()) if re.search(r"(?m)^kind:", d)]


def identity(document):
    kind = re.search(r"(?m)^kind:\s*(\S+)", document).group(1)
    return kind, re.search(r"(?m)^  name:\s*(\S+)", document).group(1).strip("'\"")


def prepare_node(t):
    """The node of the recording: its address, hosts file and resolver."""
    run("ip", "link", "add", "node0", "type", "bridge")
    run("ip", "addr", "add", f"{NODE_IP}/24", "dev", "node0")
    run("ip", "link", "set", "node0", "up")
    for name, text in (("hosts", HOSTS), ("resolv.conf", RESOLV)):
        with open(f"{t.scratch}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    run("mount", "--bind", f"{t.scratch}/hosts", "/etc/hosts")
    node = t.node("--cluster-dns", "10.96.0.10", "--cluster-domain", "cluster.local", "--resolv-conf",
                  f"{t.scratch}/resolv.conf", "--max-pods", "200", "--node-ip", NODE_IP)
    image = f"{t.scratch}/golden.tar"
    subprocess.run([f"{FIXTURES}/mkimage", image], check=True, stdout=subprocess.DEVNULL)
    node.import_image(image)
    return node


class Follower(threading.Thread):
    """Follows the watch: the newest object of each pod, also after its end, and the states in between."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.newest, self.deleted, self.changed = {}, set(), threading.Condition()
        self.connection = UnixConnection(node.socket, 600)
        self.connection.request("GET", "/api/v1/pods?watch=1")
        self.response = self.connection.getresponse()
        self.start()

    def run(self):
        try:
            while True:
                line = self.response.readline()
                if not line:
                    return
                event = json.loads(line)
                pod = Pod(event["object"])
                with self.changed:
                    self.newest[pod.name] = pod
                    if event["type"] == "DELETED":
                        self.deleted.add(pod.name)
                    self.changed.notify_all()
        except (OSError, ValueError, AttributeError):
            return  # the daemon ended

    def wait(self, condition, deadline):
        """Whether condition(newest) became true before the deadline (monotonic seconds)."""
        with self.changed:
            while not condition(self.newest):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self.changed.wait(min(left, 0.1))  # the condition may also depend on a log or an event
        return True


class Case:
    def __init__(self, t, node, name, runtimes=()):
        """`runtimes`: handlers of the node that its pods get by turns; without them, the default one."""
        self.node, self.name = node, name
        self.runtimes, self.turn = runtimes, 0
        self.folder = f"{FIXTURES}/cases/{name}"
        with open(f"{self.folder}/case.json", encoding="utf-8") as f:
            self.how = json.load(f)
        with open(f"{self.folder}/expect.json", encoding="utf-8") as f:
            self.expect = json.load(f)
        self.follower = Follower(node)
        self.log_files = {}  # (pod, container) -> open newest log: it can be read after the pod is gone
        self.hosts_cgroups = {}

    # -- driving

    def put(self, document):
        kind, name = identity(document)
        grace = [a.get("grace") for a in self.how.get("actions", []) if name in a.get("pods", [])]
        if kind == "Pod" and 0 in grace:  # a manifest folder has no `delete --grace-period`, so set the pod's own
            document = re.sub(r"terminationGracePeriodSeconds: \d+", "terminationGracePeriodSeconds: 0", document)
        if kind == "Pod" and self.runtimes:
            document = re.sub(r"(?m)^spec:\s*$", f"spec:\n  runtimeClassName: {self.runtimes[self.turn % len(self.runtimes)]}", document, count=1)
            self.turn += 1
        self.node.put(f"{kind.lower()}-{name}.yaml", document)

    def read_all(self):
        """Waits until the daemon has read every file of the folder."""
        def read_now():
            return {f["name"] for f in self.node.get("/manifests")["items"]} >= set(os.listdir(self.node.manifests))
        coracle.until(read_now, 10, "all manifests are read")

    def refused(self):
        """Names of pods whose manifests the daemon rejects."""
        return {f[len("pod-"):-len(".yaml")] for f in self.node.problems() if f.startswith("pod-")}

    def logs(self, pod):
        """{container: text of its newest log}"""
        for path in glob.glob(f"{self.node.pod_logs}/default_{pod.name}_{pod.uid}/*/*.log"):
            key, number = (pod.name, os.path.basename(os.path.dirname(path))), int(os.path.basename(path)[:-4])
            if key not in self.log_files or self.log_files[key][0] < number:
                self.log_files[key] = (number, open(path, encoding="utf-8", errors="replace"))
        found = {}
        for (name, container), (_, file) in self.log_files.items():
            if name == pod.name:
                file.seek(0)
                found[container] = file.read()
        return found

    def reached(self, pod, until):
        status = pod.status
        everyone = status.get("initContainerStatuses", []) + status.get("containerStatuses", [])
        waiting = [c["state"]["waiting"].get("reason") for c in everyone if "waiting" in c["state"]]
        word, _, detail = until.partition(":")
        if word == "none":
            return True
        if word == "event":
            reason, _, times = detail.partition("*")
            return sum(e.get("count", 1) for e in self.node.events(pod.name) if e["reason"] == reason) >= int(times or 1)
        if word == "finished":
            return pod.phase in ("Succeeded", "Failed")
        if word == "ready":
            return pod.ready
        if word == "waiting":
            return any(r not in (None, "ContainerCreating", "PodInitializing") for r in waiting)
        if word == "backoff":
            return any(c["restartCount"] > 0 and c["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"
                       for c in everyone)
        if word == "restarts":
            return any(c["restartCount"] >= int(detail) for c in everyone)
        check(word == "report", f"case.json waits for {until!r}, which this driver does not know")
        logs = self.logs(pod)
        return all("=== end" in logs.get(c["name"], "") or "terminated" in c["state"] for c in everyone) and everyone

    def wait(self):
        names, until = set(self.expect["pods"]), self.how.get("until", "report")
        deadline = time.monotonic() + self.how.get("timeout", 15) * SLOW

        def all_reached(newest):
            for name in names - self.refused():
                goal = until if isinstance(until, str) else until.get(name, "report")
                if name not in newest or not self.reached(newest[name], goal):
                    return False
            return True
        self.follower.wait(all_reached, deadline)  # states that were not reached show as differences
        settle = self.how.get("settle", 0.6 if until in ("backoff",) else 1.2)
        self.follower.wait(lambda _: False, time.monotonic() + settle)

    def act(self, action):
        if action["do"] == "replace":
            for document in documents(f"{self.folder}/{action['file']}"):
                self.put(document)
        elif action["do"] == "waitlog":
            deadline = time.monotonic() + action.get("timeout", 30) * SLOW
            ok = self.follower.wait(lambda newest: any(action["text"] in text for text in
                                                       self.logs(newest[action["pod"]]).values()), deadline)
            check(ok, lambda: f"{action['text']!r} is not in the log of {action['pod']}")
        elif action["do"] == "delete":
            for name in action["pods"]:
                self.logs(self.follower.newest[name])
                self.node.remove(f"pod-{name}.yaml")
        else:
            raise Failed(f"case.json has an action {action['do']!r}, which this driver does not know")

    def drive(self):
        for line in self.how.get("prepare", []):
            subprocess.run(["sh", "-c", line], check=True)
        self.node.put("probe.yaml", read(f"{FIXTURES}/probe.yaml"))
        for document in documents(f"{self.folder}/input.yaml"):
            if identity(document)[0] == "Pod":  # objects it refers to exist before it, even optional ones
                self.read_all()
            self.put(document)
            if "sequential" in self.how and identity(document)[0] == "Pod":
                self.follower.wait(lambda _: False, time.monotonic() + self.how["sequential"])
        self.wait()
        for name, pod in self.follower.newest.items():
            self.hosts_cgroups[name] = self.cgroups(pod)
        actions = self.how.get("actions", [])
        for action in actions:
            self.act(action)
        deleted = {n for a in actions if a["do"] == "delete" for n in a["pods"]}
        check(self.follower.wait(lambda _: deleted <= self.follower.deleted, time.monotonic() + 30 * SLOW),
              lambda: f"{deleted - self.follower.deleted} are not gone")

    # -- observations

    def cgroups(self, pod):
        """({container: values}, values of the pod) on a v1 host, as in the recording; ({}, {}) elsewhere."""
        def values(folder_of):
            found = {}
            for controller, files in CGROUP_FILES.items():
                folder = folder_of(controller)
                for file in files if folder else ():
                    text = read(f"{folder}/{file}", "").strip()
                    if text:
                        found[file] = text
            return found

        def below(mark):
            def find(controller):
                for root in hierarchies():
                    if controller in os.path.basename(os.path.realpath(root)).split(","):
                        for folder, names, _ in os.walk(root + self.node.cgroup_root):
                            if mark in names:
                                return f"{folder}/{mark}"
                return None
            return find
        running = [c for c in pod.status.get("containerStatuses", []) + pod.status.get("initContainerStatuses", [])
                   if "running" in c["state"]]
        return ({c["name"]: values(below(c["containerID"].rpartition("//")[2])) for c in running},
                values(below(f"pod{pod.uid}")) if running else {})

    def result(self, name, pod):
        rules = normalise.Rules(uid=pod.uid, node="test-node", node_hostname=os.uname().nodename, host_ip=NODE_IP,
                                gateway=GATEWAY, pod_net=POD_NET, root_dir=self.node.root_dir, log_dir=self.node.pod_logs)
        events = [e for e in self.node.events(pod.name) if e["involvedObject"]["uid"] == pod.uid]
        init = read("/proc/1/comm").strip()
        logs = {c: re.sub(rf"\bpid1 {re.escape(init)} ", "pid1 <init of the node> ", text)
                for c, text in self.logs(pod).items()}
        found = normalise.pod(rules, pod.status, events, logs, pod["spec"].get("hostNetwork", False))
        containers, own = self.hosts_cgroups.get(pod.name, ({}, {}))
        for container, values in containers.items():
            found["containers"].setdefault(container, {})["cgroup"] = values
            found["containers"][container]["podCgroup"] = own
        if "deletionGracePeriodSeconds" in self.expect["pods"].get(name, {}):
            found["deletionGracePeriodSeconds"] = pod["metadata"].get("deletionGracePeriodSeconds")
        return found

    def results(self):
        refused = self.refused()
        return {"case": self.name, "rejectedByApiserver": {f"Pod/{n}": {} for n in refused},
                "pods": {n: self.result(n, p) for n, p in self.follower.newest.items()}}

    def judge(self, actual):
        """Fails on a difference that no list covers; otherwise returns the word for the case."""
        lists = {"common": compare.rules([f"{FIXTURES}/allow-common", f"{FIXTURES}/allow-coracle"])}
        for file in ("allow", "not-yet"):
            lists[file] = compare.rules([f"{self.folder}/{file}"])
        open_, used = [], {"allow": set(), "not-yet": set()}
        for path, want, got in compare.compare(self.expect, actual, False):
            if compare.allowed(lists["common"], path, got):
                continue
            for file in ("allow", "not-yet"):
                hits = {i for i, rule in enumerate(lists[file]) if compare.allowed([rule], path, got)}
                if hits:
                    used[file] |= hits
                    break
            else:
                open_.append(f"{path}: expected {json.dumps(want)}, got {json.dumps(got)}")
        check(not open_, lambda: f"{len(open_)} differences that nobody argued for:\n" + "\n".join(open_))
        check(used["not-yet"] or not lists["not-yet"], "the file not-yet covers nothing any more: remove it")
        return "not yet" if used["not-yet"] else "argued" if used["allow"] else "passing"

    def clean_up(self):
        for line in self.how.get("cleanup", []):
            subprocess.run(["sh", "-c", line], check=False)
        for _, file in self.log_files.values():
            file.close()


def run_case(t, name, runtimes=()):
    node = prepare_node(t)
    case = Case(t, node, name, runtimes)
    try:
        case.drive()
        actual = case.results()
        if "CORACLE_TEST_GOLDEN_OUT" in os.environ:  # keeps the observations, for a run of compare.py by hand
            os.makedirs(f"{os.environ['CORACLE_TEST_GOLDEN_OUT']}/{name}", exist_ok=True)
            with open(f"{os.environ['CORACLE_TEST_GOLDEN_OUT']}/{name}/expect.json", "w", encoding="utf-8") as f:
                json.dump(actual, f, indent=1)
        word = case.judge(actual)
    finally:
        case.clean_up()
    for file in os.listdir(node.manifests):
        os.unlink(f"{node.manifests}/{file}")
    coracle.until(lambda: not node.pods(), 60, lambda: f"pods are left: {sorted(node.pods())}")
    node.stop()
    print(f"COUNT golden {word}")


def run_static_pods(t):
    """Case 57: files of a static pod folder, some of them bad; one is changed, then all are removed."""
    name = "57-static-pods"
    node = prepare_node(t)
    with open(f"{FIXTURES}/cases/{name}/expect.json", encoding="utf-8") as f:
        expect = json.load(f)
    folder = f"{FIXTURES}/cases/{name}/manifests"
    for file in sorted(os.listdir(folder)):
        as_file = ".hidden.yaml" if file == "dot-hidden.yaml" else file
        node.put(as_file, read(f"{folder}/{file}"))
    case = Case(t, node, name)

    def as_recorded(pods):  # static pods have the node's name as suffix; pods of the folder keep the name of their manifest
        return {f"{n}-<node>": case.result(n, p) for n, p in pods.items()}

    def over(newest):
        return all(n in newest for n in ("st-ok", "st-first", "st-second", "st-json")) and \
            newest["st-ok"].ready and all(newest[n].phase == "Succeeded" for n in ("st-first", "st-json"))
    try:
        check(case.follower.wait(over, time.monotonic() + 20 * SLOW), lambda: f"pods: {sorted(node.pods())}")
        # The folder accepts kinds other than Pod and several documents in a file; a bad file does not affect
        # others.
        coracle.equal(set(node.problems()), {"broken.yaml", "invalid.yaml"}, "files with problems")
        check("st-hidden" not in case.follower.newest, "the hidden file was read")
        case.follower.wait(lambda _: False, time.monotonic() + 1)
        seen = as_recorded({n: p for n, p in case.follower.newest.items() if n in ("st-ok", "st-first", "st-json")})
        word = case.judge({"case": name, "pods": seen})
        old = case.follower.newest["st-ok"].uid
        node.put("ok.yaml", read(f"{FIXTURES}/cases/{name}/update-ok.yaml"))
        check(case.follower.wait(lambda newest: newest["st-ok"].uid != old and newest["st-ok"].ready, time.monotonic() + 20 * SLOW),
              "the changed file made no new pod")
        case.log_files.clear()
        case.follower.wait(lambda newest: "=== end" in case.logs(newest["st-ok"]).get("main", ""), time.monotonic() + 5)
        changed = as_recorded({"st-ok": case.follower.newest["st-ok"]})
        case.expect = {"case": name, "pods": {"st-ok-<node>": expect["afterUpdate"]}}
        check(case.judge({"case": name, "pods": changed}) != "not yet", "not yet")
        for file in os.listdir(node.manifests):
            os.unlink(f"{node.manifests}/{file}")
        coracle.until(lambda: not node.pods(), 20, lambda: f"pods are left: {sorted(node.pods())}")
    finally:
        case.clean_up()
    node.stop()
    print(f"COUNT golden {word}")
