# SPDX-License-Identifier: Apache-2.0
"""Streams of the command line: exec and attach on a real terminal (tmux), attach and port-forward with pipes."""
import hashlib
import http.client
import os
import re
import resource
import socket
import subprocess
import threading

from coracle import check, container, contains, equal, pod, run, shell, until


# busybox's line editor asks the terminal for the cursor's position, and drops input typed just before the
# answer.  Without echo it does not edit.
PLAIN_SHELL = shell("stty -echo; exec sh")


class Terminal:
    """A terminal of 80x24 in which a command runs.  Input is typed when the screen shows that the command waits for it."""

    def __init__(self, t, command):
        self.tmux = ("tmux", "-S", f"{t.scratch}/tmux", "-f", "/dev/null")
        self._do("new-session", "-d", "-x", "80", "-y", "24", f"{command}; echo code=$?; exec sleep 1000")

    def _do(self, *words):
        return run(*self.tmux, *words).stdout

    def screen(self):
        return [line.rstrip() for line in self._do("capture-pane", "-p").splitlines()]

    def see(self, condition, what):
        until(lambda: condition(self.screen()), 20, lambda: f"{what}; the screen: " + "\n".join(self.screen()))

    def line(self, text):
        """The printed text, after the prompt if input is not echoed."""
        self.see(lambda lines: text in lines or f"/ # {text}" in lines, f"a line {text!r}")

    def prompt(self):
        self.see(lambda lines: [x for x in lines if x][-1:] == ["/ #"], "a prompt")

    def type(self, text):
        self._do("send-keys", "-l", text)

    def key(self, *names):
        self._do("send-keys", *names)

    def enter(self, text):
        """A line, at a prompt."""
        self.prompt()
        self.type(text)
        self.key("Enter")

    def resize(self, columns, rows):
        self._do("resize-window", "-x", str(columns), "-y", str(rows))

    def close(self):
        run(*self.tmux, "kill-server", ok=False)


def test_terminal(t):
    """exec -it is a terminal: a shell, its size and its changes, vi, Ctrl-C, and the exit code 3"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    screen = Terminal(t, f"{node.coracle} --socket {node.socket} exec -it a -- sh -c 'stty -echo; exec sh'")
    try:
        screen.enter("stty size")
        screen.line("24 80")
        screen.prompt()
        screen.resize(100, 30)
        screen.enter("while [ \"$(stty size)\" != '30 100' ]; do sleep 0.1; done; echo res''ized")
        screen.line("resized")
        screen.enter("clear; vi /tmp/x")
        screen.see(lambda lines: lines[1:3] == ["~", "~"] and "/tmp/x" in "".join(lines[20:]), "vi")
        screen.type("ihello vi")
        screen.line("hello vi")
        screen.key("Escape")  # input that follows at once would be taken for the rest of a key's sequence
        screen.see(lambda lines: any(line.startswith("- /tmp/x") for line in lines), "vi's command mode")
        screen.type(":wq")
        screen.see(lambda lines: any(line.startswith(":wq") for line in lines), "the command to vi")
        screen.key("Enter")
        screen.enter('echo "<$(cat /tmp/x)>"')
        screen.line("<hello vi>")
        screen.enter("clear; echo st''arted; sleep 1000")
        screen.line("started")
        screen.key("C-c")
        screen.enter("echo rc=$?")
        screen.line("rc=130")
        screen.enter("exit 3")
        screen.line("code=3")
        contains("\n".join(screen.screen()), "command terminated with exit code 3")
    finally:
        screen.close()
    node.stop()


def test_attach(t):
    """attach: a container's own shell on a terminal, left by ctrl-p ctrl-q; and streams with pipes, until its input ends"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=PLAIN_SHELL, stdin=True, tty=True)))
    node.put("b.yaml", pod("b", container(command=shell("while read x; do echo got $x; echo error $x >&2; done; exit 0"), stdin=True,
                                          stdinOnce=True), restartPolicy="Never"))
    node.put("c.yaml", pod("c"))
    node.wait_running("a")
    node.wait_running("b")
    node.wait_running("c")
    screen = Terminal(t, f"{node.coracle} --socket {node.socket} attach -it a")
    try:
        screen.see(lambda lines: any("ctrl-p, ctrl-q detaches" in line for line in lines), "the greeting")
        screen.key("Enter")
        screen.enter("while [ \"$(stty size)\" != '24 80' ]; do sleep 0.1; done; echo a''ttached")
        screen.line("attached")
        screen.prompt()
        screen.key("C-p", "C-q")
        screen.see(lambda lines: any(line.endswith("code=0") for line in lines), "the end")
    finally:
        screen.close()
    equal(node.pod("a").restarts(), 0, "restarts of what was left")

    attached = subprocess.Popen([node.coracle, "--socket", node.socket, "attach", "-i", "b"], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    attached.stdin.write("one\n")
    attached.stdin.flush()
    equal((attached.stdout.readline(), attached.stderr.readline()), ("got one\n", "error one\n"), "both streams")
    out, error = attached.communicate("two\n", timeout=60)
    equal((attached.returncode, out, error), (0, "got two\n", "error two\n"), "the rest")
    node.wait_pod("b", lambda p: p.phase == "Succeeded", 20, "its end")
    late = node.cli("attach", "b", ok=False)
    equal((late.returncode, "cannot attach to a container in a completed pod; current phase is Succeeded" in late.stderr), (1, True), f"attach: {late.stderr}")
    refused = node.cli("attach", "-i", "c", ok=False)
    equal(refused.returncode, 1, "input to a container without stdin")
    contains(refused.stderr, "container main accepts no input: its manifest does not have stdin: true")
    node.stop()


def test_port_forward(t):
    """port-forward: parallel connections to servers on the pod's localhost; a refused one is reported; it waits for descriptors and ends with the pod"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=shell(
        "mkdir /www; echo page > /www/page; dd if=/dev/urandom of=/www/big bs=1M count=5 2> /dev/null; sha256sum /www/big > /www/sum;"
        "exec httpd -f -p 127.0.0.1:8080 -h /www")), terminationGracePeriodSeconds=0))
    node.wait_running("a")
    forward = subprocess.Popen([node.coracle, "--socket", node.socket, "port-forward", "a", ":8080", ":81", "--address", "127.0.0.1"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        ports = [re.fullmatch(r"Forwarding from 127\.0\.0\.1:(\d+) -> (8080|81)\n", forward.stdout.readline()).group(1) for _ in range(2)]
        errors = []
        threading.Thread(target=lambda: errors.extend(iter(forward.stderr.readline, "")), daemon=True).start()

        def fetch(path):
            c = http.client.HTTPConnection("127.0.0.1", int(ports[0]), timeout=60)
            c.request("GET", path)
            return c.getresponse().read()

        def served():
            try:
                return fetch("/sum")
            except (OSError, http.client.HTTPException):
                return None
        total = until(served, 20, "the server listens").split()[0].decode()
        idle = socket.create_connection(("127.0.0.1", int(ports[0])))  # an idle connection does not block others
        equal(hashlib.sha256(fetch("/big")).hexdigest(), total, "5 MiB")
        equal(fetch("/page"), b"page\n", "a page")
        idle.close()
        with socket.create_connection(("127.0.0.1", int(ports[1]))) as refused:
            refused.settimeout(60)
            equal(refused.recv(1), b"", "a port where nobody listens")
        until(lambda: any("port 81 of the pod: Connection refused" in e for e in errors), 10, lambda: f"the error; {errors}")
        equal(forward.poll(), None, "port-forward after an error of one connection")

        room = resource.prlimit(forward.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(forward.pid, resource.RLIMIT_NOFILE, (3, room[1]))
        waits = []
        later = threading.Thread(target=lambda: waits.append(fetch("/page")), daemon=True)
        later.start()
        until(lambda: any("error: connections must wait: Too many open files" in e for e in errors), 20, lambda: f"it says so; {errors}")
        resource.prlimit(forward.pid, resource.RLIMIT_NOFILE, room)
        later.join(60)
        equal(waits, [b"page\n"], "a connection that waited for a descriptor")
        equal(sum("must wait" in e for e in errors), 1, "once")

        node.kill()
        node.start()
        equal(until(served, 20, "through the next daemon").split()[0].decode(), total, "the same")
        node.remove("a.yaml")
        equal(forward.wait(timeout=60), 5, "its exit code when the pod is gone")
        until(lambda: any("error: lost connection to pod default/a: it is gone" in e for e in errors), 10, lambda: f"it says so; {errors}")
    finally:
        forward.terminate()
        forward.wait(timeout=20)
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    for port, words in (("70000", "remote port"), ("x", 'no container of the pod has a port with the name "x"')):
        wrong = node.cli("port-forward", "a", port, ok=False)
        check(wrong.returncode == 2 and words in wrong.stderr, f"a port that is none: {wrong}")
    helpers = [p for p in os.listdir("/proc") if p.isdigit() and b"--forward" in cmdline(p) and node.run_dir.encode() in cmdline(p)]
    until(lambda: not [p for p in helpers if os.path.exists(f"/proc/{p}")], 20, "no helper is left")
    node.stop()


def cmdline(p):
    try:
        with open(f"/proc/{p}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""
