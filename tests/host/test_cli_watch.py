# SPDX-License-Identifier: Apache-2.0
"""events -w and top -w: they continue until nobody reads their output."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading

from coracle import check, container, equal, pod, until


class Watch:
    """A running command and the lines it has printed."""

    def __init__(self, node, *words, stdout=subprocess.PIPE):
        self.process = subprocess.Popen([node.coracle, "--socket", node.socket, *words], stdout=stdout, text=True)
        self.lines = []
        if stdout == subprocess.PIPE:
            self.reader = threading.Thread(target=lambda: self.lines.extend(iter(self.process.stdout.readline, "")), daemon=True)
            self.reader.start()

    def until(self, pattern, seconds=20):
        """Waits for a line that matches."""
        return until(lambda: next((line for line in self.lines if re.search(pattern, line)), None), seconds, lambda: f"{pattern}: {self.lines}")

    def end(self):
        self.process.terminate()
        self.process.wait(20)


def test_events(t):
    """events -w shows old and new events, once each; --types and --for select; it ends with the daemon and says so"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    every, warnings = Watch(node, "events", "-w"), Watch(node, "events", "-w", "-A", "--types", "Warning", "--for", "pod/bad")
    every.until(r"Normal +Started +Pod/a ")
    check(every.lines[0].startswith("LAST SEEN"), f"no header: {every.lines}")
    node.put("b.yaml", pod("b"))
    node.put("bad.yaml", pod("bad", container(image="localhost/absent:1", imagePullPolicy="Never"), namespace="other"))
    every.until(r"Normal +Started +Pod/b ")
    warnings.until(r"^other .* Warning +ErrImageNeverPull +Pod/bad ")
    equal([line for line in warnings.lines[1:] if "Warning" not in line or "Pod/bad" not in line], [], "only warnings of that pod")
    check(not [line for line in every.lines if "Pod/bad" in line], "another namespace is shown")
    warnings.end()
    node.stop()
    equal(every.process.wait(20), 3, "its exit code when the daemon ends")
    every.reader.join(20)
    equal([len([line for line in every.lines if re.search(rf"Started +Pod/{name} ", line)]) for name in "ab"], [1, 1], "each once")


def test_top(t):
    """top -w shows a table every two seconds, on a terminal in place, and ends when its output is closed"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    top = Watch(node, "top", "pods", "-w")
    until(lambda: sum(line.startswith("NAME ") for line in top.lines) >= 2, 30, lambda: f"two tables: {top.lines}")
    top.until(r"^a +\d+m +\d+Mi$")
    top.end()

    read_end, write_end = os.pipe()
    unread = Watch(node, "top", "pods", "-w", stdout=write_end)
    os.close(write_end)
    os.close(read_end)
    equal(unread.process.wait(30), 0, "its exit code when nobody reads")

    master, slave = pty.openpty()
    terminal = Watch(node, "top", "node", "-w", stdout=slave)
    os.close(slave)
    shown = b""
    while shown.count(b"\033[H") < 2:
        shown += os.read(master, 4096)
    check(b"\033[2J" in shown and b"\033[K" in shown, f"not in place: {shown}")
    terminal.end()
    os.close(master)

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 1, 40, 0, 0))
    small = Watch(node, "top", "pods", "-w", stdout=slave)
    os.close(slave)
    shown = b""
    while shown.count(b"\033[?7h") < 2:
        shown += os.read(master, 4096)
    check(b"NAME" in shown and b"\n" not in shown, f"more than the one line that there is: {shown}")
    small.end()
    os.close(master)
    node.stop()
