# SPDX-License-Identifier: Apache-2.0
"""The daemon joined to a real etcd and kube-apiserver, where they are installed: what a scripted one could get wrong."""
import base64
import hashlib
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request

import csi
from coracle import TOP, Skip, check, contains, container, equal, mount, pod, read, run, shell, until

sys.path.insert(0, f"{TOP}/examples")
import control_plane  # noqa: E402

ADDRESS = "10.98.0.1"  # on the loopback of the test's own network namespace


class Api:
    """An administrator's requests."""

    def __init__(self, plane):
        self.plane = plane
        self.context = ssl.create_default_context(cafile=plane.keys.ca)
        self.context.load_cert_chain(plane.keys.path("admin.crt"), plane.keys.path("admin.key"))

    def __call__(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.plane.url + path, data, {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def get(self, path):
        code, text = self("GET", path)
        return json.loads(text) if code == 200 else None

    def create(self, path, body):
        code, text = self("POST", path, body)
        equal(code, 201, f"POST {path}: {text}")
        return json.loads(text)

    def merge(self, path, body):
        code, text = self("PATCH", path, body)
        equal(code, 200, f"PATCH {path}: {text}")


def joined(t, flags=()):
    if control_plane.missing():
        raise Skip(f"not installed: {', '.join(control_plane.missing())} (no packages of Debian 12's; ETCD= and KUBE_APISERVER= name them)")
    os.chmod(t.scratch, 0o755)
    run("ip", "address", "add", f"{ADDRESS}/32", "dev", "lo")
    plane = control_plane.ControlPlane(f"{t.scratch}/plane", ADDRESS, flags=flags)
    plane.start()
    api = Api(plane)
    api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "none"}})
    node = t.node("--kubeconfig", plane.node("test-node"), "--node-ip", ADDRESS, "--client-ca-file", plane.keys.ca)
    node.import_image()
    until(lambda: condition(api.get("/api/v1/nodes/test-node"), "Ready") == "True", 20, "the node is Ready")
    return plane, api, node


def condition(o, kind):
    return next((c["status"] for c in (o or {}).get("status", {}).get("conditions", []) if c["type"] == kind), None)


def bound(o):
    o["spec"]["nodeName"] = "test-node"
    o["metadata"].setdefault("namespace", "default")
    return o


PODS = "/api/v1/namespaces/default/pods"


def test_pod_of_a_real_apiserver(t):
    """a pod with a Secret and a token runs; its log and its deletion go through the apiserver"""
    plane, api, node = joined(t)
    api.create("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "stringData": {"word": "real"}})
    api.create(PODS, bound(pod("web", container(env=[{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "word"}}}],
                                                command=shell("echo word is $WORD; trap 'exit 0' TERM; while :; do sleep 1; done")))))
    until(lambda: condition(api.get(f"{PODS}/web"), "Ready") == "True", 20, "the pod is Ready")
    here = node.wait_running("web")
    equal(here.uid, api.get(f"{PODS}/web")["metadata"]["uid"], "the uid")
    equal(node.enter(here, "cat", "/var/run/secrets/kubernetes.io/serviceaccount/namespace").stdout, "default", "the namespace beside the token")
    contains(until(lambda: api("GET", f"{PODS}/web/log")[1], 10, "the log"), "word is real", "the log")
    code, text = api("DELETE", f"{PODS}/web?gracePeriodSeconds=1")
    equal(code, 200, text)
    until(lambda: api.get(f"{PODS}/web") is None, 20, "the pod leaves the apiserver")
    node.wait_no_traces(here)
    equal(node.stop(), 0, "the exit code")
    plane.stop()


def test_apiserver_ends_and_returns(t):
    """a killed real apiserver affects no pod; changes made meanwhile are reported when it is back"""
    plane, api, node = joined(t)
    api.create(PODS, bound(pod("stays")))
    api.create(PODS, bound(pod("ends", container(command=shell("while [ ! -e /tmp/end ]; do sleep 0.1; done")), restartPolicy="Never")))
    for name in ("stays", "ends"):
        until(lambda n=name: (api.get(f"{PODS}/{n}") or {}).get("status", {}).get("phase") == "Running", 20, f"{name} runs")
    before = node.wait_running("stays").container_id()
    plane.stop_apiserver()
    node.enter(node.pod("ends"), "touch", "/tmp/end")
    node.wait_phase("ends", "Succeeded")
    plane.return_apiserver()
    began = time.monotonic()
    until(lambda: (api.get(f"{PODS}/ends") or {}).get("status", {}).get("phase") == "Succeeded", 45, "the end is told")
    check(time.monotonic() - began < 45, "too late")
    equal(node.pod("stays").container_id(), before, "the container")
    node.stop()
    plane.stop()


def test_trust_bundles_of_a_real_apiserver(t):
    """ClusterTrustBundles, which a real apiserver checks, become files by name and by signer, and an edit arrives"""
    bundles = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles"
    plane, api, node = joined(t, ("--feature-gates", "ClusterTrustBundle=true,ClusterTrustBundleProjection=true",
                                  "--runtime-config", "certificates.k8s.io/v1beta1/clustertrustbundles=true"))

    def bundle(name, *authorities, **more):
        return {"apiVersion": "certificates.k8s.io/v1beta1", "kind": "ClusterTrustBundle", "metadata": {"name": name, "labels": {"use": "web"}},
                "spec": {"trustBundle": "".join(authorities), **more}}

    def authority(name):
        plane.keys.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9", "-subj", f"/CN={name}",
                           "-keyout", f"{t.scratch}/{name}.key", "-out", f"{t.scratch}/{name}.crt")
        return read(f"{t.scratch}/{name}.crt")

    def found(name):
        text = node.enter(node.pod("web"), "cat", f"/t/{name}").stdout
        return sorted("-----BEGIN" + part for part in text.split("-----BEGIN")[1:])
    one, two, three = (authority(n) for n in ("one", "two", "three"))
    api.create(bundles, bundle("plain", one))
    api.create(bundles, bundle("example.com:sign:a", one, two, signerName="example.com/sign"))
    sources = [{"name": "plain", "path": "plain"}, {"signerName": "example.com/sign", "labelSelector": {"matchLabels": {"use": "web"}}, "path": "signer"},
               {"name": "none", "optional": True, "path": "none"}]
    api.create(PODS, bound(pod("web", container(volumeMounts=[mount("t", "/t")]), volumes=[
        {"name": "t", "projected": {"sources": [{"clusterTrustBundle": s} for s in sources]}}])))
    node.wait_running("web", deadline=30)
    equal([found(n) for n in ("plain", "signer", "none")], [[one], sorted([one, two]), []], "the files")
    api.create(bundles, bundle("example.com:sign:b", three, signerName="example.com/sign"))
    until(lambda: found("signer") == sorted([one, two, three]), 10, "the edit arrives")
    bad = bound(pod("bad", container(volumeMounts=[mount("t", "/t")]), volumes=[
        {"name": "t", "projected": {"sources": [{"clusterTrustBundle": {"signerName": "nodomain", "path": "p"}}]}}]))
    equal(api("POST", PODS, bad)[0], 422, "a signer's name that is none")
    equal(node.stop(), 0, "the exit code")
    plane.stop()


CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
STORAGE = "/apis/storage.k8s.io/v1"
NODE = "/api/v1/nodes/test-node"


def bind(api, name, **how):
    """A PersistentVolume and its claim, bound as a controller does it: also where there is none."""
    volume, claim = csi.volume(name, **how)
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    uid = api.create(CLAIMS, claim)["metadata"]["uid"]
    volume["spec"]["claimRef"].update(uid=uid, apiVersion="v1", kind="PersistentVolumeClaim")
    api.create(VOLUMES, volume)
    api.merge(f"{VOLUMES}/{name}/status", {"status": {"phase": "Bound"}})
    api.merge(f"{CLAIMS}/{name}/status", {"status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}})


def entries(api):
    return {d["name"]: d for d in (api.get(f"{STORAGE}/csinodes/test-node") or {"spec": {}})["spec"].get("drivers") or []}


def runs(api, name):
    until(lambda: (api.get(f"{PODS}/{name}") or {}).get("status", {}).get("phase") == "Running", 30,
          lambda: f"{name} runs: {api.get(f'{PODS}/{name}')['status']} {[e['message'] for e in api.get('/api/v1/namespaces/default/events')['items']]}")


def leave(api, name):
    api("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
    until(lambda: api.get(f"{PODS}/{name}") is None, 30, f"{name} leaves the apiserver")


def claims_of(token):
    """What a JSON web token says."""
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_claims_of_a_real_apiserver(t):
    """a driver is in the CSINode, the claim of a pod is mounted with a token and grows; what the apiserver admits of a node"""
    plane, api, node = joined(t)
    api.create(f"{STORAGE}/csidrivers", csi.driver_object(volumeLifecycleModes=["Persistent"], tokenRequests=[{"audience": "vault"}]))
    driver = csi.Driver(node, "--caps", "STAGE_UNSTAGE_VOLUME,EXPAND_VOLUME", "--max-volumes", "7", "--topology", "topology.example.test/zone=z1")
    entry = {"name": csi.NAME, "nodeID": "id-of-node1", "topologyKeys": ["topology.example.test/zone"], "allocatable": {"count": 7}}
    until(lambda: entries(api).get(csi.NAME) == entry, 15, lambda: f"the CSINode: {entries(api)}")
    about = api.get(NODE)["metadata"]
    equal((about["labels"]["topology.example.test/zone"], json.loads(about["annotations"]["csi.volume.kubernetes.io/nodeid"])),
          ("z1", {csi.NAME: "id-of-node1"}), "the Node")
    api.create("/api/v1/namespaces/default/secrets", {"metadata": {"name": "stage"}, "stringData": {"word": "s3cret"}})
    api.create(PODS, bound(csi.claim_pod("app", "data")))
    until(lambda: any("error processing PVC default/data: failed to fetch PVC from API server" in e["message"]
                      for e in api.get("/api/v1/namespaces/default/events")["items"]), 20, "an event says that the claim is missing")
    bind(api, "data", csi={"nodeStageSecretRef": {"namespace": "default", "name": "stage"}})
    runs(api, "app")
    equal(driver.calls("NodeStageVolume")[0]["request"]["secrets"], {"word": "s3cret"}, "the Secret of the PersistentVolume")
    tokens = json.loads(driver.calls("NodePublishVolume")[0]["request"]["volume_context"]["csi.storage.k8s.io/serviceAccount.tokens"])
    check(tokens["vault"]["token"].count(".") == 2, "a token")
    api.merge(f"{CLAIMS}/data/status", {"status": {"allocatedResources": {"storage": "2Gi"}, "allocatedResourceStatuses": {"storage": "NodeResizePending"},
                                                   "conditions": [{"type": "FileSystemResizePending", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    api.merge(f"{VOLUMES}/data", {"spec": {"capacity": {"storage": "2Gi"}}})
    api.create(PODS, bound(csi.claim_pod("other", "data")))  # for which the claim is read again
    driver.wait_call("NodeExpandVolume", deadline=40)
    status = until(lambda: next((s for s in [api.get(f"{CLAIMS}/data")["status"]] if s["capacity"]["storage"] == "2Gi"), None), 20,
                   lambda: f"the claim has grown: {api.get(f'{CLAIMS}/data')['status']}")
    check("allocatedResourceStatuses" not in status and not status.get("conditions"), f"the claim's status: {status}")
    for name in ("app", "other"):
        leave(api, name)
    driver.wait_call("NodeUnstageVolume")
    driver.leave()
    until(lambda: csi.NAME not in entries(api), 15, "the driver leaves the CSINode")
    about = api.get(NODE)["metadata"]
    equal((about["labels"].get("topology.example.test/zone"), about["annotations"].get("csi.volume.kubernetes.io/nodeid")), ("z1", None), "the Node after that")
    equal(node.stop(), 0, "the exit code")
    plane.stop()


def test_attachments_of_a_real_apiserver(t):
    """a volume is in volumesInUse before it is attached; the attachment's metadata reach the driver; it is free after NodeUnstageVolume"""
    plane, api, node = joined(t)
    api.create(f"{STORAGE}/csidrivers", {**csi.driver_object(volumeLifecycleModes=["Persistent"]), "spec": {"attachRequired": True}})
    driver = csi.Driver(node, "--caps", "STAGE_UNSTAGE_VOLUME")
    bind(api, "data")
    api.create(PODS, bound(csi.claim_pod("app", "data")))
    name = f"kubernetes.io/csi/{csi.NAME}^vol-data"
    attachment = "csi-" + hashlib.sha256(f"vol-data{csi.NAME}test-node".encode()).hexdigest()
    until(lambda: api.get(NODE)["status"].get("volumesInUse") == [name], 20, lambda: f"in use: {api.get(NODE)['status'].get('volumesInUse')}")
    equal(driver.calls("NodeStageVolume"), [], "calls before the attachment")
    code, text = api("POST", f"{STORAGE}/volumeattachments", {"metadata": {"name": attachment}, "spec": {
        "attacher": csi.NAME, "nodeName": "test-node", "source": {"persistentVolumeName": "data"}}})
    check(code in (201, 409), text)  # a controller may have made it
    api.merge(f"{STORAGE}/volumeattachments/{attachment}/status", {"status": {"attached": True, "attachmentMetadata": {"lun": "3"}}})
    api.merge(f"{NODE}/status", {"status": {"volumesAttached": [{"name": name, "devicePath": ""}]}})
    runs(api, "app")
    for method in ("NodeStageVolume", "NodePublishVolume"):
        equal(driver.calls(method)[0]["request"]["publish_context"], {"lun": "3"}, method)
    leave(api, "app")
    driver.wait_call("NodeUnstageVolume")
    until(lambda: not api.get(NODE)["status"].get("volumesInUse"), 30, "it is free")
    driver.leave()
    equal(node.stop(), 0, "the exit code")
    plane.stop()


def test_tokens_of_a_real_apiserver(t):
    """tokens among the secrets: with each publish, of the pod's account, in no volume_context and no log; a driver that refuses them leaves the mount"""
    plane, api, node = joined(t)
    api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
    api.create(f"{STORAGE}/csidrivers", csi.driver_object(volumeLifecycleModes=["Persistent", "Ephemeral"], requiresRepublish=True, serviceAccountTokenInSecrets=True,
                                                          tokenRequests=[{"audience": "vault", "expirationSeconds": 600}, {"audience": ""}]))
    driver = csi.Driver(node, "--caps", "STAGE_UNSTAGE_VOLUME")
    api.create("/api/v1/namespaces/default/secrets", {"metadata": {"name": "own"}, "stringData": {"word": "s3cret"}})
    bind(api, "data", csi={"nodePublishSecretRef": {"namespace": "default", "name": "own"}})
    api.create(PODS, bound(csi.claim_pod("app", "data", serviceAccountName="robot")))
    api.create(PODS, bound(csi.pod("inline", serviceAccountName="robot")))
    for name in ("app", "inline"):
        runs(api, name)
    driver.wait_call("NodePublishVolume", 4)  # each of them twice
    key = "csi.storage.k8s.io/serviceAccount.tokens"
    for call in driver.calls("NodePublishVolume"):
        request = call["request"]
        check(key not in request.get("volume_context", {}), "tokens are in the volume_context")
        tokens = json.loads(request["secrets"][key])
        equal(sorted(tokens), ["", "vault"], "audiences")
        equal(request["secrets"].get("word"), None if request["volume_id"].startswith("csi-") else "s3cret", "the volume's own secret")
        claims = claims_of(tokens["vault"]["token"])
        about = claims["kubernetes.io"]
        name = "inline" if request["volume_id"].startswith("csi-") else "app"
        equal((claims["aud"], claims["sub"], about["pod"]), (["vault"], "system:serviceaccount:default:robot",
                                                           {"name": name, "uid": api.get(f"{PODS}/{name}")["metadata"]["uid"]}), "the token")
        equal(claims["exp"] - claims["iat"], 600, "its life")
        check(tokens["vault"]["expirationTimestamp"].endswith("Z"), "its end")
    equal([c["request"].get("secrets") for c in driver.calls("NodeStageVolume")], [None], "secrets of the stage")
    check(tokens["vault"]["token"] not in node.log(), "a token is in the log")
    # A driver that fails to take them: the mount stays, and an event has its words.
    driver.faults(NodePublishVolume={"code": "INTERNAL", "text": "no vault"})
    node.kill()
    node.start()
    until(lambda: any("no vault" in e["message"] for e in api.get("/api/v1/namespaces/default/events")["items"]), 30, "the driver's words are an event")
    equal(api.get(f"{PODS}/app")["status"]["phase"], "Running", "the pod")
    driver.faults()
    before = len(driver.calls("NodePublishVolume"))
    driver.wait_call("NodePublishVolume", before + 1)
    for name in ("app", "inline"):
        leave(api, name)
    driver.wait_call("NodeUnstageVolume")
    driver.leave()
    equal(node.stop(), 0, "the exit code")
    plane.stop()


def test_volumes_at_the_edges_of_a_real_apiserver(t):
    """a pod deleted by force while its driver is away; a PersistentVolume and a claim that are removed while they are mounted; a driver with a new id"""
    plane, api, node = joined(t)
    api.create(f"{STORAGE}/csidrivers", csi.driver_object(volumeLifecycleModes=["Persistent"]))
    driver = csi.Driver(node, "--caps", "STAGE_UNSTAGE_VOLUME")
    for name in ("one", "two"):
        bind(api, name)
        api.create(PODS, bound(csi.claim_pod(name, name)))
    for name in ("one", "two"):
        runs(api, name)
    uids = {name: api.get(f"{PODS}/{name}")["metadata"]["uid"] for name in ("one", "two")}
    driver.leave()
    until(lambda: csi.NAME not in entries(api), 20, "the driver leaves the CSINode")
    leave(api, "one")
    equal(csi.mounts(csi.folder(node, uids["one"], "one") + "/mount"), 1, "mounts of the pod that is gone")
    # The objects of the other one vanish, with their finalizers, as an impatient administrator does it.
    for path in (f"{CLAIMS}/two", f"{VOLUMES}/two"):
        api("DELETE", path)
        api.merge(path, {"metadata": {"finalizers": None}})
        until(lambda p=path: api.get(p) is None, 10, f"{path} is gone")
    node.kill()
    node.start()
    until(lambda: condition(api.get(f"{PODS}/two"), "Ready") == "True", 30, "the pod goes on")
    driver.flags = (*driver.flags, "--node-id", "another-id")
    driver.start()
    until(lambda: entries(api).get(csi.NAME, {}).get("nodeID") == "another-id", 20, lambda: f"the new id: {entries(api)}")
    equal(json.loads(api.get(NODE)["metadata"]["annotations"]["csi.volume.kubernetes.io/nodeid"]), {csi.NAME: "another-id"}, "the annotation")
    until(lambda: not os.path.exists(f"{node.root_dir}/pods/{uids['one']}"), 30, lambda: f"what the first pod left is undone: {driver.methods()}")
    equal(csi.mounts(csi.folder(node, uids["two"], "two") + "/mount"), 1, "mounts of the pod that stays")
    leave(api, "two")
    until(lambda: sorted(c["request"]["volume_id"] for c in driver.calls("NodeUnstageVolume")) == ["vol-one", "vol-two"], 30,
          lambda: f"both are unstaged: {driver.methods()}")
    until(lambda: not csi.below(node), 20, lambda: f"nothing of a driver is mounted: {csi.below(node)}")
    driver.leave()
    equal(node.stop(), 0, "the exit code")
    plane.stop()
