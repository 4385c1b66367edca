# SPDX-License-Identifier: Apache-2.0
"""Several writers of the local API and of its folder at once, and a disk that is in the way."""
import concurrent.futures
import json
import os

from coracle import check, contains, equal, run, until
from lone_api import MAPS, Api, config_map

ROUNDS = int(os.environ.get("RACE_ROUNDS") or 30)
MODIFIED = ("Operation cannot be fulfilled on configmaps \"c\": the object has been modified; please apply your changes to the latest "
            "version and try again")


def hidden(api):
    return [f for f in os.listdir(api.node.manifests) if f.startswith(".")]


def at_once(api, n, what):
    """what(api, i) for i below n, at the same time."""
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        return list(pool.map(lambda i: what(api.again(), i), range(n)))


def by_hand(api, name, obj):
    """An edit as an editor does it, which the agent may not have read yet."""
    with open(f"{api.node.manifests}/.edit", "w", encoding="utf-8") as f:
        f.write(json.dumps(obj))
    os.rename(f"{api.node.manifests}/.edit", f"{api.node.manifests}/{name}")


def test_two_writers(t):
    """of writers with one resourceVersion exactly one wins, the others get the apiserver's error; a hand edit counts as a writer"""
    api = Api(t)
    api.must("POST", MAPS, config_map("c", {"x": "0"}))
    for n in range(ROUNDS):
        version = api.must("GET", f"{MAPS}/c")["metadata"]["resourceVersion"]

        def put(own, i):
            return own.ask("PUT", f"{MAPS}/c", config_map("c", {"x": f"{n} {i}"}, resourceVersion=version))
        answers = at_once(api, 4, put)
        won = [i for i, (code, _) in enumerate(answers) if code == 200]
        equal(len(won), 1, f"winners among {[code for code, _ in answers]}")
        for code, got in answers:
            if code != 200:
                equal((code, got["reason"], got["message"]), (409, "Conflict", MODIFIED), "the others")
        equal(api.must("GET", f"{MAPS}/c")["data"], {"x": f"{n} {won[0]}"}, "the winner's object")
    for n in range(ROUNDS):  # a patch without a version is repeated by the server: none is lost
        answers = at_once(api, 4, lambda own, i: own.ask("PATCH", f"{MAPS}/c", {"data": {f"k{i}": str(n)}}, kind="merge"))
        codes = [code for code, _ in answers]
        check(all(c in (200, 409) for c in codes), f"patches: {answers}")
        data = api.must("GET", f"{MAPS}/c")["data"]
        check(all(data.get(f"k{i}") == str(n) for i, c in enumerate(codes) if c == 200), f"lost: {codes}, {data}")
    # By hand, between a client's read and its write.
    for n in range(ROUNDS):
        version = api.must("GET", f"{MAPS}/c")["metadata"]["resourceVersion"]
        edited = config_map("c", {"hand": str(n)})
        by_hand(api, "configmap-default-c.yaml", edited)
        code, got = api.ask("PUT", f"{MAPS}/c", config_map("c", {"x": "late"}, resourceVersion=version))
        equal((code, got.get("reason")), (409, "Conflict"), "the client that read before the edit")
        until(lambda: api.must("GET", f"{MAPS}/c")["data"] == {"hand": str(n)}, 10, "the edit is the object")
    # Creations of one name: one is made.
    for n in range(ROUNDS):
        answers = at_once(api, 4, lambda own, i: own.ask("POST", MAPS, config_map(f"new{n}", {"x": str(i)})))
        codes = sorted(code for code, _ in answers)
        equal(codes, [201, 409, 409, 409], f"creations: {[str(a)[:200] for a in answers]}")
        check(all(got["reason"] == "AlreadyExists" for code, got in answers if code == 409), f"words: {answers}")
    equal(hidden(api), [], "files that were not finished")
    api.node.stop()


def test_two_appliers(t):
    """server-side applies at once: of two managers that want one field one wins, fields of their own are both there"""
    api = Api(t)
    for n in range(ROUNDS):
        def apply(own, i):
            return own.ask("PATCH", f"{MAPS}/a{n}?fieldManager=m{i}", config_map(f"a{n}", {"same": f"m{i}", f"own{i}": "x"}), kind="apply")
        answers = at_once(api, 2, apply)
        codes = sorted(code for code, _ in answers)
        equal(codes[1], 409, f"a conflict: {answers}")
        check(codes[0] in (200, 201), f"a winner: {answers}")
        lost = next(got for code, got in answers if code == 409)
        contains(lost["message"], "conflict with \"m", "the loser is told of the winner")
        winner = next(i for i, (code, _) in enumerate(answers) if code != 409)
        equal(api.must("GET", f"{MAPS}/a{n}")["data"], {"same": f"m{winner}", f"own{winner}": "x"}, "the winner's object")
        # Without a common field both are there.
        answers = at_once(api, 2, lambda own, i: own.ask("PATCH", f"{MAPS}/b{n}?fieldManager=m{i}", config_map(f"b{n}", {f"own{i}": "x"}),
                                                         kind="apply"))
        check(all(code in (200, 201) for code, _ in answers), f"both: {answers}")
        equal(api.must("GET", f"{MAPS}/b{n}")["data"], {"own0": "x", "own1": "x"}, "both")
    api.node.stop()


def test_disk(t):
    """a full disk, a read-only disk and a missing folder refuse a write completely, with one error that names the folder"""
    api = Api(t)
    api.node.stop()
    run("mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=100", "small", api.node.manifests)
    folder = api.node.manifests
    api.node.put("two.yaml", config_map("one", {"x": "1"}), config_map("two", {"x": "1"}))
    api.node.start()
    api.wait()
    api.must("POST", MAPS, config_map("c", {"x": "old"}))
    before = {f: open(f"{folder}/{f}", "rb").read() for f in os.listdir(folder)}

    def refused(reason, *codes):
        for args in (("POST", MAPS, config_map("new", {"x": "y" * 30000})), ("PUT", f"{MAPS}/c", config_map("c", {"x": "y" * 30000})),
                     ("PATCH", f"{MAPS}/two", {"data": {"y": "y" * 30000}}), ("DELETE", f"{MAPS}/one")):
            code, got = api.ask(*args, kind="merge" if args[0] == "PATCH" else "application/json")
            check(code in codes and got["kind"] == "Status" and got["status"] == "Failure" and got["code"] == code, f"{args[:2]}: {code} {got}")
            contains(got["message"], folder, f"{args[:2]}")
            contains(got["message"], reason, f"{args[:2]}")
        equal({f: open(f"{folder}/{f}", "rb").read() for f in os.listdir(folder) if f != "fill"}, before, "the folder")
        equal(api.must("GET", f"{MAPS}/c")["data"], {"x": "old"}, "the object")
    with open(f"{folder}/fill", "wb", 0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass
    refused("No space left on device", 507)
    os.unlink(f"{folder}/fill")
    run("mount", "-o", "remount,ro", folder)
    refused("Read-only file system", 500)
    run("mount", "-o", "remount,rw", folder)
    api.must("PUT", f"{MAPS}/c", config_map("c", {"x": "new"}))
    run("umount", "-l", folder)
    os.rmdir(folder)
    code, got = api.ask("POST", MAPS, config_map("new", {"x": "1"}))
    equal(code, 500, f"a folder that is gone: {got}")
    contains(got["message"], folder, "a folder that is gone")
    os.mkdir(folder)
    until(lambda: api.ask("POST", MAPS, config_map("back", {"x": "1"}))[0] == 201, 30, "the folder is back")
    check("configmap-default-back.yaml" in os.listdir(folder), "its file")
    api.node.stop()


test_two_writers.seconds = test_two_appliers.seconds = ROUNDS
