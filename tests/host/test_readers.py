# SPDX-License-Identifier: Apache-2.0
"""Readers of the socket that ask for more than they take, beside pods that start."""
import subprocess
import time

from coracle import check, pod

NOBODY = 65534

PIPELINE = """
import socket, sys, threading
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
def send():
    while True:
        s.sendall(b"GET " + sys.argv[2].encode() + b" HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
threading.Thread(target=send, daemon=True).start()
first = True
while s.recv(1 << 20):
    if first:
        print("reads", flush=True)
    first = False
"""


def start_of(node, name):
    begin = time.monotonic()
    node.put(f"{name}.yaml", pod(name))
    node.wait_running(name)
    return time.monotonic() - begin


def test_pipelined_reader(t):
    """one unprivileged reader that pipelines requests does not hold up the start of a pod"""
    node = t.node("--socket-group", "nogroup")
    node.import_image()
    names = [f"p{n}" for n in range(20)]
    node.put("all.yaml", *[pod(name) for name in names])
    node.wait_running(*names)
    alone = sorted(start_of(node, f"alone{n}") for n in range(3))[1]
    for number, path in enumerate(("/stats/summary", "/api/v1/pods")):
        reader = subprocess.Popen(["python3", "-c", PIPELINE, node.socket, path], user=NOBODY, group=NOBODY,
                                  extra_groups=[], stdout=subprocess.PIPE, text=True)
        try:
            check(reader.stdout.readline(), "the reader reads")
            beside = sorted(start_of(node, f"beside{number}{n}") for n in range(3))[1]
        finally:
            reader.kill()
            reader.wait()
            reader.stdout.close()
        print(f"# start of a pod: {alone:.2f} s alone, {beside:.2f} s beside a reader of {path}", flush=True)
        check(beside < 3 * alone + 0.3, f"start of a pod: {alone:.2f} s alone, {beside:.2f} s beside {path}")
    node.stop()


test_pipelined_reader.seconds = 30
