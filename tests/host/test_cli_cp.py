# SPDX-License-Identifier: Apache-2.0
"""coracle cp: files and folders both ways, without a tar in the container; hostile links lead nowhere."""
import contextlib
import io
import os
import subprocess
import tarfile

from coracle import check, container, contains, equal, pod, read, shell, until


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def inside(node, command):
    return node.cli("exec", "a", "--", "sh", "-c", command).stdout


def cmdline(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read()
    return b""


def test_cp(t):
    """cp copies files and folders both ways, with permissions and long names, and as a tar stream"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    here = f"{t.scratch}/here"
    deep = "x" * 120 + "/" + "y" * 120
    write(f"{here}/tree/one", "1\n")
    write(f"{here}/tree/{deep}/two", "2\n")
    os.chmod(f"{here}/tree/one", 0o750)
    os.symlink("one", f"{here}/tree/link")
    node.cli("cp", f"{here}/tree", "a:/tmp")
    equal(inside(node, f"cd /tmp/tree; stat -c %a one; cat one {deep}/two; readlink link"), "750\n1\n2\none\n", "a folder")
    node.cli("cp", f"{here}/tree/one", "a:/tmp/renamed")
    equal(inside(node, "cat /tmp/renamed"), "1\n", "a file with a new name")
    back = node.cli("cp", "a:/tmp/tree", f"{here}/back")
    equal((read(f"{here}/back/one"), read(f"{here}/back/{deep}/two")), ("1\n", "2\n"), "and back")
    contains(back.stderr, "tree/link: left out: a symbolic link")
    node.cli("cp", "a:/tmp/tree/", f"{here}/slash")
    equal(read(f"{here}/slash/one"), "1\n", "a folder with a slash behind its name")
    node.cli("cp", f"{here}/tree/.", "a:/var/made")
    node.cli("cp", f"{here}/tree/.", "a:/var/made")
    equal(inside(node, "cat /var/made/one; ls /var/made/tree 2> /dev/null; true"), "1\n", "a folder's content, into one that was made, and again")
    node.cli("cp", "a:/var/made/.", f"{here}/content")
    node.cli("cp", "a:/var/made/.", f"{here}/content")
    equal((read(f"{here}/content/one"), os.path.exists(f"{here}/content/made")), ("1\n", False), "and back")
    nameless = node.cli("cp", f"{here}/tree/..", "a:/tmp", ok=False)
    equal((nameless.returncode, "has no name" in nameless.stderr), (2, True), "..")
    inside(node, "dd if=/dev/zero of=/tmp/big bs=1M count=4 2> /dev/null; mkfifo /tmp/tree/fifo")
    node.cli("cp", "a:/tmp/big", here)
    equal(os.path.getsize(f"{here}/big"), 4 << 20, "a larger one, into a folder")
    stream = subprocess.run([node.coracle, "--socket", node.socket, "cp", "a:/tmp/tree", "-"], capture_output=True, timeout=60, check=True)
    names = tarfile.open(fileobj=io.BytesIO(stream.stdout)).getnames()
    check("tree/one" in names and f"tree/{deep}/two" in names and "tree/fifo" not in names, f"the stream: {names}")
    contains(stream.stderr.decode(), "tree/fifo: left out")
    subprocess.run([node.coracle, "--socket", node.socket, "cp", "-", "a:/var"], input=stream.stdout, timeout=60, check=True)
    equal(inside(node, "cat /var/tree/one"), "1\n", "a stream into a folder")
    half = tarfile.TarInfo("half")
    half.size = 1 << 20
    cut = subprocess.Popen([node.coracle, "--socket", node.socket, "cp", "-", "a:/var"], stdin=subprocess.PIPE)
    cut.stdin.write(half.tobuf() + b"x" * 1000)
    cut.stdin.flush()
    until(lambda: ".coracle-cp." in inside(node, "ls -A /var"), 20, "a file that is not whole yet")
    # The helper that reads archives finds no library of the container, and no file that names one.
    helpers = [p for p in os.listdir("/proc") if p.isdigit() and b"--copy\0into\0" in cmdline(p)]
    equal([os.readlink(f"/proc/{p}/ns/mnt") for p in helpers], [os.readlink(f"/proc/{node.process.pid}/ns/mnt")], "its mount namespace")
    equal([os.readlink(f"/proc/{p}/root") for p in helpers], ["/"], "its root folder")
    cut.kill()
    until(lambda: ".coracle-cp." not in inside(node, "ls -A /var"), 20, "nothing of it stays")
    equal(inside(node, "ls -d /var/half 2> /dev/null; true"), "", "half a file")
    cut.wait()
    cut.stdin.close()
    node.cli("cp", "a:/proc/version", here)
    equal(read(f"{here}/version"), read("/proc/version"), "a file that says it is empty")
    device = node.cli("cp", "a:/dev/null", f"{here}/null", ok=False)
    equal((device.returncode, os.path.exists(f"{here}/null")), (1, False), "a device")
    contains(device.stderr, "null is neither a file, a folder nor a link")
    missing = node.cli("cp", "a:/absent", here, ok=False)
    equal(missing.returncode, 1, "a file that is not there")
    contains(missing.stderr, "No such file or directory")
    node.stop()


def test_hostile_links(t):
    """links planted by a container lead to its own files; files that it sends stay below the destination"""
    node = t.node()
    node.import_image()
    secret = f"{t.scratch}/tmp/secret"
    write(secret, "the host's\n")
    node.put("a.yaml", pod("a", container(command=shell(
        f"mkdir -p /tmp/d {os.path.dirname(secret)}; echo own > {secret}; ln -s {secret} /tmp/d/out; ln -s / /tmp/root;"
        "ln -s ../../../../../.. /tmp/up; while :; do sleep 1; done")), terminationGracePeriodSeconds=0))
    node.wait_running("a")
    here = f"{t.scratch}/here"
    os.mkdir(here)
    inside(node, "until [ -L /tmp/up ]; do sleep 0.1; done; mkdir /tmp/odd; mkfifo \"$(printf '/tmp/odd/f\\033[2J')\"")
    contains(node.cli("cp", "a:/tmp/odd", here).stderr, "warning: odd/f?[2J: left out")
    for path in ("/tmp/d/out", f"/tmp/root{secret}", f"/tmp/up{secret}"):
        node.cli("cp", f"a:{path}", f"{here}/got")
        equal(read(f"{here}/got"), "own\n", path)
    write(f"{here}/new", "new\n")
    node.cli("cp", f"{here}/new", f"a:/tmp/up{secret}")
    equal((read(secret), inside(node, f"cat {secret}")), ("the host's\n", "new\n"), "written through a link upwards")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("../escape")
        tar.addfile(entry, io.BytesIO(b""))
    refused = subprocess.run([node.coracle, "--socket", node.socket, "cp", "-", "a:/tmp/d"], input=archive.getvalue(),
                             capture_output=True, timeout=60, check=False)
    equal(refused.returncode, 1, "an archive with ..")
    contains(refused.stderr.decode(), "the archive has a name with ..: ../escape")
    node.stop()
