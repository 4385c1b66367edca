# SPDX-License-Identifier: Apache-2.0
"""Processes in running containers: coracle exec, and the WebSocket behind it."""
import base64
import contextlib
import fcntl
import hashlib
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time
import urllib.parse

from coracle import (SLOW, Skip, alive, as_nobody, check, contains, container, equal, pod, processes, read, until)

SLEEPER = ["/bin/busybox", "sleep", "100000"]


# ---- tools ----------------------------------------------------------------------------------------------------------

def runc():
    """The flags of a daemon that uses runc."""
    path = shutil.which("runc", path="/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin")
    if path is None:
        raise Skip("runc is missing: Debian's package runc")
    return "--runtime", path


def coracle(node, *argv):
    return [node.coracle, "--socket", node.socket, "exec", *argv]


def execute(node, *argv, stdin=None, timeout=30):
    """(exit code, standard output, standard error), as bytes."""
    result = subprocess.run(coracle(node, *argv), input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout * SLOW, check=False)
    return result.returncode, result.stdout, result.stderr


def with_command(node, *words):
    """Living processes in containers of this node that have all these words in their command line."""
    found = []
    for pid in processes():
        line = read(f"/proc/{pid}/cmdline", "").split("\0")
        if all(w in line for w in words) and node.cgroup_root + "/" in read(f"/proc/{pid}/cgroup", "") and alive(pid):
            found.append(pid)
    return found


def exec_folders(node):
    """Files of execs in the bundles."""
    found = []
    for folder, names, files in os.walk(f"{node.run_dir}/containers"):
        if os.path.basename(folder) == "exec":
            found += [f"{folder}/{n}" for n in names + files]
    return found


def helpers(node):
    found = []
    for pid in processes():
        line = read(f"/proc/{pid}/cmdline", "").split("\0")
        if os.path.basename(line[0]) == "coracle-exec" and line[1].startswith(node.run_dir + "/"):
            found.append(pid)
    return found


def settled(node):
    until(lambda: not exec_folders(node) and not helpers(node), 10, lambda: f"left of execs: {exec_folders(node)}")


class WebSocket:
    """A client of the exec path, by hand."""

    def __init__(self, node, path, subprotocol="v5.channel.k8s.io", headers=None, method="GET", early=b""):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(20 * SLOW)
        self.socket.connect(node.socket)
        self.buffer = b""
        key = base64.b64encode(os.urandom(16)).decode()
        lines = {"Host": "x", "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                 "Sec-WebSocket-Key": key, "Sec-WebSocket-Protocol": subprotocol, **(headers or {})}
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items() if v is not None)
        self.socket.sendall(head.encode() + b"\r\n" + early)
        while b"\r\n\r\n" not in self.buffer:
            piece = self.socket.recv(65536)
            check(piece, lambda: f"the connection ended: {self.buffer!r}")
            self.buffer += piece
        self.head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        self.code = int(self.head.split()[1])
        if self.code == 101:
            accept = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
            contains(self.head.decode(), "Sec-WebSocket-Accept: " + base64.b64encode(accept).decode(), "handshake")

    @staticmethod
    def frame(payload, opcode=2, fin=True, masked=True):
        n = len(payload)
        head = bytes([(0x80 if fin else 0) | opcode])
        bit = 0x80 if masked else 0
        head += bytes([bit | n]) if n < 126 else bytes([bit | 126]) + struct.pack(">H", n) if n < 65536 else \
            bytes([bit | 127]) + struct.pack(">Q", n)
        if not masked:
            return head + payload
        mask = os.urandom(4)
        return head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload))

    def send(self, channel, payload, **kwargs):
        self.socket.sendall(self.frame(bytes([channel]) + payload, **kwargs))

    def _take(self, n):
        while len(self.buffer) < n:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise EOFError
            self.buffer += piece
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

    def receive(self):
        """(opcode, payload)"""
        first, second = self._take(2)
        check(first & 0x80 and not second & 0x80, "a server's frames are whole and not masked")
        n = second & 0x7f
        if n == 126:
            n = struct.unpack(">H", self._take(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self._take(8))[0]
        return first & 0x0f, self._take(n)

    def all(self):
        """{channel: bytes} and the close code, to the end of the connection."""
        channels, code = {}, None
        with contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                opcode, payload = self.receive()
                if opcode == 8:
                    code = struct.unpack(">H", payload[:2])[0] if payload else 1005
                    with contextlib.suppress(BrokenPipeError):
                        self.socket.sendall(self.frame(payload, 8))
                elif opcode in (1, 2) and payload:
                    channels[payload[0]] = channels.get(payload[0], b"") + payload[1:]
        self.socket.close()
        return channels, code

    def body(self):
        """The body of an answer that is not an upgrade."""
        n = int(re.search(rb"Content-Length: (\d+)", self.head).group(1))
        text = self._take(n).decode()
        self.socket.close()
        return text


def exec_path(name, *command, namespace="default", **flags):
    query = [("command", c) for c in command] + [(k, "true" if v is True else v) for k, v in flags.items()]
    return f"/api/v1/namespaces/{namespace}/pods/{name}/exec?{urllib.parse.urlencode(query)}"


def start(t, *flags):
    node = t.node(*flags)
    node.import_image()
    node.put("a.yaml", pod("a", container(command=SLEEPER)))
    return node, node.wait_running("a")


# ---- ordinary use
# -------------------------------------------------------------------------------------------------

def codes_and_streams(t, *flags):
    node, _ = start(t, *flags)
    equal(execute(node, "a", "--", "echo", "hi")[:2], (0, b"hi\n"), "echo")
    code, out, err = execute(node, "a", "sh", "-c", "echo out; echo err >&2; exit 7")
    equal((code, out, err), (7, b"out\n", b"err\ncommand terminated with exit code 7\n"), "both streams")
    equal(execute(node, "pod/a", "-n", "default", "--", "sh", "-c", "kill -9 $$")[0], 137, "death by a signal")
    equal(execute(node, "a", "sh", "-c", "cat; echo end")[1], b"end\n", "no -i: no input")
    equal(execute(node, "-i", "a", "--", "cat", stdin=bytes(range(256)))[1], bytes(range(256)), "all bytes")
    equal(execute(node, "-i", "a", "--", "sh", "-c", "read x; echo got $x; cat; echo eof", stdin=b"1\n2\n")[1],
          b"got 1\n2\neof\n", "end of input")
    # There is no shell in between, so arguments stay unchanged.
    equal(execute(node, "a", "--", "/bin/busybox", "echo", "$HOME; `id` 'x y'", "", "é")[1],
          "$HOME; `id` 'x y'  é\n".encode(), "arguments")
    code, out, err = execute(node, "a", "--", "nosuch")
    equal((code, out), (127, b""), "not found")
    check(b"nosuch" in err and b"not found" in err, f"not found: {err}")
    code, _, err = execute(node, "a", "--", "/etc")
    equal(code, 126, "not executable")
    contains(err.decode(), "coracle: cannot start the process: ")
    settled(node)
    return node


def test_codes_and_streams(t):
    """exec passes on exit codes, both streams, standard input to its end; 126 and 127 as shells have them"""
    node = codes_and_streams(t)
    usage = execute(node, "a")
    equal(usage[0], 2, "no command")
    contains(usage[2].decode(), "expected 'exec POD [--] COMMAND [ARG...]'")
    contains(node.cli("exec", "--help").stdout, "coracle exec [-i] [-t] [-c CONTAINER] POD [--] COMMAND [ARG...]")
    code, out, err = execute(node, "-it", "a", "--", "echo", "x", stdin=b"")
    equal((code, out), (0, b"x\n"), "-t without a terminal")
    contains(err.decode(), "Unable to use a TTY - input is not a terminal or the right kind of file")
    equal(subprocess.run(f"{node.coracle} --socket {node.socket} exec a -- yes | head -n 2", shell=True, check=False,
                         stdout=subprocess.PIPE, timeout=20 * SLOW).stdout, b"y\ny\n", "a reader that leaves")
    until(lambda: not with_command(node, "yes"), 10, "yes ended")
    settled(node)


def test_codes_and_streams_with_runc(t):
    """the same with runc"""
    codes_and_streams(t, *runc())


def test_which_container(t):
    """the first container is the default, or the annotated one; errors are kubectl's"""
    node = t.node()
    node.import_image()
    node.put("two.yaml", pod("two", container("one", env=[{"name": "WHO", "value": "one"}]),
                             container("two", env=[{"name": "WHO", "value": "two"}])))
    node.put("b.yaml", pod("b", container("one"), container("two", env=[{"name": "WHO", "value": "two"}]),
                           annotations={"kubectl.kubernetes.io/default-container": "two"}))
    node.put("c.yaml", pod("c", container(image="localhost/absent:1", imagePullPolicy="Never")))
    node.put("done.yaml", pod("done", container(command=["true"]), restartPolicy="Never"))
    node.wait_running("two", "b")
    who = ["sh", "-c", "echo $WHO"]
    code, out, err = execute(node, "two", *who)
    equal((code, out), (0, b"one\n"), "default container")
    contains(err.decode(), 'Defaulted container "one" out of: one, two')
    equal(execute(node, "-c", "two", "two", *who), (0, b"two\n", b""), "-c")
    equal(execute(node, "b", *who), (0, b"two\n", b""), "annotation")
    for argv, wanted, text in ((("-c", "x", "two", "true"), 5, "container x is not valid for pod two"),
                               (("nobody", "true"), 5, 'pods "nobody" not found'),
                               (("c", "true"), 1, 'container "main" in pod "c" is not running: ErrImageNeverPull')):
        if argv[0] == "c":
            node.wait_pod("c", lambda p: p.state()[1].get("reason") == "ErrImageNeverPull")
        code, _, err = execute(node, *argv)
        equal(code, wanted, f"exit code of {argv}")
        contains(err.decode(), text)
    node.wait_phase("done", "Succeeded")
    contains(execute(node, "done", "true")[2].decode(),
             "cannot exec into a container in a completed pod; current phase is Succeeded")
    ws = WebSocket(node, exec_path("two", "true", stdout=True))
    equal(ws.code, 400, "no container named")
    contains(ws.body(), "a container name must be specified for pod two, choose one of: [one two]")


def confinement(t, *flags):
    node = t.node(*flags)
    node.import_image()
    context = {"runAsUser": 1234, "runAsGroup": 4321, "allowPrivilegeEscalation": False,
               "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, "seccompProfile": {"type": "RuntimeDefault"}}
    node.put("a.yaml", pod("a", container(command=SLEEPER, securityContext=context, workingDir="/tmp",
                                          env=[{"name": "FROM", "value": "manifest"}]),
                           securityContext={"supplementalGroups": [77]}))
    node.put("root.yaml", pod("root", container(command=SLEEPER)))
    a = node.wait_running("a", "root") and node.pod("a")
    fields = "^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp):"
    for name in ("a", "root"):
        own = execute(node, name, "grep", "-E", fields, "/proc/self/status")[1].decode()
        init = execute(node, name, "grep", "-E", fields, "/proc/1/status")[1].decode()
        equal(own, init, f"identity in {name}")
        check("Uid" in own and "CapEff" in own, own)
    contains(execute(node, "a", "grep", "Uid", "/proc/self/status")[1].decode(), "1234\t1234\t1234\t1234")
    equal(execute(node, "a", "sh", "-c", "echo $FROM $(pwd) $HOSTNAME")[1], b"manifest /tmp a\n", "environment, folder")
    # The process is in the container's cgroup, and no command line shows the environment.
    process = subprocess.Popen(coracle(node, "a", "--", "sleep", "4321"), stdin=subprocess.DEVNULL)
    pids = until(lambda: with_command(node, "sleep", "4321"), 10, "sleep")
    contains(read(f"/proc/{pids[0]}/cgroup"), a.container_id(), "cgroup")
    lines = [read(f"/proc/{p}/cmdline", "") for p in processes()]
    check(not [line for line in lines if "FROM=manifest" in line], "the environment stands in a command line")
    process.terminate()
    process.wait()
    until(lambda: not with_command(node, "sleep", "4321"), 10, "sleep ended with its client")
    settled(node)


def oom_scores(t, *flags):
    node = t.node(*flags)
    node.import_image()
    node.put("a.yaml", pod("a", container()))
    a = node.wait_running("a")
    wanted = read(f"/proc/{node.pid(a)}/oom_score_adj").strip()
    equal(wanted, "1000", "of the container")
    code, out, err = execute(node, "a", "--", "cat", "/proc/self/oom_score_adj")
    equal((code, out.decode().strip()), (0, wanted), f"of the process: {err!r}")
    settled(node)
    equal(node.stop(), 0, "exit code")


def test_oom_score(t):
    """the process has its container's oom_score_adj, which the runtime alone does not set"""
    oom_scores(t)


def test_oom_score_with_runc(t):
    """the same with runc"""
    oom_scores(t, *runc())


def test_confinement(t):
    """the process has user, groups, capabilities, seccomp, environment, folder and cgroup of its container"""
    confinement(t)


def test_confinement_with_runc(t):
    """the same with runc"""
    confinement(t, *runc())


def test_container_without_a_shell(t):
    """exec needs no shell in the container"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=SLEEPER, volumeMounts=[{"name": "empty", "mountPath": "/bin"}]),
                           initContainers=[container("copy", command=["cp", "/bin/busybox", "/to/busybox"],
                                                     volumeMounts=[{"name": "empty", "mountPath": "/to"}])],
                           volumes=[{"name": "empty", "emptyDir": {}}]))
    node.wait_running("a")
    equal(execute(node, "-c", "main", "a", "--", "sh", "-c", "true")[0], 127, "sh")
    equal(execute(node, "-c", "main", "a", "--", "/bin/busybox", "ls", "/bin")[1], b"busybox\n", "busybox")


# ---- much ----------------------------------------------------------------------------------------------------------

def much(t, *flags):
    node, _ = start(t, *flags)
    data = os.urandom(1 << 20) * 50
    wanted = hashlib.sha256(data).hexdigest()
    code, out, err = execute(node, "-i", "a", "--", "busybox", "sha256sum", stdin=data, timeout=60)
    equal((code, out.split()[0].decode(), err), (0, wanted, b""), "50 MB in")
    code, out, err = execute(node, "-i", "a", "--", "cat", stdin=data, timeout=60)
    equal((code, len(out), err), (0, len(data), b""), "50 MB both ways")
    equal(hashlib.sha256(out).hexdigest(), wanted, "checksum of 50 MB both ways")
    code, out, err = execute(node, "a", "--", "sh", "-c", "yes 0123456789abcde | head -c 52428800; exit 3", timeout=60)
    equal((code, len(out)), (3, 52428800), "50 MB out")
    check(out == b"0123456789abcde\n" * (52428800 // 16), "50 MB out differ")
    settled(node)


def test_much(t):
    """50 MB pass through exec each way and both ways, with the right checksum"""
    much(t)


def test_much_with_runc(t):
    """the same with runc"""
    much(t, *runc())


test_much.seconds = test_much_with_runc.seconds = 120


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", read(f"/proc/{pid}/status")).group(1))


def test_slow_sides(t):
    """neither a client that does not read nor a process that does not read makes the daemon grow"""
    node, _ = start(t)
    before = resident(node.process.pid)
    # A process that writes for ever, a client that takes nothing.
    deaf = WebSocket(node, exec_path("a", "yes", stdout=True, stderr=True))
    equal(deaf.code, 101, "handshake")
    # A process that reads nothing, a client that sends for ever.
    full = WebSocket(node, exec_path("a", "sleep", "7777", stdin=True, stdout=True))
    full.socket.settimeout(2)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < 200 << 20:
            full.send(0, b"x" * 30000)
            sent += 30000
    check(sent < 20 << 20, f"the daemon took {sent} bytes that nobody reads")
    grown = resident(node.process.pid) - before
    check(grown < 8192 * (6 if SLOW > 1 else 1), f"the daemon grew by {grown} KiB")
    # Their disconnection is noticed all the same.
    deaf.socket.close()
    full.socket.close()
    until(lambda: not with_command(node, "yes") and not with_command(node, "sleep", "7777"), 10, "both processes ended")
    settled(node)


def many(t, *flags):
    node, _ = start(t, *flags)
    running = [subprocess.Popen(coracle(node, "-i", "a", "--", "sh", "-c", f"cat; exit {i}"), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE) for i in range(30)]
    for i, process in enumerate(running):
        out, _ = process.communicate(f"this is {i}".encode() * 1000, timeout=60 * SLOW)
        equal((process.returncode, out), (i, f"this is {i}".encode() * 1000), f"exec {i} of 30")
    settled(node)


def test_many(t):
    """thirty execs at once, each with its own streams and code"""
    many(t)


def test_many_with_runc(t):
    """the same with runc"""
    many(t, *runc())


# ---- terminal --------------------------------------------------------------------------------------------------------

class Terminal:
    """A command on a pseudo terminal."""

    def __init__(self, argv, rows=24, columns=80):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(argv[0], argv)
        self.text = ""
        self.resize(rows, columns)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def until(self, text, deadline=10):
        end = time.monotonic() + deadline * SLOW
        while text not in self.text:
            left = end - time.monotonic()
            check(left > 0, lambda: f"no {text!r} on the terminal: {self.text!r}")
            if select.select([self.fd], [], [], left)[0]:
                with contextlib.suppress(OSError):
                    self.text += os.read(self.fd, 65536).decode(errors="replace")
        self.text = self.text.partition(text)[2]

    def is_raw(self):
        return not termios.tcgetattr(self.fd)[3] & termios.ICANON

    def wait(self):
        with contextlib.suppress(OSError):
            while select.select([self.fd], [], [], 10 * SLOW)[0]:
                piece = os.read(self.fd, 65536)
                if not piece:
                    break
                self.text += piece.decode(errors="replace")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def terminal(t, *flags):
    node, _ = start(t, *flags)
    term = Terminal(coracle(node, "-it", "a", "--", "sh"), 33, 101)
    term.until("# ")
    check(term.is_raw(), "the terminal is not raw")
    term.type("tty; echo TERM=$TERM; until stty size 2>&1 | grep '33 101'; do sleep 0.05; done\r")  # the size comes a moment after the start
    for text in ("/dev/pts/", "TERM=xterm", "33 101\r\n"):
        term.until(text)
    term.resize(44, 123)
    term.type("until stty size | grep '44 123'; do sleep 0.05; done\r")
    term.until("44 123\r\n")
    term.type("sleep 5555\r")
    until(lambda: with_command(node, "sleep", "5555"), 10, "sleep")
    term.type("\x03")  # Ctrl-C reaches the process in the container
    term.type("echo $?\r")
    term.until("130")
    term.type("exit 9\r")
    equal(term.wait(), 9, "exit code")
    contains(term.text, "command terminated with exit code 9\r\n", "after the end, the terminal is as it was")
    # A signal ends the client; the terminal is restored and the process ends.
    term = Terminal(["/bin/sh", "-c", " ".join(coracle(node, "-it", "a", "--", "sleep", "5556")) + "; echo code=$?; stty -a"])
    pids = until(lambda: with_command(node, "sleep", "5556"), 10, "sleep")
    until(term.is_raw, 10, "raw terminal")
    client = [p for p in processes() if read(f"/proc/{p}/cmdline", "").split("\0")[2:5] == [node.socket, "exec", "-it"]]
    os.kill(client[0], signal.SIGTERM)
    term.until("code=143\r\n")
    term.until(" icanon")
    term.wait()
    until(lambda: not alive(pids[0]), 10, "the process went with its client")
    settled(node)


def test_terminal(t):
    """-it: a terminal with its size, resized, with all keys, raw while it lasts and restored afterwards"""
    terminal(t)


def test_terminal_with_runc(t):
    """the same with runc"""
    terminal(t, *runc())


# ---- ends ----------------------------------------------------------------------------------------------------------

def test_client_goes(t):
    """when the client disconnects, the process and the others of its session end"""
    node, _ = start(t)
    client = subprocess.Popen(coracle(node, "a", "--", "sh", "-c", "trap '' TERM HUP INT; sleep 6001 & sleep 6002; sleep 6003"),
                              stdin=subprocess.DEVNULL)
    until(lambda: with_command(node, "sleep", "6001") and with_command(node, "sleep", "6002"), 10, "both processes")
    client.kill()
    client.wait()
    until(lambda: not with_command(node, "sleep", "6001") and not with_command(node, "sleep", "6002"), 10, "all ended")
    check(not with_command(node, "sleep", "6003"), "the next one began")
    settled(node)
    check(node.pod("a").restarts() == 0, "the container restarted")


def test_nobody_reads(t):
    """if nobody reads the output, exec ends like a local command: by SIGPIPE, as reported by shells"""
    node, _ = start(t)
    client = subprocess.Popen(coracle(node, "a", "--", "yes"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal(client.stdout.read(2), b"y\n", "the beginning")
    client.stdout.close()
    equal((client.wait(30), client.stderr.read()), (141, b""), "its end")
    client.stderr.close()
    until(lambda: not with_command(node, "yes"), 10, "the process ended, too")
    settled(node)


def test_container_stops(t):
    """an exec ends with its container"""
    node, _ = start(t)
    client = subprocess.Popen(coracle(node, "a", "--", "sleep", "6004"), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until(lambda: with_command(node, "sleep", "6004"), 10, "sleep")
    a = node.pod("a")
    node.remove("a.yaml")
    _, err = client.communicate(timeout=20 * SLOW)
    equal(client.returncode, 137, f"exit code: {err}")
    node.wait_gone("a")
    node.wait_no_traces(a)


def agent_goes(t, *flags):
    node, a = start(t, *flags)
    pid = node.pid(a)
    client = subprocess.Popen(coracle(node, "-i", "a", "--", "sh", "-c", "trap '' TERM HUP; sleep 6005"),
                              stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: with_command(node, "sleep", "6005"), 10, "sleep")
    node.kill()
    equal(client.wait(20 * SLOW), 1, "exit code")
    equal(client.stderr.read(), b"error: the connection to coracle ended before the command did\n", "message")
    until(lambda: not with_command(node, "sleep", "6005"), 10, "the process went with the agent")
    until(lambda: not helpers(node), 10, "helper gone")
    equal(exec_folders(node), [], "files of the exec")
    # Kill the helper too, as when the whole unit is killed: the next start finds the process.
    node.start()
    client = subprocess.Popen(coracle(node, "a", "--", "sleep", "6006"), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    orphan = until(lambda: with_command(node, "sleep", "6006"), 10, "sleep")[0]
    helper = helpers(node)
    equal(len(helper), 1, "helpers")
    os.kill(helper[0], signal.SIGSTOP)
    node.kill()
    os.kill(helper[0], signal.SIGKILL)
    client.wait(20 * SLOW)
    check(alive(orphan), "the orphan is gone already")
    node.start()
    until(lambda: not alive(orphan), 10, "the orphan ended")
    settled(node)
    equal(node.pid(node.wait_running("a")), pid, "the container ran on")
    equal(execute(node, "a", "echo", "x")[1], b"x\n", "exec afterwards")


def test_agent_is_killed(t):
    """kill -9 of the agent leaves nothing of an exec behind, and the container runs on"""
    agent_goes(t)


def test_agent_is_killed_with_runc(t):
    """the same with runc"""
    agent_goes(t, *runc())


def test_agent_stops(t):
    """the agent ends although execs are in progress, and ends them"""
    node, a = start(t)
    client = subprocess.Popen(coracle(node, "a", "--", "sleep", "6007"), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until(lambda: with_command(node, "sleep", "6007"), 10, "sleep")
    pid = node.pid(a)
    equal(node.stop(), 0, "exit code of the agent")
    equal(client.wait(20 * SLOW), 1, "exit code of the client")
    check(not with_command(node, "sleep", "6007"), "the process lives on")
    check(alive(pid), "the container ended")
    node.start()
    node.wait_running("a")


def test_background_process(t):
    """a process left in the background delays nothing, and survives"""
    node, _ = start(t)
    began = time.monotonic()
    equal(execute(node, "a", "sh", "-c", "sleep 60.25 & echo started"), (0, b"started\n", b""), "exec")
    check(time.monotonic() - began < 20 * SLOW, "exec waited for the background process")
    equal(len(with_command(node, "sleep", "60.25")), 1, "background processes")


# ---- the protocol ---------------------------------------------------------------------------------------------------

SUCCESS = {"metadata": {}, "status": "Success"}


def test_protocol(t):
    """Kubernetes' channels: streams, status, half-close, resize, fragments, pings; v4 without half-close"""
    node, _ = start(t)
    ws = WebSocket(node, exec_path("a", "sh", "-c", "cat; echo e >&2; exit 3", stdin=True, stdout=True, stderr=True))
    contains(ws.head.decode(), "Sec-WebSocket-Protocol: v5.channel.k8s.io")
    ws.send(0, b"one ")
    ws.socket.sendall(ws.frame(b"\x00tw", fin=False) + ws.frame(b"ping", 9) + ws.frame(b"o ", 0, fin=False) + ws.frame(b"", 0))
    ws.socket.sendall(ws.frame(b"\x00three", 1))  # as text
    ws.send(7, b"nobody's")
    ws.socket.sendall(ws.frame(b""))
    ws.send(255, b"\x00")
    ws.send(0, b"after the end")
    channels, code = ws.all()
    equal(code, 1000, "close code")
    equal((channels[1], channels[2]), (b"one two three", b"e\n"), "streams")
    equal(json.loads(channels[3]), {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                                    "message": "command terminated with non-zero exit code: exit status 3",
                                    "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}}, "status")
    # v4: 255 is a channel like any other that nobody knows; the input ends with the client.
    ws = WebSocket(node, exec_path("a", "sh", "-c", "read x; echo $x", stdin=True, stdout=True), "nonsense, v4.channel.k8s.io")
    contains(ws.head.decode(), "Sec-WebSocket-Protocol: v4.channel.k8s.io")
    ws.send(255, b"\x00")
    ws.send(0, b"line\n")
    channels, code = ws.all()
    equal((channels[1], json.loads(channels[3]), code), (b"line\n", SUCCESS, 1000), "v4")
    # Frames that come together with the request.
    early = WebSocket.frame(b"\x00early") + WebSocket.frame(b"\xff\x00")
    channels, _ = WebSocket(node, exec_path("a", "cat", stdin=True, stdout=True), early=early).all()
    equal(channels[1], b"early", "early frames")
    # A terminal: one stream, its size, the end of its input.
    sized = "while [ \"$(stty size)\" != '55 77' ]; do sleep 0.05; done; stty size; cat; echo over"  # a moment after the start
    ws = WebSocket(node, exec_path("a", "sh", "-c", sized, stdin=True, stdout=True, stderr=True, tty=True),
                   early=WebSocket.frame(b'\x04{"Width":77,"Height":55}'))
    ws.send(4, b'{"Width":0,"Height":99999}')
    ws.send(4, b"nonsense")
    ws.send(255, b"\x00")
    channels, _ = ws.all()
    contains(channels[1].decode(), "55 77\r\n")
    contains(channels[1].decode(), "over\r\n")
    check(2 not in channels, "a terminal with standard error")
    # The client closes first: the process ends.
    ws = WebSocket(node, exec_path("a", "sleep", "6008", stdout=True))
    until(lambda: with_command(node, "sleep", "6008"), 10, "sleep")
    ws.socket.sendall(ws.frame(struct.pack(">H", 1000), 8))
    equal(ws.all()[1], 1000, "close code that comes back")
    until(lambda: not with_command(node, "sleep", "6008"), 10, "sleep ended")
    settled(node)


def test_hostile_clients(t):
    """broken handshakes and frames are refused, and the daemon and the container live on"""
    node, a = start(t)
    pid = node.pid(a)
    path = exec_path("a", "sleep", "6009", stdin=True, stdout=True)
    for what, kwargs, code, text in (
            ("no upgrade", {"headers": {"Connection": None, "Upgrade": None}}, 400, "Upgrade request required"),
            ("SPDY", {"headers": {"Upgrade": "SPDY/3.1"}, "method": "POST"}, 426, "exec is served over WebSocket only"),
            ("POST", {"method": "POST"}, 400, "this is not a WebSocket handshake"),
            ("a short key", {"headers": {"Sec-WebSocket-Key": "short"}}, 400, "this is not a WebSocket handshake"),
            ("a long key", {"headers": {"Sec-WebSocket-Key": "A" * 5000}}, 400, "this is not a WebSocket handshake"),
            ("another version", {"headers": {"Sec-WebSocket-Version": "8"}}, 426, "WebSocket version 13 is served only"),
            ("another subprotocol", {"subprotocol": "channel.k8s.io"}, 400, "no subprotocol that is served here"),
            ("no subprotocol", {"subprotocol": None}, 400, "no subprotocol that is served here")):
        ws = WebSocket(node, path, **kwargs)
        equal(ws.code, code, what)
        contains(ws.body(), text, what)
    for query, text in (("stdout=true", "you must specify at least one command for the container"),
                        ("command=true", "you must specify at least 1 of stdin, stdout, stderr"),
                        ("command=true&stdout=maybe", 'stdout: \\"maybe\\" is neither true nor false')):
        code, body = node.request("GET", f"/api/v1/namespaces/default/pods/a/exec?{query}")
        equal(code, 400, query)
        contains(body.decode(), text)
    frame = WebSocket.frame
    for what, frames, code in (
            ("not masked", frame(b"\x00x", masked=False), 1002),
            ("reserved bit", b"\xc2\x80abcd", 1002),
            ("opcode", b"\x83\x80abcd", 1002),
            ("fragmented ping", frame(b"x", 9, fin=False), 1002),
            ("long ping", b"\x89\xfe\x00\x7eabcd", 1002),
            ("continuation of nothing", frame(b"x", 0), 1002),
            ("length with the top bit", b"\x82\xff" + b"\xff" * 8 + b"abcd", 1002),
            ("length not in its shortest form", b"\x82\xfe\x00\x01abcd", 1002),
            ("one byte of a close code", frame(b"x", 8), 1002),
            ("a size of a megabyte", frame(b"\x04" + b"x" * 1048576), 1009),
            ("HTTP", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 1002),
            ("nonsense", os.urandom(4096).replace(b"\x82", b"\xc2"), None)):
        ws = WebSocket(node, path)
        equal(ws.code, 101, what)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may hang up in the middle
            ws.socket.sendall(frames)
        got = ws.all()[1] if code is not None else ws.socket.shutdown(socket.SHUT_WR)
        equal(got, code, f"close code for {what}")
        ws.socket.close()
    # A frame of 8 EiB that never arrives: received parts are input, and no memory is reserved.
    ws = WebSocket(node, path)
    ws.socket.sendall(b"\x82\xff\x7f" + b"\xff" * 7 + b"\0\0\0\0\x00data")
    ws.socket.close()
    # Disconnects at every stage of the handshake.
    for cut in range(0, 200, 20):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(node.socket)
            s.sendall((f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                       "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                       "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n").encode()[:-cut or None])
    until(lambda: not with_command(node, "sleep", "6009"), 20, "all processes ended")
    settled(node)
    equal(node.request("GET", "/healthz")[1], b"ok", "the daemon")
    equal(node.pid(node.wait_running("a")), pid, "the container")


def test_only_root(t):
    """members of the socket's group may read, but not exec"""
    node, _ = start(t, "--socket-group", "nogroup")
    os.chmod(t.scratch, 0o755)
    result = as_nobody(*coracle(node, "a", "--", "true"), ok=False)
    equal(result.returncode, 4, "exit code")
    contains(result.stderr, "only root may run something in containers through this socket")
    settled(node)
