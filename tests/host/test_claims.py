# SPDX-License-Identifier: Apache-2.0
"""PersistentVolumeClaims and ephemeral volumes of a node that joins no cluster."""
import json
import os

from coracle import check, container, contains, equal, mount, pod, shell, until
from test_workloads import settled, workload


def claim(name, mode="ReadWriteOnce", size="1Gi", **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": [mode], "resources": {"requests": {"storage": size}}, **spec}}


def user(name, claim_name, text="sleep 1000", **spec):
    main = container("main", ["sh", "-c", text], volumeMounts=[mount("data", "/data")])
    return pod(name, main, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}],
               terminationGracePeriodSeconds=1, **spec)


def phase(node, path):
    """None: there is no such object."""
    code, body = node.request("GET", path)
    return json.loads(body)["status"]["phase"] if code == 200 else None


def deleted(node, path):
    return "deletionTimestamp" in node.get(path)["metadata"]


def folder(node, name):
    return f"{node.state_dir}/claims/default/{name}/data"


def test_claim(t):
    """a pod's data in its claim survives a kill of the agent and is there for the next pod, until the claim is removed"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", user("a", "data", "echo kept > /data/file; sleep 1000"))
    until(lambda: any("persistentvolumeclaim \"data\" not found" in e["message"] for e in node.events("a")), 20, "an event")
    node.put("claim.yaml", claim("data"))
    node.wait_running("a")
    path = "/api/v1/namespaces/default/persistentvolumeclaims/data"
    equal(phase(node, path), "Bound", "phase")
    until(lambda: os.path.exists(folder(node, "data") + "/file"), 10, "the file")
    contains(node.cli("get", "pvc").stdout, "data")
    node.kill()
    node.start()
    node.remove("a.yaml")
    node.wait_gone("a")
    node.put("b.yaml", user("b", "data", "test \"$(cat /data/file)\" = kept && sleep 1000"))
    node.wait_running("b")
    volumes = [v for p in node.get("/stats/summary")["pods"] for v in p.get("volume", []) if "pvcRef" in v]
    equal([v["pvcRef"] for v in volumes], [{"name": "data", "namespace": "default"}], "references")
    node.remove("claim.yaml")
    until(lambda: deleted(node, path), 20, "the mark on the object")
    contains(node.cli("get", "pvc").stdout, "Terminating")
    node.put("c.yaml", user("c", "data"))
    until(lambda: any("PVC is being deleted" in e["message"] for e in node.events("c")), 20, "an event")
    node.put("claim.yaml", claim("data"))
    until(lambda: not deleted(node, path), 20, "the end of the mark")
    node.wait_running("c")
    node.remove("claim.yaml")
    until(lambda: deleted(node, path), 20, "the mark on the object")
    node.kill()
    node.start()
    until(lambda: deleted(node, path), 20, "the mark after a kill")
    check(os.path.exists(folder(node, "data") + "/file"), "a claim in use lost its folder")
    node.remove("b.yaml", "c.yaml")
    node.wait_gone("b", "c")
    until(lambda: not os.path.exists(folder(node, "data")), 20, "the end of the folder")
    equal(phase(node, path), None, "the object")


def test_persistent_volumes(t):
    """a claim is bound to the smallest matching PersistentVolume, whose folder is kept; a claim for one pod makes others wait"""
    node = t.node()
    node.import_image()
    disk = os.path.join(t.scratch, "disk")
    os.makedirs(disk)
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {
        "storageClassName": "manual", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOncePod"],
        "hostPath": {"path": disk}}}
    small = {**volume, "metadata": {"name": "small"}, "spec": {**volume["spec"], "capacity": {"storage": "1Mi"}}}
    node.put("a.yaml", claim("data", "ReadWriteOncePod", storageClassName="manual"))
    node.put("pv.yaml", volume, small)
    until(lambda: phase(node, "/api/v1/persistentvolumes/disk") == "Bound", 20, "the binding")
    equal(phase(node, "/api/v1/persistentvolumes/small"), "Available", "the other volume")
    node.put("one.yaml", user("one", "data", "echo here > /data/file; sleep 1000"))
    node.wait_running("one")
    until(lambda: os.path.exists(disk + "/file"), 10, "the file")
    node.put("two.yaml", user("two", "data"))
    until(lambda: any("ReadWriteOncePod access mode" in e["message"] for e in node.events("two")), 20, "an event")
    node.remove("one.yaml")
    node.wait_running("two")
    node.remove("pv.yaml")
    until(lambda: phase(node, "/api/v1/persistentvolumes/small") is None, 20, "the end of the free volume")
    until(lambda: deleted(node, "/api/v1/persistentvolumes/disk"), 20, "the mark on the volume")
    contains(node.cli("get", "pv").stdout, "Terminating")
    node.put("pv.yaml", volume, small)
    until(lambda: not deleted(node, "/api/v1/persistentvolumes/disk"), 20, "the end of the mark")
    node.remove("two.yaml", "a.yaml")
    node.wait_gone("two")
    until(lambda: phase(node, "/api/v1/persistentvolumes/disk") == "Released", 20, "the release")
    check(os.path.exists(disk + "/file"), "the folder of a PersistentVolume was emptied")
    node.put("b.yaml", claim("next", "ReadWriteOncePod", storageClassName="manual"))
    node.kill()
    node.start()
    equal(phase(node, "/api/v1/persistentvolumes/disk"), "Released", "phase after a kill")
    equal(phase(node, "/api/v1/namespaces/default/persistentvolumeclaims/next"), "Pending", "phase of the next claim")
    node.remove("pv.yaml")
    until(lambda: phase(node, "/api/v1/persistentvolumes/disk") is None, 20, "the end of the volume")
    node.put("pv.yaml", volume)
    until(lambda: phase(node, "/api/v1/persistentvolumes/disk") == "Bound", 20, "the next binding")


def test_made_claims(t):
    """an ephemeral volume is removed with its pod; a StatefulSet's claims are kept and reused by number"""
    node = t.node()
    node.import_image()
    template = {"spec": claim("x")["spec"]}
    node.put("e.yaml", pod("e", container("main", volumeMounts=[mount("scratch", "/scratch")]),
                           volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}],
                           terminationGracePeriodSeconds=1))
    main = container("main", volumeMounts=[mount("data", "/data")])
    own = {"metadata": {"name": "data"}, "spec": claim("x")["spec"]}
    node.put("set.yaml", workload("StatefulSet", "set", main, replicas=2, volumeClaimTemplates=[own]))
    node.wait_running("e")
    settled(node, "set", 2)
    check(os.path.isdir(folder(node, "e-scratch")), "the ephemeral claim has no folder")
    open(folder(node, "data-set-1") + "/mine", "w").close()
    node.kill()
    node.start()
    node.remove("e.yaml")
    node.put("set.yaml", workload("StatefulSet", "set", main, replicas=1, volumeClaimTemplates=[own]))
    node.wait_gone("e", "set-1")
    until(lambda: not os.path.exists(folder(node, "e-scratch")), 20, "the end of the ephemeral claim")
    check(os.path.exists(folder(node, "data-set-1") + "/mine"), "a claim that is to be retained is gone")
    names = [c["metadata"]["name"] for c in node.get("/api/v1/namespaces/default/persistentvolumeclaims")["items"]]
    equal(sorted(names), ["data-set-0", "data-set-1"], "claims")
    delete = {"whenDeleted": "Delete"}
    node.put("set.yaml", workload("StatefulSet", "set", main, replicas=1, volumeClaimTemplates=[own], persistentVolumeClaimRetentionPolicy=delete))
    until(lambda: node.get("/apis/apps/v1/namespaces/default/statefulsets/set")["spec"].get("persistentVolumeClaimRetentionPolicy", {})
          .get("whenDeleted") == "Delete", 10, "the new policy")
    settled(node, "set", 1)
    node.remove("set.yaml")
    node.wait_gone("set-0")
    until(lambda: not os.path.exists(folder(node, "data-set-1")), 20, "the end of the StatefulSet's claims")
