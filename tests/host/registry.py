"""Debian's docker-registry on the test's own loopback, and images to put into it."""
import base64
import json
import os
import socket
import subprocess

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
        """An image of skopeo's notation; the reference under which it can be pulled, and that by digest."""
        creds = ["--dest-creds", GOOD] if self.closed else []
        run("skopeo", "copy", "-q", "--insecure-policy", "--all", "--dest-tls-verify=false", "--digestfile", f"{self.dir}/digest", *creds,
            source, f"docker://{self.address}/{name}")
        return f"{self.address}/{name}", f"{self.address}/{name.partition(':')[0]}@{read(f'{self.dir}/digest').strip()}"


def registries_conf(t, *registries, more=""):
    """What makes skopeo talk to these without TLS: the flag for the daemon."""
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
