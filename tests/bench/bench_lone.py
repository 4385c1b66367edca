# SPDX-License-Identifier: Apache-2.0
"""The local API of a lone node with many objects and many watches."""
import json
import selectors
import socket
import ssl
import threading
import time

from bench import Figure
from coracle import until
from lone_api import FLAG, MAPS, PORT, Api, config_map
from bench_node import kib

OBJECTS, WATCHES, SLOW_WATCHES = 1000, 100, 10
TEXT = "x" * 2000


def watcher(api):
    """A raw connection that has sent its request: what it gets is read by Readers, or not at all."""
    tls = api.context().wrap_socket(socket.create_connection(("127.0.0.1", PORT)), server_hostname="127.0.0.1")
    tls.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return tls


class Readers(threading.Thread):
    """Reads from all watches, and counts."""

    def __init__(self, api, n):
        super().__init__(daemon=True)
        self.connections, self.selector, self.bytes = [watcher(api) for _ in range(n)], selectors.DefaultSelector(), 0
        for c in self.connections:
            c.setblocking(False)
            self.selector.register(c, selectors.EVENT_READ)
        self.stop = False

    def run(self):
        while not self.stop:
            for key, _ in self.selector.select(0.1):
                try:
                    while True:
                        data = key.fileobj.recv(1 << 16)
                        self.bytes += len(data)
                        if not data:
                            self.selector.unregister(key.fileobj)
                            break
                except (ssl.SSLWantReadError, BlockingIOError):
                    pass
                except OSError:
                    self.selector.unregister(key.fileobj)

    def alive(self):
        return len(self.selector.get_map())


def timed(n, what):
    took = []
    for i in range(n):
        start = time.monotonic()
        what(i)
        took.append((time.monotonic() - start) * 1000)
    return took


def memory(b, api, when):
    for name, pid in (("coracle-kube", api.kube_pid()), ("coracle", b.node.process.pid)):
        yield Figure(f"local API: memory of {name}, {when}", "MiB", [kib(pid, "Pss") / 1024])


def during(repeated, measured):
    """Measures while something else is repeated: the result, and how often."""
    over, times = threading.Event(), []

    def loop():
        while not over.is_set():
            repeated(len(times))
            times.append(time.monotonic())
    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    result = measured()
    over.set()
    thread.join(30)
    return result, len(times)


def bench_lone(b, quick):
    """A lone node's API: 1,000 objects, 100 watches that are read and 10 that are not."""
    n = 200 if quick else 2000
    b.node.stop()
    b.node.flags.append(FLAG)
    b.node.start()
    b.join_cgroup(b.node.process.pid)
    api = Api(b.world, node=b.node)
    yield from memory(b, api, "no objects")
    names = [f"m{i:04}" for i in range(OBJECTS)]
    for start in range(0, OBJECTS, 100):
        b.node.put(f"maps-{start}.yaml", *[json.dumps(config_map(name, {"text": TEXT, "n": "0"})) for name in names[start:start + 100]])
    until(lambda: len(api.must("GET", MAPS)["items"]) == OBJECTS, 60, "all objects")
    yield from memory(b, api, f"{OBJECTS} objects of 2 KB")
    yield Figure("local API: GET of one object", "ms", timed(n, lambda i: api.must("GET", f"{MAPS}/{names[i % OBJECTS]}")))
    yield Figure(f"local API: LIST of {OBJECTS} objects", "ms", timed(n // 20, lambda i: api.must("GET", MAPS)))
    readers = Readers(api, WATCHES)
    slow = [watcher(api) for _ in range(SLOW_WATCHES)]
    readers.start()
    until(lambda: readers.bytes > WATCHES * OBJECTS * len(TEXT), 120, "all watches have their first set")
    yield from memory(b, api, f"and {WATCHES} watches, {SLOW_WATCHES} unread")
    other = api.again()
    yield Figure(f"local API: GET, {WATCHES} watches", "ms", timed(n, lambda i: api.must("GET", f"{MAPS}/{names[i % OBJECTS]}")))

    def write(i):
        other.must("POST", MAPS, config_map(f"w{i}", {"text": TEXT}))
    took, writes = during(write, lambda: timed(n, lambda i: (time.sleep(0.005), api.must("GET", f"{MAPS}/{names[i % OBJECTS]}"))))
    yield Figure(f"local API: GET, {WATCHES} watches, objects are created", "ms", [t - 5 for t in took])
    took, _ = during(lambda i: other.must("GET", MAPS), lambda: timed(n // 4, lambda i: b.node.request("GET", "/healthz")))
    yield Figure(f"local API: /healthz of coracle while {OBJECTS} objects are listed", "ms", took)
    took, _ = during(lambda i: other.must("GET", MAPS), lambda: timed(n // 4, lambda i: api.must("GET", f"{MAPS}/{names[i % OBJECTS]}")))
    yield Figure(f"local API: GET while {OBJECTS} objects are listed", "ms", took)
    yield Figure("local API: POST, until it is in force", "ms", timed(n // 10, lambda i: write(writes + i)))
    total = writes + n // 10
    start = time.monotonic()
    took = timed(total, lambda i: other.must("DELETE", f"{MAPS}/w{i}"))
    yield Figure("local API: DELETE, until it is gone", "ms", took)
    yield Figure(f"local API: {total} DELETEs, last tenth to first tenth", "ratio",
                 [sum(took[-total // 10:]) / sum(took[:total // 10])] if total > 20 else [1])
    for start in range(0, OBJECTS, 100):
        b.node.remove(f"maps-{start}.yaml")
    start = time.monotonic()
    until(lambda: not api.must("GET", MAPS + "?limit=1")["items"], 60, "no objects")
    yield Figure(f"local API: {OBJECTS} objects removed by hand: all gone", "ms", [(time.monotonic() - start) * 1000])
    yield from memory(b, api, "after it all")
    yield Figure(f"local API: watches that are read and still open, of {WATCHES}", "", [readers.alive()])
    readers.stop = True
    readers.join(5)
    for c in readers.connections + slow:
        c.close()


__all__ = ["bench_lone"]
