# SPDX-License-Identifier: Apache-2.0
"""A container's state that cannot be read is unknown: nothing is decided, and it is read again."""
import contextlib
import os
import resource
import socket
import time

from coracle import alive, check, container, equal, pod, shell, until


def without_descriptors(node, spare=0):
    """Descriptors: open ones stay open, each new one beyond `spare` fails.  Returns a function that undoes it."""
    pid = node.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    highest = max(int(fd) for fd in os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + 1 + spare if spare else 3, before[1]))
    return lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_ends_without_descriptors(t):
    """exit codes 0 and 3, a done init container and a healthy container survive reads that fail for seconds"""
    node = t.node()
    node.import_image()
    wait = "while [ ! -e /tmp/go ]; do sleep 0.1; done; "
    node.put("zero.yaml", pod("zero", container(command=shell(wait + "exit 0")), restartPolicy="Never"))
    node.put("three.yaml", pod("three", container(command=shell(wait + "exit 3")), restartPolicy="Never"))
    node.put("init.yaml", pod("init", container(), initContainers=[container("first", shell(wait + "exit 0"))]))
    node.put("a.yaml", pod("a", container(livenessProbe={"exec": {"command": ["true"]}, "periodSeconds": 1})))
    node.wait_running("zero", "three", "a")
    node.wait_pod("init", lambda p: "running" in str(p.status.get("initContainerStatuses")))
    healthy, pid = node.pod("a").container_id(), node.pid(node.pod("a"))
    ends = [node.pid(node.pod("zero")), node.pid(node.pod("three")), node.pid(node.pod("init"), "first")]
    first = node.pod("init").status["initContainerStatuses"][0]["containerID"]
    restore = without_descriptors(node)
    try:
        for end in ends:
            with open(f"/proc/{end}/root/tmp/go", "w", encoding="ascii"):
                pass
        until(lambda: not any(alive(end) for end in ends), 10, "three containers end")
        until(lambda: node.log().count("state is unknown; will check again") >= 3, 10, "looks that fail")
    finally:
        restore()
    node.wait_phase("zero", "Succeeded")
    node.wait_phase("three", "Failed")
    node.wait_running("init", "a")
    for name, code in ("zero", 0), ("three", 3):
        ended = node.pod(name).state()[1]
        equal(ended["exitCode"], code, f"exit code of {name}")
        equal(ended["reason"], "Error" if code else "Completed", f"reason of {name}")
    status = node.pod("init").status["initContainerStatuses"][0]
    equal((status["restartCount"], status["containerID"]), (0, first), "the init container ran once")
    equal(node.pod("a").container_id(), healthy, "the healthy container")
    check(alive(pid), "its process")
    equal(node.pod("a").restarts(), 0, "its restarts")
    node.stop()


test_ends_without_descriptors.seconds = 15


def test_watches_take_descriptors(t):
    """96 watches and 40 spare descriptors: five pods with exec probes are not restarted"""
    node = t.node()
    node.import_image()
    names = [f"p{i}" for i in range(5)]
    for name in names:
        node.put(f"{name}.yaml", pod(name, container(livenessProbe={"exec": {"command": ["true"]}, "periodSeconds": 1,
                                                                    "failureThreshold": 30})))
    node.wait_running(*names)
    before = {name: (node.pod(name).container_id(), node.pid(node.pod(name))) for name in names}
    restore = without_descriptors(node, spare=40)
    clients = []
    try:
        for _ in range(96):
            client = socket.socket(socket.AF_UNIX)
            clients.append(client)
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):  # the daemon accepts no more for now
                client.connect(node.socket)
                client.send(b"GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: x\r\n\r\n")
        end = time.monotonic() + 5  # five rounds of probes
        until(lambda: time.monotonic() > end, 10, "five rounds of probes")
        check("container lost" not in node.log(), "no container is lost")
    finally:
        restore()
        for client in clients:
            client.close()
    node.wait_running(*names)
    for name in names:
        equal((node.pod(name).container_id(), node.pid(node.pod(name)), node.pod(name).restarts()),
              (*before[name], 0), f"{name} runs on")
    node.stop()


test_watches_take_descriptors.seconds = 15


def test_sidecar_that_ends_at_once(t):
    """a sidecar that ends within milliseconds of its start does not keep the main container from starting"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(),
                           initContainers=[container("side", ["true"], restartPolicy="Always")]))
    node.wait_pod("a", lambda p: "running" in p.state("main"), deadline=10)
    equal(node.pod("a").restarts("main"), 0, "restarts of the main container")
    node.stop()
