# SPDX-License-Identifier: Apache-2.0
"""soak - a churn of pods with `kill -9` of the daemon and of conmons, then a comparison of the node with the manifests.

Every step is drawn from one seed.  Two kinds of accounts make the comparison exact:
  - kills: a run of a container whose conmon (or first process) was killed after its start counts as one
    restart; a run killed during its start may or may not count (`unsure`);
  - facts: every path, mount, cgroup, process, link and lease of the world either existed before the first
    pod, or names a living pod, container or sandbox.
test_soak.py runs it: short as a host test, long by `make soak`.
"""
import collections
import contextlib
import json
import os
import random
import re
import signal
import time

import coracle
from coracle import (Failed, alive, check, config_map, container, equal, links, mounts_below, pod, process_fields,
                     processes, read, secret, shell, until, world_cgroups, world_processes)

KINDS = ("plain", "rich", "pair", "host", "job", "crash", "never")
LOOP = "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"
CHECK_EVERY = 25  # kills of the daemon from one comparison to the next
ID = re.compile(r"[0-9a-f]{64}")
OTHER_NETWORK = {"cniVersion": "1.0.0", "name": "other", "plugins": [
    {"type": "bridge", "bridge": "other0", "isGateway": True, "ipMasq": True,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.78.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": True}}]}


def noted(text, name="main", folder="/starts"):
    """A shell command that first notes its start in a file of the host, named after pod and container."""
    return shell(f"echo $V >> {folder}/$POD_UID-{name}; {text}")


class Soak:
    def __init__(self, t, seed, agent_kills, conmon_kills, names=20, kills_each=3):
        self.t, self.rng = t, random.Random(seed)
        self.agent_kills, self.conmon_kills, self.kills_each = agent_kills, conmon_kills, kills_each
        self.names = [f"p{i}" for i in range(names)]
        self.want = {}                                    # name: (kind, v)
        self.killed = collections.defaultdict(set)        # (uid, container): ids of runs that count
        self.unsure = collections.defaultdict(set)        # those that may count
        self.numbers = collections.Counter()
        self.serial = 0
        self.node = None
        self.base = None

    # -- manifests

    def manifest(self, name, kind, v):
        number = int(name[1:])
        base = {"env": [{"name": "V", "value": str(v)},
                        {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
                "volumeMounts": [{"name": "starts", "mountPath": "/starts"}]}
        starts = {"name": "starts", "hostPath": {"path": f"{self.t.scratch}/tmp"}}
        port = {"ports": [{"containerPort": 80, "hostPort": 20000 + number}]}
        more = {"terminationGracePeriodSeconds": self.rng.choice((0, 1, 1, 2)), "volumes": [starts],
                "labels": {"kind": kind, "label": str(self.serial)}}
        if kind == "plain":
            return pod(name, container(command=noted(LOOP), **base, **port), **more)
        if kind == "host":
            return pod(name, container(command=noted(LOOP), **base), hostNetwork=True, **more)
        if kind == "job":
            return pod(name, container(command=noted(f"sleep 0.{self.rng.randrange(10)}"), **base), restartPolicy="OnFailure", **more)
        if kind == "never":
            return pod(name, container(command=noted("sleep 0.3; exit 7"), **base), restartPolicy="Never", **more)
        if kind == "crash":
            return pod(name, container(command=noted(
                "if [ $(wc -l < /starts/$POD_UID-main) -le 1 ]; then sleep 0.3; exit 3; fi; " + LOOP), **base), **more)
        if kind == "pair":
            other = container("other", noted(LOOP, "other"), **base)
            return pod(name, container(command=noted(LOOP), **base, **port), other, **more)
        mounts = base["volumeMounts"] + [{"name": n, "mountPath": f"/{n}"} for n in ("scratch", "memory", "config", "login")]
        mounts.append({"name": "scratch", "mountPath": "/part", "subPath": "a/b"})
        more["volumes"] = [starts, {"name": "scratch", "emptyDir": {}},
                           {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                           {"name": "config", "configMap": {"name": "config"}}, {"name": "login", "secret": {"secretName": "login"}}]
        inits = [container("init", noted("sleep 0.1", "init"), **base),
                 container("side", noted(LOOP, "side"), restartPolicy="Always", **base)]
        return pod(name, container(command=noted(LOOP), **{**base, "volumeMounts": mounts}, **port), initContainers=inits, **more)

    def put(self, name, kind, v):
        self.serial += 1
        self.want[name] = (kind, v)
        self.node.put(f"{name}.yaml", self.manifest(name, kind, v))

    def change_something(self):
        name = self.rng.choice(self.names)
        draw = self.rng.random()
        if name not in self.want:
            self.put(name, self.rng.choice(KINDS), self.rng.randrange(10 ** 6))
            self.numbers["pods created"] += 1
        elif draw < 0.45:
            del self.want[name]
            self.node.remove(f"{name}.yaml")
            self.numbers["pods deleted"] += 1
        elif draw < 0.7:
            kind, v = self.want[name]
            self.put(name, kind, v)
            self.numbers["edits in place"] += 1
        elif draw < 0.9:
            self.put(name, self.want[name][0], self.rng.randrange(10 ** 6))
            self.numbers["edits that need a new pod"] += 1
        else:
            self.put(name, self.rng.choice(KINDS), self.rng.randrange(10 ** 6))
            self.numbers["edits to another kind"] += 1

    def change_network(self):
        path = f"{self.t.scratch}/cni/00-other.conflist"
        if os.path.exists(path):
            os.unlink(path)
        else:
            with open(path + ".new", "w", encoding="utf-8") as f:
                json.dump(OTHER_NETWORK, f)
            os.rename(path + ".new", path)
        self.numbers["changes of the default network"] += 1

    # -- killing

    def conmons(self):
        """{container id: pid} of this world's supervisors."""
        found = {}
        for pid in processes():
            words = read(f"/proc/{pid}/cmdline", "").split("\0")
            if words[0].endswith("conmon") and "--cid" in words and f"{self.t.scratch}/" in " ".join(words) and alive(pid):
                found[words[words.index("--cid") + 1]] = pid
        return found

    def whose(self, cid):
        """(uid, container name) from the bundle; None if that is gone."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            meta = json.loads(read(f"{self.node.run_dir}/containers/{cid}/meta.json"))
            return meta["podUID"], meta["containerName"]
        return None

    def runs(self, cid):
        """Whether it has started and no end is recorded."""
        oci = f"{self.node.run_dir}/oci/{cid}"
        return os.path.exists(f"{oci}/status") and not os.path.exists(f"{oci}/exec.fifo") \
            and not os.path.exists(f"{self.node.run_dir}/exits/{cid}") and os.path.exists(f"{self.node.run_dir}/containers/{cid}/pid")

    def victim(self):
        sure = self.rng.random() < 0.75  # the others may be starting
        candidates = [(cid, pid) for cid, pid in sorted(self.conmons().items()) if (not sure or self.runs(cid))
                      and (who := self.whose(cid)) and len(self.killed[who] | self.unsure[who]) < self.kills_each]
        return self.rng.choice(candidates) if candidates else (None, None)

    def kill_conmon(self):
        cid, pid = self.victim()
        if cid is None:
            return False
        who = self.whose(cid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)  # it makes no decision from here on
            until(lambda: (process_fields(pid) or ("", "X"))[1] in "TZX", 2, "conmon stopped", interval=0.001)
            (self.killed if self.runs(cid) else self.unsure)[who or ("", "")].add(cid)
            os.kill(pid, signal.SIGKILL)
            self.numbers["conmon kills"] += 1
            return True
        return False

    def kill_container(self):
        cid, _ = self.victim()
        who = self.whose(cid) if cid else None
        pid = int(read(f"{self.node.run_dir}/containers/{cid}/pid", "0") or 0) if cid else 0
        if who is None or pid == 0 or not self.runs(cid) or cid not in read(f"/proc/{pid}/cgroup", ""):
            return
        # If it ended by itself first, this adds nothing, because a run ends only once.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.killed[who].add(cid)
            self.numbers["container kills"] += 1

    def churn(self):
        due = self.conmon_kills  # the remaining kills of conmons, spread over the remaining kills of the daemon
        for turn in range(self.agent_kills):
            for _ in range(self.rng.randint(0, 3)):
                self.change_something()
            if self.rng.random() < 0.04:
                self.change_network()
            if self.rng.random() < 0.15:
                self.kill_container()
            time.sleep(self.rng.choice((0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)))
            while due * (self.agent_kills - turn) > 0 and self.rng.random() < due / (self.agent_kills - turn):
                if not self.kill_conmon():
                    break
                due -= 1
            time.sleep(self.rng.choice((0, 0, 0.003, 0.02, 0.1)))
            self.node.kill()
            self.numbers["kills of the daemon"] += 1
            if self.rng.random() < 0.1:  # a change while no daemon runs
                self.change_something()
                self.kill_container()
            self.node.start(wait=self.rng.random() < 0.7)
            if (turn + 1) % CHECK_EVERY == 0 and turn + 1 < self.agent_kills:
                self.settle(f"after {turn + 1} kills of the daemon")
        until(lambda: self.daemon_answers() and self.want, 20, "the daemon answers")
        while due > 0:
            due -= self.kill_conmon() or 0
            if not self.victim()[0]:
                self.change_something()
            time.sleep(0.1)

    def daemon_answers(self):
        with contextlib.suppress(OSError):
            return self.node.request("GET", "/healthz")[0] == 200
        return False

    # -- comparing

    def differences(self):
        """The differences between node and manifests; [] if there are none (any more)."""
        pods = {name: p for (_, name), p in self.node.pods().items()}
        found = [f"{n}: wanted and not there" for n in self.want if n not in pods]
        found += [f"{n}: there and not wanted" for n in pods if n not in self.want]
        for name, (kind, v) in self.want.items():
            p = pods.get(name)
            if p is None:
                continue
            where = f"{name} ({kind}, {p.uid})"
            if p["metadata"]["labels"]["kind"] != kind or p["spec"]["containers"][0]["env"][0]["value"] != str(v):
                found.append(f"{where}: the wrong manifest")
            if "deletionTimestamp" in p["metadata"] or p.phase != {"job": "Succeeded", "never": "Failed"}.get(kind, "Running"):
                found.append(f"{where}: {p.phase}")
            for c in p.status.get("containerStatuses", []) + p.status.get("initContainerStatuses", []):
                found += self.container_differences(where, kind, p, c)
        return found

    def container_differences(self, where, kind, p, c):
        who = (p.uid, c["name"])
        where = f"{where}, container {c['name']}"
        certain, unsure = len(self.killed[who]), len(self.unsure[who] - self.killed[who])
        starts = read(f"{self.t.scratch}/tmp/{p.uid}-{c['name']}", "").count("\n")
        restarts = c["restartCount"]
        found = []
        lasting = kind not in ("job", "never") and c["name"] != "init"
        if lasting and "running" not in c["state"]:
            found.append(f"{where}: {c['state']}")
        if not lasting and "terminated" not in c["state"]:
            found.append(f"{where}: {c['state']}")
        least, most = certain, certain + unsure
        if kind == "crash":
            least, most = min(1, starts - 1), 1 + certain + unsure
        if kind in ("job", "never") or c["name"] == "init":
            least, most = 0, certain + unsure  # it may have ended before the kill
        if not least <= restarts <= most:
            found.append(f"{where}: restartCount {restarts}; {certain} runs of it were killed" + (f", {unsure} more at their start" if unsure else ""))
        if starts > restarts + 1:
            found.append(f"{where}: started {starts} times, restartCount {restarts}")
        last = c.get("lastState", {}).get("terminated")
        if last and kind in ("plain", "rich", "pair", "host") and last["exitCode"] != 137:
            found.append(f"{where}: lastState {last}")
        return found

    def marks(self):
        """The marks that occur in paths of living things: uids, container ids, sandbox ids, addresses."""
        uids, ids, ips, running = set(), set(), set(), set()
        for (_, _), p in self.node.pods().items():
            uids.add(p.uid)
            record = json.loads(read(f"{self.node.state_dir}/pods/{p.uid}.json", "{}") or "{}")
            if record.get("sandboxID"):
                ids.add(record["sandboxID"])
                ips.add(p.ip)
            for c in p.status.get("containerStatuses", []) + p.status.get("initContainerStatuses", []):
                if "running" in c["state"]:
                    running.add(c["containerID"].rpartition("//")[2])
        return uids, ids | running, ips, running

    def facts(self):
        """Every trace that a pod may leave in this world, as words."""
        n, found = self.node, collections.Counter()
        for where in (n.run_dir, n.state_dir, n.root_dir, n.pod_logs):
            device = os.stat(where).st_dev if os.path.isdir(where) else 0
            for folder, names, files in os.walk(where):
                if os.lstat(folder).st_dev != device:
                    names[:] = []
                    continue
                found.update(f"{folder}/{f}" for f in names + files)
        for link in os.listdir(n.container_logs):
            target = os.readlink(f"{n.container_logs}/{link}")
            found[f"link {link} -> {target}" + ("" if os.path.exists(target) else " (dangling)")] += 1
        found.update(f"mount {m}" for m in mounts_below(self.t.scratch))
        found.update(f"mount {m}" for m in mounts_below("/tmp") if "/crun." in m or "/runc." in m)
        found.update(f"cgroup {c}" for c in world_cgroups(self.t.name))
        found.update(f"rule {line}" for line in coracle.firewall().splitlines() if re.search(r"CNI-[0-9a-f]{24}|10\.7[78]\.\d+\.\d+/|--dport", line))
        for pid, line in world_processes(self.t.name, os.readlink("/proc/self/ns/mnt")):
            if pid != n.process.pid:
                found[f"process {line} [{pid}] {read(f'/proc/{pid}/cgroup', '')}"] += 1
        return found

    def stray(self):
        """Facts that did not exist before the first pod and name nothing that lives."""
        uids, ids, ips, running = self.marks()
        found = []
        for fact, count in self.facts().items():
            if fact in self.base:
                continue
            path = fact.replace(self.t.scratch, "")
            known = any(m in path for m in uids | ids) or any(re.search(rf"(?<![\d.]){re.escape(ip)}(?![\d.])", path) for ip in ips if ip)
            if fact.startswith("rule ") and not known:
                chain = re.search(r"CNI-(?:DN-|SN-|HOSTPORT-)?[0-9a-zA-Z]+", fact)
                known = chain is not None and any(chain.group(0) in f and any(i in f for i in ids) for f in self.facts() if f.startswith("rule "))
            if any(folder in fact for folder in ("/images/", "/cni/networks/", "/starts")) and "10.7" not in fact:
                known = True  # the store and the networks' own files; leases are the ones with an address
            cid = ID.search(os.path.basename(path))
            if known and cid and "/containers/" in fact and fact.startswith("/") and fact.endswith(cid.group(0)) and cid.group(0) not in running:
                known = False
            if not known or (count > 1 and fact.startswith("mount ")):
                found.append(f"left: {fact}" + (f" ({count} times)" if count > 1 else ""))
        supervised = self.conmons()
        found += [f"running without a conmon: {c}" for c in running if c not in supervised]
        found += [f"conmon of nobody: {c}" for c in supervised if c not in running]
        nets = sum(1 for p in self.node.pods().values() if p.phase in ("Pending", "Running") and not p["spec"].get("hostNetwork"))
        veths = [link for link in links() if link.startswith("veth")]
        if len(veths) != nets:
            found.append(f"{len(veths)} veth links for {nets} pods")
        return found

    def settle(self, when):
        start = time.monotonic()
        left = []

        def done():
            try:
                left[:] = self.differences() or self.stray()
            except OSError as e:  # it is just starting, or a file disappeared during the look
                left[:] = [f"{e}"]
            return not left
        until(done, 90, lambda: f"{when} the node does not become what the manifests say:\n" + "\n".join(left), interval=0.3)
        print(f"{when}: {len(self.want)} pods, as the manifests say, after {time.monotonic() - start:.1f} s")

    def run(self):
        node = self.node = self.t.node("--max-pods", "60")
        node.import_image()
        node.put("objects.yaml", config_map("config", text="one"), secret("login", password="x"))
        for other in (True, False):  # each network makes its bridge and folders with its first pod; these are no leaks
            self.change_network()
            node.put("warm.yaml", pod("warm", container(command=shell(LOOP), ports=[{"containerPort": 80, "hostPort": 19999}]),
                                      terminationGracePeriodSeconds=0))
            warm = node.wait_running("warm")
            node.finish(warm)
        self.base = self.facts()
        decoys = [f"{node.run_dir}/ns/{'0' * 8}-decoy", f"{node.state_dir}/pods/.decoy.json.tmp"]
        for decoy in decoys:
            os.mkdir(decoy)
        equal(sorted(self.stray()), sorted(f"left: {d}" for d in decoys), "what the search for leftovers finds")
        for decoy in decoys:
            os.rmdir(decoy)
        descriptors = len(os.listdir(f"/proc/{node.process.pid}/fd"))
        start = time.monotonic()
        try:
            self.churn()
            self.settle("at the end")
        except Exception:
            print(f"ids of killed runs: {dict(self.killed)}\nunsure: {dict(self.unsure)}")
            raise
        took = time.monotonic() - start
        now = until(lambda: (n := len(os.listdir(f"/proc/{node.process.pid}/fd"))) and n, 1)
        restarts = sum(c["restartCount"] for p in node.pods().values() for c in p.status.get("containerStatuses", []))
        for name in list(self.want):
            del self.want[name]
            node.remove(f"{name}.yaml")
        self.settle("after all manifests were removed")
        now = until(lambda: (n := len(os.listdir(f"/proc/{node.process.pid}/fd"))) <= descriptors + 8 and n, 5,
                    f"descriptors of the daemon back to about {descriptors}")
        for what, n in sorted(self.numbers.items()):
            print(f"{n:6d} {what}")
        print(f"{sum(map(len, self.killed.values())):6d} runs killed that count, {sum(map(len, self.unsure.values()))} unsure, "
              f"{restarts} restarts of the pods there at the end, {now} descriptors (of {descriptors} at the start), {took:.0f} s")
        equal_ends = [line for line in node.log().splitlines() if "AddressSanitizer" in line or "a bug in the agent" in line]
        check(not equal_ends, "\n".join(equal_ends))
        node.stop()


def counts(agent_kills, conmon_kills):
    """(seed, kills of the daemon, kills of conmons) from the environment, or these and a seed of the day's own."""
    try:
        return (int(os.environ.get("SOAK_SEED") or random.randrange(10 ** 6)),
                int(os.environ.get("SOAK_AGENT_KILLS") or agent_kills), int(os.environ.get("SOAK_CONMON_KILLS") or conmon_kills))
    except ValueError as e:
        raise Failed(f"SOAK_SEED, SOAK_AGENT_KILLS and SOAK_CONMON_KILLS are numbers: {e}") from None
