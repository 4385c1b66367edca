# SPDX-License-Identifier: Apache-2.0
"""
The agent is killed in the middle of pulls, unpacks and removals, at random: the store is whole each time it starts, and nothing
that belongs to nobody is left.  IMAGE_KILLS=200 in `make soak`; IMAGE_SEED repeats a run.
"""
import collections
import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import threading
import time
import urllib.parse

from coracle import IMAGE, SLOW, check, contains, equal, pod, process_fields, processes, read, until
from registry import Scripted, file_layer, registries_conf
from test_image_store import BASE, archive
from test_unpack import Source, entry, folder, hard

KILLS = int(os.environ.get("IMAGE_KILLS") or 4)
SEED = int(os.environ.get("IMAGE_SEED") or random.randrange(1 << 30))
FOLDERS = ("layers", "images", "refs", "parts")


def slowly(handler, data):
    """In pieces, so that a kill finds blobs half here."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    for at in range(0, len(data), len(data) // 8 + 1):
        handler.wfile.write(data[at:at + len(data) // 8 + 1])
        time.sleep(0.01)
    return True


def ask(node, method, **query):
    """Whatever becomes of it: the agent may be killed meanwhile."""
    with contextlib.suppress(OSError, EOFError, AttributeError, ValueError, http.client.HTTPException):
        node.request(method, "/images?" + urllib.parse.urlencode(query), timeout=60)


def state_of(node):
    return {folder: len(os.listdir(f"{node.state_dir}/images/{folder}")) for folder in FOLDERS + ("tmp",)}


def check_store(node, when):
    answer = node.cli("image", "verify", ok=False, timeout=60)
    check(answer.returncode == 0, lambda: f"{when} (IMAGE_SEED={SEED}): {answer.stdout}{answer.stderr}{state_of(node)}")


def test_kills(t):
    """the agent is killed at random while images are pulled and removed: none is damaged, nothing is left over"""
    chance = random.Random(SEED)
    registry = Scripted()
    registry.hook = lambda handler, kind, key: kind == "blobs" and key in registry.blobs and slowly(handler, registry.blobs[key])
    shared = [file_layer(f"shared{i}", os.urandom(300000)) for i in range(3)]
    references = [registry.image(f"image{i}:1", chance.choice(shared), file_layer("own", b"%d" % i * 200000)) for i in range(8)]
    node = t.node(registries_conf(t, registry))
    for kill in range(KILLS):
        threads = [threading.Thread(target=ask, args=(node, "POST"), kwargs={"source": "docker://" + r, "name": r})
                   for r in chance.sample(references, 4)]
        threads += [threading.Thread(target=ask, args=(node, "DELETE"), kwargs={"name": r}) for r in chance.sample(references, 3)]
        chance.shuffle(threads)
        for thread in threads:
            thread.start()
            time.sleep(chance.random() * 0.1)
        time.sleep(chance.random() * 0.6)
        node.kill()
        for thread in threads:
            thread.join()
        node.start()
        check_store(node, f"after kill {kill + 1} of {KILLS}")

    for reference in references:
        node.cli("image", "pull", reference, timeout=60)
    check_store(node, "after all were pulled")
    equal(len(os.listdir(f"{node.state_dir}/images/images")), len(references), "records")
    for reference in references:
        node.cli("image", "rm", reference)
    empty = dict.fromkeys(FOLDERS + ("tmp",), 0)
    until(lambda: state_of(node) == empty, 20, lambda: f"an empty store (IMAGE_SEED={SEED}): {state_of(node)}")
    equal(node.stop(), 0, "exit code")
    print(f"{KILLS} kills, seed {SEED}")


test_kills.seconds = 10 + KILLS * 3


class Images:
    def __init__(self, t, seed):
        self.t, self.rng = t, random.Random(seed)
        self.numbers = collections.Counter()
        self.sources = {}
        s = Source(t)
        for n in range(4):  # a common layer, many small files, a large one; the last two share more
            many = [folder("many")] + [entry(f"many/{i}", bytes([n]) * 500) for i in range(300)] + [hard("many/hard", "many/0")]
            large = [entry("large", bytes([n // 2]) * (4 << 20))]
            name = f"localhost/k{n}:1"
            self.sources[name] = archive(s, name, BASE, many, large)
        self.node = t.node()
        self.node.import_image()
        self.node.put("web.yaml", pod("web"))
        self.node.wait_running("web")
        begun = time.monotonic()
        for name in self.sources:
            self.node.cli("image", "import", self.sources[name])
        self.import_seconds = (time.monotonic() - begun) / len(self.sources)

    def order(self):
        """Something that changes the store, as a process of its own."""
        names = sorted(self.sources)
        draw = self.rng.random()
        name = self.rng.choice(names)
        if draw < 0.6:
            argv = ["import", self.sources[name]]
        elif draw < 0.75:
            argv = ["rm", name]
        elif draw < 0.85:
            argv = ["prune", "--all"]
        elif draw < 0.93:
            argv = [self.rng.choice(("pin", "unpin")), name]
        else:
            argv = ["verify"]
        self.numbers[argv[0]] += 1
        return subprocess.Popen([self.node.coracle, "--socket", self.node.socket, "image", *argv], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill_helper(self):
        for pid in processes():
            if (process_fields(pid) or ("",))[0] == "coracle-unpack" and self.t.scratch in read(f"/proc/{pid}/cmdline", ""):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.numbers["helpers killed"] += 1

    def round(self):
        clients = [self.order() for _ in range(self.rng.randrange(1, 4))]
        time.sleep(self.rng.random() * 3 * self.import_seconds)  # the moment is what is random here: nothing is waited for
        if self.rng.random() < 0.25:
            self.kill_helper()
            for c in clients:
                c.wait(timeout=60 * SLOW)
        self.node.kill()
        for c in clients:
            c.wait(timeout=60 * SLOW)
        self.node.start()
        self.compare()

    def compare(self):
        node = self.node
        store = f"{node.state_dir}/images"
        until(lambda: not os.listdir(f"{store}/tmp"), 30, lambda: f"the rubbish goes: {os.listdir(f'{store}/tmp')}")
        images = node.get("/images")["items"]
        records = {i["id"][7:]: json.loads(read(f"{store}/images/{i['id'][7:]}.json")) for i in images}
        equal(sorted(os.listdir(f"{store}/images")), sorted(f"{i}.json" for i in records), "image records")
        layers = {layer[7:] for r in records.values() for layer in r["layers"]}
        equal(sorted(os.listdir(f"{store}/layers")), sorted(layers), "layers")
        equal(sorted(os.listdir(f"{store}/parts")), sorted(f"{i}.config" for i in records), "parts")
        equal(len(os.listdir(f"{store}/refs")), sum(len(i["names"]) for i in images), "names")
        result = node.cli("image", "verify", ok=False, timeout=60)
        equal(result.returncode, 0, f"image verify: {result.stdout}{result.stderr}")
        equal(result.stdout.count(" ok\n"), len(images), result.stdout)
        result = node.cli("image", "rm", IMAGE, ok=False)
        contains(result.stderr, "is in use by pod default/web", "rm of an image in use")
        self.numbers["images found whole"] += len(images)


def test_import_kills(t):
    """kill -9 of agent and helper during imports, removals, pins and checks: image verify is clean, no orphan is on the disk"""
    print(f"IMAGE_SEED={SEED} IMAGE_KILLS={KILLS}", flush=True)
    images = Images(t, SEED)
    for _ in range(KILLS):
        images.round()
    print(f"an import: {images.import_seconds:.2f} s; " + ", ".join(f"{what}: {n}" for what, n in sorted(images.numbers.items())), flush=True)
    print(f"images added: {images.node.log().count('image added')}", flush=True)
    images.node.finish(images.node.pod("web"))


test_import_kills.seconds = 20 + 2 * KILLS
