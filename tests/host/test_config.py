# SPDX-License-Identifier: Apache-2.0
"""Configuration: files, drop-ins and flags of real nodes with the real daemon; SIGHUP."""
import json
import os
import re
import signal
import socket
import subprocess

from coracle import TOP, check, contains, container, equal, pod, read, run, until

FIXTURES = f"{TOP}/tests/fixtures/config"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def warned(node):
    """The settings that the log warns about, sorted."""
    return sorted(set(re.findall(r'a setting has no effect.*? setting="?([^" ]+)', node.log())))


def configured(t, flags):
    """A node whose own flags (folders of this test) follow those of the fixture."""
    node = t.node(*flags)
    node.import_image()
    return node


def test_kubeadm(t):
    """the files and flags of a kubeadm node start the daemon, with a warning for each setting without effect"""
    text = read(f"{FIXTURES}/kubeadm/config.yaml").replace("/run/systemd/resolve/resolv.conf", "/etc/resolv.conf")
    path = f"{t.scratch}/etc/kubelet.yaml"
    write(path, text)
    args = re.search(r'"(.*)"', read(f"{FIXTURES}/kubeadm/kubeadm-flags.env")).group(1).split()
    node = configured(t, ["--config", path] + read(f"{FIXTURES}/kubeadm/flags").split() + args)
    wanted = read(f"{FIXTURES}/kubeadm/warnings").split()
    equal(warned(node), wanted, "settings that are warned about")
    contains(node.log(), f'from={path}:15', "the place of a warned setting")
    node.put("a.yaml", pod("a", nodeSelector={"example.com/rack": "r7", "kubernetes.io/hostname": "node-1"}))
    node.wait_running("a-node-1")  # of a node that joins a cluster
    node.put("b.yaml", pod("b", container("one", command=["cat", "/etc/resolv.conf"]), restartPolicy="Never"))
    node.wait_pod("b-node-1", lambda p: p.phase == "Succeeded")
    contains(node.cli("logs", "b-node-1").stdout, "10.96.0.10", "resolv.conf")

    explained = node.cli("explain", "node").stdout
    for name in wanted:
        contains(explained, f"setting {name}", "explain node")
    shown = node.cli("config").stdout
    contains(shown, "clusterDomain: \"cluster.local\"", "coracle config")
    check(re.search(r'^clusterDNS: \["10.96.0.10"\] +# .*/kubelet.yaml:16$', shown, re.MULTILINE), f"clusterDNS in\n{shown}")
    check(re.search(r'^nodeLabels: .*# --node-labels$', shown, re.MULTILINE), f"nodeLabels in\n{shown}")
    check(re.search(r'^maxPods: 110 +# default$', shown, re.MULTILINE), f"maxPods in\n{shown}")
    contains(shown, "# Accepted, but without effect:\n", "coracle config")
    configz = node.get("/configz")
    equal(configz["kubeletconfig"]["authentication"]["x509"]["clientCAFile"], "/etc/kubernetes/pki/ca.crt", "/configz")
    equal(sorted(w["setting"] for w in configz["warnings"]), wanted, "warnings of /configz")
    equal(json.loads(node.cli("config", "-o", "json").stdout), configz, "coracle config -o json")
    # The same without the daemon.
    local = json.loads(run(node.coracle, "config", "-o", "json", *node.argv()[2:]).stdout)
    equal(local, configz, "coracle config with the daemon's flags")
    node.stop()


def test_k3s(t):
    """the drop-in and the flags of a k3s node start the daemon, with a warning for each setting without effect"""
    flags = read(f"{FIXTURES}/k3s/flags").split()
    node = configured(t, ["--config-dir", f"{FIXTURES}/k3s/kubelet.conf.d"] + flags)
    equal(warned(node), read(f"{FIXTURES}/k3s/warnings").split(), "settings that are warned about")
    node.put("a.yaml", pod("a", hostNetwork=True))
    equal(node.wait_running("a-node-2").status["hostIP"], "192.0.2.10", "hostIP")
    node.stop()


def test_drop_ins_and_errors(t):
    """drop-ins are merged over the file and flags take precedence; a mistake is one line with file, line, key and allowed values"""
    path, folder = f"{t.scratch}/etc/config.yaml", f"{t.scratch}/etc/conf.d"
    write(path, KUBELET + "maxPods: 10\npodPidsLimit: 300\n")
    write(f"{folder}/10-pods.conf", KUBELET + "maxPods: 20\n")
    write(f"{folder}/20-more.conf", KUBELET + "podPidsLimit: 400\n")
    coracle = f"{t.build}/coracle"
    flags = ["--config", path, "--config-dir", folder]
    shown = run(coracle, "config", *flags, "--seccomp-default").stdout
    check(re.search(r"^maxPods: 20 +# .*/10-pods.conf:3$", shown, re.MULTILINE), shown)
    check(re.search(r"^podPidsLimit: 400 +# .*/20-more.conf:3$", shown, re.MULTILINE), shown)
    check(re.search(r"^seccompDefault: true +# --seccomp-default$", shown, re.MULTILINE), shown)
    write(f"{folder}/30-bad.conf", KUBELET + "maxPod: 20\n")
    bad = run(coracle, "run", *flags, ok=False)
    equal(bad.returncode, 2, "exit code")
    equal(bad.stderr, f"coracle run: --config-dir: {folder}/30-bad.conf:3: maxPod: unknown key in a KubeletConfiguration; "
                      "did you mean maxPods?\n", "error")
    equal(run(coracle, "config", *flags, ok=False).returncode, 1, "exit code of coracle config")
    contains(run(coracle, "run", "--help").stdout, "--config-dir", "help")


def pids_max(node, uid):
    for line in run("find", "/sys/fs/cgroup", "-path", f"*{node.cgroup_root}*/*pod{uid}/pids.max", ok=False).stdout.split():
        return read(line).strip()
    return None


def test_limits(t):
    """podPidsLimit and cpuCFSQuota reach the cgroup of a pod; the back-off of a crashing container is capped"""
    path = f"{t.scratch}/etc/config.yaml"
    write(path, KUBELET + "podPidsLimit: 64\ncpuCFSQuota: false\ncrashLoopBackOff: {maxContainerRestartPeriod: 1s}\n")
    node = configured(t, ["--config", path])
    node.put("a.yaml", pod("a", container("one", resources={"limits": {"cpu": "100m", "memory": "64Mi"}})))
    a = node.wait_running("a")
    found = until(lambda: pids_max(node, a.uid), 5, "pids.max of the pod")
    equal(found, "64", "pids.max of the pod")
    for folder in run("find", "/sys/fs/cgroup", "-path", f"*{node.cgroup_root}*/*pod{a.uid}", "-type", "d", ok=False).stdout.split():
        equal(read(f"{folder}/cpu.cfs_quota_us", "-1").strip(), "-1", "cpu.cfs_quota_us")
        equal(read(f"{folder}/cpu.max", "max").split()[0], "max", "cpu.max")
    node.put("c.yaml", pod("c", container("one", command=["false"])))
    node.wait_pod("c", lambda p: p.container().get("restartCount", 0) >= 4, deadline=30)
    node.stop()


def start_with_notify(t, node):
    """Starts the daemon with a notify socket that stays open; returns its messages."""
    path = f"{t.scratch}/notify-kept"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(path)
    listener.settimeout(30)
    with open(node.log_path, "ab") as log:
        node.process = subprocess.Popen(node.argv(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                        env={**os.environ, "NOTIFY_SOCKET": path})
    while "READY=1" not in listener.recv(4096).decode().splitlines():
        pass
    return listener


def test_reload(t):
    """SIGHUP reads the files again: changeable settings change, others are logged, a mistake keeps the old configuration"""
    path = f"{t.scratch}/etc/config.yaml"
    write(path, KUBELET + "maxPods: 1\nclusterDNS: [10.0.0.1]\nclusterDomain: one.example\n")
    node = t.node("--config", path)
    node.stop()
    listener = start_with_notify(t, node)

    def reload():
        os.kill(node.process.pid, signal.SIGHUP)
        text = listener.recv(4096).decode()
        check(re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", text), f"notify: {text!r}")
        equal(listener.recv(4096).decode(), "READY=1", "notify")

    node.import_image()
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    node.put("b.yaml", pod("b"))
    node.wait_pod("b", lambda p: p.phase == "Failed")

    write(path, KUBELET + "maxPods: 5\nclusterDNS: [10.0.0.2]\nclusterDomain: two.example\nserializeImagePulls: true\n"
                          "syncFrequency: 3s\n---\napiVersion: coracle.dev/v1\nkind: CoracleConfiguration\nlibexecDir: /nowhere\n")
    reload()
    for name in ("maxPods", "clusterDNS", "clusterDomain"):
        contains(node.log(), f"a setting has changed setting={name}\n", "log")
    for name in ("serializeImagePulls", "libexecDir"):
        contains(node.log(), f"a changed setting needs a restart setting={name}\n", "log")
    equal(warned(node), ["syncFrequency"], "settings that are warned about")
    node.put("c.yaml", pod("c", container("one", command=["cat", "/etc/resolv.conf"]), restartPolicy="Never"))
    node.wait_pod("c", lambda p: p.phase == "Succeeded")
    shown = node.cli("logs", "c").stdout
    contains(shown, "10.0.0.2", "resolv.conf of a pod that came after it")
    contains(shown, "svc.two.example", "resolv.conf of a pod that came after it")
    check("serializeImagePulls" not in node.get("/configz")["kubeletconfig"], "serializeImagePulls is shown as in force")

    write(path, KUBELET + "maxPods: many\n")
    reload()
    contains(node.log(), "cannot reload the configuration; the old one stays in effect", "log")
    contains(node.log(), f'{path}:3: maxPods: \\"many\\" is not a whole number', "log")
    equal(node.get("/configz")["kubeletconfig"]["maxPods"], 5, "maxPods")
    node.put("d.yaml", pod("d"))
    node.wait_running("d")
    listener.close()
    node.stop()
