# SPDX-License-Identifier: Apache-2.0
"""Registries on the test's own loopback: Debian's docker-registry, and a scripted one that misbehaves on request."""
import base64
import collections
import contextlib
import hashlib
import http.server
import io
import json
import os
import socket
import subprocess
import tarfile
import threading

from coracle import read, run, until

USERS = "user:$2b$04$GMHPsjJIEiWqWhh0zdsWouQcgM/13iinwIwXXkqS9DcYSHejGDy62\n"  # user, geheim
GOOD, BAD = "user:geheim", "user:falsch"


class Registry:
    """A running registry: plain, or with TLS and a password; `address` is its host and port."""

    def __init__(self, t, name="registry", port=5000, closed=False):
        self.dir, self.port, self.address, self.closed = f"{t.scratch}/{name}", port, f"127.0.0.1:{port}", closed
        os.makedirs(f"{self.dir}/data")
        config = {"version": "0.1", "log": {"level": "error", "accesslog": {"disabled": True}},
                  "storage": {"filesystem": {"rootdirectory": f"{self.dir}/data"}}, "http": {"addr": self.address}}
        if closed:
            self._lock(config)
        with open(f"{self.dir}/config.json", "w", encoding="utf-8") as f:
            json.dump(config, f)
        self.log = open(f"{self.dir}/log", "ab")
        self.process = None
        self.start()

    def _lock(self, config):
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{self.dir}/key.pem", "-out",
            f"{self.dir}/cert.pem", "-days", "2", "-subj", "/CN=registry", "-addext", "subjectAltName=IP:127.0.0.1")
        with open(f"{self.dir}/users", "w", encoding="utf-8") as f:
            f.write(USERS)
        config["http"]["tls"] = {"certificate": f"{self.dir}/cert.pem", "key": f"{self.dir}/key.pem"}
        config["auth"] = {"htpasswd": {"realm": "test", "path": f"{self.dir}/users"}}

    @property
    def certificate(self):
        return f"{self.dir}/cert.pem"

    def start(self):
        self.process = subprocess.Popen(["docker-registry", "serve", f"{self.dir}/config.json"], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)
        until(self._listens, 20, lambda: f"the registry listens: {read(f'{self.dir}/log', '')}")

    def _listens(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self.process.kill()
        self.process.wait()

    def push(self, source, name):
        """Pushes an image given in skopeo's notation; returns the reference to pull it by tag, and that by digest."""
        creds = ["--dest-creds", GOOD] if self.closed else []
        run("skopeo", "copy", "-q", "--insecure-policy", "--all", "--dest-tls-verify=false", "--digestfile", f"{self.dir}/digest", *creds,
            source, f"docker://{self.address}/{name}")
        return f"{self.address}/{name}", f"{self.address}/{name.partition(':')[0]}@{read(f'{self.dir}/digest').strip()}"


def registries_conf(t, *registries, more=""):
    """Makes skopeo talk to these registries without TLS; returns the flag for the daemon."""
    path = f"{t.scratch}/registries.conf"
    with open(path, "w", encoding="utf-8") as f:
        f.write(more + "".join(f'[[registry]]\nlocation = "{r.address}"\ninsecure = true\n' for r in registries))
    return f"--registries-conf={path}"


def busybox():
    return f"oci-archive:{os.environ['CORACLE_TEST_IMAGE']}"


def auths(address, pair):
    return {address: {"auth": base64.b64encode(pair.encode()).decode()}}


def pull_secret(name, address, pair, older=False):
    key, value = (".dockercfg", auths(address, pair)) if older else (".dockerconfigjson", {"auths": auths(address, pair)})
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": f"kubernetes.io/{key[1:]}",
            "stringData": {key: json.dumps(value)}}


# ---- a scripted registry, which misbehaves ------------------------------------------------------------

INDEX, MANIFEST = "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json"
CONFIG, LAYER = "application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar"
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def descriptor(kind, data, **more):
    return {"mediaType": kind, "digest": digest_of(data), "size": len(data), **more}


def file_layer(name, data):
    """A tar with one file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Scripted:
    """
    Serves the images that are put into it over plain HTTP and counts the requests.
    `hook(handler, kind, key)` may answer instead, and then returns true.  kind: "manifests" or "blobs"; key:
    the requested name.
    """

    def __init__(self, port=5005):
        self.address, self.blobs, self.tags, self.hook = f"127.0.0.1:{port}", {}, {}, None
        self.asked, self.now, self.most, self.lock = collections.Counter(), 0, 0, threading.Lock()
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):  # noqa: N802 (its name is given)
                with contextlib.suppress(OSError):
                    registry.answer(self)

            do_HEAD = do_GET

            def log_message(self, *_args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def put(self, data):
        self.blobs[digest_of(data)] = data
        return data

    def image(self, name, *layers, kind=LAYER, packed=None):
        """Adds an image and returns its reference.  packed: the bytes sent for the layers."""
        config = self.put(json.dumps({"os": "linux", "architecture": ARCH, "config": {"Cmd": ["/x"]},
                                      "rootfs": {"type": "layers", "diff_ids": [digest_of(layer) for layer in layers]}}).encode())
        sent = [self.put(layer) for layer in packed or layers]
        self.tag(name, MANIFEST, {"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(CONFIG, config),
                                  "layers": [descriptor(kind, layer) for layer in sent]})
        return f"{self.address}/{name}"

    def tag(self, name, kind, content):
        data = self.put(json.dumps(content).encode())
        self.tags[name], self.tags[name.partition(":")[0] + "@" + digest_of(data)] = (kind, data), (kind, data)

    def answer(self, handler):
        path = handler.path.strip("/").split("/")
        if len(path) < 4:
            return self.send(handler, b"{}")
        name, kind, key = "/".join(path[1:-2]), path[-2], path[-1]
        with self.lock:
            self.asked[kind if kind == "manifests" else key] += 1
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            if self.hook is not None and self.hook(handler, kind, key):
                return None
            if kind == "manifests":
                known = self.tags.get(f"{name}@{key}" if key.startswith("sha256:") else f"{name}:{key}")
                return self.send(handler, *reversed(known)) if known else self.missing(handler, "MANIFEST_UNKNOWN", "manifest unknown")
            return self.send(handler, self.blobs[key]) if key in self.blobs else self.missing(handler, "BLOB_UNKNOWN", "blob unknown")
        finally:
            with self.lock:
                self.now -= 1

    @staticmethod
    def send(handler, data, kind="application/octet-stream", code=200):
        handler.send_response(code)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(data)

    def missing(self, handler, code, message):
        self.send(handler, json.dumps({"errors": [{"code": code, "message": message}]}).encode(), "application/json", 404)

    def half(self, handler, key, then):
        """Sends the first half of a blob announced with its whole size, calls `then()`, and ends the connection."""
        data = self.blobs[key]
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:len(data) // 2])
        handler.wfile.flush()
        then()
        handler.close_connection = True
        return True
