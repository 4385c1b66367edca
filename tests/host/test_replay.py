# SPDX-License-Identifier: Apache-2.0
"""Recorded answers of a kube-apiserver, and those of the local API of a running node to the same requests (replay.py).

CORACLE_GOLDEN names a folder with recordings; REPLAY_ONLY a part of the names of the cases."""
import os

import patch_peer
import replay
import replay_kubectl
import replay_lists
from coracle import Failed, Skip
from test_lone_kubectl import PORT, Lone

# What is not as recorded, and why it stays so. A case that is not here and differs fails the test.
STATUS = "the status of what the node runs is its own to write"
FINALIZERS = "no object waits for a garbage collector, or for a controller that protects it: nothing here would let it go"
EVENTS = "events are written by the node"
WARNINGS = "warnings of an apiserver about valid objects"
SCHEDULED = "a pod is on its node from its beginning, and its end takes what it takes"
NODE = "the node is the one that there is"
TOKEN = "why a token is none is not told"
JOB = "the pods of a Job have the names and events that this node gives them"
ORPHAN = "refused: pods of a node without a control plane end with the object that made them"
UPGRADED = "a request without the upgrade that kubectl asks for is 400"
RUNNING = "no image and no kubelet: the recorded pod runs without one, ours waits for it"
ALL = "no ReplicationControllers and no service kubernetes; an autoscaler is kept and shown"
VERSION = "it says what it is"
FIRST = "a rule that an earlier error hides is told when that is mended"
WORDS = "the same causes, in other words"
ARGUED = {
    "errors": {
        "405-unknown-method": "a method that HTTP does not have is refused before the path is looked at",
        "413-too-large": "a body that is too long is refused before the path is looked at, in plain text",
        "422-post-bad-deployment": FIRST, "422-post-bad-pod": WORDS,
        "binding": "no scheduler: pods are on their node", "binding-already-bound": "no scheduler: pods are on their node",
        "post-empty-daemonset": "a selector is required, as of the others",
        "post-empty-namespace": WORDS, "post-empty-node": NODE},
    "list-watch": {
        "fieldselector-use-event-involved": EVENTS, "fieldselector-use-node-unschedulable": NODE,
        "fieldselector-use-namespace-phase": "kube-public and kube-system are not on a lone node",
        "fieldselector-use-pod-nodename-empty": SCHEDULED, "fieldselector-use-pod-phase": "the pods of workloads are there, too",
        "fieldselector-use-pod-phase-not": "the same", "fieldselector-use-service-clusterip": "there is no service kubernetes",
        "list-continue-garbage": TOKEN, "list-continue-other-version": TOKEN,
        "list-continue-rv-0": TOKEN, "list-continue-with-resourceversion-0": "a page keeps its limit, which version 0 takes away there", "list-rv-limit-with-rv": "a page of one has a token there though nothing follows",
        "watch-accept-yaml": "a Status that refuses YAML is JSON",
        "watch-bookmark-before-timeout": "the bookmark of the end comes, which the recording has missed",
        "watch-from-old-rv-replays": "changes of other recordings, which are not shown",
        "watch-pod-graceful-deletion": SCHEDULED},
    "table": {
        **{f"{form}-{how}-{kind}": why for form in ("table", "partialmetadata") for how in ("get", "list")
           for kind, why in (("event", EVENTS), ("node", NODE))},
        "table-get-service": "a service has no address here", "table-list-service": "a service has no address here",
        "table-list-pod": "the pods of workloads are there, too", "table-list-namespace": "kube-public and kube-system are not on a lone node"},
    "accept": {name: "protobuf is not spoken" for name in (
        "accept-cbor", "accept-garbage", "accept-html", "accept-protobuf", "accept-table-wrong-version", "accept-unknown-as")},
    "discovery": {
        "openapi-v3-api/v1-proto": "protobuf is not spoken: every client takes JSON as well", "openapi-v3-apis/apps/v1-proto": "the same",
        "probe-readyz-verbose": "it has other parts", "root": "no list of paths", "version": VERSION,
        "selfsubjectreview": "the user has another name"},
    "kubectl": {
        "auth-can-i-list-120": "the rules of the one user are one rule", "cordon-120": NODE, "cordon-136": NODE,
        "delete-cascade-foreground-136": FINALIZERS, "delete-cascade-orphan-120": ORPHAN, "delete-cascade-orphan-136": ORPHAN,
        "describe-daemonset-136": "an annotation of a version that is gone", "describe-deployment-120": EVENTS, "describe-event-136": EVENTS,
        "describe-node-136": NODE, "describe-pod-120": EVENTS,
        "describe-service-136": "a service has no address here", "events-136": EVENTS, "events-for-136": EVENTS,
        **{name: UPGRADED for name in ("cp-120", "exec-120", "exec-stdin-tty-120", "exec-unscheduled-120", "exec-unscheduled-136",
                                       "port-forward-120", "port-forward-136")},
        "get-all-120": ALL, "get-all-136": ALL, "get-node-136": NODE, "get-selector-120": RUNNING, "get-selector-136": RUNNING,
        "get-service-136": "there is no service kubernetes", "logs-120": RUNNING, "logs-136": RUNNING,
        "logs-no-container-named-136": RUNNING, "logs-unscheduled-120": SCHEDULED, "logs-unscheduled-136": SCHEDULED,
        "patch-status-136": STATUS, "version-120": VERSION, "version-136": VERSION,
        "wait-create-136": "the object is made while kubectl waits for it"},
    "kubectl-apply": {
        "unknown-kind-136": "there are no custom resources: 404, which kubectl takes"},
    "json-patch": {
        "change-kind": "the message tells the kinds apart, not their bytes",
        "env-duplicate-warning": WARNINGS,
        "status-subresource": STATUS,
        "value-duplicate-key": "a member that a value of a JSON patch has twice: the last counts"},
    "merge-patch": {
        "fieldmanager-bad-character": "a zero byte in a URL is refused before the parameter is looked at",
        "kind-wrong": "the message tells the kinds apart, not their bytes",
        "metadata-by-status-subresource": STATUS, "metadata-event": EVENTS, "metadata-job": JOB,
        "metadata-persistentvolumeclaim": FINALIZERS, "pod-ephemeralcontainers-add": "the daemon adds them: no manager owns them",
        "pod-ephemeralcontainers-removed": "the daemon adds them: no generation counts",
        "pod-gated-nodeselector": "no scheduler: gates are refused",
        "pod-resize-node-too-small": "admission says it, with PodResizePending", "pod-resize-node-unknown": SCHEDULED,
        "pod-scheduling-gate-removed": "no scheduler: gates are refused", "pod-status-bad-condition": STATUS,
        "pod-status-subresource": STATUS, "status-subresource-observed-generation": STATUS},
    "strategic-merge-patch": {
        "pod-ephemeral-second": "the daemon adds them, at the end", "pod-status-conditions-merge-by-type": STATUS,
        "pod-status-containerstatuses-atomic": STATUS, "pod-status-kubelet-style": STATUS,
        "pod-status-observedgeneration": STATUS, "pod-status-podips-merge-by-ip": STATUS,
        "ports-merge-same-number-two-protocols": WARNINGS, "topologyspread-merge": WARNINGS,
        "tolerations-set-element-order": "the apiserver panics, this answers 400",
        "volumes-second-source-refused": "a volume with two sources is not looked at further"},
    "server-side-apply": {
        "duplicate-key-strict": "keys that YAML has twice: the last counts", "duplicate-key-warn": "the same",
        "malformed-yaml": "another YAML parser", "managers-in-different-apiversions-events": EVENTS,
        "pod-status-by-apply": STATUS, "scale-by-apply-conflict": "a scale is read with the managers of one that nobody applied",
        "status-by-apply": STATUS, "status-conditions-by-type-second": STATUS},
    "put": {
        "deployment-status": STATUS,
        "pod-tolerations-removed": "warnings about tolerations of an admission plugin that a lone node has not"},
    "delete": {
        "cm-query-and-body": FINALIZERS, "deployment-foreground": FINALIZERS,
        "pod-finalizer": SCHEDULED, "plain-persistentvolumeclaim": FINALIZERS,
        "deletecollection-selector": "it began with two objects, the second of which is not shown",
        "deployment-orphan": ORPHAN,
        "plain-event": EVENTS, "plain-job": "pods of a Job end with it, as kubectl's default asks for",
        "plain-namespace": "an empty namespace is gone at once", "pod-dry-run": "it shows the pod as it is",
        "plain-pod": SCHEDULED, "pod-on-node-grace-0": SCHEDULED, "pod-succeeded": SCHEDULED, "pod-uid-right": SCHEDULED},
}


READ = ("list-watch", "table", "accept")


def case_of(api, folder, case, k):
    if "requests" in case:
        return replay_kubectl.Session(api, folder, case, k.kubectl)
    if folder == "discovery":
        return replay.Document(api, folder, case)
    return (replay_lists.Listing if folder in READ else replay.Case)(api, folder, case)


def replay_folders(t, *folders):
    if patch_peer.recordings() is None:
        raise Skip("no recordings of an apiserver: CORACLE_GOLDEN names no folder with them")
    k = Lone(t)
    api = replay.Api(k.config, "127.0.0.1", PORT)
    differing = []
    if set(folders) & set(READ):
        differing += replay_lists.Stock(api).problems
    for folder in folders:
        counts = {}
        for case in patch_peer.cases(folder):
            if os.environ.get("REPLAY_ONLY", "") not in case["name"]:
                continue
            one = case_of(api, folder, case, k)
            problems = one.run()
            one.clean(k.node.manifests)
            is_argued = case["name"] in ARGUED.get(folder, ())
            found = ("argued" if is_argued else "differs") if problems else "passes, though argued" if is_argued else "passes"
            counts[found] = counts.get(found, 0) + 1
            if found != "passes":
                print(f"{folder}/{case['name']}: {found}\n{replay.shown(problems)}")
            if found not in ("passes", "argued"):
                differing.append(f"{folder}/{case['name']}")
        print(f"COUNT {folder} " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    api.close()
    k.node.stop()
    if differing:
        raise Failed(f"these differ: {' '.join(differing)}")


def test_json_patches(t):
    """recorded JSON patches give the recorded answers"""
    replay_folders(t, "json-patch")


def test_merge_patches(t):
    """recorded merge patches give the recorded answers"""
    replay_folders(t, "merge-patch")


def test_strategic_patches(t):
    """recorded strategic merge patches give the recorded answers"""
    replay_folders(t, "strategic-merge-patch")


def test_applies(t):
    """recorded server-side applies give the recorded answers"""
    replay_folders(t, "server-side-apply")


def test_errors(t):
    """recorded requests that are refused, and POSTs of little, give the recorded answers"""
    replay_folders(t, "errors")


def test_kubectl_apply(t):
    """recorded requests of kubectl apply give the recorded answers"""
    replay_folders(t, "kubectl-apply")


def test_kubectl(t):
    """recorded requests of other commands of kubectl give the recorded answers"""
    replay_folders(t, "kubectl")


def test_lists(t):
    """recorded lists and watches give the recorded answers"""
    replay_folders(t, "list-watch")


def test_tables(t):
    """recorded tables, negotiated forms and discovery give the recorded answers"""
    replay_folders(t, "table", "accept", "discovery")


def test_updates_and_deletions(t):
    """recorded PUTs and DELETEs give the recorded answers"""
    replay_folders(t, "put", "delete")


for _f in (test_json_patches, test_merge_patches, test_strategic_patches, test_applies, test_errors, test_kubectl_apply, test_kubectl, test_lists, test_tables, test_updates_and_deletions):
    _f.seconds = 400
