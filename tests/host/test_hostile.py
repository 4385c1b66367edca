# SPDX-License-Identifier: Apache-2.0
"""Manifest files and clients of the socket that mean harm: one clear line each, and everybody else is served."""
import json
import os
import socket
import stat
import struct
import subprocess
import threading
import time

from coracle import SLOW, check, equal, pod, read, until

NOBODY = 65534


def high_water_kib(node):
    line = [x for x in read(f"/proc/{node.process.pid}/status").splitlines() if x.startswith("VmHWM")][0]
    return int(line.split()[1])


def descriptors(node):
    return len(os.listdir(f"/proc/{node.process.pid}/fd"))


# ---- manifests --------------------------------------------------------------------------------------------------------------

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
HOSTILE = {
    "documents.yaml": b"---\n".join(CONFIG_MAP.encode() % b"d%d" % n for n in range(10000)),
    "latin1.yaml": (CONFIG_MAP % "a" + "data: {k: 'caf\u00e9'}\n").encode("latin-1"),
    "utf16.yaml": (CONFIG_MAP % "a" + "data: {k: v}\n").encode("utf-16")[:-1],
    "surrogate.yaml": CONFIG_MAP.encode() % b"a" + b"data: {k: '\xed\xa0\x80'}\n",
    "nul.yaml": CONFIG_MAP.encode() % b"a" + b"data: {k: 'a\0b'}\n",
    "nul-json.json": b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a\\u0000b"}}',
    "program.yaml": open("/bin/true", "rb").read(),
    "anchors.yaml": b"".join(b"a%d: &a%d x\n" % (n, n) for n in range(1000)),
    "merge.yaml": b"a: &a {" + b",".join(b"k%d: v" % n for n in range(2000)) + b"}\n"
                  + b"".join(b"m%d: {<<: [" % n + b", ".join([b"*a"] * 200) + b"]}\n" for n in range(200)),
    "quadratic.yaml": b"a: &a [" + b"x, " * 20000 + b"]\nb: [" + b"*a, " * 1000 + b"]\n",
    "indent.yaml": b"".join(b" " * n + b"a:\n" for n in range(3000)),
    "dashes.yaml": b"- " * 100000,
    "questions.yaml": b"? " * 50000,
    "key.yaml": b"k" * (2 << 20) + b": v\n",
    "keys.json": b'{"a":{' + b",".join(b'"k":1' for _ in range(100)) + b"}}",
    "numbers.yaml": (CONFIG_MAP % "a").encode() + b"data: " + b"9" * 100000 + b"\n",
    "cycle.yaml": b"a: &a [*a]\n",
    "tag.yaml": b"!!python/object:os.system [x]\n",
    "directive.yaml": b"%YAML 9.9\n---\n" + CONFIG_MAP.encode() % b"a",
    "open.json": b'{"apiVersion":"v1","kind":"Pod"' * 1000,
}


def test_hostile_manifests(t):
    """10,000 documents, foreign encodings, programs, anchors, merges, depth: a line each, the rest keeps running"""
    node = t.node()
    node.import_image()
    node.put("good.yaml", pod("good"))
    good = node.wait_running("good")
    for file, content in HOSTILE.items():
        with open(f"{node.manifests}/{file}", "wb") as f:
            f.write(content)
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"{node.manifests}/socket.yaml")
    os.mknod(f"{node.manifests}/device.yaml", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    odd = os.fsencode(node.manifests) + b"/odd\xff\n\x1b[31m.yaml"
    with open(odd, "wb") as f:
        f.write(b"{")
    with open(f"{node.manifests}/{'n' * 250}.yaml", "wb") as f:
        f.write(b"{")
    for file in (*HOSTILE, "socket.yaml", "device.yaml", "n" * 250 + ".yaml"):
        problems = until(lambda f=file: node.problems().get(f), 30, lambda f=file: f"a problem of {f}")
        check(0 < len(problems) <= 200, f"{len(problems)} problems of {file}")
        for problem in problems:
            check(0 < len(problem) < 700 and problem.isprintable(), f"one clear line about {file}: {problem!r}")
    log = node.log()
    check("\x1b" not in log and all(line.isprintable() for line in log.splitlines()), "nothing but text in the log")
    if SLOW == 1:
        check(high_water_kib(node) < 150 * 1024, f"the daemon grew to {high_water_kib(node)} KiB")
    node.put("later.yaml", pod("later"))
    node.wait_running("later")
    equal((node.pod("good").uid, node.pod("good").restarts()), (good.uid, 0), "the pod that ran before")
    for name in os.listdir(os.fsencode(node.manifests)):
        if name not in (b"good.yaml", b"later.yaml"):
            os.unlink(os.fsencode(node.manifests) + b"/" + name)
    until(lambda: not node.problems(), 10, "problems go with their files")
    node.stop()


test_hostile_manifests.seconds = 40


def test_replaced_while_read(t):
    """a file that is replaced, cut and rewritten all the time is never taken half, and its pod never dies of it"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    a = node.wait_running("a")
    padding = "# " + "x" * 500000 + "\n"
    end = time.monotonic() + 4
    n = 0
    while time.monotonic() < end:
        n += 1
        text = padding + json.dumps(pod("a", labels={"n": str(n)}))
        if n % 3 == 0:  # by rename
            node.put("a.yaml", text)
        elif n % 3 == 1:  # in place: cut, then written in pieces
            with open(f"{node.manifests}/a.yaml", "w", encoding="utf-8") as f:
                for at in range(0, len(text), 100000):
                    f.write(text[at:at + 100000])
                    f.flush()
        else:  # renamed away and made anew; what is unlinked is gone at once
            os.rename(f"{node.manifests}/a.yaml", f"{t.scratch}/tmp/away")
            node.put("a.yaml", text)
    node.put("a.yaml", pod("a", labels={"n": "last"}))
    now = node.wait_pod("a", lambda p: p["metadata"].get("labels") == {"n": "last"})
    equal((now.uid, now.container_id()), (a.uid, a.container_id()), f"the pod after {n} edits")
    equal(node.problems(), {}, "problems")
    node.stop()


def test_folder_flickers(t):
    """the folder removed and made again, replaced by a file and by a link: pods stay, the last content decides"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    a = node.wait_running("a")
    away = f"{t.scratch}/away"
    for n in range(10):
        os.rename(node.manifests, away)
        if n % 3 == 0:
            os.mkdir(node.manifests)
            os.rmdir(node.manifests)
        elif n % 3 == 1:
            with open(node.manifests, "w", encoding="ascii") as f:
                f.write("no folder")
            os.unlink(node.manifests)
        else:
            os.symlink("nowhere", node.manifests)
            os.unlink(node.manifests)
        os.rename(away, node.manifests)
    node.put("b.yaml", pod("b"))
    node.wait_running("a", "b")
    equal((node.pod("a").uid, node.pod("a").container_id()), (a.uid, a.container_id()), "the pod that ran all the time")
    node.remove("a.yaml")
    node.wait_gone("a")
    node.stop()


# ---- the socket ----------------------------------------------------------------------------------------------------------------


def connect(node):
    s = socket.socket(socket.AF_UNIX)
    s.connect(node.socket)  # blocking: with a timeout a full backlog is an error
    s.settimeout(20 * SLOW)
    return s


def drain(s):
    """Everything until the other side closes."""
    got = b""
    try:
        while piece := s.recv(65536):
            got += piece
    except (ConnectionResetError, BrokenPipeError):
        pass
    return got


CROWD = """
import os, socket, sys, time
sockets, refused = [], 0
for n in range(1000):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(sys.argv[1])
        s.send(b"GET /api/v1/pods HTTP/1.1\\r\\nHost: x\\r\\nX-Slow: ")
        sockets.append(s)
    except OSError:
        refused += 1
print(len(sockets), refused, flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    for s in sockets:
        try:
            s.send(b"a")
        except OSError:
            pass
    time.sleep(0.2)
"""


def test_crowd(t):
    """a thousand connections of the socket's group that send a byte now and then: root is served, and all resources are released"""
    node = t.node("--socket-group", "nogroup")
    before = descriptors(node)
    seconds = 14 * SLOW
    crowd = subprocess.Popen(["python3", "-c", CROWD, node.socket, str(seconds)], user=NOBODY, group=NOBODY, extra_groups=[],
                             stdout=subprocess.PIPE, text=True)
    try:
        line = crowd.stdout.readline()
        check(line, "the crowd is there")
        for _ in range(20):
            equal(node.request("GET", "/version")[0], 200, f"root's request beside the crowd ({line.strip()})")
        # A thousand stand in the queue at first; whoever is too many is turned away, and then only so many are held.
        until(lambda: descriptors(node) < before + 200, 5, lambda: f"{descriptors(node)} descriptors")
        # A head that does not come to its end has ten seconds.
        until(lambda: descriptors(node) <= before + 2, 15, lambda: f"slow ones are closed; {descriptors(node)} descriptors, {before} before")
    finally:
        crowd.kill()
        crowd.wait()
        crowd.stdout.close()
    equal(node.request("GET", "/version")[0], 200, "afterwards")
    if SLOW == 1:
        check(high_water_kib(node) < 60 * 1024, f"the daemon grew to {high_water_kib(node)} KiB")
    node.stop()


test_crowd.seconds = 30


def test_pipelines(t):
    """10,000 requests in one go are answered in order; a client that never reads is no burden"""
    node = t.node()
    s = connect(node)
    head = b"GET /version HTTP/1.1\r\nHost: x\r\n"
    n = 10000
    sender = threading.Thread(target=lambda: s.sendall((head + b"\r\n") * n + head + b"Connection: close\r\n\r\n"))
    sender.start()
    got = drain(s)
    sender.join()
    equal(got.count(b"HTTP/1.1 200 "), n + 1, "answers")
    s.close()

    deaf = connect(node)
    deaf.setblocking(False)
    sent = 0
    try:
        while sent < 64 << 20:
            sent += deaf.send((head + b"\r\n") * 1000)
    except BlockingIOError:
        pass
    check(sent < 32 << 20, f"{sent} bytes were taken from a client that reads nothing")
    equal(node.request("GET", "/version")[0], 200, "beside it")
    deaf.close()
    if SLOW == 1:
        check(high_water_kib(node) < 60 * 1024, f"the daemon grew to {high_water_kib(node)} KiB")
    node.stop()


def test_broken_requests(t):
    """huge and broken heads, bodies and lengths: a code each, and the connection ends"""
    node = t.node()
    before = descriptors(node)
    get = b"GET /version HTTP/1.1\r\nHost: x\r\n"
    for request, codes in ((b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\n\r\n", b"414"),
                           (get + b"X: " + b"a" * (1 << 20) + b"\r\n\r\n", b"431"),
                           (get + b"".join(b"X%d: a\r\n" % n for n in range(100000)) + b"\r\n", b"431"),
                           (b"POST /images?source=x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", b"400"),
                           (b"POST /images?source=x HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n" + b"a" * (1 << 20), b"413"),
                           (b"POST /images?source=x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
                           (b"POST /images?source=x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", b"400"),
                           (get + b"A\0: b\r\n\r\n", b"400"), (b"\x16\x03\x01" * 100, b"400"),
                           (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"4"), (b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
                           (b"GET /api/v1/pods?labelSelector=" + b"(" * 10000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"400"),
                           (b"GET /api/v1/pods?" + b"a=b&" * 5000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"4"),
                           (b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"4"),
                           (b"BREW /pot HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"4")):
        s = connect(node)
        try:
            s.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            pass
        got = drain(s)
        check(got.startswith(b"HTTP/1.1 " + codes), f"{request[:60]!r}: {got[:200]!r}")
        s.close()
    for _ in range(300):  # half a request, then a reset
        s = connect(node)
        s.send(get[:20])
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    until(lambda: descriptors(node) <= before + 1, 10, lambda: f"{descriptors(node)} descriptors, {before} before")
    equal(node.request("GET", "/version")[0], 200, "afterwards")
    node.stop()
