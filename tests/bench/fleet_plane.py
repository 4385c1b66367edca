# SPDX-License-Identifier: Apache-2.0
"""fleet_plane - the apiserver of a fleet and what it has counted: the real one (examples/control_plane.py), or the scripted one of the host tests.

Both give start(), keys.ca, node(name), ask(method, path, body), counts(), cpu_s(), stop().  counts() is {(verb, resource): n} since the start; a real
apiserver counts a watch when it ends.
"""
import json
import os
import re
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from types import SimpleNamespace

from coracle import TOP, read

sys.path.insert(0, f"{TOP}/examples")
import control_plane  # noqa: E402

REQUESTS = re.compile(r"^apiserver_request_total\{(?P<labels>[^}]*)\} (?P<n>\S+)$", re.M)
LABEL = re.compile(r'(\w+)="([^"]*)"')
CPU = re.compile(r"^process_cpu_seconds_total (\S+)$", re.M)


def process_cpu_s(pid):
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def asked(context, url, method, body=None, headers=None):
    """(code, text)"""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})}, method=method)
    try:
        with urllib.request.urlopen(request, context=context, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Real:
    """etcd and kube-apiserver alone: no controller's requests among those of the nodes."""
    name = "kube-apiserver"

    def __init__(self, folder, address):
        self.plane = control_plane.ControlPlane(folder, address)
        self.keys, self.address = self.plane.keys, address

    def start(self):
        later, control_plane.LATER = control_plane.LATER, ()
        try:
            self.plane.start()
        finally:
            control_plane.LATER = later
        self.context = ssl.create_default_context(cafile=self.keys.ca)
        self.context.load_cert_chain(self.keys.path("admin.crt"), self.keys.path("admin.key"))

    def node(self, name):
        return self.plane.node(name)

    def ask(self, method, path, body=None):
        return asked(self.context, self.plane.url + path, method, body)

    def counts(self):
        found = Counter()
        for match in REQUESTS.finditer(self.metrics()):
            labels = dict(LABEL.findall(match["labels"]))
            if labels["resource"]:
                found[labels["verb"], labels["resource"] + (f"/{labels['subresource']}" if labels["subresource"] else "")] += int(float(match["n"]))
        return found

    def metrics(self):
        return self.ask("GET", "/metrics")[1]

    def cpu_s(self):
        return float(CPU.search(self.metrics())[1])

    def pids(self):
        return {child.program: child.pid for child in self.plane.children}

    def stop(self):
        self.plane.stop()


class Scripted:
    """tests/host/apiserver.py in a process of its own: its processor time says nothing about a real one's."""
    name = "scripted apiserver"

    def __init__(self, folder, address):
        self.folder, self.address = folder, address
        self.process = None

    def start(self):
        os.makedirs(self.folder, exist_ok=True)
        self.process = subprocess.Popen([f"{TOP}/tests/host/apiserver.py", "--folder", self.folder, "--host", self.address], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.keys = SimpleNamespace(ca=f"{self.folder}/ca.crt")
        self.context = ssl.create_default_context(cafile=self.keys.ca)
        self.headers = {"Authorization": "Bearer admin-token"}

    def do(self, what, **how):
        self.process.stdin.write(json.dumps({"do": what, **how}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise control_plane.Trouble(f"{what}: {answer['error']}")
        return answer["result"]

    def node(self, name):
        given, path = self.do("credentials", node=name), f"{self.folder}/{name}.kubeconfig"
        files = {}
        for key in ("certificate", "key"):
            files[key] = f"{self.folder}/{name}.{key}"
            with open(files[key], "w", encoding="ascii") as file:
                file.write(given[key])
        with open(path, "w", encoding="ascii") as file:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {
                "client-certificate": files["certificate"], "client-key": files["key"]}}],
                       "clusters": [{"name": "c", "cluster": {"server": given["server"], "certificate-authority": self.keys.ca}}],
                       "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}, file)
        return path

    def ask(self, method, path, body=None):
        return asked(self.context, self.url + path, method, body, self.headers)

    def counts(self):
        found = Counter()
        for record in self.do("requests"):
            if (record["user"] or "").startswith("system:node:"):
                words = record["uri"].partition("?")[0].split("/")
                words = words[words.index("v1") + 1:]
                if words[0] == "namespaces" and len(words) > 2:
                    words = words[2:]
                found[record.get("verb", record["method"]).upper(), "/".join([words[0]] + words[2:3])] += 1
        return found

    def cpu_s(self):
        return process_cpu_s(self.process.pid)

    def pids(self):
        return {"apiserver.py": self.process.pid}

    def stop(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait(20)
