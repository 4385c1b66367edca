# SPDX-License-Identifier: Apache-2.0
"""node - the installed build in this VM as a systemd service: what the host tests' Node is for a daemon in a world."""
import os
import signal
import sys

os.environ.setdefault("CORACLE_TEST_SLOW", "8")  # software emulation beside other tests
os.environ["CORACLE_TEST_IMAGE"] = "/payload/busybox.tar"
sys.path.insert(0, "/payload/tests/host")
import coracle  # noqa: E402
from coracle import run, until  # noqa: E402

UNIT_CGROUP = "/system.slice/coracle-pods.service"
EXAMPLES = "/payload/examples/manifests"


def cgroup(path, controller="systemd"):
    """The folder of a cgroup: in the one hierarchy, or in a controller's of v1."""
    return coracle.CGROUP_FS + ("" if coracle.cgroup_v2() else f"/{controller}") + path


def pod_cgroups():
    """The folders of pods in all hierarchies."""
    return [f for root in coracle.hierarchies() for f, _, _ in os.walk(f"{root}{UNIT_CGROUP}/kubepods") if "pod" in os.path.basename(f)[:3]]


class Place:
    """The whole VM as the world of one node."""
    name, scratch, build = "node", "", "/usr/bin"


class Service(coracle.Node):
    """The daemon as systemd runs it, at its default paths."""

    def __init__(self):
        super().__init__(Place)
        self.manifests, self.run_dir, self.state_dir = "/etc/coracle/manifests", "/run/coracle", "/var/lib/coracle"
        self.root_dir, self.socket = "/var/lib/kubelet", "/run/coracle/coracle.sock"
        self.pod_logs, self.container_logs = "/var/log/pods", "/var/log/containers"
        self.cgroup_root = UNIT_CGROUP

    def log(self):
        return run("journalctl", "-u", "coracle", "-o", "cat", "--no-pager").stdout

    @property
    def main_pid(self):
        return int(run("systemctl", "show", "-P", "MainPID", "coracle").stdout)

    def wait_active(self, other_than=0):
        until(lambda: run("systemctl", "is-active", "coracle", ok=False).stdout.strip() == "active" and
              self.main_pid not in (0, other_than), 20, lambda: run("systemctl", "status", "coracle", ok=False).stdout)

    def start(self, wait=True):
        run("systemctl", "start", "coracle")
        return self

    def stop(self, signo=signal.SIGTERM, deadline=15):
        run("systemctl", "stop", "coracle")
        return 0


node = Service()
