# SPDX-License-Identifier: Apache-2.0
"""What an apiserver accepts and a node without one cannot do: the pod waits, or runs without it and says so."""
from coracle import check, container, contains, equal, mount, pod, shell, until


def test_gates(t):
    """a pod with scheduling gates waits, with Kubernetes' reason, until its manifest has no gate"""
    node = t.node()
    node.import_image()
    node.put("gated.yaml", pod("gated", schedulingGates=[{"name": "example.com/late"}]))
    one = until(lambda: node.pods().get(("default", "gated")), 20, "the pod")
    scheduled = one.condition("PodScheduled")
    equal((one["status"]["phase"], scheduled["status"], scheduled["reason"]), ("Pending", "False", "SchedulingGated"), "the pod")
    equal(scheduled["message"], "Scheduling is blocked due to non-empty scheduling gates", "message")
    node.put("gated.yaml", pod("gated"))
    node.wait_running("gated")
    equal(node.pod("gated").condition("PodScheduled")["status"], "True", "scheduled")


def test_projections_of_a_server(t):
    """Tokens, trust bundles and certificates of a projected volume are absent and named, and its other files are there"""
    node = t.node()
    node.import_image()
    sources = [{"serviceAccountToken": {"path": "token", "audience": "vault"}},
               {"clusterTrustBundle": {"name": "roots", "path": "roots.pem"}},
               {"podCertificate": {"signerName": "example.com/pods", "keyType": "ED25519", "credentialBundlePath": "own.pem"}},
               {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]
    node.put("box.yaml", pod("box", container(command=shell("ls /box; sleep 3600"), volumeMounts=[mount("box", "/box")]),
                             volumes=[{"name": "box", "projected": {"sources": sources}}]))
    node.wait_running("box")
    until(lambda: node.logs("box"), 20, "the log")
    equal(node.logs("box").split(), ["name"], "files")
    ignored = node.pod("box").condition("coracle.dev/FieldsIgnored")["message"]
    for name in ("serviceAccountToken", "clusterTrustBundle", "podCertificate"):
        contains(ignored, name)
    node.put("bad.yaml", pod("bad", volumes=[{"name": "box", "projected": {"sources": [{"podCertificate": {"signerName": "a.b/c", "keyType": "DSA"}}]}}]))
    until(node.problems, 20, "the problem of an unknown kind of key")
    check("keyType" in str(node.problems()), node.problems)
