# SPDX-License-Identifier: Apache-2.0
"""devices_golden - replays a recorded case of tests/fixtures/devices against the daemon and compares.

The steps of the recording are done with the plugin of the same flags; pods are manifests of the folder, kubelet
is the daemon.  A snapshot waits until everything in it is as recorded, for about as long as the recording took;
what is different then is compared with the lists: `allow` of all cases and of the case.  The runner prints
the counts ("COUNT devices ...").
"""
import glob
import json
import os
import re
import subprocess
import time

import coracle
import devices
import golden
from coracle import Failed, Pod, SLOW, check, read, run, until
from devices import Plugin

FIXTURES = f"{coracle.TOP}/tests/fixtures/devices"
# What a recording waited for, at most; the long form of case 26 waits as long as the recording did.
WAIT_S, SNAPSHOT_S = 1.0, 12.0
LONG = "CORACLE_TEST_LONG" in os.environ
COMPLETE = "03-init-reuse"  # has pods of each kind: shows every common difference
FLAGS = {"resource", "devices", "prefix", "endpoint", "version", "mode", "numa", "unhealthy", "toggle", "device", "annotation",
         "allocate-delay"}
SWITCHES = {"cdi", "prestart", "preferred", "fail-allocate", "fail-prestart"}


def cases():
    return sorted(os.path.basename(os.path.dirname(p)) for p in glob.glob(f"{FIXTURES}/cases/*/case.json"))


def load(case, name):
    with open(f"{FIXTURES}/cases/{case}/{name}", encoding="utf-8") as f:
        return json.load(f) if name.endswith(".json") else [json.loads(line) for line in f]


def seconds(case):
    """The approximate maximum duration of a case."""
    return 30 + 2 * sum(min(s.get("seconds", 1), 1000 if LONG else WAIT_S) for s in load(case, "case.json")["steps"])


def numa_nodes(t, cpus):
    """Pretends NUMA nodes, by files over /sys/devices/system/node in this test's mount namespace."""
    folder = f"{t.scratch}/numa"
    for number, cpu in enumerate(cpus):
        os.makedirs(f"{folder}/node{number}")
        for file, text in (("cpulist", cpu), ("distance", "10 20" if number == 0 else "20 10"),
                           ("meminfo", f"Node {number} MemTotal: 1048576 kB\n")):
            with open(f"{folder}/node{number}/{file}", "w", encoding="ascii") as f:
                f.write(text + "\n")
    listed = f"0-{len(cpus) - 1}" if len(cpus) > 1 else "0"
    for file in ("online", "possible", "has_cpu", "has_memory", "has_normal_memory"):
        with open(f"{folder}/{file}", "w", encoding="ascii") as f:
            f.write(listed + "\n")
    run("mount", "--bind", folder, "/sys/devices/system/node")


# ---- shapes: what kubelet orders at random is a set, and lists get keys -----------------------------------------------

def shape_devices(entries):
    """{resource: {id: NUMA nodes}} of ContainerDevices."""
    found = {}
    for entry in entries or []:
        for name in entry.get("device_ids", []):
            nodes = [int(n.get("ID", 0)) for n in entry.get("topology", {}).get("nodes", [])]
            found.setdefault(entry["resource_name"], {}).setdefault(name, []).extend(nodes)
    return found


def shape_pods(answer):
    return {p["name"]: {c["name"]: shape_devices(c.get("devices")) for c in p.get("containers", [])}
            for p in answer.get("pod_resources", [])}


def shape_get(answer):
    if "pod_resources" in answer:
        return shape_pods({"pod_resources": [answer["pod_resources"]]})
    error = answer["error"]
    return f"{error['code']}: {error['message']}"


def shape_answer(answer):
    """An AllocResp: its lists by what identifies an entry, DEV_IDS as a set."""
    answer = json.loads(json.dumps(answer))
    if "DEV_IDS" in answer.get("envs", {}):
        answer["envs"]["DEV_IDS"] = sorted(answer["envs"]["DEV_IDS"].split(","))
    for key in ("mounts", "devices"):
        if key in answer:
            answer[key] = {x.pop("container_path"): {k: v for k, v in x.items() if v is not False} for x in answer[key]}
    if "cdi_devices" in answer:
        answer["cdi_devices"] = sorted(x["name"] for x in answer["cdi_devices"])
    return answer


def shape_checkpoint(whole):
    if whole is None:
        return None
    data = whole.get("Data", whole)
    entries = {}
    for e in data["PodDeviceEntries"] or []:
        entries[f"{e['PodUID']} {e['ContainerName']} {e['ResourceName']}"] = {
            "ids": {n: sorted(ids) for n, ids in e["DeviceIDs"].items()}, "answer": shape_answer(e["AllocResp"])}
    return {"entries": entries, "registered": {k: sorted(v or []) for k, v in data["RegisteredDevices"].items()}}


def shape_snapshot(s):
    resources = s.get("podresources") or {}
    return {"node": s.get("node", {}), "pods": s.get("pods", {}), "checkpoint": shape_checkpoint(s["checkpoint"]) if "checkpoint" in s else None,
            "podresources": {"allocatable": shape_devices(resources.get("allocatable", {}).get("devices")),
                             "list": shape_pods(resources.get("list", {})),
                             "get": {n: shape_get(a) for n, a in resources.get("get", {}).items()}},
            "folder": dict(line.partition("|")[::2] for line in s.get("folder") or []),
            "podResourcesFolder": dict(line.partition("|")[::2] for line in s.get("podResourcesFolder") or [])}


def brief(status):
    """What a snapshot keeps of a pod's status."""
    found = {k: status[k] for k in ("phase", "reason", "message") if k in status}
    for c in status.get("initContainerStatuses", []) + status.get("containerStatuses", []):
        word, detail = next(iter(c.get("state", {"": {}}).items()))
        one = {"state": word + (f":{detail['reason']}" if detail.get("reason") else ""), "restarts": c.get("restartCount", 0)}
        if "allocatedResourcesStatus" in c:
            one["devices"] = {a["name"]: {r["resourceID"]: r.get("health") for r in a["resources"]}
                              for a in c["allocatedResourcesStatus"]}
        found.setdefault("containers", {})[c["name"]] = one
    return found


def shape_calls(lines):
    """{process: [call]}: requests with sorted ids; what may come in any order, and what only says what the test did, is left out."""
    found = {}
    for line in lines:
        event, request = line["event"], line.get("request", {})
        process = found.setdefault(line["plugin"].replace("#1", ""), [])
        if event in ("GetPreferredAllocation", "Allocate"):
            wish = {k: sorted(v) if isinstance(v, list) else v for k, v in request["container_requests"][0].items()}
            process.append(" ".join([event, json.dumps(wish, sort_keys=True)] + ([line["error"]] if "error" in line else [])))
        elif event == "PreStartContainer":
            text = f"{event} {sorted(request['devices_ids'])} {line.get('error', '')}".strip()
            if "error" not in line or text not in process:  # what failed is tried again and again
                process.append(text)
        elif event == "NotifyRegistrationStatus":
            text = f"{event} {json.dumps(request, sort_keys=True)}"
            if "error" not in request or text not in process:
                process.append(text)
        elif event == "Register" and not line.get("ok"):
            text = f"Register {line['error']}"
            if text not in process:  # it tries again every half second
                process.append(text)
        elif event == "ListAndWatch" and line["stream"] > 1:
            found.setdefault(line["plugin"].replace("#1", "") + " streams", []).append("ListAndWatch")
    return found


def shape_saw(saw):
    found = {"env": dict(line.partition("=")[::2] for line in saw.get("env", [])),
             "dev": dict(line.partition("|")[::2] for line in saw.get("dev", [])),
             "mnt": dict(line.partition(": ")[::2] for line in saw.get("mnt", []))}
    if "DEV_IDS" in found["env"]:
        found["env"]["DEV_IDS"] = ",".join(sorted(found["env"]["DEV_IDS"].split(",")))
    if saw.get("devices cgroup"):
        found["devices cgroup"] = {line: True for line in saw["devices cgroup"]}
    return found


def differences(path, want, got):
    """Lines (path, wanted, got) of all leaves that differ."""
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(set(want) | set(got)):
            yield from differences(f"{path}/{key}", want.get(key), got.get(key))
    elif want != got and not (want in ({}, None) and got in ({}, None)):
        yield path, want, got


class Case:
    def __init__(self, t, name):
        self.t, self.name = t, name
        self.how, self.expect = load(name, "case.json"), load(name, "expect.json")
        self.expect["snapshots"] = {k: shape_snapshot(s) for k, s in self.expect["snapshots"].items()}
        self.manifests = {golden.identity(d)[1]: d.replace("<node>", "test-node")
                          for d in golden.documents(f"{FIXTURES}/cases/{name}/input.yaml")}
        self.plugins, self.pods, self.logs, self.specs, self.snapshots = {}, {}, {}, {}, {}
        self.processes = []  # (name in the recording, Plugin)
        self.events = {}
        self.rejected = {}  # pods that were rejected, and are gone since
        self.client = devices.Client()
        self.allow = [golden.compare.rules([f"{FIXTURES}/allow"]), golden.compare.rules([f"{FIXTURES}/cases/{name}/allow"])]
        self.used = {}  # (list, rule): what of the last comparison it covered

    # -- the node

    def flags(self):
        # Where a plugin hangs, the pod of the recording waits for it.
        found = ["--device-plugin-wait", "2m" if self.name in ("38-plugin-hangs", "44-prestart-hangs") else "0s"]
        for key, value in self.how["kubelet"].items():
            found += ["--" + re.sub("([A-Z])", lambda m: "-" + m.group(1).lower(), key), value]
        for step in self.how["steps"]:
            if step["do"] == "patch node status":  # what an admin patches in is configuration here
                found += ["--extended-resources", "example.com/phantom=" + step["patch"][0]["value"]]
        return found

    def prepare(self):
        if "machine" in self.how:
            numa_nodes(self.t, ["0", "1"])
        else:
            numa_nodes(self.t, ["0-1"])
        run("ip", "link", "add", "node0", "type", "bridge")
        run("ip", "addr", "add", f"{golden.NODE_IP}/24", "dev", "node0")
        run("ip", "link", "set", "node0", "up")
        self.node = devices.start(self.t, *self.flags(), "--node-ip", golden.NODE_IP)
        image = f"{self.t.scratch}/golden.tar"
        subprocess.run([f"{golden.FIXTURES}/mkimage", image], check=True, stdout=subprocess.DEVNULL)
        self.node.import_image(image)

    def plain(self, text):
        """Names of this test's folders and pods become those of the recording."""
        for name, pod in self.pods.items():
            text = text.replace(pod.uid, self.expect["pods"].get(name, {}).get("uid", f"<uid of {name}>"))
        text = text.replace(self.node.root_dir, "<rootDir>").replace(self.node.pod_logs, "<logDir>")
        return text.replace(f"{self.t.scratch}/var", "/var/lib").replace(f"{self.t.scratch}/elsewhere", "/run/elsewhere")

    # -- steps

    def look(self):
        """Keeps what disappears with a pod: its newest object, events, logs, and what its containers' specs say of devices."""
        for (_, name), pod in self.node.pods().items():
            self.pods[name] = pod
            for path in glob.glob(f"{self.node.pod_logs}/default_{name}_{pod.uid}/*/*.log"):
                if path not in self.logs:
                    self.logs[path] = open(path, encoding="utf-8", errors="replace")
            for c in pod.status.get("initContainerStatuses", []) + pod.status.get("containerStatuses", []):
                cid = c.get("containerID", "").rpartition("//")[2]
                text = read(f"{self.node.run_dir}/containers/{cid}/config.json", "") if cid else ""
                if text:
                    self.specs[(name, c["name"], str(c["restartCount"]))] = json.loads(text)
        for e in self.node.events():
            self.events[(e["involvedObject"]["uid"], e["reason"], e["message"], e["involvedObject"].get("fieldPath"))] = e

    def target(self, name, label):
        """What the recording says of a pod in the next snapshot that has it, or at the end."""
        labels = list(self.expect["snapshots"])
        for later in labels[labels.index(label):] if label else []:
            if name in self.expect["snapshots"][later]["pods"]:
                return self.expect["snapshots"][later]["pods"][name]
        return self.recorded(name)

    def recorded(self, name):
        status = self.expect["pods"].get(name, {}).get("status", {})
        return brief({} if isinstance(status, str) else status)

    def create(self, step, label):
        name = step["pod"]
        self.node.put(f"{name}.yaml", self.manifests[name])
        if self.node.process is None:
            return
        if "rejectedByApiserver" in self.expect["pods"].get(name, {}):
            until(lambda: f"{name}.yaml" in self.node.problems() or self.node.pod(name), 10, f"{name} is read")
            return
        target = self.target(name, label)
        # Containers are created while the network is being attached: a container may be refused before its pod has an address.
        has_address = target == self.recorded(name) and "podIP" in self.expect["pods"].get(name, {}).get("status", {})

        def there():
            self.look()
            pod = self.node.pod(name)
            return pod is not None and brief(pod.status) == target and (not has_address or "podIP" in pod.status)
        try:
            until(there, 6, "", interval=0.05)
        except Failed:
            return  # the snapshots say what is different
        if target.get("phase") == "Running":  # the reports of its containers, before anything is done to them
            self.wait_reports()

    def retire(self):
        """Removes pods that are rejected as recorded: those of the folder are judged again when something comes free, kubelet's never."""
        for (_, name), pod in self.node.pods().items():
            recorded = self.recorded(name)
            if pod.phase == "Failed" and "reason" in recorded and recorded.get("reason") == pod.status.get("reason") and \
                    f"{name}.yaml" in os.listdir(self.node.manifests):
                self.look()
                self.settle_events(name)
                self.rejected[name] = brief(self.pods[name].status)
                self.node.remove(f"{name}.yaml")
                self.node.wait_gone(name)

    def settle_events(self, name):
        """Waits for the recorded events of a pod."""
        reasons = {e["reason"] for e in self.expect["pods"][name]["events"]}
        end = time.monotonic() + SLOW
        while time.monotonic() < end and not reasons <= {k[1] for k in self.events if k[0] == self.pods[name].uid}:
            time.sleep(0.05)
            self.look()

    def plugin(self, step):
        name, flags = step["plugin"], step["flags"]
        argv = []
        for key, value in flags.items():
            if key in SWITCHES and value:
                argv.append("--" + key)
            elif key in FLAGS:
                argv += [f"--{key}", str(value)]
            elif key == "reregister" and not value:
                argv.append("--no-reregister")
            elif key == "dir":
                argv += ["--dir", f"{self.t.scratch}/elsewhere"]
            elif key == "mount" and value:
                folder = value.split(":")[0].replace("/var/lib", f"{self.t.scratch}/var")
                os.makedirs(folder, exist_ok=True)
                with open(f"{folder}/hello", "w", encoding="ascii") as f:
                    f.write("hello from plugin\n")
                argv += ["--mount", value.replace("/var/lib", f"{self.t.scratch}/var")]
        process = Plugin(self.node, *argv, name=name, wait=False)
        if flags.get("mode") != "watcher":
            process.wait_call("Register" if "dir" not in flags else "serving")
        else:
            process.wait_call("serving")
        self.plugins[name] = process
        count = 1 + sum(n.partition("#")[0] == name for n, _ in self.processes)
        self.processes.append((name if count == 1 else f"{name}#{count}", process))

    def act(self, step, gap, label):
        do = step["do"]
        path = step.get("path", "").replace("<rootDir>", self.node.root_dir)
        if do == "plugin":
            self.plugin(step)
        elif do == "signal":
            self.plugins[step["plugin"]].signal(step["signal"])
        elif do == "node says":
            try:
                devices.wait_node(self.node, step["capacity"], step["allocatable"], step["resource"])
            except Failed as failed:
                self.snapshots.setdefault("waited for", {})[f"{step['resource']} at {step['t']}"] = str(failed)
        elif do == "create pod":
            self.create(step, label)
        elif do in ("delete pod", "force delete pod"):
            self.node.remove(f"{step['pod']}.yaml")
            if do == "delete pod":
                self.node.wait_gone(step["pod"])
        elif do == "delete pod (not waited for)":
            self.node.remove(f"{step['pod']}.yaml")
        elif do == "wait":
            time.sleep(step["seconds"] if LONG else min(step["seconds"], WAIT_S))
        elif do == "kill container's process":
            pid = self.node.pid(self.pods[step["pod"]], step["container"]) if self.node.process is None else \
                self.node.pid(self.node.pod(step["pod"]), step["container"])
            check(pid, f"{step['pod']}/{step['container']} has a process")
            os.kill(pid, 9)
        elif do == "stop kubelet":
            self.look()
            self.node.stop()
        elif do == "start kubelet":
            self.node.start()
        elif do == "write file":
            with open(f"{self.t.scratch}/cdi/{os.path.basename(path)}", "w", encoding="utf-8") as f:
                f.write(step["text"])
        elif do == "make folder":
            os.makedirs(f"{self.t.scratch}/elsewhere")
            os.symlink(f"{self.node.root_dir}/device-plugins/kubelet.sock", f"{self.t.scratch}/elsewhere/kubelet.sock")
        elif do == "remove file":
            os.unlink(path)
        elif do == "change file":
            text = read(path)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text.replace('"Checksum":', '"Checksum":1'))
        elif do == "empty file":
            os.truncate(path, 0)
        elif do == "snapshot":
            self.snapshot(step["label"], gap)
        else:
            check(do in ("patch node status", "kubelet healthy"), f"case.json has a step {do!r}, which this driver does not know")

    def drive(self):
        steps = self.how["steps"]
        before = 0.0
        for i, step in enumerate(steps):
            label = next((s["label"] for s in steps[i:] if s["do"] == "snapshot"), None)
            self.act(step, step["t"] - before, label)
            before = step["t"]
            if self.node.process is not None:
                self.look()
                self.retire()
        self.settle()

    # -- observations

    def now(self, label):
        self.look()
        client, node = self.client, self.node
        expected = self.expect["snapshots"][label]
        status = node.get("/api/v1/nodes")["items"][0]["status"]
        extended = {part: {k: v for k, v in status[part].items() if "/" in k} for part in ("capacity", "allocatable")}
        data = devices.checkpoint(node)
        for e in (data or {}).get("PodDeviceEntries") or []:
            e["AllocResp"] = client.ask(decode="ContainerAllocateResponse", data=e["AllocResp"])
        folders = {}
        for key, folder in (("folder", "device-plugins"), ("podResourcesFolder", "pod-resources")):
            folders[key] = self.folder(f"{node.root_dir}/{folder}")
        found = {"node": extended, "pods": {**self.rejected, **{n: brief(p.status) for (_, n), p in node.pods().items()}},
                 "podresources": {"allocatable": client.podresources(node, "GetAllocatableResources").get("response", {}),
                                  "list": client.podresources(node, "List").get("response", {}),
                                  "get": {n: self.get(n) for n in expected["podresources"]["get"]}},
                 "checkpoint": data, **folders}
        found = shape_snapshot(json.loads(self.plain(json.dumps(found))))
        for key in folders:  # the long recording (26) has names only, of the one folder
            if not any(expected[key].values()):
                found[key] = {n: "" for n in found[key] if n != "." and expected[key]}
        return found

    def get(self, name):
        answer = self.client.podresources(self.node, "Get", pod_name=name, pod_namespace="default")
        return answer["response"] if "response" in answer else {"error": {"code": answer["code"], "message": answer["error"]}}

    @staticmethod
    def folder(path):
        if not os.path.isdir(path):
            return None
        found = []
        for name in [".", *os.listdir(path)]:
            st = os.lstat(f"{path}/{name}")
            kind = {0o140000: "socket", 0o040000: "folder", 0o100000: "file"}.get(st.st_mode & 0o170000, "other")
            found.append(f"{name}|{kind}|{st.st_mode & 0o7777:04o}")
        return found

    def open_differences(self, path, want, got):
        return [d for d in differences(path, want, got) if not self.allowed(d)]

    def allowed(self, difference):
        path, _, got = difference
        for number, rules in enumerate(self.allow):
            for i, rule in enumerate(rules):
                if golden.compare.allowed([rule], path, got):
                    self.used.setdefault((number, i), []).append(difference)
                    return True
        return False

    def snapshot(self, label, gap):
        if self.node.process is None:
            found = {"checkpoint": devices.checkpoint(self.node)}
            self.snapshots[label] = found
            return
        end = time.monotonic() + (SNAPSHOT_S + min(gap, 45)) * SLOW
        while True:
            found = self.now(label)
            if not self.open_differences(f"snapshots/{label}", self.expect["snapshots"][label], found) or time.monotonic() > end:
                break
            time.sleep(0.2)
        self.snapshots[label] = found

    def settle(self):
        """Waits for the recorded end of each pod."""
        end = time.monotonic() + 3 * SLOW
        while time.monotonic() < end:
            self.look()
            if all(brief(self.pods[n].status) == self.recorded(n) for n in self.expect["pods"] if n in self.pods):
                break
            time.sleep(0.1)
        self.wait_reports()

    def wait_reports(self):
        """The reports of containers that have only just started."""
        end = time.monotonic() + 2 * SLOW
        while time.monotonic() < end and not all("=== end" in self.log(f) for f in self.logs.values()):
            time.sleep(0.05)
            self.look()

    @staticmethod
    def log(file):
        file.seek(0)
        return file.read()

    def pod_result(self, name, pod):
        rules = golden.normalise.Rules(uid=pod.uid, node="test-node", node_hostname=os.uname().nodename, host_ip=golden.NODE_IP,
                                       gateway=golden.GATEWAY, pod_net=golden.POD_NET, root_dir=self.node.root_dir,
                                       log_dir=self.node.pod_logs)
        events = sorted((e for k, e in self.events.items() if k[0] == pod.uid), key=lambda e: e["firstTimestamp"])
        found = golden.normalise.pod(rules, pod.status, events, {})
        found["containers"] = {}
        for path, file in self.logs.items():
            if f"_{pod.uid}/" in path:
                container, number = path.split("/")[-2], os.path.basename(path)[:-4]
                saw = golden.normalise.sections(rules, self.log(file))
                oci = self.specs.get((name, container, number), {})
                found["containers"].setdefault(container, {})[number] = {
                    "saw": json.loads(self.plain(json.dumps(shape_saw(saw)))), "oci": self.shape_oci(oci)}
        return found

    @staticmethod
    def shape_oci(spec):
        """The plugins' part of a container's OCI spec."""
        if not spec:
            return {}
        linux = spec.get("linux", {})
        return {"devices": {d["path"]: f"{d['type']} {d['major']}:{d['minor']}" for d in linux.get("devices", [])},
                "allow": {f"{r['type']} {r['major']}:{r['minor']} {r['access']}": True
                          for r in linux.get("resources", {}).get("devices", []) if r.get("allow") and "minor" in r},
                "annotations": {k: v for k, v in spec.get("annotations", {}).items() if k.startswith("example.com/")}}

    @staticmethod
    def shape_recorded_oci(oci):
        return {"devices": {d["path"]: f"{d['type']} {d['major']}:{d['minor']}" for d in oci.get("devices") or []},
                "allow": {f"{r['type']} {r['major']}:{r['minor']} {r['access']}": True
                          for r in oci.get("deviceCgroup") or [] if r.get("allow") and "minor" in r},
                "annotations": {k: v for k, v in (oci.get("annotations") or {}).items() if k.startswith("example.com/")}}

    def compare(self):
        """All differences that no list covers."""
        self.used.clear()
        found = []
        for label, got in self.snapshots.items():
            want = self.expect["snapshots"].get(label, {})
            if set(got) == {"checkpoint"}:  # of a stopped agent
                got = json.loads(self.plain(json.dumps(self.decoded(got["checkpoint"]))))
                found += self.open_differences(f"snapshots/{label}/checkpoint", want["checkpoint"], shape_checkpoint(got))
            else:
                found += self.open_differences(f"snapshots/{label}", want, got)
        for name, want in self.expect["pods"].items():
            if "rejectedByApiserver" in want:
                found += self.open_differences(f"pods/{name}/rejected", self.refusal(want["rejectedByApiserver"]["message"]),
                                               self.refusal("; ".join(self.problems.get(f"{name}.yaml", []))))
                continue
            if isinstance(want["status"], str):  # deleted in the course of the recording
                continue
            if name not in self.pods:
                found.append((f"pods/{name}", "present", None))
                continue
            got = self.pod_result(name, self.pods[name])
            x, y = golden.compare.canon({k: v for k, v in want.items() if k != "containers"}, False), \
                golden.compare.canon({k: v for k, v in got.items() if k != "containers"}, False)
            for section in sorted(set(x) | set(y)):
                for key in sorted(set(x.get(section, {})) | set(y.get(section, {}))):
                    found += self.open_differences(f"pods/{name}/{section}{key}", x.get(section, {}).get(key), y.get(section, {}).get(key))
            for container, attempts in want["containers"].items():
                for number, one in attempts.items():
                    mine = got["containers"].get(container, {}).get(number, {})
                    path = f"pods/{name}/containers/{container}/{number}"
                    if "saw" in one:
                        seen = shape_saw(one["saw"])
                        if coracle.cgroup_v2():
                            seen.pop("devices cgroup", None)
                        found += self.open_differences(f"{path}/saw", seen, mine.get("saw"))
                    if "oci" in one and mine.get("oci"):
                        found += self.open_differences(f"{path}/oci", self.shape_recorded_oci(one["oci"]), mine["oci"])
        want = shape_calls(load(self.name, "calls.ndjson"))
        got = {}
        for name, process in self.processes:
            lines = [{**c, "plugin": name} for c in process.calls()]
            got.update(shape_calls(json.loads(self.plain(json.dumps(lines)))))
        for name in sorted(set(want) | set(got)):
            x, y = want.get(name, []), got.get(name, [])
            for i in range(max(len(x), len(y))):
                found += self.open_differences(f"calls/{name}/{i}", x[i] if i < len(x) else None, y[i] if i < len(y) else None)
        return found

    @staticmethod
    def refusal(text):
        """That a manifest was refused, and for which field; the words are the agent's own."""
        found = re.search(r"spec\.containers\[\d+\]\.resources", text)
        return found.group(0) if found else text

    def decoded(self, data):
        for e in (data or {}).get("PodDeviceEntries") or []:
            e["AllocResp"] = self.client.ask(decode="ContainerAllocateResponse", data=e["AllocResp"])
        return data

    def judge(self):
        self.problems = self.node.problems()
        found = self.compare()
        if "CORACLE_TEST_GOLDEN_OUT" in os.environ:
            os.makedirs(os.environ["CORACLE_TEST_GOLDEN_OUT"], exist_ok=True)
            with open(f"{os.environ['CORACLE_TEST_GOLDEN_OUT']}/{self.name}.txt", "w", encoding="utf-8") as f:
                f.writelines(f"{line}\n" for line in map(self.line, found))
                for (number, i), covered in sorted(self.used.items()):
                    f.writelines(f"({self.rule(number, i)}) {self.line(d)}\n" for d in covered)
        check(not found, lambda: f"{len(found)} differences that nobody argued for:\n" + "\n".join(map(self.line, found)))
        unused = [self.rule(number, i) for number in self.judged() for i in range(len(self.allow[number])) if (number, i) not in self.used]
        check(not unused, lambda: f"no difference needs these entries of the lists any more: {unused}")
        return "argued" if any(number for number, _ in self.used) else "passing"

    def judged(self):
        """The lists of which each entry must be needed; the common one on v1, where a container reports its device rules."""
        return (0, 1) if self.name == COMPLETE and not coracle.cgroup_v2() else (1,)

    @staticmethod
    def line(difference):
        path, want, got = difference
        return f"{path}: expected {json.dumps(want)}, got {json.dumps(got)}"

    def rule(self, number, i):
        path, pattern = self.allow[number][i]
        return ("common " if number == 0 else "") + path + (f" ~ {pattern.pattern}" if pattern else "")

    def clean_up(self):
        for _, plugin in self.processes:
            if plugin.process.poll() is None:
                plugin.signal("CONT")
                plugin.kill()
        for file in self.logs.values():
            file.close()
        self.client.close()


def run_case(t, name):
    case = Case(t, name)
    try:
        case.prepare()
        case.drive()
        word = case.judge()
    finally:
        case.clean_up()
    for file in os.listdir(case.node.manifests):
        os.unlink(f"{case.node.manifests}/{file}")
    until(lambda: not case.node.pods(), 60, lambda: f"pods are left: {sorted(case.node.pods())}")
    case.node.stop()
    print(f"COUNT devices {word}")
