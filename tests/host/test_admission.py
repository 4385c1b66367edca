# SPDX-License-Identifier: Apache-2.0
"""Admission: resources, labels, taints, pods that are rejected and tried again, and critical pods that end others."""
import json
import os
import signal

from coracle import cgroup_v2, check, container, contains, equal, pod, until

CPUS = os.sysconf("SC_NPROCESSORS_ONLN")
QUICK = {"terminationGracePeriodSeconds": 0}
CONFIG = ("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nregisterWithTaints: [%s]\n---\n"
          "apiVersion: coracle.dev/v1\nkind: CoracleConfiguration\nnodeLabels: {%s}\n")


def asking(name, cpu="0", **spec):
    """A pod that requests so much cpu (text)."""
    return pod(name, container(resources={"requests": {"cpu": cpu}}), **{**QUICK, **spec})


def refused(node, name, reason):
    return node.wait_pod(name, lambda p: p.phase == "Failed" and p.status.get("reason") == reason, what=f"{name} refused: {reason}")


def start(t, *flags):
    node = t.node(*flags)
    node.import_image()
    return node


def test_refused_and_tried_again(t):
    """a pod that does not fit is Failed with kubelet's text, starts nothing, and starts when another pod has ended"""
    node = start(t)
    node.put("a.yaml", asking("a", f"{CPUS * 1000 - 400}m"))
    node.wait_running("a")
    node.put("b.yaml", asking("b", "500m"))
    b = refused(node, "b", "OutOfcpu")
    text = f"Node didn't have enough resource: cpu, requested: 500, used: {CPUS * 1000 - 400}, capacity: {CPUS * 1000}"
    equal(b.status["message"], "Pod was rejected: " + text, "message")
    equal([(e["type"], e["reason"], e["message"]) for e in node.events("b")], [("Warning", "OutOfcpu", text)], "events")
    check(not any(c.get("containerID") for c in b.status.get("containerStatuses", [])), "a container was made")
    check(not os.path.exists(f"{node.root_dir}/pods/{b.uid}"), "a folder was made")
    node.kill()  # it stays so
    node.start()
    equal(refused(node, "b", "OutOfcpu").status["message"], "Pod was rejected: " + text, "after a restart")
    node.put("c.yaml", asking("c", "100m"))  # the rest goes to a pod that fits
    node.wait_running("c")
    equal(node.pod("b").phase, "Failed", "the one that does not")
    node.remove("a.yaml")
    node.wait_running("b")
    node.stop()


def test_first_come(t):
    """at the start, pods of higher priority are admitted first, and running pods are not evaluated again"""
    node = start(t)
    node.stop()
    half = f"{CPUS * 600}m"  # there is room for one pod
    node.put("a.yaml", asking("a", half))
    node.put("b.yaml", asking("b", half, priority=100))
    node.put("c.yaml", asking("c", half, priority=-5))
    node.start()
    b = node.wait_running("b")
    refused(node, "a", "OutOfcpu")
    refused(node, "c", "OutOfcpu")
    node.put("d.yaml", asking("d", half, priority=1000))  # not critical: it ends nobody
    refused(node, "d", "OutOfcpu")
    node.kill()
    node.start()
    equal(node.wait_running("b").container_id(), b.container_id(), "who ran before")
    node.remove("b.yaml")
    node.wait_running("d")
    refused(node, "a", "OutOfcpu")
    node.stop()


def test_labels_and_taints_by_reload(t):
    """a reload that adds a label or removes a taint admits a rejected pod; running pods stay when it is reverted"""
    path = f"{t.scratch}/config.yaml"

    def configure(taints, labels):
        with open(path, "w", encoding="utf-8") as f:
            f.write(CONFIG % (taints, labels))

    configure("{key: broken, value: disk, effect: NoExecute}, {key: gpu, effect: NoSchedule}", "")
    node = start(t, "--config", path)
    term = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]},
                                  {"key": "cores", "operator": "Gt", "values": ["3"]}],
             "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["test-node"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": term}}}
    node.put("t.yaml", asking("t"))
    node.put("u.yaml", asking("u", tolerations=[{"key": "broken", "operator": "Equal", "value": "disk"}]))
    node.put("l.yaml", asking("l", affinity=affinity, tolerations=[{"operator": "Exists"}]))
    node.put("n.yaml", asking("n", nodeName="other-node", tolerations=[{"operator": "Exists"}]))
    node.wait_running("u")
    equal(refused(node, "t", "TaintToleration").status["message"],
          "Pod was rejected: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate", "taint")
    contains(refused(node, "l", "NodeAffinity").status["message"], "node(s) didn't match Pod's node affinity/selector")
    contains(refused(node, "n", "NodeName").status["message"], "node(s) didn't match the requested node name")
    configure("", "disk: ssd, cores: '4'")
    os.kill(node.process.pid, signal.SIGHUP)
    node.wait_running("t", "l")
    configure("{key: broken, effect: NoExecute}", "disk: hdd")
    os.kill(node.process.pid, signal.SIGHUP)
    until(lambda: "hdd" in json.dumps(node.get("/configz")), 10, "the reload")
    node.put("v.yaml", asking("v"))
    refused(node, "v", "TaintToleration")
    equal([node.pod(p).phase for p in "tlu"], ["Running"] * 3, "those that ran before")
    node.stop()


def test_priority_class_comes_later(t):
    """a pod with an unknown PriorityClass waits and says so until the class exists; settings without effect on v1 are named"""
    node = start(t)
    node.put("a.yaml", pod("a", annotations={"coracle.dev/oom-kill": "container"}, priorityClassName="important", **QUICK))
    text = 'spec.priorityClassName: no PriorityClass with name "important" was found'
    node.wait_pod("a", lambda p: p.phase == "Pending" and p.status.get("message", "").startswith(text), what="a waits")
    event = next(e for e in node.events("a") if e["reason"] == "PriorityClassNotFound")
    equal((event["type"], event["message"].startswith(text)), ("Warning", True), "its event")
    contains(node.cli("explain", "pod", "a").stdout, text, "explain")
    node.put("class.yaml", {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "important"}, "value": 1000})
    a = node.wait_running("a")
    check("message" not in a.status, lambda: f"{a.status['message']}")
    ignored = (a.condition("coracle.dev/FieldsIgnored") or {}).get("message")
    equal(ignored, None if cgroup_v2() else "metadata.annotations[coracle.dev/oom-kill]: needs cgroup v2; on v1 a kill ends one process",
          "what is not acted on")
    node.stop()


def test_critical_pod(t):
    """a critical pod ends the pods in its way and waits for them; they return after it was removed"""
    node = start(t)
    node.put("guaranteed.yaml", pod("guaranteed", container(resources={"limits": {"cpu": f"{CPUS * 300}m", "memory": "32Mi"}}), **QUICK))
    node.put("burstable.yaml", asking("burstable", f"{CPUS * 500}m"))
    node.put("idle.yaml", pod("idle", **QUICK))
    before = {name: node.wait_running(name) for name in ("guaranteed", "burstable", "idle")}
    timeline = []
    node.put("critical.yaml", asking("critical", f"{CPUS * 500}m", priorityClassName="system-node-critical"))
    node.wait_pod("critical", lambda p: p.state()[0] == "running", timeline=timeline)
    victim = refused(node, "burstable", "Preempting")
    equal(victim.uid, before["burstable"].uid, "the pod that was ended")
    equal(victim.status["message"], "Preempted in order to admit critical pod", "its message")
    condition = victim.condition("DisruptionTarget")
    equal((condition["status"], condition["reason"], condition["message"]),
          ("True", "TerminationByKubelet", "Pod was preempted by Kubelet to accommodate a critical pod."), "its condition")
    event = next(e for e in node.events("burstable") if e["reason"] == "Preempting")
    equal((event["type"], event["message"]), ("Warning", "Preempted in order to admit critical pod"), "its event")
    for name in ("guaranteed", "idle"):
        equal(node.pod(name).container_id(), before[name].container_id(), f"{name} runs on")
    ended = next(i for i, (_, p) in enumerate(timeline) if p.name == "burstable" and p.phase == "Failed")
    started = next(i for i, (_, p) in enumerate(timeline) if p.name == "critical" and p.container_id())
    check(ended < started, "the critical pod began before the other one had ended")
    node.put("huge.yaml", asking("huge", f"{CPUS * 1000}m", priority=2000000000))
    contains(refused(node, "huge", "UnexpectedAdmissionError").status["message"],
             "Pod was rejected: Unexpected error while attempting to recover from admission failure: preemption: error finding a set of "
             f"pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: {CPUS * 500}), ]")
    equal(node.pod("guaranteed").container_id(), before["guaranteed"].container_id(), "nobody was ended in vain")
    node.remove("critical.yaml", "huge.yaml")
    again = node.wait_running("burstable")
    check(again.uid != victim.uid, "a pod that has Failed runs again")
    node.stop()


def test_killed_amid_preemption(t):
    """an agent killed during a preemption continues it after the restart"""
    node = start(t, "--max-pods", "1")
    slow = pod("slow", container(command=["/bin/sh", "-c", "trap '' TERM; while true; do sleep 0.1; done"]), terminationGracePeriodSeconds=4)
    node.put("slow.yaml", slow)
    node.wait_running("slow")
    node.put("critical.yaml", pod("critical", priority=2000000000, **QUICK))
    until(lambda: any(e["reason"] == "Preempting" for e in node.events("slow")), 10, "the other pod ends")
    equal(node.pod("critical").phase, "Pending", "the critical pod, meanwhile")
    contains(node.cli("explain", "pod", "critical").stdout, "waits for", "explain")
    node.kill()
    node.start()
    node.wait_running("critical")
    equal(refused(node, "slow", "Preempting").status["message"], "Preempted in order to admit critical pod", "its message")
    node.stop()


def test_unknown_page_size(t):
    """huge pages of a size that the machine lacks are rejected, and the message names the sizes it has"""
    node = start(t)
    node.put("h.yaml", pod("h", container(resources={"limits": {"memory": "32Mi", "hugepages-3Mi": "3Mi"}}), **QUICK))
    contains(refused(node, "h", "OutOfhugepages-3Mi").status["message"],
             "Node didn't have enough resource: hugepages-3Mi, requested: 3145728, used: 0, capacity: 0; this machine has no huge pages "
             "of that size")
    node.stop()


def test_bad_amounts(t):
    """invalid amounts are rejected with file, document and field; running pods of the file are not affected"""
    node = start(t)
    node.put("a.yaml", asking("a", "100m"))
    a = node.wait_running("a")

    def bad(resources):
        return pod("a", container(resources=resources), **QUICK)

    for resources, field, text in (
            ({"limits": {"memory": "1Gi"}, "requests": {"memory": "2Gi"}}, "requests[memory]",
             "2Gi must be less than or equal to the memory limit of 1Gi"),
            ({"limits": {"cpu": "-1"}}, "limits[cpu]", "-1 is negative, allowed are 0 and more"),
            ({"limits": {"cpu": "1e100"}}, "limits[cpu]", 'quantity "1e100" is too large'),
            ({"limits": {"memory": "1Gi", "hugepages-2Mi": "3Mi"}}, "limits[hugepages-2Mi]", "must be a multiple of the page size"),
            ({"limits": {"memory": "1Gi", "hugepages-x": "3Mi"}}, "limits[hugepages-x]", '"hugepages-x" names no page size')):
        node.put("a.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}}, bad(resources))
        found = until(lambda: [p for p in node.problems().get("a.yaml", []) if field in p], 10, f"a problem of {field}")
        contains(found[0], f"spec.containers[0].resources.{field}: ", "where")
        contains(found[0], text, "what")
        places = [p for m in node.get("/manifests")["items"] if m["name"] == "a.yaml" for p in m["problems"]]
        check(all(p["file"] == f"{node.manifests}/a.yaml" and p["line"] >= 1 and p["document"] == 2 for p in places), lambda: f"no file, line and document: {places}")
        node.put("a.yaml", asking("a", "100m"))
        until(lambda: "a.yaml" not in node.problems(), 10, "the file is fine again")
    node.wait_running("a")
    node.stop()
