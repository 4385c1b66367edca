# SPDX-License-Identifier: Apache-2.0
"""csi - what tests of CSI share: drivers as processes, CSIDriver objects, pods with inline volumes."""
import hashlib
import json
import os
import subprocess

import coracle
from coracle import SLOW, until

PYTHON = "/usr/bin/python3"
NAME = "inline.example.test"


class Driver:
    """A process of csi_driver.py.  Its lines, of all its lives, are in one file."""

    def __init__(self, node, *flags, name=NAME, wait=True, socket=None):
        self.node, self.name, self.flags, self.socket = node, name, flags, socket or name
        scratch = node.world.scratch
        self.path, self.data, self.fault_path = (f"{scratch}/{name}.{what}" for what in ("ndjson", "data", "faults"))
        os.makedirs(self.data, exist_ok=True)
        self.start(wait)

    def start(self, wait=True):
        told = len(self.calls("NotifyRegistrationStatus"))
        with open(self.path, "ab") as out, open(self.path + ".err", "ab") as err:
            self.process = subprocess.Popen(
                [PYTHON, f"{coracle.HERE}/csi_driver.py", "--root", self.node.root_dir, "--name", self.name, "--socket", self.socket,
                 "--data", self.data, "--faults", self.fault_path, *self.flags], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        if wait:
            self.wait_call("NotifyRegistrationStatus", told + 1)
        return self

    def faults(self, **methods):
        with open(self.fault_path + ".new", "w", encoding="utf-8") as f:
            json.dump(methods, f)
        os.rename(self.fault_path + ".new", self.fault_path)

    def calls(self, method=None):
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f.read().split("\n")[:-1]]
        return [line for line in lines if method in (None, line["method"])]

    def methods(self):
        """Of the node service, in order, without the questions for capabilities."""
        return [c["method"] for c in self.calls() if c["method"].startswith("Node") and c["method"] != "NodeGetCapabilities"]

    def wait_call(self, method, count=1, deadline=20):
        def found():
            lines = self.calls(method)
            return lines[-1] if len(lines) >= count else None
        return until(found, deadline, lambda: f"{count} {method} of {self.name}; its lines:\n{self.calls()}\n"
                                              f"{coracle.read(self.path + '.err', '')[-2000:]}", interval=0.05)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=15 * SLOW)

    def leave(self):
        """Ends it, and removes its sockets."""
        self.kill()
        for path in (f"{self.node.root_dir}/plugins/{self.socket}/csi.sock", f"{self.node.root_dir}/plugins_registry/{self.socket}-reg.sock"):
            if os.path.exists(path):
                os.unlink(path)


def driver_object(name=NAME, **spec):
    spec.setdefault("volumeLifecycleModes", ["Ephemeral"])
    spec.setdefault("podInfoOnMount", True)
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name},
            "spec": {"attachRequired": False, **spec}}


def pod(name, command="trap 'exit 0' TERM; sleep 1000 & wait", driver=NAME, source=None, ctr=None, **spec):
    spec.setdefault("terminationGracePeriodSeconds", 0)
    volume = {"name": "vol", "csi": {"driver": driver, **(source or {})}}
    mounts = [{"name": "vol", "mountPath": "/vol"}]
    return coracle.pod(name, coracle.container(command=coracle.shell(command), volumeMounts=mounts, **(ctr or {})),
                       volumes=[volume], **spec)


STAGE = "STAGE_UNSTAGE_VOLUME"


def volume(name, driver=NAME, modes=("ReadWriteOnce",), csi=None, size="1Gi", mode="Filesystem", **spec):
    """A PersistentVolume and the claim that is bound to it."""
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
         "spec": {"capacity": {"storage": size}, "accessModes": list(modes), "volumeMode": mode, "storageClassName": "",
                  "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "default", "name": name},
                  "csi": {"driver": driver, "volumeHandle": f"vol-{name}", **(csi or {})}, **spec}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
         "spec": {"accessModes": list(modes), "volumeMode": mode, "storageClassName": "", "volumeName": name,
                  "resources": {"requests": {"storage": size}}}}]


def claim_pod(name, *claims, command="trap 'exit 0' TERM; sleep 1000 & wait", device=None, source=None, ctr=None, **spec):
    """A pod with claims, at /vol, /vol1 ...; `device`: a claim that is a block device, at /dev/xvda."""
    spec.setdefault("terminationGracePeriodSeconds", 0)
    names = ["vol" + (str(i) if i else "") for i in range(len(claims))]
    volumes = [{"name": n, "persistentVolumeClaim": {"claimName": c, **(source or {})}} for n, c in zip(names, claims)]
    how = {"command": coracle.shell(command), "volumeMounts": [{"name": n, "mountPath": "/" + n} for n in names], **(ctr or {})}
    if device:
        volumes.append({"name": "dev", "persistentVolumeClaim": {"claimName": device, **(source or {})}})
        how["volumeDevices"] = [{"name": "dev", "devicePath": "/dev/xvda"}]
    return coracle.pod(name, coracle.container(**how), volumes=volumes, **spec)


def staging(node, name, driver=NAME):
    """The folder of a staged volume."""
    return f"{node.root_dir}/plugins/kubernetes.io/csi/{driver}/{hashlib.sha256(f'vol-{name}'.encode()).hexdigest()}"


def below(node):
    """What is mounted below kubelet's folder by drivers."""
    return [p for p in coracle.mounts_below(node.root_dir) if "kubernetes.io/csi" in p or "kubernetes.io~csi" in p]


def all_pods_gone(node):
    until(lambda: not node.pods(), 40, lambda: f"pods are gone: {list(node.pods())}")


def claim_of(node, name):
    """The claim as the agent shows it; {"status": {}} before it is known."""
    code, body = node.request("GET", f"/api/v1/namespaces/default/persistentvolumeclaims/{name}")
    return json.loads(body) if code == 200 else {"status": {}}


def handle(uid, volume="vol"):
    return "csi-" + hashlib.sha256((uid + volume).encode()).hexdigest()


def folder(node, uid, volume="vol"):
    return f"{node.root_dir}/pods/{uid}/volumes/kubernetes.io~csi/{volume}"


def mounts(path):
    """How many mounts are at the path, in this mount namespace."""
    return sum(line.split()[4] == path for line in coracle.read("/proc/self/mountinfo").splitlines())


def events(node, name, reason="FailedMount"):
    return [e["message"] for e in node.events(name) if e["reason"] == reason]
