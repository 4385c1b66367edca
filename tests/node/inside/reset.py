# SPDX-License-Identifier: Apache-2.0
"""reset - a churn of pods that a reset cuts off, and what the node must be after the next boot.  Called by test_reset.py.

What is wanted is what the manifest folder says after the boot, whatever of the last changes reached the disk.  Two pods
are never touched: they must come back as the same pods, with one restart for each boot and with their emptyDir's file.
"""
import json
import os
import random
import signal
import time

import coracle
import images
import sound
from coracle import check, config_map, container, equal, pod, read, run, secret, shell, until
from node import node

KINDS = ("plain", "rich", "pair", "host", "job", "crash")
NAMES = [f"c{i}" for i in range(6)]
STEADY = ("keep0", "keep1")
LOOP = "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"


def manifest(name, kind, v, number):
    base = {"env": [{"name": "V", "value": str(v)}]}
    config = {"volumeMounts": [{"name": "config", "mountPath": "/config"}]}
    more = {"terminationGracePeriodSeconds": 1, "labels": {"kind": kind, "label": str(random.random())}}
    volumes = [{"name": "config", "configMap": {"name": "config"}}]
    port = {"ports": [{"containerPort": 80, "hostPort": 8200 + number}]} if number % 2 == 0 else {}  # the plugin takes seconds here
    if kind == "keep":
        mounts = {"volumeMounts": [{"name": "config", "mountPath": "/config"}, {"name": "keep", "mountPath": "/keep"}]}
        return pod(name, container(command=shell("[ -e /keep/first ] || { date +%s%N > /keep/first; sync; }; " + LOOP), **base, **mounts, **port),
                   volumes=volumes + [{"name": "keep", "emptyDir": {}}], **more)
    if kind == "plain":
        return pod(name, container(command=shell(LOOP), **base, **port, **config), volumes=volumes, **more)
    if kind == "pair":
        return pod(name, container(command=shell(LOOP), **base, **config), container("other", shell(LOOP), **base), volumes=volumes, **more)
    if kind == "host":
        return pod(name, container(command=shell(LOOP), **base), hostNetwork=True, **more)
    if kind == "job":
        return pod(name, container(command=shell("sleep 1"), **base), restartPolicy="OnFailure", **more)
    if kind == "crash":
        return pod(name, container(command=shell("sleep 2; exit 3"), **base), **more)
    mounts = [{"name": n, "mountPath": f"/{n}"} for n in ("scratch", "memory", "config", "login")]
    mounts.append({"name": "scratch", "mountPath": "/part", "subPath": "a/b"})
    volumes += [{"name": "scratch", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                {"name": "login", "secret": {"secretName": "login"}}]
    return pod(name, container(command=shell(LOOP), **base, volumeMounts=mounts, **port), volumes=volumes,
               initContainers=[container("init", shell("sleep 0.2"), **base), container("side", shell(LOOP), restartPolicy="Always")], **more)


def put(file, *objects):
    """A manifest as a careful writer leaves it: on the disk before it has its name."""
    path = f"{node.manifests}/.{file}.new"
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n---\n".join(json.dumps(o) for o in objects))
        f.flush()
        os.fsync(f.fileno())
    os.rename(path, f"{node.manifests}/{file}")


def put_config(v):
    put("config.yaml", config_map("config", text=str(v)), secret("login", password="x"))


def begin():
    run("systemctl", "enable", "--now", "coracle.service")
    node.wait_active()
    node.import_image()
    os.makedirs("/var/tmp/images", exist_ok=True)
    for number in range(3):
        images.numbered(f"/var/tmp/images/{number}.tar", number)
    put_config(0)
    for i, name in enumerate(STEADY):
        put(f"{name}.yaml", manifest(name, "keep", 0, 50 + i))
    for i, name in enumerate(NAMES):
        put(f"{name}.yaml", manifest(name, KINDS[i], i, i))
    settle()
    os.sync()


def wanted():
    """(pods by name, text of the ConfigMap) that the folder holds."""
    pods, text = {}, None
    for file in sorted(os.listdir(node.manifests)):
        if file.startswith("."):
            continue
        for part in read(f"{node.manifests}/{file}").split("\n---\n"):
            value = json.loads(part)
            if value["kind"] == "Pod":
                pods[value["metadata"]["name"]] = value
            elif value["kind"] == "ConfigMap":
                text = value["data"]["text"]
    return pods, text


def differences():
    """What is not (yet) as the folder says."""
    pods, _ = wanted()
    there = {name: p for (_, name), p in node.pods().items()}
    found = [f"{n}: wanted and not there" for n in pods if n not in there] + [f"{n}: there and not wanted" for n in there if n not in pods]
    for name, value in pods.items():
        p = there.get(name)
        if p is None:
            continue
        kind = value["metadata"]["labels"]["kind"]
        if p["metadata"]["labels"] != value["metadata"]["labels"] or \
                p["spec"]["containers"][0].get("env") != value["spec"]["containers"][0].get("env"):
            found.append(f"{name}: the wrong manifest")
        if kind == "job":
            good = p.phase == "Succeeded"
        elif kind == "crash":
            good = p.phase == "Running" and p.state()[0] in ("running", "waiting", "terminated")
        else:
            good = p.phase == "Running" and p.ready and coracle.all_running(p)
        if not good or "deletionTimestamp" in p["metadata"]:
            found.append(f"{name} ({kind}): {p.phase} {json.dumps(p.status.get('containerStatuses'))}")
    return found


def settle():
    try:
        settle_quietly()
    except Exception:
        print(run("journalctl", "-b", "-u", "coracle", "-n", "200", "--no-pager", "-o", "short-monotonic", ok=False).stdout)
        print(run("ps", "axfww", "-o", "pid,lstart,args", ok=False).stdout)
        print(run("coracle", "explain", "node", ok=False).stdout)
        raise


def settle_quietly():
    left = []

    def done():
        try:
            left[:] = differences()
        except (OSError, coracle.Failed) as e:
            left[:] = [str(e)]
        return not left

    until(done, 40, lambda: "the node does not become what the manifests say:\n" + "\n".join(left), interval=0.5)
    # A pod that ends again and again is between two runs at times: its traces come and go.
    sound.wait(what="left over or missing")


def facts():
    """Of the pods that nobody touches."""
    found = {}
    for name in STEADY:
        p = node.pod(name)
        found[name] = [p.uid, p.restarts(), node.enter(p, "cat", "/keep/first").stdout]
    return found


def churn(seed):
    """Changes without an end; the reset is the end."""
    rng = random.Random(seed)
    v = seed * 1000
    while True:
        v += 1
        name = rng.choice(NAMES)
        draw = rng.random()
        there = os.path.exists(f"{node.manifests}/{name}.yaml")
        if draw < 0.35 or not there:
            put(f"{name}.yaml", manifest(name, rng.choice(KINDS), v, NAMES.index(name)))
        elif draw < 0.5:
            node.remove(f"{name}.yaml")
        elif draw < 0.65:
            put_config(v)
        elif draw < 0.8:
            victims = [p for p in coracle.processes() if "\0sleep 1000" in read(f"/proc/{p}/cmdline", "") or
                       read(f"/proc/{p}/cmdline", "").startswith("sleep\0001000")]
            if victims:
                try:
                    os.kill(rng.choice(victims), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        elif draw < 0.9:
            run("coracle", "image", "import", f"/var/tmp/images/{rng.randrange(3)}.tar", ok=False)
        else:
            os.kill(node.main_pid or 1 << 22, signal.SIGKILL)
        time.sleep(rng.choice((0.01, 0.1, 0.5, 1)))


def after(before):
    """After the reset and a boot."""
    node.wait_active()
    settle()
    _, text = wanted()
    for (_, name), p in node.pods().items():
        if "running" in p.container().get("state", {}) and any(v["name"] == "config" for v in p["spec"].get("volumes", [])):
            equal(node.enter(p, "cat", "/config/text").stdout, text, f"the ConfigMap in {name}")
    now = facts()
    for name, (uid, restarts, first) in before.items():
        equal(now[name], [uid, restarts + 1, first], f"uid, restarts and emptyDir's file of {name}")
    check_images()
    explained = sound.explain()
    check("damaged" not in explained and "set aside" not in explained, explained)
    equal(run("systemctl", "--failed", "--no-legend", "--plain").stdout, "", "failed units")


def check_images():
    """Every image that the store shows is whole: a container of it finds its files as they were made; then they go, to come again."""
    shown = [n for n in range(3) if f"localhost/numbered:{n}" in json.dumps(node.get("/images"))]
    for n in shown:
        put(f"image{n}.yaml", pod(f"image{n}", {**container(command=shell("sha256sum -c /sums > /dev/null")), "image": f"localhost/numbered:{n}"},
                                  restartPolicy="Never", hostNetwork=True, terminationGracePeriodSeconds=0))
    for n in shown:
        p = node.wait_pod(f"image{n}", lambda p: p.phase in ("Succeeded", "Failed"), 30, f"files of the image {n}")
        check(p.phase == "Succeeded", lambda: f"an image that the store shows has wrong files: {node.logs(f'image{n}')}")  # pylint: disable=cell-var-from-loop
        node.remove(f"image{n}.yaml")
        node.wait_gone(f"image{n}")
        run("coracle", "image", "rm", f"localhost/numbered:{n}")
    print(f"# images found whole: {shown}")
