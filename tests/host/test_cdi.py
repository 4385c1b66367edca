# SPDX-License-Identifier: Apache-2.0
"""CDI devices: what spec files put into containers that ask for them by a pod's annotation."""
import json
import os

import devices
from coracle import check, container, contains, equal, pod, read, shell, until
from test_userns import able

NAME = "example.com/dev"


def spec(devices, kind=NAME, version="0.7.0", **more):
    return json.dumps({"cdiVersion": version, "kind": kind, "devices": devices, **more})


def device(name, **edits):
    return {"name": name, "containerEdits": edits}


def put(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/.{name}", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(f"{folder}/.{name}", f"{folder}/{name}")


def asking(name, devices, *containers, **spec_fields):
    p = pod(name, *containers, **spec_fields)
    p["metadata"]["annotations"] = {"cdi.k8s.io/test": devices}
    return p


SEES = ("env | sort; stat -c '%n %F %a %u:%g %t:%T' /dev/cdi; cat /cdi/file; id -G; touch /cdi/x 2>&1; head -c 3 /dev/cdi | od -An -tx1;"
        "echo done; exec sleep 1000")


def start(t, *flags):
    etc, run = f"{t.scratch}/etc/cdi", f"{t.scratch}/run/cdi"
    node = t.node(f"--cdi-spec-dirs={etc},{run}", *flags)
    node.import_image()
    return node, etc, run


def said(node, name, *args):
    until(lambda: "done" in node.cli("logs", name, *args).stdout, 10, lambda: f"the script of {name} is through:\n{node.cli('logs', name, *args).stdout}")
    return node.cli("logs", name, *args).stdout


def whole(t, folder):
    """A spec with an edit of each kind that every runtime has."""
    host = f"{t.scratch}/tmp/cdi"
    os.makedirs(host)
    with open(f"{host}/file", "w", encoding="ascii") as f:
        f.write("of the host\n")
    hook = f"{t.scratch}/tmp/hook"
    with open(hook, "w", encoding="ascii") as f:
        f.write(f"#!/bin/sh\ncat > {host}.state; echo \"$1 $HOOK\" >> {host}.hook\n")
    os.chmod(hook, 0o755)
    put(folder, "dev.json", spec(
        [device("a", env=["CDI_A=yes", "OWN=cdi"], deviceNodes=[{"path": "/dev/cdi", "hostPath": "/dev/zero", "permissions": "r", "fileMode": 0o640, "gid": 44}],
                mounts=[{"hostPath": host, "containerPath": "/cdi", "options": ["ro", "nosuid"]}], additionalGids=[44, 1234])],
        containerEdits={"env": ["CDI_ALL=yes"],
                        "hooks": [{"hookName": "createRuntime", "path": hook, "args": ["hook", "made"], "env": ["HOOK=of-cdi"], "timeout": 10}]}))
    return f"{host}.hook"


def saw_all(text, mode="640", owner="0:44"):
    for part in ("CDI_A=yes\n", "CDI_ALL=yes\n", "OWN=cdi\n", f"/dev/cdi character special file {mode} {owner} 1:5", "of the host\n", " 44 1234", "Read-only file system",
                 " 00 00 00\n"):
        contains(text, part, "what the container saw")


def test_edits(t):
    """environment, device node, mount, groups and hook of a spec reach each container of the requesting pod, and no other"""
    node, etc, _ = start(t)
    hook = whole(t, etc)
    own = {"env": [{"name": "OWN", "value": "pod"}]}
    node.put("a.yaml", asking("a", f"{NAME}=a", container(command=shell(SEES), **own), container("second", command=shell(SEES), **own)))
    node.put("plain.yaml", pod("plain", container(command=shell("env; ls /dev; echo done; exec sleep 1000"))))
    node.wait_running("a")
    for name in ("main", "second"):
        saw_all(said(node, "a", "-c", name))
    equal(read(hook), "made of-cdi\n" * 2, "runs of the hook")
    plain = said(node, "plain")
    check("CDI" not in plain and "cdi" not in plain, f"a pod that did not ask has\n{plain}")
    contains(node.cli("exec", "a", "-c", "main", "--", "/bin/busybox", "env").stdout, "CDI_A=yes", "environment of one more process")


def test_read_only_root(t):
    """the same with a read-only root and a non-root user, who owns the node if the spec sets no owner"""
    node, etc, _ = start(t)
    whole(t, etc)
    security = {"readOnlyRootFilesystem": True, "runAsUser": 1000, "runAsGroup": 1000}
    node.put("a.yaml", asking("a", f"{NAME}=a", container(command=shell(SEES), env=[{"name": "OWN", "value": "pod"}], securityContext=security)))
    node.wait_running("a")
    saw_all(said(node, "a"), owner="1000:44")


def test_privileged(t):
    """a privileged container gets the devices in addition to the host's"""
    node, etc, _ = start(t)
    whole(t, etc)
    node.put("a.yaml", asking("a", f"{NAME}=a", container(command=shell("ls /dev/loop-control /dev/kmsg; " + SEES), securityContext={"privileged": True})))
    node.wait_running("a")
    text = said(node, "a")
    saw_all(text)
    contains(text, "/dev/kmsg", "devices of the host")


def test_users(t):
    """with hostUsers: false the nodes are the pod's own, and can be used by their mode; a mount that cannot be mapped stays the host's"""
    node, etc, _ = start(t)
    able(node)
    whole(t, etc)
    put(etc, "sys.json", spec([device("mm", mounts=[{"hostPath": "/sys/kernel/mm", "containerPath": "/mm", "options": ["rbind", "ro"]}])], kind="example.com/sys"))
    script = "stat -c '%n %u' /mm/hugepages; " + SEES
    node.put("a.yaml", asking("a", f"{NAME}=a,example.com/sys=mm", container(command=shell(script), env=[{"name": "OWN", "value": "pod"}]), hostUsers=False))
    a = node.wait_running("a")
    text = said(node, "a")
    saw_all(text)
    contains(text, "/mm/hugepages 65534\n", "the owner in sysfs")
    node.finish(a)


def test_denied(t):
    """the device cgroup allows exactly the permissions of the spec, whether the node exists or not"""
    node, etc, _ = start(t)
    # /dev/loop-control: no container has it by default; a node that says what it is needs none on the host
    put(etc, "dev.json", spec([device("a", deviceNodes=[{"path": "/dev/reads", "type": "c", "major": 10, "minor": 237, "permissions": "r"}])]))
    script = shell("mknod /dev/reads c 10 237; mknod /dev/other c 10 237; for d in reads other; do (: < /dev/$d); (: > /dev/$d); done; echo done; exec sleep 1000")
    node.put("a.yaml", asking("a", f"{NAME}=a", container(command=script)))
    node.put("none.yaml", pod("none", container(command=script)))
    node.wait_running("a", "none")
    for name, denied in (("a", ["create /dev/reads", "create /dev/other"]),
                         ("none", ["create /dev/reads", "open /dev/reads", "create /dev/other", "open /dev/other"])):
        lines = [line for line in said(node, name).splitlines() if "Operation not permitted" in line]
        equal(sorted(line.split("can't ")[1].split(":")[0] for line in lines), sorted(denied), f"opens that {name} was denied")



def test_waits(t):
    """a container whose device is unknown waits with containerd's text, and starts when a file defines it"""
    node, etc, run = start(t)
    node.put("a.yaml", asking("a", f"{NAME}=late,{NAME}=other"))
    node.put("b.yaml", asking("b", "no name"))

    def waiting(name):
        p = node.pod(name)
        return p.container().get("state", {}).get("waiting", {}) if p else {}

    until(lambda: waiting("a").get("reason") == "CreateContainerError", 10, lambda: f"a waits: {waiting('a')}")
    equal(waiting("a")["message"], f"CDI device injection failed: unresolvable CDI devices {NAME}=late, {NAME}=other", "message")
    until(lambda: waiting("b").get("reason") == "CreateContainerError", 10, lambda: f"b waits: {waiting('b')}")
    equal(waiting("b")["message"], "failed to parse CDI device annotations: invalid CDI device name \"no name\"", "message")
    put(run, "bad.yaml", "cdiVersion: 0.6.0\nkind: example.com/dev\ndevices: []\n")
    put(run, "late.yaml", "cdiVersion: 0.6.0\nkind: example.com/dev\ndevices:\n- {name: late, containerEdits: {env: [A=1]}}\n")
    put(etc, "other.json", spec([device("other", env=["B=1"])]))
    node.wait_running("a", deadline=5)  # an event, not the retry after ten seconds
    contains(node.cli("explain", "node").stdout, f"{NAME}=late, {NAME}=other", "explain node")
    contains(node.cli("explain", "node").stdout, f"{run}/bad.yaml:3:1: devices: must have at least one", "explain node")


def test_restart(t):
    """a running container keeps its edits when the file is removed; a restart of the agent changes nothing"""
    node, etc, _ = start(t)
    put(etc, "dev.json", spec([device("a", env=["A=1"])]))
    node.put("a.yaml", asking("a", f"{NAME}=a"))
    a = node.wait_running("a")
    os.unlink(f"{etc}/dev.json")
    node.kill()
    node.start()
    again = node.wait_running("a")
    equal(node.container_pids(again), node.container_pids(a), "processes")


def test_plugin(t):
    """what a plugin answers beside CDI names: its environment before the container's own, a mount whose source is made, a node; CDI comes last"""
    node = devices.start(t)
    missing = f"{t.scratch}/tmp/made/for/it"
    put(f"{t.scratch}/cdi", "dev.json", spec([device("dev-0", env=["CDI_DEV_0=yes"], deviceNodes=[{"path": "/dev/dev-0", "hostPath": "/dev/zero"}])], version="0.6.0"))
    plugin = devices.plugin_at_work(node, "--cdi", "--prestart", "--device", "/dev/null:/dev/exdev:rw", "--mount", f"{missing}:/mnt/p1:ro", devices=1)
    script = "echo $(OWN) $(DEV_IDS); env | sort; stat -c '%n %t:%T' /dev/exdev /dev/dev-0; touch /mnt/p1/x 2>&1; echo done; exec sleep 1000"
    node.put("a.yaml", devices.asking("a", command=script, ctr={"env": [{"name": "OWN", "value": "pod"}]}))
    node.wait_running("a")
    text = said(node, "a")
    for part in ("pod dev-0\n", "CDI_DEV_0=yes\n", "DEV_IDS=dev-0\n", "/dev/exdev 1:3\n", "/dev/dev-0 1:5\n", "Read-only file system"):
        contains(text, part, "what the container saw")
    check(os.path.isdir(missing), "the folder of the mount is not made")
    equal(len(plugin.calls("PreStartContainer")), 1, "calls of PreStartContainer")


def test_plugin_without_spec(t):
    """a device that no spec describes: the container waits, keeps its device, and starts with the spec"""
    node = devices.start(t)
    devices.plugin_at_work(node, "--cdi", devices=1)
    node.put("a.yaml", devices.asking("a"))
    waiting = until(lambda: (node.pod("a").container().get("state", {}) if node.pod("a") else {}).get("waiting", {}).get("message"), 10, "it waits")
    equal(waiting, f"CDI device injection failed: unresolvable CDI devices {NAME}=dev-0", "message")
    equal(list(devices.devices_of(node.pod("a"))), ["dev-0"], "devices")
    put(f"{t.scratch}/cdi", "dev.json", spec([device("dev-0", env=["A=1"])]))
    node.wait_running("a", deadline=5)
    equal(list(devices.devices_of(node.pod("a"))), ["dev-0"], "devices")


def test_missing_node(t):
    """a plugin's device node that does not exist on the host fails the container's start with containerd's text"""
    node = devices.start(t)
    devices.plugin_at_work(node, "--device", "/dev/no-such:/dev/exdev:rw", devices=1)
    node.put("a.yaml", devices.asking("a"))
    waiting = until(lambda: (node.pod("a").container().get("state", {}) if node.pod("a") else {}).get("waiting", {}).get("message"), 10, "it waits")
    equal(waiting, "device /dev/exdev: lstat /dev/no-such: no such file or directory", "message")
    equal(node.pod("a").container()["state"]["waiting"]["reason"], "CreateContainerError", "reason")
