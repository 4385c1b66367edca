# SPDX-License-Identifier: Apache-2.0
"""Images that are brought and eviction do not fight: an import that needs too much fails, and no pod goes for it."""
import json
import os
import urllib.parse

from coracle import check, container, contains, equal, pod, shell, until
from small_machine import make_image
from test_eviction import MIB, STAY, small_disk

DISK, LARGE_DISK, LINE, SOFT = 400, 900, 100, 700  # MiB


def image_node(t, *flags):
    """Images and layers have a disk of their own; a pod has 20 MiB of it, an unused image 40."""
    node = t.node(f"--eviction-hard=imagefs.available<{LINE}Mi", "--eviction-pressure-transition-period=1s", *flags)
    node.import_image()
    node.put("writer.yaml", pod("writer", container(command=shell(f"head -c {20 * MIB} /dev/urandom > /x; echo full; {STAY}"))))
    node.wait_running("writer")
    until(lambda: "full" in node.logs("writer"), 20, "writer has written")
    make_image(f"{t.scratch}/unused.tar", "localhost/unused:1", {"data": os.urandom(40 * MIB)})
    node.import_image(f"{t.scratch}/unused.tar")
    os.unlink(f"{t.scratch}/unused.tar")
    return node


def names(node):
    return sorted(n for i in json.loads(node.cli("image", "list", "-o", "json").stdout)["items"] for n in i["names"])


def bring(node, path):
    code, body = node.request("POST", f"/images?source={urllib.parse.quote(path, safe='')}", timeout=60)
    return code, json.loads(body).get("message", "") if body else ""


def untouched(t, node, folder, before):
    equal((node.pod("writer").phase, node.pod("writer").restarts()), ("Running", 0), "writer")
    check(not any(e["reason"] == "Evicted" for e in node.events("writer")), "writer was evicted")
    equal([i for i in node.get("/evictions")["items"] if i.get("victims")], [], "decisions with victims")
    until(lambda: os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize >= before - 4 * MIB, 20, "its files are gone")
    until(lambda: os.listdir(f"{folder}/images/tmp") == [], 20, "nothing is left of it")


def test_stopped(t):
    """an import that brings the node below a threshold is stopped, after unused images were removed; no pod is evicted"""
    with small_disk(t, "state", LARGE_DISK) as folder:
        node = image_node(t, f"--eviction-soft=imagefs.available<{SOFT}Mi", "--eviction-soft-grace-period=imagefs.available=50ms")
        make_image(f"{t.scratch}/large.tar", "localhost/large:1", {f"data{n}": bytes(10 * MIB) for n in range(60)}, compressed=True)
        before = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        code, text = bring(node, f"{t.scratch}/large.tar")
        check(code >= 400, f"{code} {text}")
        contains(text, "the node is short of ", "its error")
        contains(text, f"{SOFT} MiB are kept free", "its error")
        check("localhost/unused:1" not in names(node), "the unused image is still here")
        untouched(t, node, folder, before)
        node.finish(node.pod("writer"))
        node.stop()


def test_refused(t):
    """an archive larger than the free space is refused with the figures; one that fits after removing unused images is imported"""
    with small_disk(t, "state", DISK) as folder:
        node = image_node(t)
        before = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        room = before // MIB - LINE
        make_image(f"{t.scratch}/large.tar", "localhost/large:1", {"data": os.urandom((room // 2 + 60) * MIB)})
        code, text = bring(node, f"{t.scratch}/large.tar")
        check(code >= 400, f"{code} {text}")
        contains(text, "no space left for it", "its error")
        contains(text, f"{LINE} MiB of these are kept free (evictionHard)", "its error")
        untouched(t, node, folder, before)
        make_image(f"{t.scratch}/unused.tar", "localhost/unused:1", {"data": os.urandom(40 * MIB)})
        node.import_image(f"{t.scratch}/unused.tar")
        until(lambda: os.listdir(f"{folder}/images/tmp") == [], 20, "nothing is left of it")
        room = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize // MIB - LINE
        make_image(f"{t.scratch}/fits.tar", "localhost/fits:1", {"data": os.urandom((room // 2 + 10) * MIB)})
        code, text = bring(node, f"{t.scratch}/fits.tar")
        check(code < 300, f"an import that fits: {code} {text}")
        check("localhost/fits:1" in names(node) and "localhost/unused:1" not in names(node), f"{names(node)}")
        untouched(t, node, folder, 0)
        node.finish(node.pod("writer"))
        node.stop()
