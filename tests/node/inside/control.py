# SPDX-License-Identifier: Apache-2.0
"""control - runs functions of the modules beside it for the test outside (vm.py), over a virtio serial port.

A request is a line {"id": 7, "call": "reset.begin", "args": [...], "deadline": 60}.  The function runs in a child of this
process, so that it starts at once (the modules are loaded) and can be ended: what it prints comes back as {"id": 7, "out": line},
its value as {"id": 7, "value": ...}, what it raises as {"id": 7, "error": traceback}.  One at a time.
"""
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback

PORT = "/dev/virtio-ports/control"
MODULES = ("tools", "node")  # what takes long to load


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read().strip()


def open_port():
    end = time.monotonic() + 120
    while not os.path.exists(PORT) and time.monotonic() < end:
        time.sleep(0.02)
    return os.open(PORT, os.O_RDWR)


def write_line(port, message):
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(port, data):]


def run_child(request, results):
    """The called function; standard output is a pipe already."""
    os.setsid()
    module, _, function = request["call"].rpartition(".")
    try:
        value = getattr(importlib.import_module(module), function)(*request["args"])
        answer = {"value": value}
    except BaseException:  # pylint: disable=broad-except
        answer = {"error": traceback.format_exc().strip()}
    sys.stdout.flush()
    with os.fdopen(results, "w", encoding="utf-8") as f:
        json.dump(answer, f)
    os._exit(0)


def serve(port, request):
    out_read, out_write = os.pipe()
    result_read, result_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(port)
        os.dup2(out_write, 1)
        os.dup2(out_write, 2)
        os.close(out_write)
        os.close(out_read)
        os.close(result_read)
        run_child(request, result_write)
    os.close(out_write)
    os.close(result_write)
    late = []

    def expire(*_):
        late.append(1)
        os.killpg(pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, expire)
    signal.alarm(int(request["deadline"]))
    # The result's pipe ends with the child itself: what it left in the background may hold the output's.
    with os.fdopen(out_read, "rb", 0) as out:
        os.set_blocking(out_read, False)
        answer, pending, results = b"", b"", [out_read, result_read]
        while result_read in results:
            for fd in select.select(results, [], [])[0]:
                more = os.read(fd, 1 << 16)
                if not more:
                    results.remove(fd)
                elif fd == result_read:
                    answer += more
                else:
                    pending = relay(port, request["id"], pending + more)
        rest = out.read() if out_read in results else b""
        relay(port, request["id"], pending + (rest or b"") + b"\n")
    signal.alarm(0)
    os.close(result_read)
    os.waitpid(pid, 0)
    try:
        result = json.loads(answer)
    except ValueError:
        result = {"error": f"no end within {request['deadline']} s" if late else "the process was killed"}
    write_line(port, {"id": request["id"], **result})


def relay(port, number, data):
    *lines, rest = data.split(b"\n")
    for line in lines:
        if line:
            write_line(port, {"id": number, "out": line.decode("utf-8", "replace")})
    return rest


def main():
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    port = open_port()
    for module in MODULES:
        importlib.import_module(module)
    os.write(port, b"\n")
    write_line(port, {"hello": read("/proc/sys/kernel/random/boot_id"), "uptime": float(read("/proc/uptime").split()[0])})
    data = b""
    while True:
        more = os.read(port, 1 << 16)
        if not more:  # nobody is connected
            time.sleep(0.1)
            continue
        data += more
        while b"\n" in data:
            line, _, data = data.partition(b"\n")
            if line.strip():
                serve(port, json.loads(line))


main()
