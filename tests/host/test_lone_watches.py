# SPDX-License-Identifier: Apache-2.0
"""Watches of the local API whose clients read, slowly or not at all, while large objects change."""
import json
import socket

from coracle import SLOW, check, equal, read
from lone_api import MAPS, PORT, Api, config_map

UNREAD, CHANGES, SIZE = 20, 400, 50000


def kib(pid, key):
    return sum(int(line.split()[1]) for line in read(f"/proc/{pid}/smaps_rollup").splitlines() if line.startswith(key + ":"))


def watch(api, query=""):
    """A connection that has asked for all changes; its kernel buffers are small."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(30)
    plain.connect(("127.0.0.1", PORT))
    tls = api.context().wrap_socket(plain, server_hostname="127.0.0.1")
    tls.sendall(f"GET {MAPS}?watch=1{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return tls


def events(data):
    """The events of a chunked answer."""
    _, _, body = data.partition(b"\r\n\r\n")
    text = b""
    while b"\r\n" in body:
        size, _, body = body.partition(b"\r\n")
        n = int(size, 16) if size else 0
        if n == 0 or len(body) < n + 2:
            break
        text, body = text + body[:n], body[n + 2:]
    return [json.loads(line) for line in text.split(b"\n") if line.strip()]


def test_unread(t):
    """clients that do not read are ended when they fall behind, cost no memory, and those that read miss nothing"""
    api = Api(t)
    pid = api.kube_pid()
    api.must("POST", MAPS, config_map("c", {"n": "0"}))
    unread = [watch(api) for _ in range(UNREAD)]
    version = api.must("GET", MAPS)["metadata"]["resourceVersion"]
    reader = api.again()
    before, most = kib(pid, "Pss"), 0
    for n in range(1, CHANGES + 1):
        api.must("PUT", f"{MAPS}/c", config_map("c", {"n": str(n), "text": "x" * SIZE}))
        if n % 50 == 0:
            most = max(most, kib(pid, "Pss"))
    print(f"coracle-kube: {before} KiB, at most {most} KiB with {UNREAD} watches that nobody reads and {CHANGES * SIZE >> 20} MiB of changes")
    # The changes that are kept are 16 MiB; each connection has 256 KiB and one event unsent; a sanitizer keeps freed memory.
    check(SLOW > 1 or most < before + 48 * 1024, f"{most} KiB")
    ended = 0
    for tls in unread:
        try:
            while tls.recv(1 << 16):
                pass
            ended += 1
        except TimeoutError:
            pass
        except OSError:
            ended += 1
        tls.close()
    equal(ended, UNREAD, "watches that were ended")
    # The version is forgotten: the client is told to begin again.
    code, got = reader.ask("GET", f"{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=5")
    check(code == 200 and (got if isinstance(got, dict) else {}).get("object", {}).get("code") == 410, f"{code} {str(got)[:300]}")
    # One that reads slowly, but reads.
    version = api.must("GET", MAPS)["metadata"]["resourceVersion"]
    slow, data = watch(api, f"&resourceVersion={version}&timeoutSeconds=10"), b""
    for n in range(100):
        api.must("PUT", f"{MAPS}/c", config_map("c", {"n": f"slow {n}", "text": "x" * SIZE}))
        data += slow.recv(1 << 14)
    while True:
        more = slow.recv(1 << 16)
        data += more
        if not more or data.endswith(b"\r\n0\r\n\r\n"):
            break
    equal([e["object"]["data"]["n"] for e in events(data)], [f"slow {n}" for n in range(100)], "changes that the slow reader got")
    slow.close()
    api.node.stop()


test_unread.seconds = 60
