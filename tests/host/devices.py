# SPDX-License-Identifier: Apache-2.0
"""devices - what tests of devices share: plugins as processes, the checkpoint, podresources, pods that ask.

Plugins and the client of podresources run on /usr/bin/python3 with Debian's python3-grpcio.
"""
import base64
import json
import os
import signal
import stat
import subprocess

import coracle
from coracle import SLOW, check, equal, until

PYTHON = "/usr/bin/python3"
RESOURCE = "example.com/dev"
MAJOR = 240  # "local/experimental use", no driver: an open that the device rules allow fails with ENXIO, one that they do not with EPERM
SIGNALS = {"TERM": signal.SIGTERM, "HUP": signal.SIGHUP, "USR1": signal.SIGUSR1, "KILL": signal.SIGKILL,
           "STOP": signal.SIGSTOP, "CONT": signal.SIGCONT}


class Plugin:
    """A device plugin's process: device_plugin.py with flags, or another program that takes --root and --name."""

    def __init__(self, node, *flags, name="p1", program="device_plugin.py", wait=True):
        self.name = name
        self.path = next(p for p in (f"{node.world.scratch}/{name}-{i}.ndjson" for i in range(100000)) if not os.path.exists(p))
        with open(self.path, "wb") as out:
            self.process = subprocess.Popen([PYTHON, f"{coracle.HERE}/{program}", "--root", node.root_dir, "--name", name, *flags],
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=open(self.path + ".err", "ab"))
        if wait:
            self.wait_call("Register", ok=True)

    def calls(self, event=None):
        """The lines that it has written so far."""
        with open(self.path, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f.read().split("\n")[:-1]]
        return [line for line in lines if event in (None, line["event"])]

    def wait_call(self, event, count=1, deadline=15, **fields):
        """Waits until that many such lines are there, and returns the last."""
        def found():
            lines = [c for c in self.calls(event) if all(c.get(k) == v for k, v in fields.items())]
            return lines[-1] if len(lines) >= count else None
        return until(found, deadline, lambda: f"{count} {event} {fields or ''} of plugin {self.name}; its lines:\n{self.calls()}\n"
                                              f"{coracle.read(self.path + '.err', '')[-2000:]}", interval=0.05)

    def allocated(self):
        """The ids of each Allocate, in order."""
        return [c["request"]["container_requests"][0]["devices_ids"] for c in self.calls("Allocate")]

    def signal(self, word):
        self.process.send_signal(SIGNALS[word])
        if word in ("TERM", "KILL"):
            self.process.wait(timeout=15 * SLOW)

    def stop(self):
        if self.process.poll() is None:
            self.signal("TERM")

    def kill(self):
        self.signal("KILL")


class Client:
    """grpc_client.py, kept for many questions."""

    def __init__(self):
        self.process = subprocess.Popen([PYTHON, f"{coracle.HERE}/grpc_client.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def podresources(self, node, call, **fields):
        return self.ask(call=call, socket=f"{node.root_dir}/pod-resources/kubelet.sock", **fields)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- the checkpoint -------------------------------------------------------------------------------------------------

def checkpoint_path(node):
    return f"{node.root_dir}/device-plugins/kubelet_internal_checkpoint"


def _deep_text(data):
    """What Go's spew prints of the checkpoint's data ("%#v", sorted keys): what kubelet's checksum is made of."""
    def ids(names):
        return "<nil>" if names is None else "[" + " ".join(names) + "]"

    def entry(e):
        numa = " ".join(f"{n}:{ids(e['DeviceIDs'][str(n)])}" for n in sorted(map(int, e["DeviceIDs"])))
        answer = " ".join(str(b) for b in base64.b64decode(e["AllocResp"]))
        return (f"{{PodUID:(string){e['PodUID']} ContainerName:(string){e['ContainerName']} ResourceName:(string){e['ResourceName']} "
                f"DeviceIDs:(checkpoint.DevicesPerNUMA)map[{numa}] AllocResp:([]uint8)[{answer}]}}")
    entries, resources = data["PodDeviceEntries"], data["RegisteredDevices"]
    listed = "<nil>" if entries is None else "[" + " ".join(map(entry, entries)) + "]"
    registered = " ".join(f"{k}:{ids(resources[k])}" for k in sorted(resources))
    return (f"(checkpoint.checkpointData){{PodDeviceEntries:([]checkpoint.PodDevicesEntry){listed} "
            f"RegisteredDevices:(map[string][]string)map[{registered}]}}")


def checksum(data):
    value = 0x811C9DC5  # FNV-1a, 32 bits
    for byte in _deep_text(data).encode("utf-8", "surrogateescape"):
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def checkpoint(node):
    """The data of the checkpoint file, None without a file; a torn one or a wrong checksum fails the test."""
    text = coracle.read(checkpoint_path(node), "absent")
    if text == "absent":
        return None
    try:
        whole = json.loads(text)
    except ValueError as error:
        raise coracle.Failed(f"the checkpoint is torn: {error}: {text[:200]!r}...") from None
    equal(whole["Checksum"], checksum(whole["Data"]), "the checkpoint's checksum")
    return whole["Data"]


def held(data):
    """{(pod uid, container, resource): sorted ids} of a checkpoint."""
    return {(e["PodUID"], e["ContainerName"], e["ResourceName"]): sorted(i for ids in e["DeviceIDs"].values() for i in ids)
            for e in (data or {}).get("PodDeviceEntries") or []}


# ---- device nodes ---------------------------------------------------------------------------------------------------

def device_node(path, minor):
    """Makes a device without a driver that everybody may open, as far as modes say."""
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(MAJOR, minor))
    os.chmod(path, 0o666)
    return path


def opens(node, name, path="/dev/x"):
    """What reading and writing a device without a driver say to a shell in the pod's container: "allowed", "refused" or the text."""
    words = {"No such device": "allowed", "not permitted": "refused"}
    said = node.cli("exec", name, "--", "/bin/busybox", "sh", "-c", f"(: < {path}) 2>&1; (: > {path}) 2>&1", ok=False, timeout=60)
    return tuple(next((words[w] for w in words if w in line), line) for line in (said.stdout or said.stderr).splitlines())


# ---- the node and its pods ------------------------------------------------------------------------------------------

def node_says(node, resource=RESOURCE):
    """(capacity, allocatable) of a resource; None for one that is not there."""
    status = node.get("/api/v1/nodes")["items"][0]["status"]
    return status["capacity"].get(resource), status["allocatable"].get(resource)


def wait_node(node, capacity, allocatable, resource=RESOURCE, deadline=10):
    wanted = (str(capacity), str(allocatable))
    until(lambda: node_says(node, resource) == wanted, deadline,
          lambda: f"the node has {wanted} of {resource}; it has {node_says(node, resource)}", interval=0.05)


def start(t, *flags, wait=True):
    """A daemon with the test image, folders of its own for declarations and CDI specs, and no waiting for devices."""
    for folder in ("devices.d", "cdi"):
        os.makedirs(f"{t.scratch}/{folder}", exist_ok=True)
    node = t.node("--device-declaration-dir", f"{t.scratch}/devices.d", "--cdi-spec-dirs", f"{t.scratch}/cdi", *flags, wait=wait)
    node.import_image()
    return node


def asking(name, count=1, resource=RESOURCE, command=None, ctr=None, **spec):
    """A pod whose one container asks for devices; ctr: further fields of the container."""
    asks = {"resources": {"limits": {resource: str(count)}}} if count is not None else {}
    spec.setdefault("terminationGracePeriodSeconds", 0)
    return coracle.pod(name, coracle.container(command=coracle.shell(command) if command else None, **asks, **(ctr or {})), **spec)


def devices_of(pod, container="main", resource=RESOURCE):
    """{id: health} of allocatedResourcesStatus."""
    for status in pod.container(container).get("allocatedResourcesStatus", []):
        if status["name"] == resource:
            return {r["resourceID"]: r.get("health") for r in status["resources"]}
    return {}


def plugin_at_work(node, *flags, name="p1", devices=2, **how):
    """A plugin whose devices the node has counted."""
    plugin = Plugin(node, "--devices", str(devices), *flags, name=name, **how)
    resource = flags[flags.index("--resource") + 1] if "--resource" in flags else RESOURCE
    until(lambda: node_says(node, resource)[0] == str(devices), 10, lambda: f"{resource} is counted: {node_says(node, resource)}", 0.05)
    return plugin


def check_no_device_twice(data):
    """No device has two pods in the checkpoint."""
    owners = {}
    for (uid, _, resource), ids in held(data).items():
        for name in ids:
            other = owners.setdefault((resource, name), uid)
            check(other == uid, lambda: f"{name} of {resource} is held by two pods: {other} and {uid}")
    return owners
