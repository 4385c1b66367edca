# SPDX-License-Identifier: Apache-2.0
"""replay_kubectl - recorded sessions of kubectl with a kube-apiserver: its requests, asked of the local API in the same order.

Not asked: discovery and OpenAPI documents (their answers are not recorded), watches and upgraded connections."""
import base64
import json
import re
import time
import urllib.parse

import replay
from coracle import SLOW
from patch_peer import KINDS

PLURALS = {kind: (version, plural) for plural, (version, kind) in KINDS.items()}
NAMESPACELESS = ("Namespace", "Node", "PersistentVolume", "PriorityClass", "RuntimeClass")
SHOWN_HEADERS = ("Accept", "Content-Type")


def path_of(o):
    version, plural = PLURALS[o["kind"]]
    start = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    if o["kind"] not in NAMESPACELESS:
        start += f"/namespaces/{o['metadata'].get('namespace', 'default')}"
    return f"{start}/{plural}/{o['metadata']['name']}"


def without_cells(o):
    """A table without what a node says of its objects: the columns, and the first cell of each row, which is the name."""
    if isinstance(o, dict) and o.get("kind") == "Table":
        rows = [{**r, "cells": r["cells"][:1], "object": replay.settle(r.get("object"), False)} for r in o.get("rows") or []]
        return {**o, "rows": rows}
    return o


def is_gone(request):
    """A read that finds nothing."""
    response = request.get("response")
    if request.get("method", "GET") != "GET" or not isinstance(response, dict):
        return False
    return request["code"] == 404 or response.get("items") == []


def is_protobuf(response):
    return "base64" in response if isinstance(response, dict) else isinstance(response, str) and response.startswith("k8s\0")


class Session(replay.Case):
    """One recorded session."""

    def __init__(self, api, folder, case, kubectl):
        super().__init__(api, folder, case)
        self.kubectl = kubectl
        self.bound.moving = True
        self.token = ""

    def prepare(self):
        case = self.case
        for o in case.get("setup", []):
            step = replay.creation(o, path_of(o))
            code, _, value = self.send("POST", step["path"], "", "application/json", o)
            self.remember("POST", step["path"], o, value)
            if code != 201 and o["kind"] != "Node":  # the node is the one that there is
                self.note(f"setup {path_of(o)}", 201, [code, value])
        for step in case.get("before", []):
            if "command" in step:
                answer = self.kubectl(*step["command"].split()[1:], ok=False, stdin=step["stdin"])
                if answer.stdout != step["stdout"]:
                    self.note(f"before {step['command']}", step["stdout"], answer.stdout + answer.stderr)
                continue
            code, _, value = self.send(step["method"], step["path"], step.get("query"), replay.SHORT_TYPES.get(step["type"], step["type"]), step["body"])
            if code != step["code"]:
                self.note(f"before {step['method']} {step['path']}", step["code"], [code, value])
        if case.get("liveBefore") is not None:
            self.look("liveBefore", case["liveBefore"])

    def look(self, where, expected):
        """What there is, beside what was."""
        path = path_of(expected)
        self.made.add(path)
        code, _, value = self.api.ask("GET", path)
        if code != 200:
            self.note(where, expected, value)
            return
        for at, wanted, got in self.bound.differences(replay.settle(expected, False), replay.settle(value, False)):
            self.note(where + at, wanted, got)

    def step(self, number, request):
        expected = request.get("response")
        if "upgraded" in request or isinstance(expected, dict) and ("omitted" in expected or "stream" in expected):
            return 0
        query = re.sub("(?<=continue=)[^&]+", lambda _: urllib.parse.quote(self.token, safe=""), request["query"] or "")
        if "watch=" in query or "follow=true" in query or request["path"].startswith("/openapi") or request["path"] in ("/api", "/apis"):
            return 0
        where = f"{number} {request['method']} {request['path']}"
        headers = {k: v for k, v in request["headers"].items() if k in SHOWN_HEADERS}
        body = request.get("body")
        if isinstance(body, list):  # the recorded version has no placeholder in a JSON patch
            body = [{**op, "value": "<rv:0>"} if op.get("path") == "/metadata/resourceVersion" else op for op in body]
            self.bound.values.setdefault("<rv:0>", "1")
            self.read_again(request["path"])
        if isinstance(body, dict) and "base64" in body:
            body = base64.b64decode(body["base64"])
        elif body is not None and not isinstance(body, str):
            body = json.dumps(body)
        ends = time.monotonic() + 5 * SLOW
        for _ in range(5):
            code, _, value = self.send(request["method"], request["path"], query, None, body, headers)
            if code != 409 or request["code"] == 409 or isinstance(body, bytes) or "<rv:" not in (body or ""):
                break
            self.read_again(request["path"])
        while is_gone(request) and not is_gone({"code": code, "response": value}) and time.monotonic() < ends:
            time.sleep(0.05)  # the end of a pod takes what it takes
            code, _, value = self.send(request["method"], request["path"], query, None, body, headers)
        if isinstance(value, dict):
            self.token = value.get("metadata", {}).get("continue", "")
        self.remember(request["method"], request["path"], body, value)
        if code != request["code"]:
            self.note(f"{where}: code", request["code"], [code, value])
            return 1
        if expected is None or is_protobuf(expected):  # which is not spoken here
            return 1
        expected, value = without_cells(replay.settle(expected, False)), without_cells(replay.settle(value, False))
        for at, wanted, got in self.bound.differences(expected, value):
            self.note(where + at, wanted, got)
        return 1

    def read_again(self, path):
        """The node wrote the status of the object in between: kubectl goes on from the version that there is."""
        version = self.api.ask("GET", replay.object_path(path))[2].get("metadata", {}).get("resourceVersion", "1")
        self.bound.values.update({name: version for name in self.bound.values if name.startswith("<rv:")})

    def clean(self, folder):
        super().clean(folder)
        ends = time.monotonic() + 20 * SLOW
        while self.api.ask("GET", "/api/v1/pods", "limit=1")[2].get("items") and time.monotonic() < ends:
            time.sleep(0.05)  # those of a workload end after it

    def run(self):
        self.prepare()
        for number, request in enumerate(self.case["requests"]):
            self.step(number, request)
        if self.case.get("liveAfter") is not None:
            self.look("liveAfter", self.case["liveAfter"])
        return self.problems
