# SPDX-License-Identifier: Apache-2.0
"""eviction_golden - replays a recorded case of tests/fixtures/eviction against the daemon and compares.

The world is what the recording's kubelet had: a cgroup namespace, so that the root of its memory cgroup is the
machine and nobody else's memory is seen; small ext4 file systems on loop devices; thresholds relative to what
the agent reports as available before there are pods.  Differences are compared with the lists: `allow` of all
cases and of the case.  The runner prints the counts ("COUNT eviction ...").

Time is compressed.  The pods of the recording wait 26 s between two steps, because kubelet's statistics are old; here
the driver ends their waits, one after the other in the recorded order, when every pod has come that far.  The
agent is stopped meanwhile: kubelet looked some seconds after the step, and the recorded order is that of full
usage.  (That the agent comes in time is the subject of other tests.)  What lasts for its meaning - soft grace
and transition periods, and waits that are compared with them - is divided by SCALE; grace of pods is not.
"""
import glob
import json
import mmap
import os
import re
import signal
import time

import coracle
import golden
from coracle import SLOW, Skip, check, read, until
from small_machine import enter_cgroup_namespace, hide_available, make_disk, make_image

FIXTURES = f"{coracle.TOP}/tests/fixtures/eviction"
SCALE = 4
BALLAST = 64 << 20  # what the machine of the recording used at its start: allocatable is that and the N of the threshold
SETTLE_S = 1.0  # what the agent would do wrong, it has done by then
MEASURE = re.compile(r"Threshold quantity: [0-9.]+[A-Za-z]*, available: [0-9.]+[A-Za-z]*\.")
CONTAINER = re.compile(r"Container \S+ was using \S+ request is \S+ has larger consumption of \S+ ")
TIMES = ("lastTransitionTime", "startedAt", "finishedAt", "startTime", "lastProbeTime")
# What the agent names differently, or kubelet's recordings leave out.
DROPPED = ("containerID", "imageID", "image", "resources", "allocatedResources", "observedGeneration", "hostIP", "hostIPs", "podIP",
           "podIPs", "lastProbeTime")
EVENTS = ("Evicted", "Killing", "EvictionThresholdMet")
PRESSURE = ("MemoryPressure", "DiskPressure", "PIDPressure")
QUICK = ("01", "06b", "08", "10", "11f", "12", "22")


def cases():
    return sorted(os.path.basename(os.path.dirname(p)) for p in glob.glob(f"{FIXTURES}/cases/*/case.json"))


def load(case, name):
    with open(f"{FIXTURES}/cases/{case}/{name}", encoding="utf-8") as f:
        return json.load(f)


# ---- shapes ---------------------------------------------------------------------------------------------------------------

def shape_text(text):
    """A message without its numbers, its containers in order of their names (the recorded order is that of statistics)."""
    text = MEASURE.sub("Threshold quantity: <threshold>, available: <available>.", text.replace("test-node", "<node>"))
    text = re.sub(r"was using [0-9.]+[A-Za-z]*,", "was using <usage>,", text)
    found = sorted(CONTAINER.findall(text))
    if found:
        start = text.index("Container ", text.index("<available>"))
        text = text[:start] + "".join(found)
    for condition in re.findall(r"had condition: \[(.*?)\]", text):
        text = text.replace(condition, " ".join(sorted(condition.split())))
    return text


def shape(value, key=None):
    if isinstance(value, dict):
        return {k: shape(v, k) for k, v in value.items() if k not in DROPPED}
    if isinstance(value, list):
        return [shape(v, key) for v in value]
    if key in TIMES and value:
        return "<time>"
    return shape_text(value) if isinstance(value, str) else value


def shape_status(status):
    found = golden.compare.flat(shape(status), "", {})
    return {k: v for k, v in found.items() if v not in (None, {}, [])}


def shape_annotations(found):
    found = dict(found or {})
    for key in ("offending_containers", "offending_containers_usage"):
        if key in found:
            parts = ["<usage>" if key.endswith("usage") else p for p in found[key].split(",") if p]
            found[key] = ",".join(sorted(parts))
    if "offending_pod_usage" in found:
        found["offending_pod_usage"] = "<usage>"
    return found


def shape_event(kind, name, event):
    return f"{kind}/{name}", event["type"], event["reason"], shape_text(event["message"]), \
        json.dumps(shape_annotations(event.get("annotations")), sort_keys=True)


def shape_events(events):
    """{object: {reason: {message and annotations: True}}}"""
    found = {}
    for where, kind, reason, message, annotations in events:
        if where.startswith("Node/"):
            where = "Node"
        if reason in EVENTS or (reason.startswith("NodeHas") and not reason.startswith(("NodeHasSufficient", "NodeHasNo"))):
            text = f"{kind}: {message}" + (f" {annotations}" if annotations != "{}" else "")
            found.setdefault(where, {}).setdefault(reason, {})[text] = True
    return found


def scaled(duration):
    """A recorded duration ("20s"), compressed."""
    return f"{int(duration.rstrip('s')) * 1000 // SCALE}ms"


def sleeps(command):
    """The times since its start at which the program's waits end."""
    found, at = [], 0
    for word, value in zip(command, command[1:]):
        if word == "sleep":
            at += int(value)
            found.append(at)
    return found


class Case:
    def __init__(self, t, name):
        self.t, self.name = t, name
        self.how, self.expect = load(name, "case.json"), load(name, "expect.json")
        self.expect["pods"] = {n.removesuffix("-<node>"): p for n, p in self.expect["pods"].items()}  # mirror pods
        self.allow = [golden.compare.rules([f"{FIXTURES}/allow"]), golden.compare.rules([f"{FIXTURES}/cases/{name}/allow"])]
        self.used = {}  # (list, rule): what it covered
        self.pods = {}  # name: the newest object; final once its manifest was removed
        self.retired = {}
        self.failed = {}  # name: when it was seen to have ended by eviction
        self.events = {}
        self.victims = []
        self.evicted_at, self.ended_at = {}, {}
        self.conditions = []  # [({type: [status, reason, message]}, taints)]
        self.actions = list(self.how.get("actions", []))

    # -- preparation

    def prepare(self):
        t, disks = self.t, self.how["filesystems"]
        if coracle.cgroup_v2():
            raise Skip("recorded on cgroup v1; on v2 the agent's own memory.high would slow down pods while it is stopped")
        enter_cgroup_namespace(t)
        hide_available(t)
        self.node = coracle.Node(t)
        t.nodes.append(self.node)
        if disks["nodefs"].startswith("ext4"):
            disk = make_disk(t, "disk")
            self.node.root_dir, self.node.state_dir = f"{disk}/kubelet", f"{disk}/state"
            self.node.pod_logs = f"{disk}/pods"
            os.makedirs(self.node.pod_logs)
        if disks["imagefs"].startswith("ext4"):
            self.node.state_dir = make_disk(t, "images")
        hog = f"{t.build}/tests/host/hog"
        check(os.path.exists(hog), f"there is no {hog}: make host-programs")
        with open(hog, "rb") as f:
            make_image(f"{t.scratch}/hog.tar", "localhost/hog:1", {"hog": f.read()})
        self.ballast = mmap.mmap(-1, BALLAST)
        self.ballast.write(b"m" * BALLAST)
        self.node.start()
        self.node.import_image(f"{t.scratch}/hog.tar")
        if "prepare" in self.how:
            self.import_unused(self.how["prepare"])
        self.configure()
        self.node.start()

    def import_unused(self, words):
        """Images that no pod uses, of as many MiB as the words say."""
        for size in re.findall(r"\b(\d+)(?= and| MiB)", words):
            path = f"{self.t.scratch}/unused.tar"
            make_image(path, f"localhost/unused{size}:1", {"data": os.urandom(int(size) << 20)})
            self.node.import_image(path)
            os.unlink(path)

    def available(self):
        summary = self.node.get("/stats/summary")["node"]
        limits = summary["rlimit"]
        return {"memory.available": summary["memory"]["availableBytes"], "nodefs.available": summary["fs"]["availableBytes"],
                "nodefs.inodesFree": summary["fs"]["inodesFree"],
                "imagefs.available": summary["runtime"]["imageFs"]["availableBytes"],
                "pid.available": limits["maxpid"] - limits["curproc"]}

    def threshold(self, signal_name, text, available):
        found = re.match(r"<available at start - (\d+)(Mi)?>", text)
        if not found:
            return text
        if not found.group(2):
            return str(available[signal_name] - int(found.group(1)))
        return f"{(available[signal_name] >> 20) - int(found.group(1))}Mi"

    def configure(self):
        """The configuration of the recording, with thresholds as of now; ends the daemon that was asked."""
        available = self.available()
        capacity = self.node.get("/api/v1/nodes")["items"][0]["status"]["capacity"]["memory"]
        config = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "imageMinimumGCAge": "1s",
                  **json.loads(json.dumps(self.how["kubelet"]))}
        for key in ("evictionHard", "evictionSoft"):
            for name, text in config.get(key, {}).items():
                config[key][name] = self.threshold(name, text, available)
        for key, value in config.get("kubeReserved", {}).items():
            less = int(re.match(r"<capacity - (\d+)Mi>", value).group(1))
            config["kubeReserved"][key] = f"{int(capacity.rstrip('Ki')) - less * 1024}Ki"
        config["evictionPressureTransitionPeriod"] = scaled(config["evictionPressureTransitionPeriod"])
        if "evictionSoftGracePeriod" in config:
            config["evictionSoftGracePeriod"] = {k: scaled(v) for k, v in config["evictionSoftGracePeriod"].items()}
        self.config = config
        self.write_config(config)
        self.node.stop()
        self.node.flags += ["--config", f"{self.t.scratch}/config.yaml"]

    def write_config(self, config):
        with open(f"{self.t.scratch}/config.yaml", "w", encoding="utf-8") as f:
            json.dump(config, f)

    def recount_pids(self):
        """Process ids are counted for the whole machine, where others come and go: the threshold follows them before it is crossed."""
        text = self.how["kubelet"]["evictionHard"].get("pid.available")
        if text is None:
            return
        taken = 0
        for pod in self.pods.values():
            command = pod["spec"]["containers"][0]["command"]
            taken += int(command[command.index("procs") + 1])
        available = {"pid.available": self.available()["pid.available"] + taken}
        self.config["evictionHard"]["pid.available"] = self.threshold("pid.available", text, available)
        self.reload(self.config)

    def reload(self, config):
        self.write_config(config)
        since = len(self.node.log())
        self.node.process.send_signal(signal.SIGHUP)
        self.node.wait_log("configuration reloaded", since=since)

    # -- pods

    def put(self, file, at_once=None):
        """Puts the pods of a file into the folder; at_once: only those that end without having waited, or only others."""
        for document in golden.documents(f"{FIXTURES}/cases/{self.name}/{file}"):
            name = golden.identity(document)[1]
            if at_once is None or at_once == ("- exit" in document and "- sleep" not in document):
                self.node.put(f"{name}.yaml", document)

    def start_pods(self):
        """Those that end at once come before the others: together they are too much, which the agent sees and kubelet does not."""
        self.put("input.yaml", at_once=True)
        names = [f.removesuffix(".yaml") for f in os.listdir(self.node.manifests) if not f.startswith(".")]
        if names:
            self.node.wait_phase(names[0], "Succeeded")
        self.put("input.yaml", at_once=False)

    def look(self):
        """Takes in what the agent says now."""
        now = time.monotonic()
        for e in self.node.events():
            key = (e["involvedObject"].get("uid"), e["reason"], e["message"])
            if key not in self.events and e["reason"] == "Evicted" and "rejected" not in e["message"] \
                    and "The node had condition" not in e["message"]:
                self.victims.append(e["involvedObject"]["name"])
                self.evicted_at[e["involvedObject"]["name"]] = now
            e["annotations"] = e["metadata"].get("annotations") or e.get("annotations")
            self.events[key] = e
        for (_, name), pod in self.node.pods().items():
            if name not in self.retired:
                self.pods[name] = pod
                self.end(name, pod, now)
        item = self.node.get("/api/v1/nodes")["items"][0]
        found = ({c["type"]: [c["status"], c["reason"], c["message"]] for c in item["status"]["conditions"] if c["type"] in PRESSURE},
                 sorted(f"{x['key']}:{x['effect']}" for x in item["spec"].get("taints") or []))
        if not self.conditions or self.conditions[-1] != found:
            self.conditions.append(found)

    def end(self, name, pod, now):
        """An evicted pod does not come back, as in kubelet: its manifest is removed soon after its end was seen."""
        if name in self.victims and name not in self.ended_at and all("terminated" in c["state"] for c in
                                                                      pod.status.get("containerStatuses", [])):
            self.ended_at[name] = now
        disrupted = pod.condition("DisruptionTarget") or pod.status.get("reason") == "Evicted"
        if pod.phase not in ("Failed", "Succeeded") or not disrupted:
            return
        since = self.failed.setdefault(name, now)
        if now - since > 0.5:
            self.retired[name] = pod
            self.node.remove(f"{name}.yaml")

    def comm(self, pod, container):
        """(words begun, state) of a hog, None when it does not run (yet)."""
        pid = self.node.pid(pod, container) if pod.container_id(container) else None
        if not pid:
            return None
        found = re.fullmatch(r"(\d+) (busy|sleep|done)", read(f"/proc/{pid}/comm", "").strip())
        return (int(found.group(1)), found.group(2), pid) if found else None

    def hogs(self):
        """{(pod, container): (words begun, state, pid)} of those that run."""
        found = {}
        for name, pod in self.pods.items():
            for c in pod["spec"]["containers"]:
                if name not in self.retired and name not in self.victims:
                    now = self.comm(pod, c["name"])
                    if now:
                        found[(name, c["name"])] = now
        return found

    def settled(self):
        """Whether all pods run, and each of their programs waits or has done its work."""
        self.look()
        if not set(self.expected_pods()) <= set(self.pods):
            return False
        hogs = self.hogs()
        for name in self.expected_pods():
            pod = self.pods[name]
            for c in pod["spec"]["containers"]:
                ended = "terminated" in pod.container(c["name"]).get("state", {}) or name in self.victims or name in self.retired
                if not ended and hogs.get((name, c["name"]), (0, "busy"))[1] == "busy":
                    return False
        return True

    def expected_pods(self):
        return [golden.identity(d)[1] for d in golden.documents(f"{FIXTURES}/cases/{self.name}/input.yaml")]

    def schedule(self):
        """[(recorded time, {(pod, container)} whose wait ends then)]"""
        found = {}
        for name in self.expected_pods():
            for c in self.pods[name]["spec"]["containers"]:
                for at in sleeps(c["command"]):
                    found.setdefault(at, set()).add((name, c["name"]))
        return sorted(found.items())

    def release(self, who):
        """Ends a wait of these programs, and lets them do their next step while the agent is stopped."""
        before = {k: v for k, v in self.hogs().items() if k in who and v[1] == "sleep"}
        self.node.process.send_signal(signal.SIGSTOP)
        try:
            for _, _, pid in before.values():
                os.kill(pid, signal.SIGUSR1)

            def over():
                for words, _, pid in before.values():
                    found = re.fullmatch(r"(\d+) (busy|sleep|done)", read(f"/proc/{pid}/comm", "").strip())
                    if found and (found.group(2) == "busy" or (int(found.group(1)) == words and found.group(2) == "sleep")):
                        return False
                return True
            until(over, 30, "the pods' next step is done")
        finally:
            self.node.process.send_signal(signal.SIGCONT)

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(0.05)

    def bring_images(self):
        """Images that the recording imports beside the pods.  Here before them: the agent imports them itself, so that there are none
        that it does not know, and needs twice their size meanwhile, which it does not take from what a threshold keeps free."""
        imported = [action for action in self.actions if "imported" in action["about"]]
        if imported:
            self.reload({**self.config, "evictionHard": {"memory.available": "1Mi"}})
            for action in imported:
                self.actions.remove(action)
                self.import_unused(action["about"])
            self.reload(self.config)
            self.look()
        until(lambda: self.look() or all(c[0] == "False" for c in self.conditions[-1][0].values()), 30, "no pressure before there are pods")
        self.node.import_image(f"{self.t.scratch}/hog.tar")  # no pod used it yet: it may have been removed, too

    def drive(self):
        self.look()
        self.bring_images()
        self.start_pods()
        until(self.settled, 30, lambda: f"pods have done their first step: {self.hogs()}", interval=0.05)
        self.wait(SETTLE_S)
        self.recount_pids()
        before = None
        for at, what in self.schedule():
            if before is not None:
                self.wait(max(SETTLE_S, (at - before) / SCALE))
            before = at
            self.release(what)
        self.observe()

    def evictions(self):
        """The recorded victims; where kubelet's statistics were old, as many by the rules."""
        found = [e["pod"] for e in self.expect["evictions"]]
        if any(not r["asByManifest"] for r in self.expect["rankings"]):
            found = self.expect["rankings"][0]["byManifest"][:len(found)]
        return found

    def other_victims(self):
        """Pods of which the recording shows another fate than that by the rules: not compared."""
        return set(self.evictions()) ^ {e["pod"] for e in self.expect["evictions"]}

    def ends_calm(self):
        return all(c[0] == "False" for c in self.expect["node"][-1]["conditions"].values())

    def observe(self):
        """Follows what happens, until the node is back to normal or pressure has lasted without another victim; no longer than kubelet took."""
        start, since, local = time.monotonic(), time.monotonic(), self.expect["crossing"] is None
        wanted, before = len(self.expect["evictions"]), None
        while True:
            self.look()
            self.act()
            now = time.monotonic()
            calm = all(c[0] != "True" for c in self.conditions[-1][0].values())
            state = (calm, len(self.victims), len(self.retired), len(self.actions))
            if state != before:
                before, since = state, now
            done = set(self.victims) <= set(self.retired) and not self.actions and (calm or not self.ends_calm())
            seen = len(self.conditions) > 1 and not local  # pressure; what a limit leads to shows only in the victims
            enough = len(self.victims) >= wanted and (seen or local)
            if done and (enough or now - since > (5 if seen else 25) * SLOW) and now - since > SETTLE_S * (1 if calm and not local else 4):
                return
            if now - start > 40 * SLOW:
                return
            time.sleep(0.05)

    def act(self):
        """Actions that wait for a condition."""
        for action in list(self.actions):
            found = re.match(r"node condition (\w+) is (seen True|False again)", action["when"])
            if not found:
                self.actions.remove(action)
                continue
            seen = [c[found.group(1)][0] for c, _ in self.conditions]
            if "True" in seen and (found.group(2) == "seen True" or seen[-1] == "False"):
                self.actions.remove(action)
                self.put(action["create"])
            else:
                return

    # -- comparison

    def differences(self, path, want, got):
        if isinstance(want, dict) and isinstance(got, dict):
            for key in sorted(set(want) | set(got)):
                yield from self.differences(f"{path}/{key.lstrip('/')}", want.get(key), got.get(key))
        elif want != got and not (want in ({}, None) and got in ({}, None)):
            yield path, want, got

    def statuses(self):
        """(recorded, seen) of each pod; a container whose end kubelet did not see in time is left out (README of the recordings)."""
        for name, one in self.expect["pods"].items():
            if name in self.other_victims():
                continue
            want, got = json.loads(json.dumps(one["status"])), json.loads(json.dumps(self.pods[name].status if name in self.pods else {}))
            unknown = {c["name"] for c in want.get("containerStatuses", [])
                       if c["state"].get("terminated", {}).get("reason") == "ContainerStatusUnknown"}
            for status in (want, got):
                status["containerStatuses"] = [c for c in status.get("containerStatuses", []) if c["name"] not in unknown]
            yield name, shape_status(want), shape_status(got)

    def pressures(self):
        """{condition: its recorded and seen values in order}; the recording may have ended before pressure did."""
        found = {}
        for kind in PRESSURE:
            lists = []
            for seen in ([n["conditions"] for n in self.expect["node"]], [c for c, _ in self.conditions]):
                values = []
                for conditions in seen:
                    value = " ".join(conditions.get(kind, []))
                    if not values or values[-1] != value:
                        values.append(value)
                lists.append(values)
            want, got = lists
            if len(want) % 2 == 0 and len(got) == len(want) + 1:
                got = got[:-1]
            found[kind] = (want, got)
        return found

    def compare(self):
        order = sorted if self.expect["crossing"] is None else list  # limits: all offenders go at once
        want = {"evictions": order(self.evictions()), "pods": {}, "conditions": {}, "grace": {}}
        got = {"evictions": order(self.victims), "pods": {}, "conditions": {}, "grace": {}}
        for name, x, y in self.statuses():
            want["pods"][name], got["pods"][name] = x, y
        for kind, (x, y) in self.pressures().items():
            want["conditions"][kind], got["conditions"][kind] = x, y
        want["taints"] = sorted({f"{t['key']}:{t['effect']}" for n in self.expect["node"] for t in n["taints"]})
        got["taints"] = sorted({t for _, taints in self.conditions for t in taints})
        want["events"] = shape_events(shape_event(*e["object"].split("/"), e) for e in self.expect["events"])
        got["events"] = shape_events(shape_event(e["involvedObject"]["kind"], e["involvedObject"]["name"], e)
                                     for e in self.events.values())
        for name in self.other_victims():
            want["events"].pop(f"Pod/{name}", None)
            got["events"].pop(f"Pod/{name}", None)
        for e in self.expect["evictions"]:
            name = e["pod"]
            if name in self.pods and name in self.ended_at and "ignore" in json.dumps(self.pods[name]["spec"]):
                took = self.ended_at[name] - self.evicted_at[name]
                want["grace"][name] = e["graceUsed"]
                got["grace"][name] = e["graceUsed"] if e["graceUsed"] - 1.3 < took < e["graceUsed"] + 1.5 * SLOW else round(took, 1)
        self.used.clear()
        return [d for d in self.differences("", want, got) if not self.allowed(d)]

    def allowed(self, difference):
        path, _, got = difference
        for number, rules in enumerate(self.allow):
            for i, rule in enumerate(rules):
                if golden.compare.allowed([rule], path.lstrip("/"), got):
                    self.used.setdefault((number, i), []).append(difference)
                    return True
        return False

    @staticmethod
    def line(difference):
        path, want, got = difference
        return f"{path.lstrip('/')}: expected {json.dumps(want)}, got {json.dumps(got)}"

    def rule(self, number, i):
        path, pattern = self.allow[number][i]
        return ("common " if number == 0 else "") + path + (f" ~ {pattern.pattern}" if pattern else "")

    def judge(self):
        found = self.compare()
        if "CORACLE_TEST_GOLDEN_OUT" in os.environ:
            os.makedirs(os.environ["CORACLE_TEST_GOLDEN_OUT"], exist_ok=True)
            with open(f"{os.environ['CORACLE_TEST_GOLDEN_OUT']}/{self.name}.txt", "w", encoding="utf-8") as f:
                f.writelines(f"{self.line(d)}\n" for d in found)
                for (number, i), covered in sorted(self.used.items()):
                    f.writelines(f"({self.rule(number, i)}) {self.line(d)}\n" for d in covered)
        check(not found, lambda: f"{len(found)} differences that nobody argued for:\n" + "\n".join(map(self.line, found)))
        unused = [self.rule(1, i) for i in range(len(self.allow[1])) if (1, i) not in self.used]
        check(not unused, lambda: f"no difference needs these entries of the list any more: {unused}")
        return "argued" if any(number for number, _ in self.used) else "passing"


def run_case(t, name):
    case = Case(t, name)
    case.prepare()
    case.drive()
    word = case.judge()
    for _, _, pid in case.hogs().values():  # some ignore SIGTERM
        os.kill(pid, signal.SIGKILL)
    for file in os.listdir(case.node.manifests):
        os.unlink(f"{case.node.manifests}/{file}")
    until(lambda: not case.node.pods(), 60, lambda: f"pods are left: {sorted(case.node.pods())}")
    case.node.stop()
    print(f"COUNT eviction {word}")
