# SPDX-License-Identifier: Apache-2.0
"""kube_process - coracle-kube without a daemon: a test is the daemon's end of the link (agent/kube/link/link.h)."""
import json
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

from coracle import SLOW, Failed, read


def node_object(name):
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
                 "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "110", "ephemeral-storage": "10Gi"}
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [condition],
                       "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}, {"type": "Hostname", "address": name}],
                       "nodeInfo": {"kubeletVersion": "v1.36.2"}}}


def pod_object(name, node, **metadata):
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default", **metadata},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "localhost/busybox:1"}]}}


class KubeProcess:
    """Starts the program and gathers its messages; `pods` is what a daemon would hold."""

    def __init__(self, build, node="node-1"):
        self.node, self.messages, self.pods, self.lost = node, [], {}, False
        ours, theirs = socket.socketpair()
        self.link, self.lock = ours, threading.Lock()
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8")  # pylint: disable=consider-using-with
        child = theirs.fileno()
        # A shell moves the descriptor to 3: preexec_fn= is no place for that in a process with threads.
        self.process = subprocess.Popen(["/bin/sh", "-c", f'exec "$0" 3<&{child} {child}<&-' if child != 3 else 'exec "$0"', f"{build}/coracle-kube"],  # pylint: disable=consider-using-with
                                        pass_fds=(child,), stderr=self.log, env={}, stdin=subprocess.DEVNULL)
        theirs.close()
        self.thread = threading.Thread(target=self._receive, daemon=True)
        self.thread.start()

    # ---- the link ----

    def send(self, **message):
        data = json.dumps(message).encode()
        self.link.sendall(struct.pack("<I", len(data)) + data)

    def send_raw(self, data):
        self.link.sendall(data)

    def _exactly(self, n):
        data = b""
        while len(data) < n:
            piece = self.link.recv(n - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def _receive(self):
        try:
            while True:
                (n,) = struct.unpack("<I", self._exactly(4))
                message = json.loads(self._exactly(n))
                with self.lock:
                    self._take(message)
                    self.messages.append(message)
        except (EOFError, OSError, ValueError):
            self.lost = True

    def _take(self, message):
        obj = message.get("object") or {}
        if message["type"] == "put" and obj.get("kind") == "Pod":
            self.pods[obj["metadata"]["namespace"], obj["metadata"]["name"]] = obj
        elif message["type"] == "gone" and message.get("kind") == "Pod":
            self.pods.pop((message["namespace"], message["name"]), None)

    # ---- what tests do ----

    def begin(self, server, **credentials):
        self.send(type="config", nodeName=self.node, version="v1.36.2", registerNode=True, leaseSeconds=40, updateMs=10000, reportMs=300000,
                  eventRate=50, eventBurst=100, maxImages=50, labels={}, taints=[])
        self.send(type="credentials", **server.credentials(self.node, **credentials))
        self.send(type="node", object=node_object(self.node))

    def of_type(self, kind):
        with self.lock:
            return [m for m in self.messages if m["type"] == kind]

    def wait(self, condition, what, seconds=15):
        end = time.monotonic() + seconds * SLOW
        while True:
            with self.lock:
                value = condition()
            if value:
                return value
            if time.monotonic() > end:
                raise Failed(f"{what}: not within {seconds} s; the last messages: {[json.dumps(m)[:300] for m in self.messages[-12:]]}; {self.stderr()}")
            time.sleep(0.02)

    def wait_message(self, kind, condition=lambda m: True, seconds=15, after=0):
        return self.wait(lambda: next((m for m in self.messages[after:] if m["type"] == kind and condition(m)), None), f"a message {kind}", seconds)

    def wait_pods(self, names, seconds=15):
        self.wait(lambda: {name for _, name in self.pods} == set(names), f"pods {sorted(names)[:5]}...", seconds)

    def stderr(self):
        self.log.seek(0)
        return self.log.read()[-2000:]

    def memory(self):
        """KiB: (Pss, private)."""
        rows = dict(line.split(":", 1) for line in read(f"/proc/{self.process.pid}/smaps_rollup").splitlines()[1:])
        return tuple(int(rows[k].split()[0]) for k in ("Pss", "Private_Dirty"))

    def end(self, seconds=5):
        """The daemon goes away; the process has to follow.  Its exit code."""
        self.link.shutdown(socket.SHUT_RDWR)
        try:
            return self.process.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            raise Failed("coracle-kube does not end with its link") from None
        finally:
            self.link.close()
