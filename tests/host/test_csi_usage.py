# SPDX-License-Identifier: Apache-2.0
"""How full the volumes of CSI drivers are, and how they are: /stats/summary and kubelet_volume_stats_*."""
import shutil
import subprocess

from coracle import contains, equal, until
from csi import STAGE, Driver, claim_pod, driver_object, pod, volume
from test_csi_stage import finish
from test_usage import metric

NAME = "kubelet_volume_stats_"
SIZES = {"capacity_bytes": 1073741824, "available_bytes": 1070596096, "used_bytes": 3145728, "inodes": 65536, "inodes_free": 65525, "inodes_used": 11}


def begin(t, *flags, more=()):
    node = t.node(*flags)
    node.import_image()
    driver = Driver(node, "--caps", STAGE + ",GET_VOLUME_STATS,VOLUME_CONDITION", *more)
    node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent", "Ephemeral"]))
    node.put("keep-data.yaml", *volume("data", modes=["ReadWriteMany"]))
    return node, driver


def page(node):
    code, body = node.request("GET", "/metrics")
    equal(code, 200, "GET /metrics")
    return body.decode() if isinstance(body, bytes) else body


def own_lines(text):
    return [line for line in text.splitlines() if line.startswith(NAME)]


def shown(node):
    return {(p["podRef"]["name"], v["name"]): v for p in node.get("/stats/summary")["pods"] for v in p.get("volume", []) if "capacityBytes" in v}


def test_usage(t):
    """metrics cover claims, each once; an inline volume is in the summary only; without the feature gate there is no health"""
    node, driver = begin(t, more=["--ill"])
    equal(own_lines(page(node)), [], "metrics without volumes")
    node.put("pods.yaml", claim_pod("a", "data"), claim_pod("b", "data"), pod("c"))
    node.wait_running("a", "b", "c")
    until(lambda: len(shown(node)) == 3, 20, lambda: f"volumes in the summary: {shown(node)}")
    text = page(node)
    labels = {"namespace": "default", "persistentvolumeclaim": "data"}
    equal({name: metric(text, NAME + name, **labels) for name in SIZES}, SIZES, "metrics")
    equal(len(own_lines(text)), len(SIZES), "lines: the claim of two pods once, none of the inline volume, nothing of health")
    for name in SIZES:
        equal(text.count(f"# TYPE {NAME}{name} gauge\n"), 1, f"types of {name}")
    equal([v.get("pvcRef", {}).get("name") for _, v in sorted(shown(node).items())], ["data", "data", None], "references to claims")
    equal([v.get("volumeHealthStats") for v in shown(node).values()], [None] * 3, "health")
    if shutil.which("promtool"):
        checked = subprocess.run(["promtool", "check", "metrics"], input="\n".join(line for line in text.splitlines() if NAME in line) + "\n", text=True,
                                 capture_output=True, check=False)
        equal((checked.returncode, checked.stderr), (0, ""), "promtool")
    finish(node, driver)


def test_health(t):
    """the condition that a driver reports is in the summary and a metric, with the feature gate"""
    node, driver = begin(t, "--feature-gates", "CSIVolumeHealth=true", more=["--ill"])
    node.put("pods.yaml", claim_pod("a", "data"), pod("c"))
    node.wait_running("a", "c")
    until(lambda: [v.get("volumeHealthStats") for v in shown(node).values()] == [{"abnormal": True}] * 2, 20, lambda: f"health: {shown(node)}")
    text = page(node)
    contains(text, f'{NAME}health_status_abnormal{{namespace="default",persistentvolumeclaim="data"}} 1\n', "/metrics")
    equal(len(own_lines(text)), len(SIZES) + 1, "lines")
    finish(node, driver)


def test_own_folder(t):
    """a claim that is a folder of the agent has its figures, too"""
    node = t.node()
    node.import_image()
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mine"},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    node.put("claim.yaml", claim)
    node.put("a.yaml", claim_pod("a", "mine"))
    node.wait_running("a")
    text, summary = page(node), shown(node)[("a", "vol")]
    labels = {"namespace": "default", "persistentvolumeclaim": "mine"}
    equal((metric(text, NAME + "capacity_bytes", **labels), metric(text, NAME + "inodes", **labels)), (summary["capacityBytes"], summary["inodes"]), "metrics")
    node.remove("a.yaml")
    node.wait_gone("a")
    equal(own_lines(page(node)), [], "metrics without the pod")
    node.stop()
