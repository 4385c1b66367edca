# SPDX-License-Identifier: Apache-2.0
"""kubectl writes the Node of a lone node: cordon, drain, taint, label; what is written acts, and stays."""
import glob
import json
import os
import time

from coracle import check, contains, container, equal, pod, until
from test_lone_kubectl import Lone

NODE = "test-node"


def workload(kind, name, tolerations="[]", replicas="replicas: 1"):
    return f"""
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}, namespace: default}}
spec:
  {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations: {tolerations}
      containers: [{{name: c, image: localhost/busybox:1, command: [sleep, "1000"]}}]
"""


def pods_of(k, app):
    return k.json("get", "pods", "-l", f"app={app}")["items"]


def phases(k, app):
    return sorted(p["status"]["phase"] for p in pods_of(k, app))


def running(k, app, n=1):
    until(lambda: phases(k, app) == ["Running"] * n, 30, f"{n} pods of {app} run")


def test_cordon(t):
    """a cordoned node takes no new pods of a Deployment, but DaemonSets' and those of the folder; also after a kill"""
    k = Lone(t)
    k.node.put("web.yaml", workload("Deployment", "web"))
    running(k, "web")
    contains(k.kubectl("cordon", NODE).stdout, f"node/{NODE} cordoned", "cordon")
    contains(k.kubectl("cordon", NODE).stdout, "already cordoned", "cordon again")
    contains(k.kubectl("get", "nodes").stdout, "Ready,SchedulingDisabled", "get nodes")
    described = k.kubectl("describe", "node").stdout
    contains(described, "Unschedulable:      true", "describe node")
    contains(described, "node.kubernetes.io/unschedulable:NoSchedule", "the taint of it")
    contains(k.kubectl("get", "events").stdout, "NodeNotSchedulable", "the event")
    equal(phases(k, "web"), ["Running"], "a pod that runs stays")
    k.kubectl("delete", "pod", "-l", "app=web")
    until(lambda: phases(k, "web") == ["Pending"], 20, "its successor waits")
    waiting = pods_of(k, "web")[0]
    equal(waiting["spec"].get("nodeName"), None, "it has no node")
    equal([(c["type"], c["status"], c["reason"]) for c in waiting["status"]["conditions"]],
          [("PodScheduled", "False", "Unschedulable")], "its conditions")
    contains(k.kubectl("describe", "pod", "-l", "app=web").stdout, "1 node(s) were unschedulable", "why")
    k.node.put("static.yaml", pod("static", container(command=["sleep", "1000"])))
    k.node.put("each.yaml", workload("DaemonSet", "each", replicas=""))
    k.node.wait_running("static")
    running(k, "each")
    k.node.kill()
    k.node.start()
    until(lambda: "SchedulingDisabled" in k.kubectl("get", "nodes", ok=False).stdout, 20, "it is kept")
    running(k, "each")
    equal(phases(k, "web"), ["Pending"], "it waits on")
    contains(k.kubectl("uncordon", NODE).stdout, f"node/{NODE} uncordoned", "uncordon")
    running(k, "web")
    equal("SchedulingDisabled" in k.kubectl("get", "nodes").stdout, False, "get nodes after it")
    k.node.stop()


def test_drain(t):
    """kubectl drain ends what is not a DaemonSet's; the pods of workloads come back with uncordon"""
    k = Lone(t)
    k.node.put("web.yaml", workload("Deployment", "web", replicas="replicas: 2"))
    k.node.put("each.yaml", workload("DaemonSet", "each", replicas=""))
    k.node.put("static.yaml", pod("static", container(command=["sleep", "1000"]), terminationGracePeriodSeconds=1))
    running(k, "web", 2)
    running(k, "each")
    k.node.wait_running("static")
    contains(k.kubectl("drain", NODE, ok=False).stderr, "DaemonSet-managed", "without flags it is refused")
    flags = ["--ignore-daemonsets", "--force"]
    if "--delete-emptydir-data" in k.kubectl("drain", "--help").stdout:
        flags.append("--delete-emptydir-data")
    else:
        flags.append("--delete-local-data")
    drained = k.kubectl("drain", NODE, *flags, timeout=60)
    contains(drained.stdout, "evicted", "drain")
    until(lambda: phases(k, "web") == ["Pending", "Pending"], 20, "the Deployment's pods wait")
    equal(phases(k, "each"), ["Running"], "the DaemonSet's pod")
    contains(k.kubectl("get", "pod", "static", ok=False).stderr, "not found", "the pod of the folder is gone")
    k.kubectl("uncordon", NODE)
    running(k, "web", 2)
    k.node.stop()


def test_taints(t):
    """taints keep pods of workloads away, or end them; tolerations and tolerationSeconds count; registerWithTaints stays"""
    k = Lone(t)
    k.node.put("web.yaml", workload("Deployment", "web"))
    k.node.put("hard.yaml", workload("Deployment", "hard", "[{key: x, operator: Exists}]"))
    k.node.put("soft.yaml", workload("Deployment", "soft", "[{key: x, operator: Exists, effect: NoExecute, tolerationSeconds: 15}]"))
    k.node.put("each.yaml", workload("DaemonSet", "each", replicas=""))
    k.node.put("static.yaml", pod("static", container(command=["sleep", "1000"])))
    for app in ("web", "hard", "soft", "each"):
        running(k, app)
    k.kubectl("taint", "node", NODE, "y=1:NoSchedule")
    equal(phases(k, "web") + phases(k, "each"), ["Running", "Running"], "NoSchedule ends nothing")
    k.kubectl("delete", "pod", "-l", "app in (web, each)")
    until(lambda: phases(k, "web") == ["Pending"], 20, "a new pod waits")
    contains(k.kubectl("describe", "pod", "-l", "app=web").stdout, "untolerated taint {y: 1}", "why")
    equal(phases(k, "each"), [], "the DaemonSet makes none")
    k.kubectl("taint", "node", NODE, "y-")
    running(k, "web")
    running(k, "each")
    uid = pods_of(k, "soft")[0]["metadata"]["uid"]
    began = time.monotonic()
    k.kubectl("taint", "node", NODE, "x=1:NoExecute")
    until(lambda: phases(k, "web") == ["Pending"], 20, "a pod without a toleration is ended")
    until(lambda: phases(k, "each") == [], 20, "the DaemonSet's, too")
    equal(phases(k, "hard"), ["Running"], "one that tolerates it stays")
    equal(k.json("get", "pod", "static")["status"]["phase"], "Running", "a pod of the folder stays")
    k.node.put("later.yaml", pod("later", container(command=["sleep", "1000"])))
    k.node.wait_running("later")
    until(lambda: uid not in [p.uid for p in k.node.pods().values()], 60, "one that tolerates it for a while ends, too")
    check(time.monotonic() - began >= 14, "but not before that")
    contains(k.kubectl("get", "events").stdout, "TaintManagerEviction", "the event")
    k.kubectl("taint", "node", NODE, "x-")
    running(k, "web")
    k.node.stop()


def test_fields(t):
    """labels and annotations are kept; status, name and uid are not written; invalid changes are refused as by an apiserver"""
    k = Lone(t)
    k.kubectl("label", "node", NODE, "rack=a", "disk=ssd")
    k.kubectl("annotate", "node", NODE, "note=hello")
    before = k.json("get", "node", NODE)
    equal(before["metadata"]["labels"]["rack"], "a", "the label")
    equal(before["metadata"]["annotations"]["note"], "hello", "the annotation")
    check(before["metadata"]["uid"], "a uid")
    k.kubectl("label", "node", NODE, "disk-")
    k.kubectl("patch", "node", NODE, "-p", '{"status":{"phase":"Gone"},"metadata":{"labels":{"b":"1"}}}')
    after = k.json("get", "node", NODE)
    equal(after["status"].get("phase"), None, "the status is not written")
    equal(after["metadata"]["labels"]["b"], "1", "the rest is")
    k.kubectl("replace", "--validate=false", "-f", "-", stdin=json.dumps(after))
    k.node.stop()


def test_refusals(t):
    """an invalid Node is refused as by an apiserver; an old version is a conflict"""
    k = Lone(t)
    old = k.json("get", "node", NODE)
    k.kubectl("label", "node", NODE, "rack=a")
    contains(k.kubectl("replace", "--validate=false", "-f", "-", ok=False, stdin=json.dumps(old)).stderr, "the object has been modified", "old")
    for patch, text in (
            ('{"spec":{"taints":[{"key":"a","effect":"Never"}]}}',
             'spec.taints[0].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "PreferNoSchedule"'),
            ('{"spec":{"taints":[{"key":"a"}]}}', "spec.taints[0].effect: Required value"),
            ('{"spec":{"taints":[{"key":"a b","effect":"NoSchedule"}]}}', 'spec.taints[0].key: Invalid value: "a b": name part must'),
            ('{"spec":{"taints":[{"key":"a","value":"b c","effect":"NoSchedule"}]}}', 'spec.taints[0].value: Invalid value: "b c"'),
            ('{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"}]}}',
             "taints must be unique by key and effect pair"),
            ('{"metadata":{"labels":{"a":"b c"}}}', 'metadata.labels: Invalid value: "b c": a valid label must be'),
            ('{"metadata":{"labels":{"a b":"c"}}}', 'metadata.labels: Invalid value: "a b": name part must'),
            ('{"metadata":{"name":"other"}}', "the name of the object (other) does not match the name on the URL"),
            ('{"metadata":{"uid":"x"}}', "metadata.uid: Invalid value")):
        got = k.kubectl("patch", "node", NODE, "-p", patch, ok=False)
        check(got.returncode != 0, f"{patch} is taken")
        contains(got.stderr, text, patch)
    contains(k.kubectl("delete", "node", NODE, ok=False).stderr, "does not allow this method", "delete")
    contains(k.kubectl("cordon", "none", ok=False).stderr, "not found", "another node")
    equal(k.json("get", "node", NODE)["spec"].get("taints"), None, "nothing of it was written")
    k.node.stop()


def test_state(t):
    """uid and written fields survive restarts; a damaged file is reported and set aside, and the node keeps working"""
    k = Lone(t)
    k.kubectl("taint", "node", NODE, "x=1:PreferNoSchedule")
    first = k.json("get", "node", NODE)
    space = k.json("get", "namespace", "default")["metadata"]
    check(all(e["metadata"].get("uid") for e in k.json("get", "events")["items"]), "events have a uid")
    k.node.cli("label", "node", NODE, "by=cli")
    contains(k.node.log(), f"local API write user=root verb=update resource=nodes object={NODE} file=node.json code=200", "the line of the CLI's write")
    k.node.stop()
    k.node.start()
    got = until(lambda: (lambda r: json.loads(r.stdout) if r.returncode == 0 else None)(
        k.kubectl("get", "node", NODE, "-o", "json", ok=False)), 20, "the node")
    for name in ("uid", "creationTimestamp"):
        equal(got["metadata"][name], first["metadata"][name], name)
    equal(got["spec"]["taints"], first["spec"]["taints"], "taints")
    equal(got["metadata"]["labels"]["by"], "cli", "the label")
    after = k.json("get", "namespace", "default")["metadata"]
    check(after["uid"], "a Namespace has a uid")
    equal((after["uid"], after["creationTimestamp"]), (space["uid"], space["creationTimestamp"]), "the same after a restart")
    equal(after["creationTimestamp"], first["metadata"]["creationTimestamp"], "it is as old as the node")
    k.node.stop()
    for damage in ("", "{", '{"version": 7}', '{"version": 1, "uid": "x", "taints": 5}', '{"version": 1, "uid": "x", "labels": []}'):
        with open(f"{k.node.state_dir}/node.json", "w", encoding="utf-8") as f:
            f.write(damage)
        since = len(k.node.log())
        k.node.start()
        equal(k.node.log()[since:].count("the stored Node object is damaged"), 1, f"{damage!r} is named once")
        check(glob.glob(f"{k.node.state_dir}/node.json.damaged-*"), f"{damage!r} is set aside")
        for aside in glob.glob(f"{k.node.state_dir}/node.json.damaged-*"):
            os.unlink(aside)
        equal(k.node.get("/api/v1/nodes")["items"][0]["spec"].get("taints"), None, f"{damage!r}: as configured")
        k.node.stop()


for _test in (test_cordon, test_drain, test_taints):
    _test.seconds = 150
