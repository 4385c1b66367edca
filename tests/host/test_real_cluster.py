# SPDX-License-Identifier: Apache-2.0
"""The daemon joined to a real etcd and kube-apiserver, where they are installed: what a scripted one could get wrong."""
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request

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
        request = urllib.request.Request(self.plane.url + path, data, {"Content-Type": "application/json"}, method=method)
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
    """a real apiserver that is killed disturbs no pod; what happened meanwhile is told when it is back"""
    plane, api, node = joined(t)
    api.create(PODS, bound(pod("stays")))
    api.create(PODS, bound(pod("ends", container(command=shell("while [ ! -e /tmp/end ]; do sleep 0.1; done")), restartPolicy="Never")))
    for name in ("stays", "ends"):
        until(lambda n=name: (api.get(f"{PODS}/{n}") or {}).get("status", {}).get("phase") == "Running", 20, f"{name} runs")
    before = node.wait_running("stays").container_id()
    plane.stop_program("kube-apiserver")
    node.enter(node.pod("ends"), "touch", "/tmp/end")
    node.wait_phase("ends", "Succeeded")
    plane.start_apiserver()
    plane.wait("the apiserver's readiness", plane.ready, 60)
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
