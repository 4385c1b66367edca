# SPDX-License-Identifier: Apache-2.0
"""coracle-kube without a daemon: the test is at the other end of its link (agent/kube/link/link.h).

    with KubeAlone(t, server.credentials("peer"), nodeName="peer") as kube:
        kube.send("node", object={...})
        kube.wait("put", lambda m: m["object"]["kind"] == "Node")
"""
import json
import socket
import struct
import subprocess
import threading
import time

from coracle import SLOW, Failed


class KubeAlone:
    def __init__(self, t, credentials, **config):
        self.log = open(f"{t.scratch}/tmp/coracle-kube.log", "a+", encoding="utf-8")
        ours, theirs = socket.socketpair()
        self.socket = ours
        fd = theirs.fileno()
        self.process = subprocess.Popen(["bash", "-c", f'exec "$0" 3<&{fd} {fd}<&-' if fd != 3 else 'exec "$0"', f"{t.build}/coracle-kube"],
                                        pass_fds=[fd], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        theirs.close()
        self.messages, self.changed, self.over = [], threading.Condition(), False
        threading.Thread(target=self._read, daemon=True).start()
        self.send("config", **{"registerNode": True, "leaseSeconds": 40, "updateMs": 10000, "reportMs": 300000, **config})
        self.send("credentials", **credentials)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _read(self):
        data = b""
        while True:
            try:
                more = self.socket.recv(1 << 20)
            except OSError:
                more = b""
            with self.changed:
                data += more
                while len(data) >= 4 and len(data) >= 4 + struct.unpack("<I", data[:4])[0]:
                    n = struct.unpack("<I", data[:4])[0]
                    self.messages.append(json.loads(data[4:4 + n]))
                    data = data[4 + n:]
                self.over = not more
                self.changed.notify_all()
            if not more:
                return

    def send(self, message_type, /, **members):
        data = json.dumps({"type": message_type, **members}).encode()
        self.socket.sendall(struct.pack("<I", len(data)) + data)

    def wait(self, kind, fulfilled=lambda m: True, seconds=10):
        """The first message of this type that is as wished; it and those before it are not found again."""
        end = time.monotonic() + seconds * SLOW
        with self.changed:
            while True:
                for i, m in enumerate(self.messages):
                    if m["type"] == kind and fulfilled(m):
                        del self.messages[i]
                        return m
                left = end - time.monotonic()
                if self.over or left <= 0:
                    raise Failed(f"no message {kind}; there were {json.dumps(self.messages)[-3000:]}")
                self.changed.wait(left)

    def stop(self):
        try:
            self.send("stop")
            self.process.wait(10 * SLOW)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.socket.close()
        self.log.seek(0)
        text = self.log.read()
        self.log.close()
        if "ERROR: " in text or "runtime error" in text:
            raise Failed(f"the sanitizers found something:\n{text[-4000:]}")
        if self.process.returncode != 0:
            raise Failed(f"coracle-kube ended with {self.process.returncode}:\n{text[-2000:]}")
