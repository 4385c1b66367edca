"""
The agent is killed in the middle of pulls, unpacks and removals, at random: the store is whole each time it starts, and nothing
that belongs to nobody is left.  IMAGE_KILLS=200 in `make soak`; IMAGE_SEED repeats a run.
"""
import contextlib
import http.client
import os
import random
import threading
import time
import urllib.parse

from coracle import check, equal, until
from registry import Scripted, file_layer, registries_conf

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
    """the agent is killed at random while images come and go: none is damaged, nothing is left over"""
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
