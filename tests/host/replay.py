# SPDX-License-Identifier: Apache-2.0
"""replay - recorded requests of a kube-apiserver, asked of the local API, and the comparison of its answers with the recorded ones.

What differs between any two runs (uid, resourceVersion, times, ages) has a placeholder in the recordings; the same number is
the same value. What the node itself says of an object (its status, the node's name) is not compared."""
import base64
import http.client
import json
import os
import re
import ssl
import time
import urllib.parse

from coracle import SLOW, Failed, read

TYPES = {"json-patch": "application/json-patch+json", "merge-patch": "application/merge-patch+json",
         "strategic-merge-patch": "application/strategic-merge-patch+json", "server-side-apply": "application/apply-patch+yaml"}

SHORT_TYPES = {"j": TYPES["json-patch"], "m": TYPES["merge-patch"], "s": TYPES["strategic-merge-patch"], "a": TYPES["server-side-apply"]}


class Api:
    """A client of the local API, with the certificates of a kubeconfig and one connection."""

    def __init__(self, kubeconfig, host, port):
        text = read(kubeconfig)

        def data(key):
            return base64.b64decode(re.search(rf"{key}-data: \"?([A-Za-z0-9+/=]+)", text)[1])
        pem = f"{kubeconfig}.pem"
        with open(pem, "wb") as f:
            f.write(data("client-certificate") + data("client-key"))
        os.chmod(pem, 0o600)
        self.tls = ssl.create_default_context(cadata=data("certificate-authority").decode())
        self.tls.load_cert_chain(pem)
        self.address = (host, port)
        self.connection = None

    def _once(self, method, path, body, headers, timeout):
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(*self.address, context=self.tls, timeout=timeout * SLOW)
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        got = {}
        for name, value in answer.getheaders():
            got[name.lower()] = f"{got[name.lower()]}, {value}" if name.lower() in got else value
        return answer.status, got, answer.read()

    def ask(self, method, path, query="", body=None, headers=None, timeout=30):
        """(code, headers, value): the value is what the JSON of the answer says, otherwise its text."""
        headers = dict(headers or {})
        headers.setdefault("User-Agent", "golden/1")
        if not any(k.lower() == "accept" for k in headers):
            headers["Accept"] = "application/json"
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        target = path + ("?" + query if query else "")
        try:
            code, got, data = self._once(method, target, body, headers, timeout)
        except (http.client.HTTPException, ConnectionError):
            self.close()
            code, got, data = self._once(method, target, body, headers, timeout)
        if got.get("connection") == "close":
            self.close()
        try:
            return code, got, json.loads(data)
        except ValueError:
            return code, got, data.decode(errors="replace")

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


# ---- comparing ----

PLACEHOLDER = re.compile(r"<(uid|rv|clusterIP|nodePort|time|age|continue|hash|commit|server|dir|host|n|suffix)(?::(\d+))?>")
FORMS = {"uid": r"[0-9a-f-]{36}", "rv": r"\d+", "clusterIP": r"[0-9a-f.:]*|None", "nodePort": r"\d+", "time": r"[0-9TZ:.-]+",
         "age": r"[0-9a-z<>]+", "continue": r"[A-Za-z0-9_=-]+", "hash": r"[0-9a-z]+", "commit": r"\S+", "server": r"\S+",
         "dir": r"\S+", "host": r"\S+", "n": r"\d+", "suffix": r"[0-9a-z]+"}


class Bound:
    """The values of the placeholders of a case."""

    def __init__(self, moving=False):
        self.values = {}
        self.moving = moving  # the node writes the status of these objects: their version is never the same for long

    def text_matches(self, expected, actual):
        if expected == actual:
            return True
        if not isinstance(actual, str) or "<" not in expected:
            return False
        pattern, names, at = "", [], 0
        for m in PLACEHOLDER.finditer(expected):
            known = self.values.get(m[0]) if m[2] and not (self.moving and m[1] == "rv") else None
            pattern += re.escape(expected[at:m.start()]) + (re.escape(known) if known is not None else f"({FORMS[m[1]]})")
            if known is None:
                names.append(m[0] if m[2] else None)
            at = m.end()
        found = re.fullmatch(pattern + re.escape(expected[at:]), actual, re.S)
        if found is None:
            return False
        for name, value in zip(names, found.groups()):
            if name is not None:
                self.values[name] = value
        return True

    def differences(self, expected, actual, path=""):
        """Paths where the two differ, with both values."""
        if isinstance(expected, dict) and isinstance(actual, dict):
            found = []
            for key in sorted(set(expected) | set(actual)):
                if key not in actual:
                    found.append((f"{path}.{key}", expected[key], "(absent)"))
                elif key not in expected:
                    found.append((f"{path}.{key}", "(absent)", actual[key]))
                else:
                    found += self.differences(expected[key], actual[key], f"{path}.{key}")
            return found
        if isinstance(expected, list) and isinstance(actual, list):
            if len(expected) != len(actual):
                return [(path, expected, actual)]
            return [d for i, (e, a) in enumerate(zip(expected, actual)) for d in self.differences(e, a, f"{path}[{i}]")]
        if isinstance(expected, str):
            return [] if self.text_matches(expected, actual) else [(path, expected, actual)]
        same = type(expected) is type(actual) and expected == actual
        return [] if same else [(path, expected, actual)]

    def fill(self, value):
        """With the values in place of the placeholders."""
        text = value if isinstance(value, str) else json.dumps(value)
        text = re.sub(r"<(uid|rv|clusterIP|nodePort):\d+>", 
                      lambda m: self.values.get(m[0], "10.96.0.9" if m[1] == "clusterIP" else "1"), text)
        return text if isinstance(value, str) else json.loads(text)


RUN = ("Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")
OWN_TOLERATIONS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


UNDECODABLE = re.compile(r'( "" is invalid: patch: )?Invalid value: (".*"): ((?:strict|json|no kind|.*conversion|.*unmarshal|the object).*)', re.S)


def settled_text(text):
    """A message without the difference of two Go structs, and with an object that it shows in a fixed order."""
    text = text.split("\n@@", 1)[0]
    shown = UNDECODABLE.fullmatch(text)
    if shown is None:
        return text
    try:
        inner = settle(json.loads(json.loads(shown[2])), False)
    except ValueError:
        return text
    return f"{shown[1] or ''}{json.dumps(inner, sort_keys=True)}: {shown[3]}"


def in_order(warnings):
    """The warnings of a header, whose order says nothing."""
    return ", ".join(sorted(re.split(r", (?=299 )", warnings)))


def causes_in_order(message, causes):
    """The message that a list of causes is in, with them in a fixed order."""
    texts = sorted(f"{c['field']}: {c['message']}" for c in causes if "field" in c)
    start, middle, rest = message.partition(" is invalid: [")
    for text in texts:
        found = rest.find(text)
        if not middle or found < 0:
            return message
        rest = rest[:found] + rest[found + len(text):]
    return f"{start}{middle}{', '.join(texts)}{rest.replace(', ', '')}"


def decoding_in_order(message):
    start, middle, rest = message.partition("strict decoding error: ")
    return start + middle + ", ".join(sorted(rest.split(", ")))


REVISION = "deployment.kubernetes.io/revision"


def is_revision(o):
    """The ReplicaSet of a Deployment: where the answers were recorded no controller made any."""
    return any(owner.get("kind") == "Deployment" for owner in ((o or {}).get("metadata") or {}).get("ownerReferences") or [])


def settle(o, managers):
    """An object without what is the node's own, or an admission plugin's of a cluster."""
    if not isinstance(o, dict):
        return o
    if str(o.get("kind", "")).endswith("List") and isinstance(o.get("items"), (list, type(None))):
        kind = o["kind"][:-4]
        return {**o, "items": [settle({"kind": kind, **i}, managers) for i in o.get("items") or [] if not is_revision(i)]}
    if o.get("kind") == "Table":  # the columns are described in words of our own
        columns = [{**c, "description": ""} for c in o["columnDefinitions"] or []]
        rows = [{**r, "object": settle(r.get("object"), managers)} for r in o.get("rows") or [] if not is_revision(r.get("object"))]
        return {**o, "columnDefinitions": columns, "rows": rows}
    o = json.loads(json.dumps(o))
    if o.get("kind") == "Status":
        o["message"] = decoding_in_order(settled_text(o.get("message", "")))
        causes = o.get("details", {}).get("causes")
        if causes is not None:  # an apiserver says some of them twice
            texts = {json.dumps({**c, "message": settled_text(c.get("message", ""))}, sort_keys=True) for c in causes}
            o["details"]["causes"] = [json.loads(c) for c in sorted(texts)]
            o["message"] = causes_in_order(o["message"], o["details"]["causes"])
        if o["message"] == "":
            del o["message"]
        return o
    meta, spec, kind = o.get("metadata", {}), o.get("spec"), o.get("kind")
    if not managers:
        meta.pop("managedFields", None)
    meta.get("managedFields", []).sort(key=lambda e: json.dumps({k: v for k, v in e.items() if k != "time"}, sort_keys=True))
    for e in meta.get("managedFields", []):
        e.pop("time", None)
    if REVISION in (meta.get("annotations") or {}):
        meta["annotations"].pop(REVISION)
        if not meta["annotations"]:
            del meta["annotations"]
    if kind in RUN or kind in ("Node", "PersistentVolumeClaim", "PersistentVolume", "Scale"):
        o.pop("status", None)
    if kind == "Pod" and isinstance(spec, dict):
        for name in ("nodeName", "priority"):
            spec.pop(name, None)
        left = [t for t in spec.get("tolerations") or [] if t.get("key") not in OWN_TOLERATIONS]
        spec.pop("tolerations", None)
        if left:
            spec["tolerations"] = left
    return o


# ---- a case ----

class Case:
    """One recorded case against a server with no objects."""

    def __init__(self, api, folder, case):
        self.api, self.folder, self.case, self.problems = api, folder, case, []
        self.bound = Bound(case.get("kind") in RUN)
        self.made = set()

    def note(self, where, expected, actual):
        self.problems.append((where, expected, actual))

    def send(self, method, path, query="", type_=None, body=None, headers=None):
        headers = dict(headers or {})
        if type_:
            headers["Content-Type"] = type_
        if body is not None and not isinstance(body, bytes):
            body = self.bound.fill(body)
        return self.api.ask(method, self.bound.fill(path), self.bound.fill(query or ""), body, headers)

    def prepare(self):
        """The requests made before; a failure there is one of the case."""
        case = self.case
        steps = case.get("before", given(case))
        if steps is None and isinstance(case.get("live"), dict):
            steps = [creation(case["live"], case["path"])]
        for step in steps or []:
            path = step["path"]
            code, _, value = self.send(step["method"], path, step.get("query", ""), step.get("type"), step.get("body"))
            self.remember(step["method"], path, step.get("body"), value)
            if path == "/api/v1/nodes":  # the node is the one that there is
                continue
            if code != step.get("code", 201):
                self.note(f"before {step['method']} {path}", step.get("code", 201), [code, value])
        if case.get("live") is not None:
            path = object_path(case["path"])
            code, _, value = self.api.ask("GET", path)
            for where, expected, actual in self.bound.differences(settle(case["live"], False), settle(value, False)):
                if not steps or case.get("before"):
                    self.note("live" + where, expected, actual)

    def remember(self, method, path, body, value):
        if method == "POST" and isinstance(value, dict) and value.get("metadata", {}).get("name"):
            self.made.add(path + "/" + value["metadata"]["name"])
        elif method in ("PUT", "PATCH") and names_object(path):
            self.made.add(object_path(path))

    def compare(self, code, headers, value):
        case = self.case
        if code != case["code"]:
            self.note("code", case["code"], code)
        for name, wanted in case.get("headers", {}).items():
            if name in ("Warning", "Content-Type", "Retry-After"):
                wanted = wanted if isinstance(wanted, str) else ", ".join(wanted)
                got = headers.get(name.lower())
                if got is None or not self.bound.text_matches(in_order(wanted), in_order(got)):
                    self.note(f"header {name}", wanted, got)
        expected = case.get("result", case.get("status"))
        if expected is None:
            if "text" in case and not self.bound.text_matches(case["text"], value):
                self.note("text", case["text"], value)
            return
        managers = "managedFields" in json.dumps(expected)
        for d in self.bound.differences(settle(expected, managers), settle(value, managers)):
            self.note(*d)

    def run(self):
        case = self.case
        self.prepare()
        if "stale" in case["name"] and "before" not in case:  # another writer came in between, which is not shown
            self.api.ask("PATCH", object_path(case["path"]), body={"metadata": {"labels": {"other": "writer"}}},
                         headers={"Content-Type": TYPES["merge-patch"]})
        headers = dict(case.get("requestHeaders") or {})
        body = case.get("patch", case.get("body"))
        large = re.fullmatch(r"a ConfigMap with a value of (\d+) bytes", body) if isinstance(body, str) else None
        if large is not None:
            body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}, "data": {"x": "v" * int(large[1])}}
        type_ = case.get("type") or TYPES.get(self.folder)
        if body is not None and type_ is None and not any(k.lower() == "content-type" for k in headers):
            type_ = "application/json"
        if isinstance(body, (dict, list)) or not isinstance(body, (str, type(None))):
            body = json.dumps(body)
        for _ in range(5):
            if case.get("live") is not None and self.bound.moving:
                self.bound.differences(settle(case["live"], False), settle(self.api.ask("GET", object_path(case["path"]))[2], False))
            code, got, value = self.send(case["method"], case["path"], case.get("query"), type_, body, headers)
            if code != 409 or case["code"] == 409 or not self.bound.moving:
                break
        self.remember(case["method"], case["path"], body, value)
        self.compare(code, got, value)
        after = case.get("after")
        if after is not None:
            code, _, value = self.api.ask("GET", object_path(case["path"]))
            if code != after["code"]:
                self.note("after: code", after["code"], code)
            elif "object" in after:
                for where, expected, actual in self.bound.differences(settle(after["object"], False), settle(value, False)):
                    self.note("after" + where, expected, actual)
        return self.problems

    def clean(self, folder):
        """No object is left."""
        for name in os.listdir(folder):
            if not name.startswith("."):
                os.unlink(f"{folder}/{name}")
        end = time.monotonic() + 20 * SLOW
        for path in self.made:
            while self.api.ask("GET", path)[0] not in (404, 405):
                if time.monotonic() > end:
                    raise Failed(f"{self.case['name']}: {path} does not go")
                time.sleep(0.02)


class Document(Case):
    """A recorded read of what the server says of itself. The documents have other kinds and words than the recorded ones, and unit
    tests compare them by their parts: of these, the code and the headers are compared."""

    def run(self):
        case = self.case
        headers = dict(case.get("requestHeaders") or {})
        path, _, query = case["path"].partition("?")
        if "If-None-Match" in headers:
            del headers["If-None-Match"]
            headers["If-None-Match"] = self.send("GET", path, headers=headers)[1]["etag"]
        query = case.get("query") or query
        if "<hash>" in query:
            query = query.replace("<hash>", self.send("GET", path, headers=headers)[1].get("etag", "").strip('"'))
        code, got, value = self.send(case["method"], path, query, None, case.get("body"), headers)
        if path.startswith(("/api", "/openapi")) and case["method"] == "GET":
            self.case = {k: v for k, v in case.items() if k not in ("result", "text")}
        self.compare(code, got, value)
        return self.problems


def kind_at(parts):
    """Which part of a path is the kind's: 3 in /api/v1/pods/p, 5 in /api/v1/namespaces/default/pods/p."""
    n = 3 if parts[1] == "api" else 4
    return n + 2 if len(parts) > n + 2 and parts[n] == "namespaces" else n


def object_path(path):
    """/api/v1/namespaces/default/pods/p of the path of a subresource of it."""
    parts = path.split("/")
    return "/".join(parts[:kind_at(parts) + 2])


def names_object(path):
    """False for the path of a collection."""
    parts = path.split("/")
    return len(parts) >= kind_at(parts) + 2


POD_P = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "busybox:1"}]}}


def given(case):
    """The requests that made the objects of a case whose recording does not show them, or None."""
    if case.get("reason", case.get("status", {}).get("reason")) == "AlreadyExists":
        return [{**creation(case["body"], case["path"] + "/x"), "path": case["path"]}]
    if case["name"].startswith(("binding", "eviction")):
        return [creation(POD_P, "/api/v1/namespaces/default/pods/p")]
    if case["name"] == "415-patch-charset":
        return [creation(case["result"], case["path"])]
    return None


def creation(live, path):
    body = json.loads(json.dumps(live))
    for name in ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields",
                 "deletionGracePeriodSeconds"):
        body["metadata"].pop(name, None)
    body.pop("status", None)
    return {"method": "POST", "path": object_path(path).rsplit("/", 1)[0], "type": "application/json", "body": body, "code": 201}


def shown(problems):
    return "\n".join(f"    {where}: recorded {json.dumps(expected)[:600]}\n      ours {json.dumps(actual)[:900]}"
                     for where, expected, actual in problems)


def query_of(text):
    return dict(urllib.parse.parse_qsl(text or "", keep_blank_values=True))
