# SPDX-License-Identifier: Apache-2.0
"""replay_lists - recorded lists, tables and watches of a kube-apiserver, asked of a local API with the same objects."""
import base64
import http.client
import json
import time
import urllib.parse

import replay
from coracle import SLOW
from patch_peer import recordings

RUN = ("pods", "deployments", "daemonsets", "statefulsets", "jobs")
TOO_LARGE = "999999999999"  # as recorded; versions here are greater than that


def simple(version, kind, name, **members):
    """(path of the collection, object)"""
    plural = {"Service": "services", "Namespace": "namespaces"}.get(kind, kind.lower() + "s")
    path = "/api/v1" if version == "v1" else f"/apis/{version}"
    meta = {"name": name, **members.pop("metadata", {})}
    if kind != "Namespace":
        path += "/namespaces/default"
        meta["namespace"] = "default"
    return f"{path}/{plural}", {"apiVersion": version, "kind": kind, "metadata": meta, **members}


def workload(kind, name, **spec):
    pod = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "a", "image": "busybox:1"}]}}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    if kind == "Job":
        pod = {"spec": {**pod["spec"], "restartPolicy": "Never"}}
    else:
        spec["selector"] = {"matchLabels": {"app": "d"}}
    return simple(version, kind, name, spec={**spec, "template": pod})


STOCK = [
    simple("v1", "ConfigMap", "c", metadata={"labels": {"l": "1"}, "annotations": {"a": "1"}}, data={"x": "1", "y": "2"}),
    *[simple("v1", "ConfigMap", f"m{i}", metadata={"labels": {"n": str(i), "par": "odd" if i % 2 else "even"}}, data={"x": "1", "y": "2"})
      for i in range(7)],
    simple("v1", "Namespace", "n1"),
    simple("v1", "Pod", "p", metadata={"labels": {"app": "p"}}, spec={"containers": [
        {"name": "a", "image": "busybox:1"}, {"name": "b", "image": "busybox:1"}]}),
    simple("v1", "Secret", "s", data={"x": "MQ==", "y": "Mg=="}, type="Opaque"),
    simple("v1", "Service", "sv", spec={"selector": {"app": "p"}, "ports": [
        {"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}]}),
    workload("DaemonSet", "ds"), workload("Deployment", "d"), workload("StatefulSet", "st", serviceName="x"), workload("Job", "j"),
]


class Stock:
    """The objects that the recordings were made of."""

    def __init__(self, api):
        self.problems = []
        with open(f"{recordings()}/list-watch/list-limit-no-selector.json", encoding="utf-8") as f:
            root = replay.creation(json.load(f)["result"]["items"][1], "/api/v1/namespaces/default/configmaps/kube-root-ca.crt")
        for path, o in STOCK + [(root["path"], root["body"])]:
            query = "fieldManager=kubectl-create" if o is root["body"] else ""
            code, _, value = api.ask("POST", path, query, o, {"Content-Type": "application/json"})
            if code != 201:
                self.problems.append((f"POST {path}", 201, [code, value]))


def changed_token(token, **members):
    value = {**json.loads(base64.b64decode(token + "=" * (-len(token) % 4))), **members}
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode()


class Listing(replay.Case):
    """One recorded read."""

    def __init__(self, api, folder, case):
        super().__init__(api, folder, case)
        self.bound.moving = True  # of the version of a list, too: the node writes all the time

    def version(self):
        return self.api.ask("GET", "/api/v1/namespaces/default/configmaps", "limit=1")[2]["metadata"]["resourceVersion"]

    def page(self, token=""):
        query = "labelSelector=par&limit=3" + ("&continue=" + urllib.parse.quote(token, safe="") if token else "")
        return self.api.ask("GET", "/api/v1/namespaces/default/configmaps", query)[2]["metadata"]["continue"]

    def continued(self):
        """The token with which the case goes on: that of a first page, or of a second one, or one that an apiserver did not give."""
        name, token = self.case["name"], self.page()
        if name == "list-limit-page-3":
            token = self.page(token)
        made = {"list-continue-other-version": {"v": "meta.k8s.io/v9"}, "list-continue-rv-0": {"rv": 0},
                "list-continue-expired-rv-2": {"rv": 2}, "list-continue-inconsistent": {"rv": -1}}
        return urllib.parse.quote(changed_token(token, **made[name]) if name in made else token, safe="")

    def prepare(self):
        self.bound.values["<rv:1>"] = self.version()

    def run(self):
        case = self.case
        self.prepare()
        query = (case.get("query") or "").replace(TOO_LARGE, TOO_LARGE + "999999")
        if "<continue>" in query:
            query = query.replace("<continue>", self.continued())
        if "fields" in case:
            self.run_fields()
        elif "events" in case:
            self.run_watch(self.bound.fill(query))
        else:
            body = case.get("body")
            code, headers, value = self.send(case["method"], case["path"], query, "application/json" if body else None, body,
                                             case.get("requestHeaders"))
            if isinstance(value, dict) and "message" in value:
                value["message"] = value["message"].replace(TOO_LARGE + "999999", TOO_LARGE)
            self.compare(code, headers, self.shown(value))
        return self.problems

    def shown(self, value):
        """Without the rows that the recording was cut by, and without what the node knows of what it runs."""
        expected = self.case.get("result", {})
        if isinstance(value, dict) and value.get("kind") == "Table" and expected.get("kind") == "Table":
            if "cut to three" in self.case.get("about", ""):
                value["rows"] = value["rows"][:3]
            if self.case["path"].split("namespaces/default/")[-1].split("/")[0] in RUN or "/nodes" in self.case["path"]:
                for row in value["rows"] + expected["rows"]:
                    row["cells"] = row["cells"][:1]
        return value

    def run_fields(self):
        for field, wanted in self.case["fields"].items():
            code, _, value = self.api.ask("GET", self.case["path"], f"fieldSelector={field}%3Dx")
            message = value.get("message") if isinstance(value, dict) else value
            if code != wanted["code"] or message != wanted.get("message"):
                self.note(field, wanted, [code, message])

    def run_watch(self, query):
        case = self.case
        connection = http.client.HTTPSConnection(*self.api.address, context=self.api.tls, timeout=20 * SLOW)
        connection.request(case["method"], case["path"] + "?" + query, headers={"User-Agent": "golden/1", **(case.get("requestHeaders") or {})})
        answer = connection.getresponse()
        for step in case.get("meanwhile", []):
            time.sleep(0.05)  # the recorded changes came one by one, too
            path, _, more = step["path"].partition("?")
            code, _, value = self.send(step["method"], path, more, step.get("type"), step.get("body"))
            if code != step.get("code", code):
                self.note(f"{step['method']} {path}", step["code"], [code, value])
        text = answer.read().decode()
        connection.close()
        self.compare_code(answer.status)
        events = [json.loads(line) for line in text.splitlines() if line]
        expected = case["events"]
        if not case.get("meanwhile"):  # the order of what is there binds nobody
            events, expected = sorted(events, key=event_key), sorted(expected, key=event_key)
        if [e.get("type") for e in events] != [e.get("type") for e in expected]:
            self.note("events", [e.get("type") for e in expected], events)
            return
        for i, (wanted, got) in enumerate(zip(expected, events)):
            managers = "managedFields" in json.dumps(wanted)
            for at, e, a in self.bound.differences(replay.settle(wanted.get("object", wanted), managers),
                                                   replay.settle(got.get("object", got), managers)):
                self.note(f"event {i} {wanted.get('type')}{at}", e, a)

    def compare_code(self, code):
        if code != self.case["code"]:
            self.note("code", self.case["code"], code)

    def clean(self, folder):
        """The objects are for the next case, too."""


def event_key(event):
    return event.get("type") == "BOOKMARK", event.get("object", event).get("metadata", {}).get("name", "")
