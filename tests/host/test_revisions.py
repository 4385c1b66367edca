# SPDX-License-Identifier: Apache-2.0
"""The revisions of Deployments, StatefulSets and DaemonSets: kept over restarts, shown, and gone back to with kubectl."""
from coracle import check, contains, equal, until
from test_lone_kubectl import Lone
from test_workloads import settled, workload

SETS = "/apis/apps/v1/namespaces/default/replicasets"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
NUMBER = "deployment.kubernetes.io/revision"


def sets(node):
    """{name: (number, wanted pods)}"""
    return {s["metadata"]["name"]: (int(s["metadata"]["annotations"][NUMBER]), s["spec"]["replicas"]) for s in node.get(SETS)["items"]}


def numbers(node, path=SETS):
    return sorted(int(s["metadata"]["annotations"][NUMBER]) if path == SETS else s["revision"] for s in node.get(path)["items"])


def edited(kind, name, text, **spec):
    return workload(kind, name, annotations={"edit": text}, **spec)


def change(k, kind, name, text):
    """Another template, through the API, and the end of its rollout."""
    patch = f'{{"spec":{{"template":{{"metadata":{{"annotations":{{"edit":"{text}"}}}}}}}}}}'
    k.kubectl("patch", kind, name, "-p", patch)
    done(k, kind, name)


def done(k, kind, name):
    k.kubectl("rollout", "status", f"{kind}/{name}", "--timeout=90s", timeout=100)


def test_deployment(t):
    """a Deployment has a ReplicaSet for each template, an undo takes the old one again, and all survives a kill"""
    k = Lone(t)
    node = k.node
    node.put("web.yaml", edited("Deployment", "web", "1", replicas=2))
    settled(node, "web", 2)
    (first,) = sets(node)
    equal(sets(node), {first: (1, 2)}, "the first ReplicaSet")
    shown = node.get(f"{SETS}/{first}")
    owner = shown["metadata"]["ownerReferences"][0]
    deployment = node.get("/apis/apps/v1/namespaces/default/deployments/web")
    equal((owner["kind"], owner["uid"]), ("Deployment", deployment["metadata"]["uid"]), "its owner")
    equal(deployment["metadata"]["annotations"][NUMBER], "1", "the Deployment's number")
    equal({p["metadata"]["ownerReferences"][0]["uid"] for p in node.pods().values()}, {shown["metadata"]["uid"]}, "owner of the pods")
    equal((shown["status"]["replicas"], shown["status"]["readyReplicas"]), (2, 2), "its status")

    k.kubectl("annotate", "deployment", "web", "kubernetes.io/change-cause=the first")
    change(k, "deployment", "web", "2")
    k.kubectl("annotate", "deployment", "web", "kubernetes.io/change-cause=the second", "--overwrite")
    until(lambda: {n: of for n, of in sets(node).values()} == {1: 0, 2: 2}, 30, "two ReplicaSets")
    until(lambda: "the second" in k.kubectl("rollout", "history", "deployment/web").stdout, 10, "the cause of the second")
    said = k.kubectl("rollout", "history", "deployment/web").stdout
    equal([line.split(None, 1) for line in said.splitlines()[2:4]], [["1", "the first"], ["2", "the second"]], "history")
    contains(k.kubectl("rollout", "history", "deployment/web", "--revision=1").stdout, "with revision #1", "one revision")
    contains(k.kubectl("describe", "deployment", "web").stdout, next(n for n, (number, _) in sets(node).items() if number == 2), "describe")

    contains(k.kubectl("describe", "deployment", "web").stdout, f"Scaled up replica set {first} from 0 to 2", "its events")
    contains(k.kubectl("describe", "rs", first).stdout, f"Created pod: {first}-", "events of a ReplicaSet")
    k.kubectl("rollout", "undo", "deployment/web")
    done(k, "deployment", "web")
    until(lambda: sets(node).get(first) == (3, 2), 30, "the first ReplicaSet again")
    equal(numbers(node), [2, 3], "numbers")
    equal(len(sets(node)), 2, "no ReplicaSet more")
    equal(node.get("/apis/apps/v1/namespaces/default/deployments/web")["metadata"]["annotations"]["kubernetes.io/change-cause"], "the first", "cause")
    contains(k.kubectl("rollout", "undo", "deployment/web", "--to-revision=3").stdout, "skipped rollback", "the same again")
    contains(k.kubectl("rollout", "undo", "deployment/web", "--to-revision=9", ok=False).stderr, "unable to find specified revision 9", "none such")

    settled(node, "web", 2)
    before, pods = sets(node), sorted(node.pods())
    node.kill()
    node.start()
    settled(node, "web", 2)
    equal((sets(node), sorted(node.pods())), (before, pods), "after a restart")
    check("revision" not in open(f"{node.manifests}/web.yaml", encoding="utf-8").read(), "the number is in no file")
    node.remove("web.yaml")
    until(lambda: not node.get(SETS)["items"], 30, "the ReplicaSets go with their Deployment")
    node.stop()


def test_limit_and_pause(t):
    """old ReplicaSets are forgotten beyond revisionHistoryLimit, and a paused Deployment keeps its template"""
    k = Lone(t)
    node = k.node
    node.put("web.yaml", edited("Deployment", "web", "0", replicas=1, revisionHistoryLimit=2))
    settled(node, "web", 1)
    for i in range(1, 5):
        change(k, "deployment", "web", str(i))
    until(lambda: numbers(node) == [3, 4, 5], 30, "three ReplicaSets")

    k.kubectl("rollout", "pause", "deployment/web")
    k.kubectl("patch", "deployment", "web", "-p", '{"spec":{"replicas":2,"template":{"metadata":{"annotations":{"edit":"9"}}}}}')
    settled(node, "web", 2)
    equal({of for n, of in sets(node).values() if n == 5}, {2}, "both pods are of the last template")
    contains(k.kubectl("rollout", "undo", "deployment/web", ok=False).stderr, "paused", "undo while paused")
    k.kubectl("rollout", "resume", "deployment/web")
    done(k, "deployment", "web")
    until(lambda: {n: of for n, of in sets(node).values()} == {4: 0, 5: 0, 6: 2}, 30, "the change is rolled out")

    cli = lambda *words: node.cli("rollout", *words, ok=False)
    contains(cli("history", "deployment/web").stdout, "6         <none>", "coracle rollout history")
    contains(cli("history", "deployment/web", "--revision=4").stdout, "edit: \"3\"", "one revision")
    equal(cli("undo", "deployment/web", "--to-revision=4").stdout, "deployment.apps/web rolled back\n", "coracle rollout undo")
    until(lambda: {n: of for n, of in sets(node).values()} == {5: 0, 6: 0, 7: 2}, 60, "the old template")
    contains(cli("undo", "deployment/web", "--to-revision=7").stdout, "skipped rollback", "the same again")
    contains(cli("undo", "deployment/web", "--to-revision=99").stderr, "unable to find specified revision 99", "none such")
    node.stop()


def test_sets(t):
    """a StatefulSet and a DaemonSet have ControllerRevisions, and go back to one"""
    k = Lone(t)
    node = k.node
    node.put("sets.yaml", {"apiVersion": "v1", "kind": "List", "items": [
        edited("StatefulSet", "db", "1", replicas=2), edited("DaemonSet", "agent", "1")]})
    settled(node, "db", 2)
    settled(node, "agent", 1)
    equal(numbers(node, REVISIONS), [1, 1], "the first revisions")
    node.put("sets.yaml", {"apiVersion": "v1", "kind": "List", "items": [edited("DaemonSet", "agent", "1")]})
    node.put("db.yaml", edited("StatefulSet", "db", "1", replicas=2))
    node.remove("sets.yaml")
    node.put("agent.yaml", edited("DaemonSet", "agent", "1"))
    settled(node, "db", 2)
    settled(node, "agent", 1)
    for kind, name in (("statefulset", "db"), ("daemonset", "agent")):
        change(k, kind, name, "2")
        said = k.kubectl("rollout", "history", f"{kind}/{name}").stdout
        equal([line.split()[0] for line in said.splitlines()[2:4]], ["1", "2"], f"history of {name}")
        contains(k.kubectl("rollout", "history", f"{kind}/{name}", "--revision=1").stdout, "edit", "one revision")
        k.kubectl("rollout", "undo", f"{kind}/{name}")
        done(k, kind, name)
        until(lambda: {p["metadata"]["annotations"]["edit"] for (_, key), p in node.pods().items() if key.startswith(name + "-")} == {"1"},
              30, f"the old template of {name}")
        equal([line.split()[0] for line in k.kubectl("rollout", "history", f"{kind}/{name}").stdout.splitlines()[2:4]], ["2", "3"], "numbers")
    contains(k.kubectl("get", "controllerrevisions").stdout, "statefulset.apps/db", "their table")
    status = node.get("/apis/apps/v1/namespaces/default/statefulsets/db")["status"]
    equal(status["currentRevision"], status["updateRevision"], "the StatefulSet's revision")
    contains(node.cli("rollout", "undo", "statefulset/db").stdout, "statefulset.apps/db rolled back", "coracle rollout undo")
    k.kubectl("rollout", "restart", "daemonset/agent")
    done(k, "daemonset", "agent")
    before = sorted(r["metadata"]["name"] for r in node.get(REVISIONS)["items"])
    node.kill()
    node.start()
    settled(node, "db", 2)
    equal(sorted(r["metadata"]["name"] for r in node.get(REVISIONS)["items"]), before, "after a restart")
    node.stop()


for _f in (test_deployment, test_limit_and_pause, test_sets):
    _f.seconds = 300


def test_partition(t):
    """below a StatefulSet's partition also a new pod has the old template, over a kill, until all pods have the new one"""
    k = Lone(t)
    node = k.node

    def put(edit, partition):
        node.put("db.yaml", edited("StatefulSet", "db", edit, replicas=2, updateStrategy={"rollingUpdate": {"partition": partition}}))

    def edits():
        """{pod: its edit}, of pods that are ready"""
        return {n: p["metadata"]["annotations"].get("edit") for (_, n), p in node.pods().items()
                if any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))}

    put("1", 1)
    settled(node, "db", 2)
    old = node.get("/apis/apps/v1/namespaces/default/statefulsets/db")["status"]["updateRevision"]
    put("2", 1)
    until(lambda: edits() == {"db-0": "1", "db-1": "2"}, 60, lambda: f"the update down to the partition: {edits()}")
    uid = node.pods()["default", "db-0"]["metadata"]["uid"]
    k.kubectl("delete", "pod", "db-0", "db-1", "--wait=false")
    node.kill()
    node.start()
    until(lambda: edits() == {"db-0": "1", "db-1": "2"} and node.pods()["default", "db-0"]["metadata"]["uid"] != uid, 60, lambda: f"new pods: {edits()}")
    equal(node.pods()["default", "db-0"]["metadata"]["labels"]["controller-revision-hash"], old.rpartition("-")[2], "the old revision's pod")
    status = node.get("/apis/apps/v1/namespaces/default/statefulsets/db")["status"]
    equal((status["currentRevision"], status["currentReplicas"], status["updatedReplicas"]), (old, 1, 1), "status")
    put("2", 0)
    until(lambda: edits() == {"db-0": "2", "db-1": "2"}, 60, lambda: f"the rest of the update: {edits()}")
    until(lambda: (s := node.get("/apis/apps/v1/namespaces/default/statefulsets/db")["status"])["currentRevision"] == s["updateRevision"] != old,
          20, "the end of the update")
    node.stop()


test_partition.seconds = 300
