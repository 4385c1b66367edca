# SPDX-License-Identifier: Apache-2.0
"""The agent of a lone node is killed amid writes: what was answered with success is there, and nothing is half.

WRITE_KILLS is how often (6), WRITE_SEED the chance.  tests/inject has the same at each call, tests/unit/agent_pod/show at each
system call of the file's writer."""
import http.client
import os
import random
import signal
import threading
import time

from coracle import SLOW, check, equal, until
from lone_api import MAPS, Api, config_map

NAMES = ["own1", "own2", "one", "two", "three"]
SHARED = "several.yaml"


class Writer(threading.Thread):
    """Writes one object over and over; knows what was promised last, and what was tried since."""

    def __init__(self, api, name, chance):
        super().__init__(daemon=True)
        self.api, self.name_, self.r = api, name, random.Random(chance)
        self.promised, self.tried, self.writes = None, set(), 0
        self.stop = False

    def once(self, api, n):
        value = f"{self.name_} {n} " + "x" * self.r.choice([1, 100, 20000])
        way = self.r.choice(["PUT", "PATCH", "apply", "DELETE"] if self.name_.startswith("own") else ["PUT", "PATCH", "apply"])
        path = f"{MAPS}/{self.name_}"
        there = api.ask("GET", path)[0] == 200
        if way == "DELETE":
            self.tried.add(None)
            code, _ = api.ask("DELETE", path)
            value = None
        else:
            self.tried.add(value)
            if not there:
                code, _ = api.ask("POST", MAPS, config_map(self.name_, {"x": value}))
            elif way == "PUT":
                code, _ = api.ask("PUT", path, config_map(self.name_, {"x": value}))
            elif way == "PATCH":
                code, _ = api.ask("PATCH", path, {"data": {"x": value}}, kind="merge")
            else:
                code, _ = api.ask("PATCH", f"{path}?fieldManager=w&force=true", config_map(self.name_, {"x": value}), kind="apply")
        if code in (200, 201):
            self.promised, self.tried = value, set()
            self.writes += 1

    def run(self):
        n = 0
        while not self.stop:
            n += 1
            try:
                self.once(self.api, n)
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)


def test_kills(t):
    """an agent killed amid writes of own files and of one of several documents: the old objects or the new ones, as answered"""
    seed = int(os.environ.get("WRITE_SEED") or random.randrange(1 << 30))
    kills = int(os.environ.get("WRITE_KILLS") or 6)
    print(f"WRITE_SEED={seed}")
    r = random.Random(seed)
    api = Api(t)
    api.node.put(SHARED, *[config_map(name, {"x": f"{name} 0 x"}) for name in NAMES[2:] + ["still"]])
    until(lambda: api.ask("GET", f"{MAPS}/still")[0] == 200, 20, "the file is read")
    promised = {name: None if name.startswith("own") else f"{name} 0 x" for name in NAMES}
    writes = 0
    for _ in range(kills):
        writers = [Writer(api.again(), name, r.random()) for name in NAMES]
        for w in writers:
            w.promised = promised[w.name_]
            w.start()
        time.sleep(r.uniform(0.2, 0.8))
        if r.random() < 0.3:
            with_dead = api.kube_pid()
            if with_dead is not None:
                os.kill(with_dead, signal.SIGKILL)
        api.node.kill()
        for w in writers:
            w.stop = True
        for w in writers:
            w.join(60)
        api.node.start()
        api.wait()
        for w in writers:
            code, got = api.ask("GET", f"{MAPS}/{w.name_}")
            check(code in (200, 404), f"{w.name_}: {code} {str(got)[:500]}")
            value = got["data"]["x"] if code == 200 else None
            check(value == w.promised or value in w.tried,
                  lambda: f"{w.name_} is {str(value)[:60]!r}, promised {str(w.promised)[:60]!r}, tried {[str(v)[:60] for v in w.tried]}")
            promised[w.name_] = value
            writes += w.writes
        equal(api.must("GET", f"{MAPS}/still")["data"], {"x": "still 0 x"}, "the object that nobody wrote")
        hidden = [f for f in os.listdir(api.node.manifests) if f.startswith(".")]
        equal(hidden, [], "files that were not finished")
        equal([f["file"] for f in api.node.get("/manifests").get("items", []) if f.get("problems")], [], "files with problems")
    print(f"COUNT kills {kills}, writes that were answered {writes}")
    check(writes > kills * 5 or SLOW > 1, f"only {writes} writes")
    api.node.stop()


test_kills.seconds = int(os.environ.get("WRITE_KILLS") or 6) * 3
