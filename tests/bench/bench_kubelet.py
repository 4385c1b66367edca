# SPDX-License-Identifier: Apache-2.0
"""kubelet with containerd on the manifests that the agent gets, in alternating rounds of one run (`make bench PEERS=1`)."""
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import time

from bench import HERE, Figure
from bench_node import kib
from coracle import hierarchies, processes, read, until

PAUSE = "localhost/pause:1"


class Refused(Exception):
    """They cannot run here."""


def add_file(tar, name, data, mode=0o755):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))


def pause_image(path, program):
    """An image with this static program alone, as a docker archive."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar, open(program, "rb") as f:
        add_file(tar, "pause", f.read())
    diff = hashlib.sha256(layer.getvalue()).hexdigest()
    config = json.dumps({"architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine), "os": "linux",
                         "config": {"Entrypoint": ["/pause"]}, "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff}"]}}).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    with tarfile.open(path, "w") as tar:
        add_file(tar, name, config)
        add_file(tar, "layer.tar", layer.getvalue())
        add_file(tar, "manifest.json", json.dumps([{"Config": name, "RepoTags": [PAUSE], "Layers": ["layer.tar"]}]).encode())


class Kubelet:
    """kubelet and containerd with folders, sockets, cgroups and a network list of their own."""

    def __init__(self, b):
        self.b, self.folder, self.started = b, f"{b.scratch}/kubelet", []
        self.manifests, self.socket = f"{self.folder}/manifests", f"{self.folder}/containerd.sock"
        for name in ("manifests", "cni", "log", "root"):
            os.makedirs(f"{self.folder}/{name}")
        self.cgroup = f"{b.cgroup}/kubelet"
        for root in hierarchies():
            os.makedirs(f"{root}{self.cgroup}", exist_ok=True)
            for name in ("cpus", "mems"):  # cgroup v1: a new cpuset is empty
                with contextlib.suppress(OSError):
                    shutil.copyfile(f"{root}{b.cgroup}/cpuset.{name}", f"{root}{self.cgroup}/cpuset.{name}")
        self.network()
        self.containerd()
        self.kubelet()

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
        return f"{self.folder}/{name}"

    def spawn(self, *argv):
        with open(f"{self.folder}/log/{os.path.basename(argv[0])}", "ab") as log:
            self.started.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True))
        return self.started[-1].pid

    def network(self):
        """The agent's own list, with another bridge."""
        conflist = json.loads(read(f"{self.b.scratch}/cni/10-coracle.conflist").replace("10.77.", "10.76.").replace("coracle0", "bench0"))
        conflist["name"] = "bench"
        for plugin in conflist["plugins"]:
            if "ipam" in plugin:
                plugin["ipam"]["dataDir"] = f"{self.folder}/networks"
        self.write("cni/10-bench.conflist", json.dumps(conflist))

    def containerd(self):
        plugins = next(d for d in ("/opt/cni/bin", "/usr/lib/cni") if os.path.isdir(d))
        config = self.write("containerd.toml", f'''version = 2
root = "{self.folder}/containerd"
state = "{self.folder}/state"
[grpc]
address = "{self.socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{self.folder}/cni"
[plugins."io.containerd.internal.v1.opt"]
path = "{self.folder}/opt"
''')
        self.containerd_pid = self.spawn("containerd", "--config", config, "--log-level", "warn")
        until(lambda: self.ctr("version", ok=False).returncode == 0, 20, "containerd")
        pause_image(f"{self.folder}/pause.tar", f"{self.b.build}/coracle-pause")
        for image in (os.environ["CORACLE_TEST_IMAGE"], f"{self.folder}/pause.tar"):
            self.ctr("images", "import", image)

    def ctr(self, *args, ok=True):
        result = subprocess.run(["ctr", "--address", self.socket, "--namespace", "k8s.io", *args], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120)
        if ok and result.returncode != 0:
            raise Refused(f"ctr {args[0]} ended with {result.returncode}: {result.stdout.strip()}")
        return result

    def kubelet(self):
        config = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "staticPodPath": self.manifests,
                  "containerRuntimeEndpoint": f"unix://{self.socket}", "cgroupDriver": "cgroupfs", "cgroupRoot": self.cgroup,
                  "failSwapOn": False, "failCgroupV1": False, "maxPods": 250, "enableServer": False, "makeIPTablesUtilChains": False,
                  "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}}, "authorization": {"mode": "AlwaysAllow"},
                  "podLogsDir": f"{self.folder}/log/pods", "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%"}}
        self.kubelet_pid = self.spawn("kubelet", "--config", self.write("config.json", json.dumps(config)), "--root-dir", f"{self.folder}/root",
                                      "--cert-dir", f"{self.folder}/pki", "--hostname-override", "bench")

    def start(self, pods):
        """ms from the first rename until all their processes run."""
        for p in pods:
            self.write(f"manifests/.{p['metadata']['name']}", json.dumps(p))
        began = time.monotonic_ns()
        for p in pods:
            os.rename(f"{self.manifests}/.{p['metadata']['name']}", f"{self.manifests}/{p['metadata']['name']}.json")
        ran = self.b.wait_started([p["metadata"]["name"] for p in pods], deadline=300)
        return (max(ran.values()) - began) / 1e6

    def remove(self, pods):
        for p in pods:
            os.unlink(f"{self.manifests}/{p['metadata']['name']}.json")
        until(lambda: self.ctr("tasks", "list", "--quiet").stdout.strip() == "", 300, "kubelet's pods to end")
        # What is left of them waits for kubelet's garbage collection, once a minute: it must not fall into the next round.
        left = self.ctr("containers", "list", "--quiet").stdout.split()
        result = subprocess.run([f"{HERE}/cri_remove.py", self.socket, *left], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, check=False, timeout=300)
        if result.returncode != 0:
            raise Refused(f"containerd did not remove its sandboxes: {result.stdout.strip().splitlines()[-1]}")
        until(lambda: self.ctr("containers", "list", "--quiet").stdout.strip() == "", 60, "kubelet's containers to be gone")

    def shims(self):
        return [p for p in processes() if "containerd-shim" in read(f"/proc/{p}/cmdline", "") and self.socket in read(f"/proc/{p}/cmdline", "")]

    def memory(self):
        """MiB: of both daemons, and of a pod's supervisor."""
        shims = [kib(p, "Pss") / 1024 for p in self.shims()]
        return (kib(self.kubelet_pid, "Pss") + kib(self.containerd_pid, "Pss")) / 1024, shims

    def close(self):
        for process in reversed(self.started):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            if process.poll() is None:
                process.kill()
        for pid in self.shims():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for root in hierarchies():
            for folder, _, _ in os.walk(f"{root}{self.cgroup}", topdown=False):
                for pid in read(f"{folder}/cgroup.procs", "").split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                with contextlib.suppress(OSError):
                    until(lambda folder=folder: read(f"{folder}/cgroup.procs", "") == "", 5, "the last processes")
                    os.rmdir(folder)


def version(program):
    """What it says of itself."""
    told = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.search(r"\d+\.\d+\.\d\S*", told).group()


def rounds(b, kubelet, quick):
    versions = {name: version(name) for name in ("kubelet", "containerd")}
    for n in (1, 10) if quick else (1, 10, 50):
        mine, theirs = [], []
        for i in range(1 if quick else 3):
            pods = [b.pod(f"peer-{n}-{i}-{k}") for k in range(n)]
            mine.append(b.start(pods)[1])
            own = kib(b.node.process.pid, "Pss") / 1024
            b.remove([p["metadata"]["name"] for p in pods])
            theirs.append(kubelet.start(pods))
            memory, shims = kubelet.memory()
            kubelet.remove(pods)
        many = f"{n} pod{'s' if n > 1 else ''}"
        yield Figure(f"{many} by kubelet and containerd, floor: coracle", "ms", theirs, mine, {"versions": versions} if n == 1 else None)
        yield Figure(f"{many}: Pss of kubelet and containerd, floor: coracle", "MiB", [memory], [own])
        yield Figure(f"{many}: Pss of a containerd-shim", "MiB", shims)


def bench_kubelet(b, quick):
    """Static pods; the floor is the agent with the same pods."""
    if not os.environ.get("PEERS"):
        return
    missing = [name for name in ("kubelet", "containerd", "ctr", "runc") if shutil.which(name) is None]
    if subprocess.run(["/usr/bin/python3", "-c", "import grpc"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        missing.append("python3-grpcio")
    if missing:
        print(f"# kubelet: not installed: {', '.join(missing)}", flush=True)
        return
    kubelet = None
    try:
        kubelet = Kubelet(b)
        warm = [b.pod("warm")]
        kubelet.start(warm)
        kubelet.remove(warm)
        yield from rounds(b, kubelet, quick)
    except Refused as e:
        print(f"# {e}", flush=True)
    finally:
        if kubelet is not None:
            kubelet.close()


__all__ = ["bench_kubelet"]
