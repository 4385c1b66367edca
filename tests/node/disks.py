# SPDX-License-Identifier: Apache-2.0
"""disks - what a node VM boots from: the root disk, made once and kept by its content, and the payload with the build and the tests."""
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))


def root_disk(cache, say, suite="", packages=""):
    """The folder with root.img, vmlinuz and initrd.img, named after what decides their content: mkroot (the list of packages is in
    it) and the release.  Made when missing; older ones are removed.  A suite with more packages has a disk of its own, and so has
    another kernel: NODE_KERNEL names the file of its Debian package."""
    kernel = os.environ.get("NODE_KERNEL", "")
    with open(f"{HERE}/mkroot", "rb") as f:
        recipe = f.read()
    with open("/etc/os-release", "rb") as f:
        release = [line for line in f.read().split(b"\n") if line.startswith(b"VERSION_CODENAME=")]
    kind = (f"root-{suite}-" if packages else "root-") + ("kernel-" if kernel else "")
    name = kind + hashlib.sha256(recipe + b"".join(release) + packages.encode() + os.path.basename(kernel).encode()).hexdigest()[:16]
    folder = f"{cache}/{name}"
    os.makedirs(cache, exist_ok=True)
    with open(f"{cache}/lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs at once make it once
        if not os.path.exists(f"{folder}/initrd.img"):
            start = time.monotonic()
            subprocess.run([f"{HERE}/mkroot", folder], check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr, env={**os.environ, "MKROOT_PACKAGES": packages, "MKROOT_KERNEL": os.path.abspath(kernel) if kernel else ""})
            say(f"root disk made in {time.monotonic() - start:.0f} s")
            for other in os.listdir(cache):
                if re.fullmatch(kind + "[0-9a-f]{16}", other) and other != name:
                    shutil.rmtree(f"{cache}/{other}", ignore_errors=True)
    return folder


def payload_disk(build, cache, work, packages=False):
    """The second disk: root/ (what `make install DESTDIR=` gives), if `packages` two packages of it, inside/ and its `start`, programs/,
    tests/host, examples/, the image."""
    payload = f"{work}/payload"
    os.makedirs(payload)
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    with open(f"{cache}/lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one make at a time
        subprocess.run(["make", "-s", f"O={os.path.relpath(os.path.dirname(build), TOP)}", "CC=gcc", "SAN=", "PREFIX=/usr", f"DESTDIR={payload}/root", "install", "node-programs"],
                       cwd=TOP, check=True, env=env, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    for version in ("1", "2") if packages else ():  # the same build twice, for an upgrade; takes some seconds
        shutil.copytree(f"{payload}/root", f"{work}/deb", symlinks=True)
        made = subprocess.run([f"{TOP}/systemd/package/build", version, f"{work}/deb", work], check=True, env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        shutil.move(made.stdout.strip(), f"{payload}/coracle_{version}.deb")
        shutil.rmtree(f"{work}/deb")
    for source, target in ((f"{HERE}/inside", "inside"), (f"{TOP}/tests/host", "tests/host"),
                           (f"{TOP}/tests/fixtures", "tests/fixtures"), (f"{TOP}/examples", "examples")):
        shutil.copytree(source, f"{payload}/{target}", ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    os.mkdir(f"{payload}/programs")
    for program in ("quota_tool", "hog"):
        shutil.copy(f"{build}/tests/node/{program}", f"{payload}/programs/{program}")
    shutil.copy(f"{TOP}/VERSION", f"{payload}/VERSION")
    shutil.move(f"{payload}/inside/start", f"{payload}/start")
    subprocess.run([f"{TOP}/examples/mkimage", f"{payload}/busybox.tar", "localhost/busybox:1"], check=True, stdout=subprocess.DEVNULL)
    megabytes = 16 + 2 * sum(os.path.getsize(os.path.join(d, n)) for d, _, files in os.walk(payload) for n in files
                             if not os.path.islink(os.path.join(d, n))) // (1 << 20)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", payload, f"{work}/payload.img",
                    f"{megabytes}M"], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    shutil.rmtree(payload)
    return f"{work}/payload.img"
