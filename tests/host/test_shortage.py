# SPDX-License-Identifier: Apache-2.0
"""Shortages of descriptors: at the start, and caused by clients."""
import contextlib
import itertools
import os
import re
import resource
import signal
import socket
import subprocess
import time

from coracle import SLOW, check, contains, equal, pod, read, until


def test_few_descriptors(t):
    """with too few descriptors the start ends with the reason, not with a signal"""
    node = t.node()
    node.stop()
    reasons = []
    for n in range(4, 20):
        result = subprocess.run(["prlimit", f"--nofile={n}:{n}", *node.argv()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=20 * SLOW, check=False, text=True)
        # libuv aborts if it cannot make the pipe for its signals, and there is no way to check before.
        if result.returncode == -signal.SIGABRT and "Assertion" not in result.stdout and "daemon.c" not in result.stdout:
            continue
        check(result.returncode == 1, f"{n} descriptors: exit code {result.returncode}\n{result.stdout}")
        contains(result.stdout, "cannot start")
        reasons.append(result.stdout)
    check(any("create the event loop" in r for r in reasons), "the loop was never what failed:\n" + "\n".join(reasons))


NOBODY = 65534

# Connects so many times, sends the request on each, and reads only from those that are asked for: prints what these
# answered first.
CLIENTS = r"""
import socket, sys
path, number, reads = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "reads"
clients = []
for _ in range(number):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)  # waits where the queue is full, as it would not with a timeout
    s.settimeout(20)
    try:
        s.sendall(sys.argv[4].encode().decode("unicode_escape").encode())
    except BrokenPipeError:
        pass  # turned away before it asked: the answer is there
    clients.append(s)
    if reads:
        print(s.recv(100).split(b"\r\n")[0].decode(), flush=True)
print("all", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def clients(node, number, request, reads=True):
    """So many connections of an unprivileged member of the socket's group; gives the first line of each answer."""
    process = subprocess.Popen(["python3", "-c", CLIENTS, node.socket, str(number), "reads" if reads else "deaf", request],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=NOBODY, group=NOBODY, extra_groups=[])
    try:
        answers = [line.strip() for line in itertools.takewhile(lambda line: line != "all\n", process.stdout)]
        check(process.poll() is None, "the clients ended")
        yield answers
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def processor_seconds(pid):
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", read(f"/proc/{pid}/status")).group(1)) / 1024


def test_places_of_root(t):
    """other users have 96 connections and 48 watches at most, and root can still connect and watch"""
    node = t.node("--socket-group", "nogroup")
    watch = r"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n"
    with clients(node, 60, watch) as answers:
        equal([answers.count(f"HTTP/1.1 {code}") for code in ("200 OK", "503 Service Unavailable")], [48, 12], "watches")
        with subprocess.Popen([node.coracle, "--socket", node.socket, "get", "pods", "--watch"], stdout=subprocess.DEVNULL) as process:
            try:
                process.wait(timeout=1)
                check(False, "root's watch ended")
            except subprocess.TimeoutExpired:
                process.kill()
    with clients(node, 110, r"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") as answers:
        equal([answers.count(f"HTTP/1.1 {code}") for code in ("200 OK", "503 Service Unavailable")], [96, 14], "connections")
        equal(node.get("/version")["gitVersion"][:1], "v", "root is answered")
    node.stop()


def test_accept_without_descriptors(t):
    """a client that connects when no descriptor is left costs no processor time, and is served when there are some again"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    pid = node.process.pid
    before, facts = resource.prlimit(pid, resource.RLIMIT_NOFILE), (node.pod("a").container_id(), node.pod("a").restarts())
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(5)]
    try:
        used = processor_seconds(pid)
        for client in waiting:
            client.connect(node.socket)
        end = time.monotonic() + 2
        until(lambda: time.monotonic() > end, 5, "two seconds")
        check(processor_seconds(pid) - used < 0.5, f"the daemon used {processor_seconds(pid) - used} s of 2")
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        for client in waiting:
            client.close()
    equal((node.pod("a").container_id(), node.pod("a").restarts()), facts, "the pod")
    node.stop()


def test_deaf_clients(t):
    """66 clients that ask for lists of large pods and read nothing: memory stays bounded, and root is answered at once"""
    node = t.node("--socket-group", "nogroup")
    for n in range(30):
        node.put(f"p{n}.yaml", pod(f"p{n}", annotations={"large": "x" * 200000}, nodeSelector={"no": "such"}))
    until(lambda: len(node.get("/api/v1/pods")["items"]) == 30, 20, "30 pods")
    before = resident_mib(node.process.pid)
    with clients(node, 66, r"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\n\r\n" * 20, reads=False):
        end, took, grown = time.monotonic() + 3, 0, 0
        while time.monotonic() < end:
            begin = time.monotonic()
            node.get("/version")
            took, grown = max(took, time.monotonic() - begin), max(grown, resident_mib(node.process.pid) - before)
            time.sleep(0.05)  # a rate, not a wait
        print(f"# root waited {took:.2f} s, the daemon grew by {grown:.0f} MiB", flush=True)
        check(took < 2 * SLOW and grown < 64 * SLOW, f"root waited {took:.2f} s, the daemon grew by {grown:.0f} MiB")
    node.stop()
