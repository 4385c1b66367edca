# SPDX-License-Identifier: Apache-2.0
"""lone_api - a client of the local API with the administrator's certificate, for what kubectl would not send."""
import base64
import http.client
import json
import os
import re
import ssl

from coracle import equal, read, run, until

PORT = 16443
FLAG = f"--local-api=127.0.0.1:{PORT}"
MAPS = "/api/v1/namespaces/default/configmaps"
TYPES = {"json": "application/json-patch+json", "merge": "application/merge-patch+json",
         "strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml"}


def config_map(name, data, **meta):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", **meta}, "data": data}


class Api:
    """A node with the local API; a connection is kept until it ends."""

    def __init__(self, t, *flags, node=None, **kwargs):
        """node: one that runs already, with FLAG."""
        run("ip", "link", "set", "lo", "up")
        self.node = node or t.node(FLAG, *flags, **kwargs)
        self.pem, self.connection = f"{t.scratch}/admin.pem", None
        until(lambda: self.node.cli("kubeconfig", ok=False).returncode == 0, 20, "the certificates")
        config = self.node.cli("kubeconfig").stdout

        def data(key):
            return base64.b64decode(re.search(rf"{key}-data: \"?([A-Za-z0-9+/=]+)", config)[1])
        with open(self.pem, "wb", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(data("client-certificate") + data("client-key"))
        self.authority = data("certificate-authority").decode()
        self.wait()

    def context(self, certificate=True):
        tls = ssl.create_default_context(cadata=self.authority)
        if certificate:
            tls.load_cert_chain(self.pem)
        return tls

    def connect(self, timeout=30):
        return http.client.HTTPSConnection("127.0.0.1", PORT, context=self.context(), timeout=timeout)

    def wait(self):
        """Until the port answers: it opens after the daemon is ready."""
        def answers():
            try:
                return self.ask("GET", "/readyz")[0] == 200
            except (OSError, http.client.HTTPException):
                return False
        until(answers, 20, "the local API is open")

    def again(self):
        """The same client with a connection of its own, for another thread."""
        other = object.__new__(Api)
        other.__dict__ = {**self.__dict__, "connection": None}
        return other

    def ask(self, method, path, body=None, kind="application/json"):
        """(code, value).  OSError or HTTPException if there is no answer."""
        if self.connection is None:
            self.connection = self.connect()
        text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        try:
            self.connection.request(method, path, text, {"Content-Type": TYPES.get(kind, kind)})
            answer = self.connection.getresponse()
            data = answer.read()
        except BaseException:
            self.connection.close()
            self.connection = None
            raise
        try:
            return answer.status, json.loads(data)
        except ValueError:
            return answer.status, data

    def must(self, *args, code=(200, 201), **kwargs):
        got, value = self.ask(*args, **kwargs)
        equal(got in (code if isinstance(code, tuple) else (code,)), True, f"{args[:2]}: {got} {str(value)[:1000]}")
        return value

    def kube_pid(self):
        """The process that has the port."""
        for pid in os.listdir("/proc"):
            if pid.isdigit() and read(f"/proc/{pid}/comm", "").strip() == "coracle-kube" and \
                    read(f"/proc/{pid}/stat", "").split(") ")[-1].split()[1:2] == [str(self.node.process.pid)]:
                return int(pid)
        return None
