# SPDX-License-Identifier: Apache-2.0
"""patch_peer - the program tests/host/patch_lines, and the recorded cases of an apiserver, for tests of patches."""
import glob
import json
import os
import re
import subprocess
import urllib.parse

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def recordings():
    """The folder of recordings of a kube-apiserver (json-patch, merge-patch ..., one JSON file a case), or None: searched in
    CORACLE_GOLDEN, and as ../shared/golden beside the checkout."""
    for path in (os.environ.get("CORACLE_GOLDEN"), f"{TOP}/../shared/golden"):
        if path and os.path.isdir(f"{path}/apply/json-patch"):
            return f"{path}/apply"
    return None


FOLDERS = {"json-patch": "json", "merge-patch": "merge", "strategic-merge-patch": "strategic", "server-side-apply": "apply",
           "put": "update"}
KINDS = {"pods": ("v1", "Pod"), "configmaps": ("v1", "ConfigMap"), "secrets": ("v1", "Secret"), "events": ("v1", "Event"),
         "services": ("v1", "Service"), "namespaces": ("v1", "Namespace"), "nodes": ("v1", "Node"),
         "persistentvolumeclaims": ("v1", "PersistentVolumeClaim"), "persistentvolumes": ("v1", "PersistentVolume"),
         "deployments": ("apps/v1", "Deployment"), "replicasets": ("apps/v1", "ReplicaSet"),
         "statefulsets": ("apps/v1", "StatefulSet"), "daemonsets": ("apps/v1", "DaemonSet"), "jobs": ("batch/v1", "Job"),
         "cronjobs": ("batch/v1", "CronJob"), "ingresses": ("networking.k8s.io/v1", "Ingress"),
         "priorityclasses": ("scheduling.k8s.io/v1", "PriorityClass"), "runtimeclasses": ("node.k8s.io/v1", "RuntimeClass")}
PATH = re.compile(r"^/apis?/.*?(?:namespaces/([^/]+)/)?([a-z]+)/([^/]+)(?:/([a-z]+))?$")


class Peer:
    def __init__(self, build):
        self.process = subprocess.Popen([f"{build}/tests/host/patch_lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"patch_lines ended at {json.dumps(what)}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def cases(folder):
    for path in sorted(glob.glob(f"{recordings()}/{folder}/*.json")):
        with open(path, encoding="utf-8") as f:
            yield json.load(f)


def without_numbers(value):
    """With numbers for versions: <rv:1> is read as one."""
    text = json.dumps(value)
    return json.loads(re.sub(r"<rv:(\d+)>", lambda m: "900" + m.group(1), text))


def write_of(case, folder):
    """The recorded request as patch_lines takes it; None: it never reaches this library (no JSON, no such kind)."""
    match = PATH.match(case["path"])
    if match is None or match.group(2) not in KINDS or match.group(4) == "scale":
        return None
    body = case.get("patch", case.get("body"))
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return None
    query = dict(urllib.parse.parse_qsl(case.get("query") or "", keep_blank_values=True))
    version, kind = KINDS[match.group(2)]
    return {"write": FOLDERS[folder], "apiVersion": version, "kind": kind, "live": without_numbers(case.get("live")),
            "patch": without_numbers(body), "name": match.group(3), "namespace": match.group(1),
            "manager": query.get("fieldManager") or ("" if folder == "server-side-apply" else "golden"), "subresource": match.group(4), "now": "2030-01-01T00:00:00Z",
            "validation": query.get("fieldValidation") or "Warn", "force": query.get("force") == "true",
            "dryRun": query.get("dryRun"), "forced": query.get("force")}
