# SPDX-License-Identifier: Apache-2.0
"""Recorded sessions of a kubelet with a CSI driver (tests/fixtures/csi), replayed on a node of its own: objects are made from what a row
says of volume and pod, and the driver has to be asked the same for them, in the same order."""
import json
import os

import coracle
import csi
from coracle import check, equal, until
from csi import Driver, all_pods_gone, driver_object, handle

ROWS = os.path.join(coracle.HERE, "..", "fixtures", "csi", "requests.json")
REPLAYED = ("01-stage-publish", "02-no-stage", "03a-inline", "03b-inline-both-modes", "04a-block-stage", "05a-two-pods", "05b-rwop",
            "05d-access-modes", "06a-fsgroup-none", "06b-fsgroup-file", "06c-fsgroup-rwofstype", "06d-fsgroup-mount-group", "14a-secrets",
            "16a-readonly", "16b-mount-options", "16c-subpath", "19-finished-pod")
# What this test does not replay, and why.  Each request of these is compared in tests/unit/volumes_csi/test_requests.c all the same.
ELSEWHERE = {
    "06f": "one volume and a new fsGroupChangePolicy for each pod: test_csi_groups",
    "07": "tokens: only the apiserver of a cluster issues them; test_csi_stage.test_refused has the words of a node without one",
    "08": "errors and back-off: test_csi_errors",
    "09": "restarts: test_csi_errors, test_csi.test_restart, test_csi_kills. Differences: containers end before their volumes are unpublished, and "
          "what a kubelet leaks (09e, 09f) is unstaged",
    "10": "drivers that are away: test_csi.test_faults. Difference: a volume is tried as soon as its driver registers, without the back-off",
    "11": "expansion: test_csi_stage. Difference: a running pod's volume is expanded at once, not at the pod's next sync",
    "12": "usage: test_csi_stage, test_csi_usage",
    "13": "limits of a CSINode, of which a node of its own has none: test_cluster_claims.test_limits and test_limit_reached",
    "17": "attachments, which only controllers of a cluster make: tests/unit/agent_cluster",
    "18": "likewise: without a CSIDriver object a volume has to be attached",
}
# Besides, in all cases: NodeGetCapabilities is asked once for each set-up (a kubelet asks three times), a driver that does not stage gets no
# empty folder "globalmount", and an unstage that fails does not keep the pod's object.


def rows_of(case):
    with open(ROWS, encoding="utf-8") as f:
        return [r for r in json.load(f) if r["case"] == case]


def driver_of(row):
    staging = row["request"].get("staging_target_path", "").split("/")
    if len(staging) > 4 and staging[4] != "volumeDevices":
        return staging[4]
    kind = ("-".join(row["caps"]).lower().replace("_", "-") or "plain")[:40]
    return f"d-{row['case'][:3].strip('-')}-{kind}.{'info' if row['podInfo'] else 'plain'}.test"  # its log is for one case


def secret(name, data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def claim_objects(row):
    v, source = row["volume"], {}
    if "attributes" in v:
        source["volumeAttributes"] = v["attributes"]
    if "fsType" in v:
        source["fsType"] = v["fsType"]
    made = []
    for kind in ("stage", "publish"):
        if kind + "Secrets" in v:
            made.append(secret(f"{v['name']}-{kind}", v[kind + "Secrets"]))
            source[f"node{kind.capitalize()}SecretRef"] = {"name": f"{v['name']}-{kind}", "namespace": "default"}
    more = {"mountOptions": v["mountOptions"]} if "mountOptions" in v else {}
    volume = csi.volume(v["name"], driver=driver_of(row), modes=v["accessModes"], csi={"volumeHandle": v["handle"], **source},
                        mode="Block" if v.get("block") else "Filesystem", **more)
    return made + volume


def pod_volume(row, number):
    v = row["volume"]
    if v.get("ephemeral"):
        source = {"driver": driver_of(row), **{new: v[old] for old, new in (("attributes", "volumeAttributes"), ("fsType", "fsType"),
                                                                          ("readOnly", "readOnly")) if old in v}}
        return {"name": v["name"], "csi": source}
    return {"name": f"v{number}", "persistentVolumeClaim": {"claimName": v["name"], "readOnly": v.get("readOnly", False)}}


def pods_of(rows):
    """{name: the pod}, each with the volumes that its rows have."""
    pods = {}
    for row in rows:
        if row["call"] == "NodePublishVolume":
            volumes = pods.setdefault(row["pod"]["name"], {})
            volumes.setdefault(row["volume"]["name"], (row, pod_volume(row, len(volumes))))
    made = {}
    for name, volumes in pods.items():
        mounts = [{"name": v["name"], "mountPath": f"/{v['name']}"} for row, v in volumes.values() if not row["volume"].get("block")]
        devices = [{"name": v["name"], "devicePath": "/dev/xvda"} for row, v in volumes.values() if row["volume"].get("block")]
        group = next((row["fsGroup"] for row, _ in volumes.values() if "fsGroup" in row), None)
        how = {"volumeDevices": devices} if devices else {}
        account = next(row["pod"]["serviceAccount"] for row, _ in volumes.values())
        made[name] = coracle.pod(name, coracle.container(command=coracle.shell("sleep 1000"), volumeMounts=mounts, **how),
                                 volumes=[v for _, v in volumes.values()], terminationGracePeriodSeconds=0,
                                 serviceAccountName=account,
                                 **({"securityContext": {"fsGroup": group}} if group is not None else {}))
    return made


class Replay:
    def __init__(self, node, case):
        self.node, self.case, self.rows = node, case, rows_of(case)
        self.rows = [r for r in self.rows if r["call"] != "NodeExpandVolume"]
        self.uids = {}

    def real(self, value):
        """A recorded text with the paths and uids of this node."""
        text = json.dumps(value).replace("<rootDir>", self.node.root_dir)
        for name, uid in self.uids.items():
            for row in self.rows:
                text = text.replace(f"csi-<sha256(uid:{name} + {row['volume']['name']})>", handle(uid, row["volume"]["name"]))
            text = text.replace(f"<uid:{name}>", uid)
        return json.loads(text)

    def run(self):
        drivers = {driver_of(r): r for r in self.rows}
        node = self.node
        for name, row in drivers.items():
            modes = ["Ephemeral", "Persistent"]
            node.put(f"driver-{name}.yaml", driver_object(name, volumeLifecycleModes=modes, podInfoOnMount=row["podInfo"]))
        running = [Driver(node, "--caps", ",".join(row["caps"]), name=name, socket=f"d{number}")
                   for number, (name, row) in enumerate(drivers.items())]
        claims = {r["volume"]["name"]: claim_objects(r) for r in self.rows if not r["volume"].get("ephemeral")}
        if claims:
            node.put("claims.yaml", *[o for objects in claims.values() for o in objects])
        pods = pods_of(self.rows)
        for name, pod in pods.items():  # one after the other, as in the recordings
            node.put(f"{name}.yaml", pod)
            if self.case == "05b-rwop":  # the next one waits for this one's end
                node.wait_running(name)
                self.uids[name] = node.pod(name).uid
                if name != list(pods)[-1]:
                    node.remove(f"{name}.yaml")
        if self.case != "05b-rwop":
            node.wait_running(*pods)
            self.uids = {name: node.pod(name).uid for name in pods}
        for name in pods:
            if os.path.exists(f"{node.manifests}/{name}.yaml"):
                node.remove(f"{name}.yaml")
        all_pods_gone(node)
        staged = {r["volume"]["handle"] for r in self.rows if r["call"] == "NodeStageVolume"}
        until(lambda: sum(len(d.calls("NodeUnstageVolume")) for d in running) >= len(staged), 20, f"{self.case}: all is unstaged")
        self.compare([c for d in running for c in d.calls() if c["method"].endswith("Volume")])
        for file in os.listdir(node.manifests):
            node.remove(file)
        for driver in running:
            driver.leave()

    def compare(self, calls):
        for method in ("NodeStageVolume", "NodePublishVolume"):
            ours = [c["request"] for c in calls if c["method"] == method]
            theirs = [self.real(r["request"]) for r in self.rows if r["call"] == method]
            key = lambda r: json.dumps(r, sort_keys=True)  # noqa: E731
            ours, theirs = sorted(ours, key=key), sorted(theirs, key=key)
            equal(len(ours), len(theirs), f"{self.case}: calls of {method}")
            for one, other in zip(ours, theirs):
                check(one == other, lambda a=one, b=other, m=method: f"{self.case}: {m}:\n{key(a)}\nwanted:\n{key(b)}")  # noqa: B023
        of = {}
        for call in calls:
            of.setdefault(call["request"]["volume_id"], []).append(call)
        for volume, own in of.items():
            self.check_order(volume, [c["method"] for c in own], own)

    def check_order(self, volume, methods, own):
        published = [c["request"]["target_path"] for c in own if c["method"] == "NodePublishVolume"]
        undone = [c["request"]["target_path"] for c in own if c["method"] == "NodeUnpublishVolume"]
        equal(sorted(published), sorted(undone), f"{self.case}: targets of {volume}")
        if "NodeStageVolume" in methods:
            equal((methods[0], methods[-1], methods.count("NodeStageVolume"), methods.count("NodeUnstageVolume")),
                  ("NodeStageVolume", "NodeUnstageVolume", 1, 1), f"{self.case}: order of {methods}")
        for target in published:
            at = [c["method"] for c in own if c["request"].get("target_path") == target]
            equal(at, ["NodePublishVolume", "NodeUnpublishVolume"], f"{self.case}: calls for {target}")


def test_cases(t):
    """the driver is asked what a kubelet asks it, case by case: fields, paths and order"""
    with open(ROWS, encoding="utf-8") as f:
        cases = sorted({r["case"] for r in json.load(f)})
    for case in cases:
        check(case in REPLAYED or any(case.startswith(prefix) for prefix in ELSEWHERE), f"{case} is neither replayed nor argued")
    node = t.node()
    node.import_image()
    for case in REPLAYED:
        print("case", case, flush=True)
        Replay(node, case).run()
    node.stop()


test_cases.seconds = 400
