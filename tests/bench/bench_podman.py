# SPDX-License-Identifier: Apache-2.0
"""`podman kube play` on the manifests that the agent gets, in the same run."""
import contextlib
import json
import os
import resource
import shutil
import subprocess
import time

from bench import Figure
from coracle import hierarchies, read

PARENT = "libpod_parent"  # podman's cgroup, of all its pods


class Refused(Exception):
    """Podman cannot do it here; the text is podman's."""


@contextlib.contextmanager
def hidden(*folders):
    """Files that podman keeps outside its storage (locks, network state) go to empty folders that nobody else sees."""
    made = [f for f in folders if not os.path.isdir(f)]
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    try:
        yield
    finally:
        for folder in folders:
            subprocess.run(["umount", "-l", folder], check=False)
        for folder in made:
            os.rmdir(folder)


class Podman:
    """A podman with a storage of its own below the bench's folder."""

    def __init__(self, b):
        self.b, self.folder = b, f"{b.scratch}/podman"
        self.cgroups = [f"{root}/{PARENT}" for root in hierarchies() if not os.path.exists(f"{root}/{PARENT}")]
        self.env = os.environ | {"CONTAINERS_CONF": f"{self.folder}/containers.conf", "CONTAINERS_STORAGE_CONF": f"{self.folder}/storage.conf"}
        os.makedirs(self.folder)
        # Podman's default limits exceed what root without CAP_SYS_RESOURCE may set.
        files, tasks = (resource.getrlimit(limit)[1] for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
        ids = int(read("/proc/sys/kernel/pid_max"))
        tasks = min(tasks, ids) if tasks > 0 else ids
        self.write("containers.conf", f'[containers]\nlog_driver = "k8s-file"\ndefault_ulimits = ["nofile={files}:{files}", "nproc={tasks}:{tasks}"]\n'
                   f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n[network]\nnetwork_config_dir = "{self.folder}/net"\n')
        self.write("storage.conf", f'[storage]\ndriver = "overlay"\nrunroot = "{self.folder}/run"\ngraphroot = "{self.folder}/root"\n')
        self.write("policy.json", '{"default": [{"type": "insecureAcceptAnything"}]}')

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w", encoding="ascii") as f:
            f.write(text)

    def run(self, *args):
        result = subprocess.run(["podman", *args], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, check=False, timeout=600)
        if result.returncode != 0:
            told = [line for line in result.stdout.splitlines() if line.strip()]
            raise Refused(f"podman {args[0]} ended with {result.returncode}: {' / '.join(told[-3:])}")
        return result.stdout

    def import_image(self):
        self.run("pull", "--quiet", "--signature-policy", f"{self.folder}/policy.json", f"docker-archive:{os.environ['CORACLE_TEST_IMAGE']}")

    def play(self, pods):
        """ms from the command until all their processes run; then they are removed."""
        self.write("pods.yaml", "---\n".join(json.dumps(p) + "\n" for p in pods))
        start = time.monotonic_ns()
        self.run("kube", "play", f"{self.folder}/pods.yaml")
        ran = self.b.wait_started([p["metadata"]["name"] for p in pods])
        self.run("kube", "down", f"{self.folder}/pods.yaml")
        return (max(ran.values()) - start) / 1e6

    def close(self):
        with contextlib.suppress(Refused):
            self.run("pod", "rm", "--all", "--force", "--time", "0")
        for cgroup in self.cgroups:
            for folder, _, _ in os.walk(cgroup, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)


def bench_podman(b, quick):
    """Pods at once, by one command and one file; the floor is the agent with the same pods."""
    if not os.environ.get("PEERS"):
        return
    if shutil.which("podman") is None:
        print("# podman: not installed", flush=True)
        return
    with hidden("/run", "/dev/shm", "/var/lib/cni"):
        podman = Podman(b)
        try:
            podman.import_image()
            podman.play([b.pod("first")])
            for n in (1, 10) if quick else (1, 10, 50):
                mine, theirs = [], []
                for i in range(1 if quick else 3):
                    pods = [b.pod(f"play-{n}-{i}-{k}") for k in range(n)]
                    mine.append(b.start(pods)[1])
                    b.remove([p["metadata"]["name"] for p in pods])
                    theirs.append(podman.play(pods))
                yield Figure(f"{n} pod{'s' if n > 1 else ''} by podman kube play, floor: coracle", "ms", theirs, mine,
                             {"versions": {"podman": podman.run("--version").split()[-1]}} if n == 1 else None)
        except Refused as e:
            print(f"# {e}", flush=True)
        finally:
            podman.close()
