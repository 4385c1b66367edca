# SPDX-License-Identifier: Apache-2.0
"""The local API of a lone node with many objects and many watches."""
import json
import multiprocessing
import selectors
import socket
import ssl
import time

from bench import Figure
from coracle import until
from lone_api import FLAG, MAPS, PORT, Api, config_map
from bench_node import kib

OBJECTS, WATCHES, SLOW_WATCHES = 1000, 100, 10
TEXT = "x" * 2000
FORK = multiprocessing.get_context("fork")


def watcher(api):
    """A raw connection that has sent its request: what it gets is read by Readers, or not at all."""
    tls = api.context().wrap_socket(socket.create_connection(("127.0.0.1", PORT)), server_hostname="127.0.0.1")
    tls.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return tls


def read_all(connections, count, open_):
    """Reads from all watches, in a process of its own: this one measures."""
    selector = selectors.DefaultSelector()
    for c in connections:
        c.setblocking(False)
        selector.register(c, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            try:
                while True:
                    data = key.fileobj.recv(1 << 16)
                    count.value += len(data)
                    if not data:
                        raise ConnectionResetError
            except (ssl.SSLWantReadError, BlockingIOError):
                pass
            except OSError:
                selector.unregister(key.fileobj)
        open_.value = len(selector.get_map())


def process(function, *args):
    child = FORK.Process(target=function, args=args, daemon=True)
    child.start()
    return child


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
    """Measures while another process repeats something: the result, and how often."""
    times = FORK.Value("q", 0)

    def loop():
        while True:
            repeated(times.value)
            times.value += 1
    child = process(loop)
    result = measured()
    child.terminate()
    child.join(30)
    return result, times.value


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
    count, still_open = FORK.Value("q", 0), FORK.Value("q", WATCHES)
    read, slow = [watcher(api) for _ in range(WATCHES)], [watcher(api) for _ in range(SLOW_WATCHES)]
    readers = process(read_all, read, count, still_open)
    until(lambda: count.value > WATCHES * OBJECTS * len(TEXT), 120, "all watches have their first set")
    yield from memory(b, api, f"and {WATCHES} watches, {SLOW_WATCHES} unread")
    other = api.again()
    yield Figure(f"local API: GET, {WATCHES} watches", "ms", timed(n, lambda i: api.must("GET", f"{MAPS}/{names[i % OBJECTS]}")))

    def write(i):
        other.must("POST", MAPS, config_map(f"w{i}", {"text": TEXT}))
    other.connection = None
    took, writes = during(write, lambda: timed(n, lambda i: (time.sleep(0.005), api.must("GET", f"{MAPS}/{names[i % OBJECTS]}"))))
    yield Figure(f"local API: GET, {WATCHES} watches, objects are created", "ms", [t - 5 for t in took])
    other.connection = None  # another process has used it
    took, _ = during(lambda i: other.must("GET", MAPS), lambda: timed(n // 4, lambda i: b.node.request("GET", "/healthz")))
    yield Figure(f"local API: /healthz of coracle while {OBJECTS} objects are listed", "ms", took)
    took, _ = during(lambda i: other.must("GET", MAPS), lambda: timed(n // 4, lambda i: api.must("GET", f"{MAPS}/{names[i % OBJECTS]}")))
    yield Figure(f"local API: GET while {OBJECTS} objects are listed", "ms", took)
    other.connection = None
    writes += 1  # one may have been cut off
    yield Figure("local API: POST, until it is in force", "ms", timed(n // 10, lambda i: write(writes + i)))
    total = writes + n // 10
    other.connection = None
    start = time.monotonic()
    took = timed(total, lambda i: other.ask("DELETE", f"{MAPS}/w{i}"))
    yield Figure("local API: DELETE, until it is gone", "ms", took)
    yield Figure(f"local API: {total} DELETEs, last tenth to first tenth", "ratio",
                 [sum(took[-total // 10:]) / sum(took[:total // 10])] if total > 20 else [1])
    for start in range(0, OBJECTS, 100):
        b.node.remove(f"maps-{start}.yaml")
    start = time.monotonic()
    until(lambda: not api.must("GET", MAPS + "?limit=1")["items"], 60, "no objects")
    yield Figure(f"local API: {OBJECTS} objects removed by hand: all gone", "ms", [(time.monotonic() - start) * 1000])
    yield from memory(b, api, "after it all")
    yield Figure(f"local API: watches that are read and still open, of {WATCHES}", "", [still_open.value])
    readers.terminate()
    readers.join(5)
    for c in read + slow:
        c.close()


__all__ = ["bench_lone"]
