# SPDX-License-Identifier: Apache-2.0
"""FlexVolumes: the recorded calls of a kubelet, drivers that fail, hang, come and go, restarts of the agent."""
import json
import os
import time

import coracle
from coracle import check, contains, equal, mounts_below, until
from csi import claim_of
from flex import Driver


def start(t, *drivers, **how):
    plugins = os.path.join(t.scratch, "plugins")
    os.makedirs(plugins)
    node = t.node("--volume-plugin-dir", plugins, **how)
    node.import_image()
    return node, Driver(t, plugins)


def pod(name, driver, command="trap 'exit 0' TERM; sleep 1000 & wait", volumes=None, **spec):
    spec.setdefault("terminationGracePeriodSeconds", 0)
    volumes = volumes or [{"name": "vol", "flexVolume": {"driver": driver.name}}]
    mounts = [coracle.mount(v["name"], "/" + v["name"]) for v in volumes]
    return coracle.pod(name, coracle.container(command=coracle.shell(command), volumeMounts=mounts), volumes=volumes, **spec)


def place(node, uid, volume="vol"):
    return f"{node.root_dir}/pods/{uid}/volumes/example.test~vol/{volume}"


def events(node, name, reason="FailedMount"):
    return [e["message"] for e in node.events(name) if e["reason"] == reason]


def test_flex(t):
    """init, mount and unmount with kubelet's options: fsType, readOnly, fsGroup, the pod, a Secret of the driver's type"""
    node, driver = start(t)
    driver.install()
    node.put("secret.yaml", {"apiVersion": "v1", "kind": "Secret", "type": driver.name, "metadata": {"name": "cred"}, "stringData": {"user": "u1"}})
    volumes = [{"name": "vol", "flexVolume": {"driver": driver.name, "fsType": "ext4", "options": {"share": "s1"}, "secretRef": {"name": "cred"}}},
               {"name": "ro", "flexVolume": {"driver": driver.name, "readOnly": True}}]
    node.put("a.yaml", pod("a", driver, "touch /vol/mine; stat -c '%g %a' /vol; sleep 1000", volumes, securityContext={"fsGroup": 4000}))
    node.wait_running("a")
    uid = node.pod("a").uid
    until(lambda: "4000 2775" in node.logs("a"), 10, lambda: f"the group: {node.logs('a')}")
    equal(driver.commands()[0], "init", "the first call")
    calls = {os.path.basename(c[1]): c for c in driver.calls("mount")}
    equal(sorted(calls), ["ro", "vol"], "volumes")
    equal(calls["vol"][1], place(node, uid), "the folder")
    common = {"kubernetes.io/mounterArgs.FsGroup": "4000", "kubernetes.io/pod.name": "a", "kubernetes.io/pod.namespace": "default",
              "kubernetes.io/pod.uid": uid, "kubernetes.io/serviceAccount.name": "default"}
    equal(json.loads(calls["vol"][2]), {**common, "kubernetes.io/fsType": "ext4", "kubernetes.io/pvOrVolumeName": "vol",
                                        "kubernetes.io/readwrite": "rw", "kubernetes.io/secret/user": "dTE=", "share": "s1"}, "options")
    equal(json.loads(calls["ro"][2]), {**common, "kubernetes.io/fsType": "", "kubernetes.io/pvOrVolumeName": "ro",
                                       "kubernetes.io/readwrite": "ro"}, "options of the other")
    node.kill()
    node.start()
    node.wait_running("a")
    node.remove("a.yaml")
    node.wait_gone("a")
    equal(sorted(driver.commands()[3:]), ["init", "unmount", "unmount"], "calls after a restart and at the end")
    equal(mounts_below(node.root_dir), [], "mounts")
    check(os.path.exists(driver.state + "/data/mine"), "the data is gone")


def test_flex_failures(t):
    """a driver that fails, answers no JSON or hangs is named, retried, and blocks no other pod; a failing init is called a few times only"""
    node, driver = start(t)
    driver.answer("init", {"status": "Failure", "message": "no licence"}, 1)
    driver.install()
    node.put("a.yaml", pod("a", driver))
    until(lambda: any("no licence" in m for m in events(node, "a")), 20, lambda: f"an event: {events(node, 'a')}")
    time.sleep(4)
    check(len(driver.calls("init")) <= 4, f"init was called {len(driver.calls('init'))} times")
    driver.answer("init")
    driver.answer("mount", {"status": "Failure", "message": "no such share"}, 1)
    driver.install()  # another file: it is asked at once
    text = 'MountVolume.SetUp failed for volume "vol" : mount command failed, status: Failure, reason: no such share'
    until(lambda: text in events(node, "a"), 20, lambda: f"an event: {events(node, 'a')}")
    driver.answer("mount", "this is no JSON")
    until(lambda: any("this is no JSON" in m for m in events(node, "a")), 20, lambda: f"an event: {events(node, 'a')}")
    driver.hang("mount")
    n = len(driver.calls("mount"))
    until(lambda: len(driver.calls("mount")) > n, 30, "a call that hangs")
    times = []
    for _ in range(20):
        before = time.monotonic()
        node.get("/api/v1/pods")
        times.append(time.monotonic() - before)
    check(sorted(times)[10] < 0.05 * coracle.SLOW, f"answers while a driver hangs: {times}")
    node.put("b.yaml", coracle.pod("b", coracle.container()))
    node.wait_running("b")
    node.remove("a.yaml")
    node.wait_gone("a")
    driver.hang("mount", False)
    driver.answer("mount")
    node.put("c.yaml", pod("c", driver))
    node.wait_running("c")
    driver.answer("unmount", {"status": "Failure", "message": "busy"}, 1)
    node.remove("c.yaml")
    until(lambda: any("busy" in m for m in events(node, "c", "FailedUnMount")), 20, "an event")
    driver.answer("unmount")
    node.wait_gone("c")
    equal(mounts_below(node.root_dir), [], "mounts")


def test_flex_comes_and_goes(t):
    """a driver that is installed later is found at once; the end of a pod waits for a removed driver"""
    node, driver = start(t)
    node.put("a.yaml", pod("a", driver))
    until(lambda: any("err=no volume plugin matched" in m for m in events(node, "a")), 20, lambda: f"an event: {events(node, 'a')}")
    contains(events(node, "a")[0], "failed to process volumes=[vol]: failed to get Plugin from volumeSpec for volume \"vol\"")
    driver.install()
    node.wait_running("a")
    driver.install()
    until(lambda: driver.commands() == ["init", "mount", "init"], 10, lambda: f"calls: {driver.commands()}")
    driver.remove()
    node.remove("a.yaml")
    until(lambda: any("is missing" in m for m in events(node, "a", "FailedUnMount")), 20, "an event")
    driver.install()
    node.wait_gone("a")
    equal(driver.commands()[3:], ["init", "unmount"], "calls at the end")


def test_flex_attach(t):
    """A driver that attaches, of a PersistentVolume: attach, waitforattach, mountdevice, mount for two pods; the device goes with the last"""
    node, driver = start(t)
    driver.answer("init", {"status": "Success", "capabilities": {"attach": True}})
    driver.answer("attach", {"status": "Success", "device": "/dev/vdx"})
    driver.answer("waitforattach", {"status": "Success", "device": "/dev/vdy"})
    for command in ("mountdevice", "unmountdevice", "detach"):
        driver.answer(command, {"status": "Success"})
    driver.install()
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "flex",
            "flexVolume": {"driver": driver.name, "fsType": "ext4", "options": {"volumeID": "v-77"}}}
    node.put("pv.yaml", {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": spec},
             {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
                 "accessModes": ["ReadWriteOnce"], "storageClassName": "flex", "resources": {"requests": {"storage": "1Gi"}}}})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    for command, step in (("waitforattach", "WaitForAttach"), ("mountdevice", "MountDevice")):
        driver.answer(command, {"status": "Failure", "message": "no"}, 1)
        node.put(f"{command}.yaml", pod(command, driver, volumes=volumes))
        text = f'MountVolume.{step} failed for volume "disk" : {command} command failed, status: Failure, reason: no'
        until(lambda: text in events(node, command), 20, lambda: f"an event: {events(node, command)}")  # noqa: B023
        node.remove(f"{command}.yaml")
        node.wait_gone(command)
        driver.answer(command, {"status": "Success", "device": "/dev/vdy"})
    check(driver.commands()[-1] == "detach", f"what failed is detached: {driver.commands()}")
    os.remove(f"{driver.state}/log")
    node.put("a.yaml", pod("a", driver, volumes=volumes))
    node.wait_running("a")
    device = f"{node.root_dir}/plugins/kubernetes.io/flexvolume/example.test/vol/mounts/disk"
    options = {"kubernetes.io/fsType": "ext4", "kubernetes.io/pvOrVolumeName": "disk", "kubernetes.io/readwrite": "rw", "volumeID": "v-77"}
    equal(driver.commands(), ["getvolumename", "attach", "waitforattach", "mountdevice", "mount"], "calls")
    equal(driver.calls("attach")[0][2:], ["test-node"], "the node")
    equal(driver.calls("waitforattach")[0][1], "/dev/vdx", "the device")
    equal([driver.calls("mountdevice")[0][i] for i in (1, 2)], [device, "/dev/vdy"], "mountdevice")
    equal(json.loads(driver.calls("mountdevice")[0][3]), options, "options")
    equal(driver.calls("mount")[0][1], place(node, node.pod("a").uid, "disk"), "the folder")
    check(os.path.isdir(device), "there is no folder of the device")
    node.remove("a.yaml")
    node.wait_gone("a")
    equal([c for c in driver.calls()[5:] if c[0] != "init"], [["unmount", driver.calls("mount")[0][1]], ["unmountdevice", device],
                                                             ["detach", "disk", "test-node"]], "calls at the end")


def pv(name, driver, size="1Gi"):
    """A PersistentVolume of the driver and the claim that is bound to it."""
    modes = {"accessModes": ["ReadWriteOnce"], "storageClassName": "flex"}
    return [{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
             "spec": {**modes, "capacity": {"storage": size}, "flexVolume": {"driver": driver.name}, "claimRef": {"namespace": "default", "name": name}}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
             "spec": {**modes, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}}]


def test_flex_expand(t):
    """A larger PersistentVolume: expandfs with kubelet's arguments while the pod runs, with back-off; before the containers of a new pod"""
    node, driver = start(t)
    driver.answer("init", {"status": "Success", "capabilities": {"attach": False, "requiresFSResize": True, "supportsMetrics": True}})
    driver.answer("expandfs", {"status": "Failure", "message": "cannot"}, 1)
    driver.install()
    claim = {"volumes": [{"name": "vol", "persistentVolumeClaim": {"claimName": "data"}}]}
    node.put("pv.yaml", *pv("data", driver))
    node.put("a.yaml", pod("a", driver, **claim))
    node.wait_running("a")
    equal(driver.calls("expandfs"), [], "calls before it grows")
    until(lambda: [v for p in node.get("/stats/summary")["pods"] for v in p.get("volume", []) if v["name"] == "vol" and "capacityBytes" in v], 15,
          "supportsMetrics: the volume is in /stats/summary")
    node.put("pv.yaml", *pv("data", driver, "2Gi"))
    text = 'NodeExpandVolume.NodeExpandVolume failed for volume "data" : expandfs command failed, status: Failure, reason: cannot'
    until(lambda: text in events(node, "a", "VolumeResizeFailed"), 20, lambda: f"the event: {node.events('a')}")
    equal(driver.calls("expandfs")[0], ["expandfs", '{"kubernetes.io/fsType":"","kubernetes.io/pvOrVolumeName":"data","kubernetes.io/readwrite":"rw"}', "",
                                        place(node, node.pod("a").uid, "data"), "2147483648", "1073741824"], "the call")
    node.put("b.yaml", pod("b", driver, **claim))
    text = 'MountVolume.Setup failed while expanding volume for volume "data" : expandfs command failed, status: Failure, reason: cannot'
    until(lambda: text in events(node, "b"), 20, lambda: f"the event: {node.events('b')}")
    check(node.pod("b").phase == "Pending", "a container got a volume that is too small")
    n = len(driver.calls("expandfs"))
    driver.answer("expandfs", {"status": "Success"})
    node.wait_running("b")
    equal([e for name in "ab" for e in events(node, name, "FileSystemResizeSuccessful")][:1],
          ['MountVolume.NodeExpandVolume succeeded for volume "data" test-node'], "events")
    check(n <= 12, f"expandfs was called {n} times")
    until(lambda: claim_of(node, "data")["status"]["capacity"]["storage"] in ("2Gi", "2147483648"), 20, "the claim's capacity")
    time.sleep(1)  # a try of the other pod may be under way
    n = len(driver.calls("expandfs"))
    time.sleep(3)
    equal(len(driver.calls("expandfs")), n, "calls afterwards")
    node.remove("a.yaml", "b.yaml")
    node.wait_gone("a", "b")
    equal(mounts_below(node.root_dir), [], "mounts")


def test_flex_device_after_a_kill(t):
    """An agent killed during mountdevice, unmount and unmountdevice, its pod removed meanwhile: the device is let go, detached once, and no folder stays"""
    node, driver = start(t)
    driver.answer("init", {"status": "Success", "capabilities": {"attach": True}})
    for command in ("attach", "waitforattach"):
        driver.answer(command, {"status": "Success", "device": "/dev/vdx"})
    for command in ("mountdevice", "unmountdevice", "detach"):
        driver.answer(command, {"status": "Success"})
    driver.install()
    devices = f"{node.root_dir}/plugins/kubernetes.io/flexvolume/example.test/vol/mounts"
    for command in ("attach", "mountdevice", "mount", "unmount", "unmountdevice", "detach"):
        before, n = len(driver.calls("detach")), len(driver.calls(command))
        begins = command in ("attach", "mountdevice", "mount")
        if begins:
            driver.hang(command)
        node.put("a.yaml", pod("a", driver))
        if not begins:
            node.wait_running("a")
            driver.hang(command)
            node.remove("a.yaml")
        until(lambda c=command, n=n: len(driver.calls(c)) > n, 20, f"{command} hangs")
        node.kill()
        driver.hang(command, False)
        if begins:
            node.remove("a.yaml")
        node.start()
        until(lambda: not node.pods(), 30, f"{command}: the pod is gone")
        until(lambda: not os.path.isdir(devices) or os.listdir(devices) == [], 20, f"{command}: the device is let go")
        check(len(driver.calls("detach")) > before, f"{command}: it stays attached: {driver.commands()}")
        equal(mounts_below(node.root_dir), [], f"{command}: mounts")
    equal(os.listdir(os.path.dirname(devices)), ["mounts"], "folders and locks")


def test_flex_hostile(t):
    """Endless output, daemons that hold the pipe, a driver that ignores SIGTERM, garbage: bounded, named, and others go on"""
    node, driver = start(t)
    driver.install()
    node.put("warm.yaml", pod("warm", driver))
    node.wait_running("warm")
    driver.script("mount", "(sleep 1000 &) ; mkdir -p $d/data; mount --bind $d/data $2 && echo '{\"status\": \"Success\"}'")
    node.put("a.yaml", pod("a", driver))
    node.wait_running("a")
    driver.script("mount", "yes '{\"status\": \"Success\"' ")
    node.put("b.yaml", pod("b", driver))
    until(lambda: any("mount printed more than 1048576 bytes" in m for m in events(node, "b")), 30, lambda: f"an event: {node.events('b')}")
    driver.script("mount", "head -c 200000 /dev/zero")
    node.put("c.yaml", pod("c", driver))
    until(lambda: any("did not return a JSON object" in m for m in events(node, "c")), 30, lambda: f"an event: {node.events('c')}")
    driver.script("mount", "printf '\\377\\000\\033[31m{'; exit 200")
    node.put("d.yaml", pod("d", driver))
    until(lambda: any("did not return a JSON object" in m for m in events(node, "d")), 30, lambda: f"an event: {node.events('d')}")
    check(not any(c < " " or c == "\x7f" for m in events(node, "d") for c in m), "control characters in an event")
    driver.script("mount", "trap '' TERM INT HUP; while :; do sleep 1; done")
    node.put("e.yaml", pod("e", driver))
    until(lambda: node.pod("e") is not None and node.pod("e").uid in driver.calls("mount")[-1][1], 20, "the call that hangs")
    node.put("other.yaml", coracle.pod("other", coracle.container()))
    node.wait_running("other")
    for name in "abcde":
        node.remove(f"{name}.yaml")
    node.wait_gone(*"abcde")
    driver.script("mount", None)
    node.put("f.yaml", pod("f", driver))
    node.wait_running("f")
    equal(node.stop(), 0, "the exit code")
