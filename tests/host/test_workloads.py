# SPDX-License-Identifier: Apache-2.0
"""Deployments, StatefulSets and DaemonSets of the manifest folder, and kinds that are only shown."""
from coracle import check, container, contains, equal, until


def workload(kind, name, *containers, labels=None, annotations=None, **spec):
    template = {"metadata": {"labels": {"app": name}, "annotations": annotations or {}},
                "spec": {"containers": list(containers) or [container()], "terminationGracePeriodSeconds": 1}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}}


def ready(pods, name):
    """Names of the ready pods of a workload; None unless all of its pods are ready and none is ending."""
    mine = [p for (_, key), p in pods.items() if key.startswith(name + "-")]
    if any(p.condition("Ready").get("status") != "True" or "deletionTimestamp" in p["metadata"] for p in mine):
        return None
    return sorted(p["metadata"]["name"] for p in mine)


def fresh(pods, name, count, other_than):
    names = ready(pods, name)
    return names if names is not None and len(names) == count and not set(names) & set(other_than) else None


def settled(node, name, count):
    return node.watch(lambda pods: fresh(pods, name, count, ()), deadline=60, what=f"{count} ready pods of {name}")


def status(node, path):
    return node.get(path)["status"]


def uids(node, name):
    return {key: p["metadata"]["uid"] for (_, key), p in node.pods().items() if key.startswith(name + "-")}


def test_deployment(t):
    """A Deployment runs its replicas, an edit replaces them without ever having fewer, and a restart changes nothing"""
    node = t.node()
    node.import_image()
    node.put("web.yaml", workload("Deployment", "web", replicas=2))
    first = settled(node, "web", 2)
    one = node.pod(first[0])
    owner = one["metadata"]["ownerReferences"][0]
    replica_set = "web-" + one["metadata"]["labels"]["pod-template-hash"]
    equal((owner["kind"], owner["name"], owner["controller"]), ("ReplicaSet", replica_set, True), "its owner")
    contains(first[0], replica_set)

    path = "/apis/apps/v1/namespaces/default/deployments/web"
    until(lambda: status(node, path)["availableReplicas"] == 2, 20, "available replicas")
    shown = node.get(path)
    above = node.get(f"/apis/apps/v1/namespaces/default/replicasets/{replica_set}")["metadata"]
    equal((above["uid"], above["ownerReferences"][0]["uid"]), (owner["uid"], shown["metadata"]["uid"]), "uids of the owners")
    equal(shown["status"]["observedGeneration"], shown["metadata"]["generation"], "observed generation")

    before = uids(node, "web")
    node.kill()
    node.start()
    settled(node, "web", 2)
    equal(uids(node, "web"), before, "pods after a restart")

    def enough(pods):
        """Never fewer than two ready ones on the way."""
        mine = [p for (_, key), p in pods.items() if key.startswith("web-")]
        check(sum(p.condition("Ready").get("status") == "True" for p in mine) >= 2, lambda: f"too few: {mine}")
        return fresh(pods, "web", 2, first)

    node.put("web.yaml", workload("Deployment", "web", replicas=2, annotations={"edit": "1"}))
    node.watch(enough, deadline=90, what="new pods")
    until(lambda: status(node, path)["updatedReplicas"] == 2, 20, "updated replicas")
    equal(len(node.get("/apis/apps/v1/deployments")["items"]), 1, "Deployments")

    node.put("web.yaml", workload("Deployment", "web", replicas=1, annotations={"edit": "1"}))
    settled(node, "web", 1)
    node.remove("web.yaml")
    node.watch(lambda pods: not [k for _, k in pods if k.startswith("web-")] or None, what="the end of all pods")


def test_invalid_edit_over_a_restart(t):
    """A Deployment whose file became invalid keeps its pods, also over a restart of the agent"""
    node = t.node()
    node.import_image()
    node.put("web.yaml", workload("Deployment", "web", replicas=1))
    settled(node, "web", 1)
    before = uids(node, "web")
    node.put("web.yaml", workload("Deployment", "web", replicas=1, bogus=1))
    node.stop()
    node.start()
    settled(node, "web", 1)
    equal(uids(node, "web"), before, "pods")
    node.put("web.yaml", workload("Deployment", "web", replicas=1))
    node.put("set.yaml", workload("StatefulSet", "set", replicas=2))
    equal(settled(node, "set", 2), ["set-0", "set-1"], "pods of the StatefulSet")
    equal(node.pod("set-1")["spec"]["hostname"], "set-1", "hostname")
    equal(uids(node, "web"), before, "pods")


def test_kinds_that_are_shown(t):
    """A Service beside a DaemonSet is kept and shown, and named once in the log"""
    node = t.node()
    node.import_image()
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"clusterIP": "None"}}
    node.put("all.yaml", {"apiVersion": "v1", "kind": "List", "items": [service, workload("DaemonSet", "agent")]})
    settled(node, "agent", 1)
    equal(node.get("/api/v1/namespaces/default/services/web")["spec"], {"clusterIP": "None"}, "the Service")
    until(lambda: status(node, "/apis/apps/v1/namespaces/default/daemonsets/agent")["numberReady"] == 1, 20, "the DaemonSet's status")
    equal(node.log().count("nothing here acts on it"), 1, "messages")
    out = node.cli("get", "daemonsets").stdout
    check("agent" in out and "DESIRED" in out, lambda: out)


def test_daemon_set_for_other_nodes(t):
    """a DaemonSet whose selector does not match this node has no pod, and its status has no desired pod"""
    node = t.node()
    node.import_image()
    other = workload("DaemonSet", "other")
    other["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "tape"}
    node.put("other.yaml", other)
    node.put("here.yaml", workload("DaemonSet", "here"))
    (name,) = settled(node, "here", 1)
    equal(status(node, "/apis/apps/v1/namespaces/default/daemonsets/other")["desiredNumberScheduled"], 0, "wanted")
    equal(ready(node.pods(), "other"), [], "pods")
    contains(str(node.pod(name)["spec"]["tolerations"]), "memory-pressure")


def test_job(t):
    """A Job runs its completions, and does not run again after a restart"""
    node = t.node()
    node.import_image()
    node.put("job.yaml", {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum"}, "spec": {
        "completions": 3, "parallelism": 2, "template": {"spec": {
            "restartPolicy": "Never", "containers": [container("main", ["true"])]}}}})
    path = "/apis/batch/v1/namespaces/default/jobs/sum"
    node.watch(lambda pods: sum(p["status"]["phase"] == "Succeeded" for p in pods.values()) == 3, deadline=60, what="three pods that succeeded")
    until(lambda: status(node, path).get("succeeded") == 3, 20, "the Job's status")
    equal([c["type"] for c in status(node, path)["conditions"]], ["SuccessCriteriaMet", "Complete"], "conditions")
    before = uids(node, "sum")
    node.stop()
    node.start()
    equal(node.get(path)["status"]["conditions"][-1]["type"], "Complete", "condition after a restart")
    equal(uids(node, "sum"), before, "pods after a restart")
    check("Complete" in node.cli("get", "jobs").stdout, "the table")
