# SPDX-License-Identifier: Apache-2.0
"""node_port - coracle-kube with its HTTPS port, played by a test that stands for the daemon: it gives the process its messages, and
connections of a real daemon's status socket."""
import base64
import http.client
import json
import os
import socket
import ssl
import struct
import subprocess
import threading

from coracle import Failed, SLOW, read, until
from spdy_peer import SpdyPeer


def _openssl(*argv):
    subprocess.run(["openssl", *argv], check=True, capture_output=True)


class Pki:
    """Two authorities and certificates of clients: admin (group system:masters), nobody (no name), foreign (the other's)."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        for ca in ("ca", "other"):
            _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                     "-subj", f"/CN={ca}", "-keyout", f"{folder}/{ca}.key", "-out", f"{folder}/{ca}.crt")
        self.issue("admin", "/O=system:masters/O=team/CN=admin", "ca")
        self.issue("viewer", "/CN=viewer", "ca")
        self.issue("foreign", "/O=system:masters/CN=admin", "other")
        self.issue("server", "/CN=node", "ca", server=True)

    def issue(self, name, subject, ca, server=False):
        f = self.folder
        with open(f"{f}/{name}.ext", "w", encoding="ascii") as out:
            out.write("extendedKeyUsage=serverAuth\nsubjectAltName=IP:127.0.0.1\n" if server else "extendedKeyUsage=clientAuth\n")
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", subject,
                 "-keyout", f"{f}/{name}.key", "-out", f"{f}/{name}.csr")
        _openssl("x509", "-req", "-days", "30", "-in", f"{f}/{name}.csr", "-CA", f"{f}/{ca}.crt", "-CAkey", f"{f}/{ca}.key",
                 "-CAcreateserial", "-extfile", f"{f}/{name}.ext", "-out", f"{f}/{name}.crt")

    def pem(self, name):
        return read(f"{self.folder}/{name}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class NodePort:
    def __init__(self, node, pki, wait=True, credentials=None, **server):
        self.node, self.pki, self.port = node, pki, free_port()
        self.log_path = f"{node.world.scratch}/kube.log"
        self.lines, self.certificates, self.serve = [], [], True
        self.link, theirs = socket.socketpair()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(["bash", "-c", f"exec \"$0\" 3<&{theirs.fileno()}", f"{node.world.build}/coracle-kube"],
                                            pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        theirs.close()
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()
        self.config = {"enabled": True, "address": "127.0.0.1", "port": self.port, "authorization": "AlwaysAllow", "debugging": True,
                       "tokenWebhook": True, "clientCA": pki.pem("ca.crt"), "certificate": pki.pem("server.crt"),
                       "key": pki.pem("server.key"), **server}
        self.tell({"type": "config", "nodeName": "test-node", "server": self.config})
        if credentials is not None:
            self.tell({"type": "credentials", **credentials})
        if wait:
            until(lambda: any("the node's port is open" in line.get("message", "") for line in self.lines), 10,
                  lambda: f"the port: {self.lines} {read(self.log_path, '')}")

    @classmethod
    def of_daemon(cls, node, pki, port):
        """The port of a daemon that started its own coracle-kube."""
        self = cls.__new__(cls)
        self.node, self.pki, self.port = node, pki, port
        return self

    # ---- the link ----

    def tell(self, message, fd=None):
        text = json.dumps(message if fd is None else {**message, "fd": True}).encode()
        frame = struct.pack("<I", len(text)) + text
        if fd is not None:
            socket.send_fds(self.link, [frame[:1]], [fd])
            frame = frame[1:]
        self.link.sendall(frame)

    def _listen(self):
        rest = b""
        while True:
            try:
                more = self.link.recv(65536)
            except OSError:
                return
            if not more:
                return
            rest += more
            while len(rest) >= 4 and len(rest) >= 4 + struct.unpack("<I", rest[:4])[0]:
                n = struct.unpack("<I", rest[:4])[0]
                self._take(json.loads(rest[4:4 + n]))
                rest = rest[4 + n:]

    def _take(self, message):
        if message["type"] == "log":
            self.lines.append(message)
        elif message["type"] == "certificate":
            self.certificates.append(message)
        elif message["type"] == "serve" and self.serve:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(self.node.socket)
                self.tell({"type": "served", "id": message["id"]}, s.fileno())

    def stop(self):
        """The process ends by itself, and without a sanitizer's report."""
        self.tell({"type": "stop"})
        try:
            code = self.process.wait(10 * SLOW)
        except subprocess.TimeoutExpired as e:
            self.process.kill()
            raise Failed(f"coracle-kube does not end: {read(self.log_path, '')}") from e
        self.link.close()
        if code != 0:
            raise Failed(f"coracle-kube ended with {code}: {read(self.log_path, '')}")

    # ---- clients ----

    def tls(self, client="admin"):
        context = ssl.create_default_context(cafile=f"{self.pki.folder}/ca.crt")
        if client is not None:
            context.load_cert_chain(f"{self.pki.folder}/{client}.crt", f"{self.pki.folder}/{client}.key")
        return context

    def connect(self, client="admin", timeout=20):
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=timeout * SLOW)
        return self.tls(client).wrap_socket(raw, server_hostname="127.0.0.1")

    def ask_peer(self):
        """The port's certificate, unchecked."""
        return ssl.get_server_certificate(("127.0.0.1", self.port))

    def ask(self, path, method="GET", client="admin", headers=None, body=None, trusting=False):
        """(status, headers, body as text)"""
        context = self.tls(client)
        if trusting:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        c = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=20 * SLOW)
        try:
            c.request(method, path, body=body, headers=headers or {})
            answer = c.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            c.close()

    def upgrade(self, path, headers, method="POST", client="admin"):
        """(status, headers in lower case, socket, bytes that came behind the head)"""
        s = self.connect(client)
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: Upgrade", "Content-Length: 0"] if method == "POST" else \
            [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: Upgrade"]
        s.sendall("\r\n".join(lines + [f"{k}: {v}" for k, v in headers] + ["", ""]).encode())
        got = b""
        while b"\r\n\r\n" not in got:
            more = s.recv(65536)
            if not more:
                raise Failed(f"the connection ended: {got!r}")
            got += more
        head, rest = got.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        return int(lines[0].split()[1]), {k.lower(): v.strip() for k, v in (x.split(":", 1) for x in lines[1:])}, s, rest

    def spdy(self, path, protocols=("v4.channel.k8s.io",), method="POST", client="admin"):
        status, headers, s, rest = self.upgrade(path, [("Upgrade", "SPDY/3.1")] + [("X-Stream-Protocol-Version", p) for p in protocols],
                                                method, client)
        if status != 101:
            length = int(headers.get("content-length", 0))
            while len(rest) < length:
                rest += s.recv(65536)
            raise Failed(f"{status} {rest.decode()}")
        peer = SpdyPeer(s.sendall, lambda: s.recv(65536))
        peer.rest, peer.protocol, peer.socket = rest, headers.get("x-stream-protocol-version"), s
        return peer

    def websocket(self, path, subprotocol, client="admin"):
        status, headers, s, rest = self.upgrade(path, [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                                                       ("Sec-WebSocket-Key", base64.b64encode(os.urandom(16)).decode()),
                                                       ("Sec-WebSocket-Protocol", subprotocol)], "GET", client)
        if status != 101:
            raise Failed(f"{status} {headers} {rest!r}")
        return WebSocket(s, rest, headers["sec-websocket-protocol"])


class WebSocket:
    """Binary messages of a client."""

    def __init__(self, s, rest, protocol):
        self.socket, self.rest, self.protocol, self.closed = s, rest, protocol, None

    def send(self, data, opcode=2):
        mask = os.urandom(4)
        n = len(data)
        head = bytes([0x80 | opcode]) + (bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536
                                         else b"\xff" + struct.pack(">Q", n))
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def need(self, n):
        while len(self.rest) < n:
            more = self.socket.recv(65536)
            if not more:
                return None
            self.rest += more
        taken, self.rest = self.rest[:n], self.rest[n:]
        return taken

    def message(self):
        """b"" at the end."""
        whole = b""
        while True:
            head = self.need(2)
            if head is None:
                return b""
            n = head[1] & 0x7f
            if n == 126:
                n = struct.unpack(">H", self.need(2))[0]
            elif n == 127:
                n = struct.unpack(">Q", self.need(8))[0]
            data = self.need(n) if n else b""
            if head[0] & 0x0f == 8:
                self.closed = struct.unpack(">H", data[:2])[0] if data else 1005
                self.send(data, 8)
                return b""
            if head[0] & 0x0f in (9, 10):
                continue
            whole += data
            if head[0] & 0x80:
                return whole

    def all(self):
        """What came on each channel until the end."""
        channels = {}
        while True:
            m = self.message()
            if not m:
                return channels
            channels[m[0]] = channels.get(m[0], b"") + m[1:]
