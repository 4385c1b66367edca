# SPDX-License-Identifier: Apache-2.0
"""deb - the package's life, called by test_deb.py.  The payload has it in two versions: coracle_1.deb and coracle_2.deb."""
import os
import re

import coracle
from coracle import check, config_map, container, contains, equal, http_answers, links, pod, read, run, until
from node import EXAMPLES, UNIT_CGROUP, cgroup, node

NAMES = ("one", "two", "web")
UNITS = ("coracle.service", "coracle-pods.service")
DROP_IN = "/etc/systemd/system/coracle.service.d/flags.conf"


def dpkg(*argv):
    result = run("dpkg", *argv, timeout=120, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    print("# " + (result.stdout + result.stderr).strip().replace("\n", "\n# "))
    return result.stdout + result.stderr


def forget_build():
    """What the VM's first boot installed by hand: the package's own files take its place."""
    for folder, _, files in os.walk("/payload/root"):
        for file in files:
            os.unlink(os.path.join("/" + os.path.relpath(folder, "/payload/root"), file))
    run("systemctl", "daemon-reload")


def facts():
    found = {}
    for name in NAMES:
        p = node.pod(name)
        pid = int(read(f"{node.run_dir}/containers/{p.container_id()}/pid"))
        found[name] = [p.uid, p.container_id(), pid, read(f"/proc/{pid}/stat").rpartition(")")[2].split()[19], p.restarts(), p.ip]
    return found


def pods_pid():
    return int(run("systemctl", "show", "-P", "MainPID", "coracle-pods").stdout)


def all_ready():
    node.wait_running(*NAMES, deadline=40)
    node.watch(lambda pods: all(("default", n) in pods and pods["default", n].ready for n in NAMES), what="pods ready")


def served():
    contains(http_answers("127.0.0.1", 8080), "Hello from a ConfigMap", "page by hostPort")


def install():
    forget_build()
    dpkg("--install", "/payload/coracle_1.deb")
    node.wait_active()
    for unit in UNITS:
        equal(run("systemctl", "is-enabled", unit).stdout.strip(), "enabled", unit)
        equal(run("systemctl", "is-active", unit).stdout.strip(), "active", unit)
    equal(os.stat("/etc/coracle/manifests").st_mode & 0o7777, 0o700, "mode of the manifests' folder")
    node.import_image()
    for file in ("web.yaml", "web-page.yaml"):
        node.put(file, read(f"{EXAMPLES}/{file}"))
    node.put("config.yaml", config_map("config", text="one"))
    for name in NAMES[:2]:
        node.put(f"{name}.yaml", pod(name, container(volumeMounts=[{"name": "config", "mountPath": "/config"},
                                                                   {"name": "memory", "mountPath": "/memory"}]),
                                     volumes=[{"name": "config", "configMap": {"name": "config"}},
                                              {"name": "memory", "emptyDir": {"medium": "Memory"}}]))
    all_ready()
    served()
    return [facts(), pods_pid()]


def upgrade(before):
    with open("/etc/coracle/config.yaml", "a", encoding="utf-8") as f:
        f.write("# a line of the administrator's\n")
    old = node.main_pid
    dpkg("--install", "/payload/coracle_2.deb")
    node.wait_active(other_than=old)
    until(lambda: node.request("GET", "/healthz")[0] == 200, 20, "the agent answers")
    check(not os.readlink(f"/proc/{node.main_pid}/exe").endswith("(deleted)"), "the agent is not the new program")
    all_ready()
    equal([facts(), pods_pid()], before, "pods and the unit they live in")
    served()
    contains(read("/etc/coracle/config.yaml"), "# a line of the administrator's", "config.yaml")
    return before


def put_drop_in():
    """Flags from a file and in quotes, as a node that kubeadm set up has them."""
    os.makedirs("/etc/coracle/drop ins")
    os.makedirs(os.path.dirname(DROP_IN))
    with open("/etc/default/coracle", "w", encoding="ascii") as f:
        f.write('FLAGS="--max-pods=20 --node-labels=a=b"\n')
    with open(DROP_IN, "w", encoding="ascii") as f:
        command = re.search(r"^ExecStart=.*", read("/usr/lib/systemd/system/coracle.service"), re.MULTILINE).group()
        f.write(f'[Service]\nEnvironmentFile=-/etc/default/coracle\nExecStart=\n{command} $FLAGS --config-dir "/etc/coracle/drop ins"\n')
    run("systemctl", "daemon-reload")
    old = node.main_pid
    run("systemctl", "restart", "coracle")
    node.wait_active(other_than=old)
    contains(read(f"/proc/{node.main_pid}/cmdline"), "\0--node-labels=a=b\0--config-dir\0/etc/coracle/drop ins\0", "command line")


def end_in_order(option, before):
    """Removes the package; nothing of the pods is left."""
    said = dpkg(option, "coracle")
    contains(said, "ending this node's pods", "output")
    check("in order" not in said, "the agent could not end the pods")
    for name, (_uid, _cid, pid, *_rest) in before[0].items():
        check(not coracle.alive(pid), f"a process of {name} lives")
    for unit in UNITS:
        equal(run("systemctl", "is-active", unit, ok=False).stdout.strip(), "inactive", unit)
    left = [line for p in coracle.processes() for line in [read(f"/proc/{p}/cmdline", "").replace("\0", " ")] if "conmon" in line or "coracle run" in line]
    equal(left, [], "processes")
    equal([m for folder in ("/run/coracle", "/var/lib/coracle", "/var/lib/kubelet") for m in coracle.mounts_below(folder)], [], "mounts")
    equal([link for link in links() if link.startswith("veth")], [], "links")
    check(not os.path.exists(cgroup(UNIT_CGROUP + "/kubepods")), "the pods' cgroup is left")
    rules = coracle.firewall()
    check(not any(ip in rules for *_, ip in before[0].values()), f"firewall rules of pods:\n{rules}")


def remove(before):
    put_drop_in()
    all_ready()
    equal([facts(), pods_pid()], before, "pods after a restart with other flags")
    end_in_order("--remove", before)
    check(not os.path.exists("/usr/bin/coracle") and not os.path.exists("/usr/libexec/coracle"), "programs are left")
    check(os.listdir("/var/lib/coracle/images/images"), "removal took the images: a purge does that")
    equal(sorted(os.listdir("/etc/coracle/manifests")), ["config.yaml", "one.yaml", "two.yaml", "web-page.yaml", "web.yaml"], "manifests")
    return before


def again(before):
    dpkg("--install", "/payload/coracle_2.deb")
    node.wait_active()
    all_ready()
    served()
    check(all(facts()[n][0] != before[0][n][0] for n in NAMES), "the pods of before, which had ended")
    return [facts(), pods_pid()]


def purge(before):
    run("systemctl", "stop", "coracle")  # pods go on without it
    end_in_order("--purge", before)
    os.unlink(DROP_IN)
    os.unlink("/etc/default/coracle")
    os.rmdir("/etc/coracle/drop ins")
    run("systemctl", "daemon-reload")
    for path in ("/var/lib/coracle", "/run/coracle", "/var/lib/kubelet", "/etc/coracle/config.yaml", "/usr/lib/systemd/system/coracle.service"):
        check(not os.path.exists(path), f"{path} is left: {os.listdir(path) if os.path.isdir(path) else ''}")
    for folder in ("/var/log/pods", "/var/log/containers"):
        equal(os.listdir(folder) if os.path.exists(folder) else [], [], folder)
    equal(len(os.listdir("/etc/coracle/manifests")), 5, "manifests")
    equal(run("systemctl", "--failed", "--no-legend", "--plain").stdout, "", "failed units")
    for unit in UNITS:
        contains("not-found", run("systemctl", "show", "-P", "LoadState", unit).stdout.strip(), f"state of {unit}")
