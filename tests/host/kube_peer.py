# SPDX-License-Identifier: Apache-2.0
"""kube_peer - a coracle-kube that a test plays: the daemon starts a relay in its place, and the messages of the
link (agent/kube/README.md) come to the test, which answers them.

    peer = KubePeer(t)
    node = t.node(*peer.flags())
    link = peer.accept()            # once per start of "coracle-kube"
    link.put(pod_of_server("web"))
    link.wait(lambda m: m["type"] == "pod" and m["object"]["status"]["phase"] == "Running")
"""
import contextlib
import json
import os
import select
import signal
import socket
import struct
import time

from coracle import SLOW, Failed, check, short

RELAY = '''#!/usr/bin/python3 -S
import os, select, socket
daemon, test = socket.socket(fileno=3), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
test.connect("\\0%s")
test.sendall(b"%%d %%d\\n" %% (os.getpid(), os.getuid()))
while True:
    for end in select.select([daemon, test], [], [])[0]:
        data = end.recv(65536)
        if not data:
            raise SystemExit(0)
        (test if end is daemon else daemon).sendall(data)
'''


class Link:
    """One start of coracle-kube."""

    def __init__(self, sock):
        self.sock, self.buffer, self.messages = sock, b"", []
        while b"\n" not in self.buffer:
            self._receive(10)
        line, _, self.buffer = self.buffer.partition(b"\n")
        self.pid, self.uid = (int(n) for n in line.split())
        self._split()

    def _receive(self, seconds):
        if not select.select([self.sock], [], [], seconds * SLOW)[0]:
            return False
        with contextlib.suppress(ConnectionResetError):
            data = self.sock.recv(1 << 16)
            self.buffer += data
            return bool(data)
        return False

    def _split(self):
        while len(self.buffer) >= 4:
            n = struct.unpack("<I", self.buffer[:4])[0]
            if len(self.buffer) < 4 + n:
                return
            self.messages.append(json.loads(self.buffer[4:4 + n]))
            self.buffer = self.buffer[4 + n:]

    def send(self, type_, **members):
        text = json.dumps({"type": type_, **members}).encode()
        self.sock.sendall(struct.pack("<I", len(text)) + text)

    def put(self, *objects):
        for o in objects:
            self.send("put", object=o)

    def synced(self):
        """Everything that existed was put."""
        self.send("synced", kind="Pod")
        self.send("synced", kind="Service")
        self.send("synced", kind="RuntimeClass")
        self.send("synced", kind="CSIDriver")

    def gone(self, o):
        self.send("gone", kind=o["kind"], namespace=o["metadata"]["namespace"], name=o["metadata"]["name"],
                  uid=o["metadata"].get("uid", ""))

    def pump(self, seconds=0):
        """Takes what has arrived, or arrives within that time."""
        if self._receive(seconds):
            self._split()

    def last(self, condition):
        return next((m for m in reversed(self.messages) if condition(m)), None)

    def wait(self, condition, deadline=15, what="a message", since=0):
        """The first message from number `since` on that meets the condition."""
        end = time.monotonic() + deadline * SLOW
        seen = since
        while True:
            for m in self.messages[seen:]:
                if condition(m):
                    return m
            seen = len(self.messages)
            left = end - time.monotonic()
            if left <= 0:
                raise Failed(f"{what}: not within {deadline * SLOW:g} s; the last: {short(self.messages[-6:])}")
            self.pump(left)

    def wait_pod(self, name, condition, deadline=20, what=None, since=0):
        """The object of the first message `pod` of this name that meets the condition."""
        return self.wait(lambda m: m["type"] == "pod" and m["object"]["metadata"]["name"] == name and condition(m),
                         deadline, what or f"pod {name}", since)

    def wait_phase(self, name, phase, deadline=20, since=0):
        return self.wait_pod(name, lambda m: m["object"]["status"]["phase"] == phase, deadline, f"pod {name} {phase}", since)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.sock.close()

    def close(self):
        self.sock.close()


class KubePeer:
    def __init__(self, t):
        self.address = f"kube-{t.name}"
        self.folder = f"{t.scratch}/libexec"
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(t.scratch, 0o755)
        for program in ("coracle-unpack", "coracle-pause", "coracle-exec", "coracle-probe", "coracle-shutdown", "coracle-seal"):
            os.symlink(f"{os.path.abspath(t.build)}/{program}", f"{self.folder}/{program}")
        with open(f"{self.folder}/coracle-kube", "w", encoding="utf-8") as f:
            f.write(RELAY % self.address)
        os.chmod(f"{self.folder}/coracle-kube", 0o755)
        self.kubeconfig = f"{t.scratch}/kubeconfig"
        with open(self.kubeconfig, "w", encoding="utf-8") as f:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                       "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
                       "users": [{"name": "u", "user": {"token": "secret"}}],
                       "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}, f)
        os.chmod(self.kubeconfig, 0o600)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind("\0" + self.address)
        self.listener.listen(8)

    def flags(self):
        return ["--libexec-dir", self.folder, "--kubeconfig", self.kubeconfig]

    def accept(self, deadline=15):
        check(select.select([self.listener], [], [], deadline * SLOW)[0], "coracle-kube was not started")
        return Link(self.listener.accept()[0])


def served(o, uid="3f0c0f80-0000-4000-8000-000000000001", **meta):
    """A manifest as an apiserver would have it."""
    o["metadata"] = {"namespace": "default", "uid": uid, "resourceVersion": "100", "generation": 1,
                     "creationTimestamp": "2026-01-01T00:00:00Z",
                     "managedFields": [{"manager": "kubectl", "operation": "Update", "apiVersion": "v1",
                                        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}],
                     **o.get("metadata", {}), **meta}
    if o["kind"] == "Pod":
        o["spec"].setdefault("nodeName", "test-node")
        o["spec"]["fieldOfALaterVersion"] = {"a": 1}
        o.setdefault("status", {"phase": "Pending", "qosClass": "BestEffort"})
    return o


def deleted(o, grace):
    """The same after a DELETE with this grace period."""
    return {**o, "metadata": {**o["metadata"], "deletionTimestamp": "2026-01-01T00:01:00Z",
                              "deletionGracePeriodSeconds": grace, "resourceVersion": "200"}}
