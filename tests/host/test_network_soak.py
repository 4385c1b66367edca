# SPDX-License-Identifier: Apache-2.0
"""Starts of pods cut off by kill -9 and by reboots: the state of the network plugins is that of the living
pods, to the last rule."""
import json
import os
import random
import re
import shutil
import time
import uuid

import coracle
from coracle import check, container, firewall, links, mounts_below, pod, read, run, until

SHORT_ROUNDS = 6
ROUNDS = int(os.environ.get("NET_SOAK_ROUNDS") or SHORT_ROUNDS)
NAMES = [f"p{i}" for i in range(6)]
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def manifest(name):
    number = int(name[1:])
    return pod(name, container(ports=[{"containerPort": 80, "hostPort": 21000 + number},
                                      {"containerPort": 53, "hostPort": 21000 + number, "protocol": "UDP"}]),
               annotations={"kubernetes.io/ingress-bandwidth": "10M", "kubernetes.io/egress-bandwidth": "10M"},
               terminationGracePeriodSeconds=0)


def new_boot(t, n):
    """The machine seems to have booted again: another boot id, in this test's own mount namespace."""
    path = f"{t.scratch}/tmp/boot-{n}"
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"{uuid.uuid4()}\n")
    run("mount", "--bind", path, BOOT_ID)


def processes_of(t):
    """All that an agent of this world left running: containers, conmons, children."""
    return [pid for pid, _ in coracle.world_processes(t.name, os.readlink("/proc/self/ns/mnt"))]


def reboot(t, node, n):
    """The effect of a reboot on pods: no processes, no mounts and so no namespaces, an empty run folder.  The rules stay, which is harder."""
    coracle.sweep(t.name, "/nonexistent")
    until(lambda: not processes_of(t), 10, "no process is left")
    for point in reversed(mounts_below(node.run_dir) + mounts_below(node.state_dir)):
        run("umount", "-l", point, ok=False)
    shutil.rmtree(node.run_dir, ignore_errors=True)
    new_boot(t, n)


def attachments(node):
    """{sandbox id: addresses} of the pods that run, by the cache, and whether each entry is whole."""
    found = {}
    folder = f"{node.state_dir}/cni/results"
    for name in os.listdir(folder):
        if name.startswith("."):
            continue
        entry = json.loads(read(f"{folder}/{name}"))
        found[entry["containerId"]] = (entry["complete"], sorted(i["address"].split("/")[0] for i in entry["result"]["ips"]))
    return found


def differences(node, names):
    """The differences between the existing state and the needs of the living pods; [] if there are none."""
    pods = {p.name: p for p in node.pods().values()}
    if sorted(pods) != sorted(names):
        return [f"pods {sorted(pods)}, wanted {sorted(names)}"]
    wrong = [f"{p.name}: {p.phase} {p.ip}" for p in pods.values() if p.phase != "Running" or not p.ip]
    if wrong:
        return wrong
    ips = sorted(p.ip for p in pods.values())
    cached = attachments(node)
    found = []

    def same(what, have, want):
        if have != want:
            found.append(f"{what}: {have}, not {want}")

    same("attachments", sorted(ip for _, mine in cached.values() for ip in mine), ips)
    same("half attachments", [i for i, (whole, _) in cached.items() if not whole], [])
    leases = f"{node.state_dir}/cni/networks/coracle"
    have = {f: read(f"{leases}/{f}").split()[0] for f in os.listdir(leases) if re.match(r"\d+\.", f)} if os.path.isdir(leases) else {}
    same("leases", have, {ip: i for i, (_, mine) in cached.items() for ip in mine})
    rules = firewall()
    same("masquerading chains", len(re.findall(r"(?m)^:CNI-[0-9a-f]{24} ", rules)), len(names))
    same("sources that are masqueraded", sorted(re.findall(r"(?m)^-A POSTROUTING -s ([\d.]+)/32 .*-j CNI-[0-9a-f]{24}$", rules)), ips)
    same("port chains", len(re.findall(r"(?m)^:CNI-DN-", rules)), len(names))
    same("mapped ports", sorted(re.findall(r"-p (\w+) -m \w+ --dport (\d+) -j DNAT --to-destination ([\d.]+):", rules)),
         sorted((protocol, str(21000 + int(p.name[1:])), p.ip) for p in pods.values() for protocol in ("tcp", "udp")))
    names_of_links = links()
    same("veths", len([x for x in names_of_links if x.startswith("veth")]), len(names))
    same("ifbs", len([x for x in names_of_links if x.startswith(("bwp", "ifb"))]), len(names))
    same("namespaces", len(os.listdir(f"{node.run_dir}/ns")) if os.path.isdir(f"{node.run_dir}/ns") else 0, len(names))
    return found


def settle(node, names, when):
    left = []

    def done():
        try:
            left[:] = differences(node, names)
        except (OSError, ValueError, KeyError) as e:  # it is just starting, or a file disappeared during the look
            left[:] = [repr(e)]
        return not left

    try:
        until(done, 60, "", interval=0.2)
    except coracle.Failed:
        raise coracle.Failed(f"{when}:\n" + "\n".join(left) + f"\nlinks {links()}\n{firewall()}") from None


def test_kills_and_reboots(t):
    """leases, rules, veths, ifbs, namespaces and cached results equal those of the living pods after every kill -9 and reboot"""
    seed = int(os.environ.get("NET_SOAK_SEED") or random.randrange(10 ** 6))
    print(f"NET_SOAK_SEED={seed} NET_SOAK_ROUNDS={ROUNDS}", flush=True)
    rng = random.Random(seed)
    node = t.node()
    node.import_image()
    wanted, boots = set(), 0
    for n in range(ROUNDS):
        for name in rng.sample(NAMES, rng.randrange(1, len(NAMES))):
            if name in wanted:
                wanted.discard(name)
                node.remove(f"{name}.yaml")
            else:
                wanted.add(name)
                node.put(f"{name}.yaml", manifest(name))
        time.sleep(rng.random() * 0.4)  # the moment of the kill is drawn here
        node.kill()
        if rng.random() < 0.3:
            boots += 1
            reboot(t, node, n)
        node.start()
        if n % 5 == 4 or n == ROUNDS - 1 or ROUNDS <= SHORT_ROUNDS:
            settle(node, wanted, f"round {n}, {boots} reboots")
    print(f"{ROUNDS} rounds, {boots} reboots", flush=True)
    for name in wanted:
        node.remove(f"{name}.yaml")
    node.wait_gone(*wanted, deadline=60)
    settle(node, set(), "at the end")
    check(node.stop() == 0, "exit code")
    for _ in range(boots):
        run("umount", BOOT_ID)


test_kills_and_reboots.seconds = 60 + 6 * ROUNDS


def test_kill_after_a_reboot(t):
    """pods that a reboot took the network from get it again, also where the agent is killed at once on its way to that"""
    rng = random.Random(int(os.environ.get("NET_SOAK_SEED") or random.randrange(10 ** 6)))
    node = t.node()
    node.import_image()
    names = set(NAMES[:4])
    for name in names:
        node.put(f"{name}.yaml", manifest(name))
    settle(node, names, "at the start")
    for n in range(ROUNDS):
        node.kill()
        reboot(t, node, n)
        node.start(wait=False)
        time.sleep(0.02 + rng.random() * 0.2)  # as above
        node.kill()
        node.start()
        settle(node, names, f"round {n}")
    for name in names:
        node.remove(f"{name}.yaml")
    node.wait_gone(*names, deadline=60)
    settle(node, set(), "at the end")
    check(node.stop() == 0, "exit code")
    for _ in range(ROUNDS):
        run("umount", BOOT_ID)


test_kill_after_a_reboot.seconds = 30 + 6 * ROUNDS
