# SPDX-License-Identifier: Apache-2.0
"""The end of volumes: everything of a pod is removed, even after a crash, but never across a foreign mount."""
import glob
import os
import shutil
import signal
import uuid

from coracle import (all_running, check, config_map, container, contains, equal, mount, mounts_below, pod, read, run,
                     shell, until)

EMPTY = "volumes/kubernetes.io~empty-dir"
VOLUMES = [{"name": "disk", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}, {"name": "c", "configMap": {"name": "c"}}]
MOUNTS = [mount(v["name"], f"/{v['name']}") for v in VOLUMES] + [mount("disk", "/sub", subPath="a/b")]


def precious(t):
    """A folder that does not belong to the agent, with a file."""
    path = f"{t.scratch}/tmp/precious"
    os.makedirs(path, exist_ok=True)
    with open(f"{path}/data", "w", encoding="ascii") as f:
        f.write("must live\n")
    return path


def lives(path):
    with open(f"{path}/data", encoding="ascii") as f:
        equal(f.read(), "must live\n", "what was somebody else's")


def started(t, *flags):
    node = t.node(*flags)
    node.import_image()
    node.put("a.yaml", config_map("c", key="value"), pod("a", container(volumeMounts=MOUNTS), volumes=VOLUMES))
    return node, node.wait_running("a")


def explained(node, pod_or_node, *texts):
    def said():
        result = node.cli("explain", *pod_or_node, ok=False)
        return result.stdout if all(x in result.stdout for x in texts) else None
    return until(said, 15, lambda: f"{texts} in:\n{node.cli('explain', *pod_or_node, ok=False).stdout}")


def test_held(t):
    """a foreign mount below an emptyDir: its files survive, explain names it, the rest is removed, and everything once it is unmounted"""
    node, a = started(t)
    theirs, folder = precious(t), f"{node.root_dir}/pods/{a.uid}"
    run("mount", "--bind", theirs, f"{folder}/{EMPTY}/disk/a")
    node.remove("a.yaml")
    text = explained(node, ("pod", "a"), 'volume "disk" is in use by a mount that is not ours', f"{folder}/{EMPTY}/disk/a (")
    contains(text, "/precious])", "explain")
    lives(theirs)
    check(os.path.exists(f"{folder}/{EMPTY}/disk/a/data"), "the mount was taken away")
    for gone in (f"{folder}/{EMPTY}/memory", f"{folder}/volume-subpaths", f"{node.run_dir}/volumes/{a.uid}"):
        check(not os.path.exists(gone), f"{gone} is still there")
    check(node.pod("a") is not None and node.pod("a")["metadata"].get("deletionTimestamp"), "the pod is not shown as ending")
    equal(len([e for e in node.events("a") if e["reason"] == "FailedUnMount"]), 1, "events")
    since = len(node.log())
    for _ in range(20):  # other mounts and unmounts must not cause retries all the time
        run("mount", "-t", "tmpfs", "none", f"{t.scratch}/tmp")
        run("umount", f"{t.scratch}/tmp")
    check(node.log()[since:].count("cannot remove") == 0, "the same is said again and again")
    run("umount", f"{folder}/{EMPTY}/disk/a")
    node.wait_gone("a", deadline=10)
    node.wait_no_traces(a)
    lives(theirs)
    equal(node.stop(), 0, "exit code")


def test_held_over_restart(t):
    """the agent is killed while a foreign mount holds a volume: the next one waits in the same way"""
    node, a = started(t)
    theirs, point = precious(t), f"{node.root_dir}/pods/{a.uid}/{EMPTY}/memory"
    run("mount", "--bind", theirs, point)
    node.remove("a.yaml")
    explained(node, ("pod", "a"), 'volume "memory" is in use')
    node.kill()
    node.start()
    explained(node, ("pod", "a"), 'volume "memory" is in use', point)
    lives(theirs)
    run("umount", point)
    node.wait_gone("a")
    node.wait_no_traces(a)
    lives(theirs)
    equal(node.stop(), 0, "exit code")


def test_left_over(t):
    """volumes without a pod are removed at the start; a volume that is held is named by explain node"""
    node, a = started(t)
    node.kill()
    os.kill(node.pid(a), signal.SIGKILL)
    for path in glob.glob(f"{node.state_dir}/pods/{a.uid}*"):
        os.unlink(path)
    node.remove("a.yaml")
    theirs, held, crashed = precious(t), str(uuid.uuid4()), str(uuid.uuid4())
    for uid in (held, crashed):
        folder = f"{node.root_dir}/pods/{uid}"
        for sub in (f"{EMPTY}/one/in/side", f"{EMPTY}/two", "volume-subpaths/one/main/0", "containers/main"):
            os.makedirs(f"{folder}/{sub}")
        run("mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", f"{folder}/{EMPTY}/two")
        run("mount", "--bind", f"{folder}/{EMPTY}/one/in", f"{folder}/volume-subpaths/one/main/0")
        os.makedirs(f"{node.run_dir}/volumes/{uid}/cfg")
    point = f"{node.root_dir}/pods/{held}/{EMPTY}/one/in/side"
    run("mount", "--bind", theirs, point)
    node.start()
    explained(node, ("node",), "leftover volumes", held, 'volume "one" is in use', point)
    for uid in (a.uid, crashed):
        until(lambda u=uid: not os.path.exists(f"{node.root_dir}/pods/{u}"), 20, "leftover folders")
        until(lambda u=uid: not os.path.exists(f"{node.run_dir}/volumes/{u}"), 20, "leftover payloads")
    lives(theirs)
    check(not os.path.exists(f"{node.root_dir}/pods/{held}/{EMPTY}/two"), "the volume beside the one that is held")
    run("umount", point)
    until(lambda: not os.path.exists(f"{node.root_dir}/pods/{held}"), 10, "the folder of the one that was held")
    equal(mounts_below(f"{node.root_dir}/pods"), [], "mounts")
    lives(theirs)
    equal(node.stop(), 0, "exit code")


def test_first_start_beside_a_kubelet(t):
    """files that existed below the root folder and among the logs before the first start stay, then and later"""
    node = t.node()
    equal(node.stop(), 0, "exit code")
    os.unlink(f"{node.state_dir}/foreign-pods")  # written at the first start
    os.rmdir(f"{node.state_dir}/pods")
    uid = str(uuid.uuid4())
    folder, logs = f"{node.root_dir}/pods/{uid}", f"{node.pod_logs}/default_web_{uid}"
    for path in (f"{folder}/volumes/kubernetes.io~empty-dir/data", f"{logs}/main"):
        os.makedirs(path)
        with open(f"{path}/data", "w", encoding="ascii") as f:
            f.write("must live\n")
    node.start()
    node.import_image()
    left = str(uuid.uuid4())
    for _ in range(2):
        node.put("a.yaml", pod("a", container()))
        node.wait_running("a")
        node.remove("a.yaml")
        node.wait_gone("a")
        equal(node.stop(), 0, "exit code")
        os.makedirs(f"{node.root_dir}/pods/{left}/volumes")
        node.start()
        until(lambda: not os.path.exists(f"{node.root_dir}/pods/{left}"), 15, "what is no pod's and came later")
        lives(f"{folder}/volumes/kubernetes.io~empty-dir/data")
        lives(f"{logs}/main")
    node.kill()
    with open(f"{node.state_dir}/foreign-pods", "w", encoding="ascii"):
        pass
    node.start()
    lives(f"{folder}/volumes/kubernetes.io~empty-dir/data")
    contains(node.log(), "list of foreign pods is damaged; making a new one")
    contains(node.log(), "found a foreign pod; nothing of it will be removed", uid)
    equal(node.stop(), 0, "exit code")


def test_first_start_of_this_version(t):
    """where an earlier version ran, which kept no list of foreign pods, its leftover volumes and logs are removed, a kubelet's are not"""
    node = t.node()
    equal(node.stop(), 0, "exit code")
    os.unlink(f"{node.state_dir}/foreign-pods")  # versions before this one made none

    def put(uid, *more):
        folder, logs = f"{node.root_dir}/pods/{uid}", f"{node.pod_logs}/default_web_{uid}"
        for path in (f"{folder}/volumes/kubernetes.io~empty-dir/data", f"{logs}/main", *(f"{folder}/{name}" for name in more)):
            os.makedirs(path)
        return folder, logs

    ours = put(str(uuid.uuid4()))
    node.start()
    for path in ours:
        until(lambda: not os.path.exists(path), 15, f"{path} is removed")  # pylint: disable=cell-var-from-loop
    equal(read(f"{node.state_dir}/foreign-pods"), ".\n", "the list")
    equal(node.stop(), 0, "exit code")

    os.unlink(f"{node.state_dir}/foreign-pods")
    kubelets = str(uuid.uuid4())
    theirs, ours, orphan = put(kubelets, "plugins"), put(str(uuid.uuid4())), f"{node.pod_logs}/default_old_{uuid.uuid4()}/main"
    os.makedirs(orphan)
    node.start()
    until(lambda: not os.path.exists(ours[0]), 15, "our volumes are removed")
    contains(read(f"{node.state_dir}/foreign-pods"), f"{kubelets}\n", "the list")
    for path in (*theirs, orphan):
        check(os.path.isdir(path), f"{path} is gone")
    equal(node.stop(), 0, "exit code")


def test_left_over_unknown(t):
    """no leftover volume is removed while the list of foreign pods cannot be read; the read is repeated"""
    node, _ = started(t)
    equal(node.stop(), 0, "exit code")
    uid, known = str(uuid.uuid4()), f"{node.state_dir}/foreign-pods"
    os.makedirs(f"{node.root_dir}/pods/{uid}/volumes")
    os.unlink(known)
    os.mkdir(known)  # EISDIR: neither present nor absent
    node.start()
    explained(node, ("node",), "leftover volumes", "foreign-pods")
    check(os.path.isdir(f"{node.root_dir}/pods/{uid}/volumes"), "removed although it could not be known whose it is")
    os.rmdir(known)
    with open(known, "w", encoding="ascii") as f:
        f.write(".\n")
    until(lambda: not os.path.exists(f"{node.root_dir}/pods/{uid}"), 70, "leftover folder")
    equal(node.stop(), 0, "exit code")


def test_mounted_by_the_pod(t):
    """what a container mounted with Bidirectional propagation holds its volume, as under kubelet, and is named"""
    node = t.node()
    node.import_image()
    script = shell("until [ -e /v/go ]; do sleep 0.02; done; mkdir /v/mine && mount -t tmpfs mine /v/mine && echo x > /v/mine/x && echo mounted; exec sleep 1000")
    node.put("a.yaml", pod("a", container(command=script, securityContext={"privileged": True},
                                          volumeMounts=[mount("v", "/v", mountPropagation="Bidirectional")]),
                           container("sees", volumeMounts=[mount("v", "/v", mountPropagation="HostToContainer"),
                                                           mount("v", "/none")]), volumes=[{"name": "v", "emptyDir": {}}]))
    a = node.wait_running("a")
    node.enter(a, "touch", "/v/go", container="sees")  # what was mounted before its start it would see in any case
    until(lambda: "mounted" in node.logs("a", "main"), 10, "the container mounts")
    equal(node.enter(a, "cat", "/v/mine/x", container="sees").stdout, "x\n", "HostToContainer")
    check(node.enter(a, "cat", "/none/mine/x", container="sees", ok=False).returncode != 0, "a mount shows where propagation is None")
    point = f"{node.root_dir}/pods/{a.uid}/{EMPTY}/v/mine"
    node.remove("a.yaml")
    explained(node, ("pod", "a"), 'volume "v" is in use by a mount that is not ours', f"{point} (tmpfs mine)")
    run("umount", point)
    node.wait_gone("a")
    node.wait_no_traces(a)
    equal(node.stop(), 0, "exit code")


def test_held_at_the_end(t):
    """the end of all pods does not wait for foreign mounts, whose files survive"""
    node = t.node(ephemeral=True)
    node.import_image()
    node.put("a.yaml", pod("a", container(volumeMounts=MOUNTS[:2]), volumes=VOLUMES[:2]))
    a = node.wait_pod("a", all_running)
    theirs = precious(t)
    point = f"{node.root_dir}/pods/{a.uid}/{EMPTY}/disk"
    run("mount", "--bind", theirs, point)
    equal(node.stop(), 0, "exit code")
    lives(theirs)
    check(os.path.exists(f"{point}/data"), "the mount was taken away")
    run("umount", point)
    shutil.rmtree(f"{node.root_dir}/pods", ignore_errors=True)
