# SPDX-License-Identifier: Apache-2.0
"""Servers for probes, on the host's side: scripted HTTP, hostile ones, TLS, and a handwritten gRPC health service."""
import contextlib
import socket
import ssl
import struct
import subprocess
import threading
import time

ADDRESS = "192.0.2.10"  # on lo of the test's network namespace: the node's own address


class Server:
    """Answers each connection with serve(connection, number) in its own thread; counts the connections."""

    def __init__(self, serve, tls=None):
        self.serve, self.tls, self.connections, self.requests = serve, tls, 0, []
        self.socket = socket.create_server((ADDRESS, 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            with contextlib.suppress(OSError):
                connection, _ = self.socket.accept()
                self.connections += 1
                threading.Thread(target=self._one, args=(connection, self.connections), daemon=True).start()

    def _one(self, connection, number):
        with contextlib.suppress(OSError, ssl.SSLError):
            connection.settimeout(60)
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            self.serve(self, connection, number)
        with contextlib.suppress(OSError):
            connection.close()


def _head(server, connection):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(4096)
        if not piece:
            break
        data += piece
    server.requests.append(data.decode())


def answers(*texts):
    """Answers with the texts in turn, one for each connection, and then always with the last."""
    def serve(server, connection, number):
        _head(server, connection)
        connection.sendall(texts[min(number, len(texts)) - 1].encode())
    return serve


def response(code, body="", **headers):
    lines = [f"HTTP/1.1 {code} X", f"Content-Length: {len(body)}"] + [f"{k}: {v}" for k, v in headers.items()]
    return "\r\n".join(lines) + "\r\n\r\n" + body


def drips(server, connection, _number):
    _head(server, connection)
    for c in "HTTP/1.1 200 OK\r\nX-Slow: " + "y" * 100000:
        connection.sendall(c.encode())
        time.sleep(0.05)


def endless_head(server, connection, _number):
    _head(server, connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-More: of it\r\n" * 100)


def endless_body(server, connection, _number):
    _head(server, connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"more and more " * 100)


def certificate(folder):
    """A context with a self-signed certificate."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{folder}/key.pem", "-out",
                    f"{folder}/cert.pem", "-days", "1", "-subj", "/CN=somebody.else"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
    return context


# ---- gRPC by hand: HTTP/2 frames with literal headers ----------------------------------------------------------------

def _frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _literal(name, value):
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def _exactly(connection, n):
    data = b""
    while len(data) < n:
        piece = connection.recv(n - len(data))
        if not piece:
            raise OSError("closed")
        data += piece
    return data


def grpc_health(statuses, code="0", message=""):
    """Health/Check by service name: {"": 1, "web": 2}; an unknown name is answered with `code`."""
    def serve(server, connection, _number):
        if _exactly(connection, 24) != b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":
            return
        connection.sendall(_frame(4, 0, 0) + _frame(4, 1, 0))
        body = b""
        while True:
            head = _exactly(connection, 9)
            payload = _exactly(connection, int.from_bytes(head[:3], "big"))
            if head[3] == 0:
                body += payload
            if head[3] in (0, 1) and head[4] & 1:
                break
        service = body[7:].decode() if len(body) > 5 else ""
        server.requests.append(service)
        ok = service in statuses
        out = _frame(1, 4, 1, b"\x88" + _literal("content-type", "application/grpc"))
        if ok:
            out += _frame(0, 0, 1, struct.pack(">BI", 0, 2) + bytes([8, statuses[service]]))
        out += _frame(1, 5, 1, _literal("grpc-status", "0" if ok else code) + _literal("grpc-message", "" if ok else message))
        connection.sendall(out)
        connection.recv(1024)
    return serve
