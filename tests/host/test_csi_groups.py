# SPDX-License-Identifier: Apache-2.0
"""fsGroup of pods with volumes of CSI drivers: which files are given to the group, by fsGroupPolicy and fsGroupChangePolicy."""
import os
import stat

from coracle import equal
from csi import STAGE, Driver, claim_pod, driver_object, pod, volume
from test_csi_stage import finish

GROUP = 4000
OWN = {"file": (0, 0o644), "sub": (0, 0o755), "sub/deep": (0, 0o640)}  # as the driver makes them
GIVEN = {"file": (GROUP, 0o664), "sub": (GROUP, 0o2775), "sub/deep": (GROUP, 0o660)}
DRIVERS = {"none": "None", "file": "File", "rwo": "ReadWriteOnceWithFSType", "plain": None}
# volume: (driver, fsType, access modes, more of the source, whether the group gets it)
VOLUMES = {
    "none": ("none", "ext4", ["ReadWriteOnce"], {}, False),
    "file": ("file", None, ["ReadWriteMany"], {}, True),
    "file-ro": ("file", None, ["ReadOnlyMany"], {"readOnly": True}, True),  # of the PersistentVolume: it makes nothing read-only
    "rwo": ("rwo", "ext4", ["ReadWriteOnce"], {}, True),
    "rwo-pod": ("rwo", "ext4", ["ReadWriteOncePod"], {}, True),
    "rwo-many": ("rwo", "ext4", ["ReadWriteMany"], {}, False),
    "rwo-no-type": ("rwo", None, ["ReadWriteOnce"], {}, False),
    "plain": ("plain", "ext4", ["ReadWriteOnce"], {}, True),
    "plain-no-type": ("plain", None, ["ReadWriteOnce"], {}, False),
}


def looks(top, names):
    found = {}
    for name in names:
        s = os.lstat(f"{top}/{name}")
        found[name] = (s.st_gid, stat.S_IMODE(s.st_mode))
    return found


def prepare(driver, name, outside):
    """A volume before its first pod, with a link that leads out of it."""
    top = f"{driver.data}/vol-{name}"
    os.makedirs(top + "/sub", mode=0o755)
    for file, mode in (("file", 0o644), ("sub/deep", 0o640)):
        with open(f"{top}/{file}", "w", encoding="ascii"):
            os.chmod(f"{top}/{file}", mode)
    os.symlink(outside, top + "/out")
    return top


def test_policies(t):
    """None, File and ReadWriteOnceWithFSType, with and without fsType, by access modes; a link out of the volume is not followed"""
    node = t.node()
    node.import_image()
    outside = t.scratch + "/outside"
    with open(outside, "w", encoding="ascii"):
        os.chmod(outside, 0o600)
    drivers, tops = {}, {}
    for kind, policy in DRIVERS.items():
        drivers[kind] = Driver(node, "--caps", STAGE, name=f"{kind}.example.test")
        node.put(f"driver-{kind}.yaml", driver_object(f"{kind}.example.test", volumeLifecycleModes=["Persistent"],
                                                      **({"fsGroupPolicy": policy} if policy else {})))
    for name, (kind, fs_type, modes, more, _) in VOLUMES.items():
        tops[name] = prepare(drivers[kind], name, outside)
        node.put(f"keep-{name}.yaml", *volume(name, driver=f"{kind}.example.test", modes=modes, csi={**({"fsType": fs_type} if fs_type else {}), **more}))
    node.put("pods.yaml", *[claim_pod(name, name, securityContext={"fsGroup": GROUP}) for name in VOLUMES])
    node.wait_running(*VOLUMES, deadline=60)
    for name, (_, _, _, _, given) in VOLUMES.items():
        equal(looks(tops[name], OWN), GIVEN if given else OWN, f"files of {name}")
        equal(looks(tops[name], ["."])["."], (GROUP, 0o2775) if given else (0, 0o755), f"the top of {name}")
    equal(looks(t.scratch, ["outside"]), {"outside": (0, 0o600)}, "the file that a link leads to")
    finish(node, *drivers.values())


def test_read_only_claim(t):
    """a claim that the pod mounts read-only is given to no group"""
    node = t.node()
    node.import_image()
    driver = Driver(node, "--caps", STAGE)
    node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent", "Ephemeral"], fsGroupPolicy="File"))
    node.put("keep-data.yaml", *volume("data"))
    top = prepare(driver, "data", "/nowhere")
    node.put("a.yaml", claim_pod("a", "data", source={"readOnly": True}, securityContext={"fsGroup": GROUP}),
             pod("b", source={"readOnly": True}, securityContext={"fsGroup": GROUP}))
    node.wait_running("a", "b")
    equal(looks(top, OWN), OWN, "files")
    inline = [d for d in os.listdir(driver.data) if d.startswith("csi-")]
    equal([looks(f"{driver.data}/{d}", ["file"]) for d in inline], [{"file": (0, 0o644)}], "files of the inline volume")
    finish(node, driver)


def test_change_policy(t):
    """OnRootMismatch changes no file if the top has group and mode already, and otherwise all files; Always changes them each time"""
    node = t.node()
    node.import_image()
    driver = Driver(node, "--caps", STAGE)
    node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent"], fsGroupPolicy="File"))
    node.put("keep-data.yaml", *volume("data"))
    top = prepare(driver, "data", "/nowhere")

    def one(name, policy, wanted, what):
        node.put("a.yaml", claim_pod(name, "data", securityContext={"fsGroup": GROUP, **({"fsGroupChangePolicy": policy} if policy else {})}))
        node.wait_running(name)
        equal(looks(top, GIVEN), wanted, what)
        node.remove("a.yaml")
        node.wait_gone(name)
    one("first", "OnRootMismatch", GIVEN, "files of a top that belongs to another group")
    os.chown(top + "/file", 0, 0)
    wrong = {**GIVEN, "file": (0, 0o664)}
    one("second", "OnRootMismatch", wrong, "files below a top that is right")
    one("third", "Always", GIVEN, "files with Always")
    os.chown(top + "/file", 0, 0)
    one("fourth", None, GIVEN, "files without a policy")
    os.chown(top + "/file", 0, 0)
    os.chmod(top, 0o775)  # the bit that new files inherit the group by is missing
    one("fifth", "OnRootMismatch", GIVEN, "files of a top with another mode")
    finish(node, driver)
