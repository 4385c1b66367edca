# SPDX-License-Identifier: Apache-2.0
"""control_plane - etcd, kube-apiserver and, where they are installed, kube-controller-manager and kube-scheduler, as
children of this process, with keys and certificates of their own below one folder.  `examples/cluster` uses it, and the
host tests that need the real apiserver.

A program is named by a variable (ETCD=/opt/etcd, KUBE_APISERVER=, KUBE_CONTROLLER_MANAGER=, KUBE_SCHEDULER=) or found on PATH.
"""
import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request

SERVICES = "10.96.0.0/16"
SERVICES_FIRST = "10.96.0.1"
NEEDED = ("etcd", "kube-apiserver")
LATER = ("kube-controller-manager", "kube-scheduler")


class Trouble(Exception):
    pass


def find(program):
    """The path of a program, or None."""
    named = os.environ.get(program.upper().replace("-", "_"))
    return named if named and os.access(named, os.X_OK) else shutil.which(program)


def missing():
    return [p for p in NEEDED if find(p) is None]


def free_port(address):
    with socket.socket() as s:
        s.bind((address, 0))
        return s.getsockname()[1]


class Keys:
    """A certificate authority and what it issues, made by openssl(1)."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, mode=0o700)
        self.ca = self.path("ca.crt")
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=coracle-cluster",
                     "-keyout", self.path("ca.key"), "-out", self.ca, "-addext", "keyUsage=critical,keyCertSign,digitalSignature")
        self.openssl("genrsa", "-out", self.path("sa.key"), "2048")
        self.openssl("rsa", "-in", self.path("sa.key"), "-pubout", "-out", self.path("sa.pub"))

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def openssl(*args):
        p = subprocess.run(("openssl", *args), capture_output=True, text=True, check=False)
        if p.returncode != 0:
            raise Trouble(f"openssl {args[0]}: {p.stderr.strip()}")

    def issue(self, name, subject, usage, names=(), days=30):
        """A key and a certificate: paths.  names: "DNS:a", "IP:1.2.3.4"."""
        key, crt, extensions = self.path(f"{name}.key"), self.path(f"{name}.crt"), self.path(f"{name}.ext")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject, "-keyout", key, "-out", self.path(f"{name}.csr"))
        with open(extensions, "w", encoding="utf-8") as file:
            file.write(f"keyUsage=critical,digitalSignature\nextendedKeyUsage={usage}\n")
            if names:
                file.write(f"subjectAltName={','.join(names)}\n")
        self.openssl("x509", "-req", "-in", self.path(f"{name}.csr"), "-CA", self.ca, "-CAkey", self.path("ca.key"), "-CAcreateserial", "-days", str(days),
                     "-extfile", extensions, "-out", crt)
        return key, crt


class ControlPlane:
    """start(), then `admin` is a kubeconfig of an administrator, node(name) one of a node; stop() ends all.  flags: more of the apiserver's."""

    def __init__(self, folder, address="127.0.0.1", names=(), flags=()):
        self.folder, self.address, self.flags = folder, address, flags
        self.children = []
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.keys = Keys(os.path.join(folder, "pki"))
        self.keys.issue("apiserver", "/CN=kube-apiserver", "serverAuth",
                        [f"IP:{i}" for i in {"127.0.0.1", address, SERVICES_FIRST}] + [f"DNS:{n}" for n in ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", *names)])
        self.keys.issue("node-client", "/O=system:masters/CN=kube-apiserver-kubelet-client", "clientAuth")
        self.port = free_port(address)
        self.url = f"https://{address}:{self.port}"
        self.admin = self.kubeconfig("admin", "/O=system:masters/CN=kubernetes-admin")

    # ---- kubeconfig files ----

    def kubeconfig(self, name, subject, days=30):
        key, crt = self.keys.issue(name, subject, "clientAuth", days=days)
        return self.write_kubeconfig(name, {"client-certificate": crt, "client-key": key})

    def write_kubeconfig(self, name, user):
        path = os.path.join(self.folder, f"{name}.kubeconfig")
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "default",
                  "clusters": [{"name": "default", "cluster": {"server": self.url, "certificate-authority": self.keys.ca}}],
                  "users": [{"name": name, "user": user}],
                  "contexts": [{"name": "default", "context": {"cluster": "default", "user": name}}]}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file, indent=2)
        os.chmod(path, 0o600)
        return path

    def node(self, name):
        return self.kubeconfig(f"node-{name}", f"/O=system:nodes/CN=system:node:{name}")

    # ---- the programs ----

    def launch(self, program, *args):
        log = open(os.path.join(self.folder, f"{program}.log"), "ab")
        child = subprocess.Popen((find(program), *args), stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder, start_new_session=True)
        log.close()
        child.program = program
        self.children.append(child)
        return child

    def wait(self, what, check, seconds):
        end = time.monotonic() + seconds
        while not check():
            for child in self.children:
                if child.poll() is not None:
                    raise Trouble(f"{child.program} ended (exit code {child.returncode}): {self.last_lines(child.program)}")
            if time.monotonic() > end:
                raise Trouble(f"{what} within {seconds} s did not happen")
            time.sleep(0.1)

    def last_lines(self, program):
        with open(os.path.join(self.folder, f"{program}.log"), encoding="utf-8", errors="replace") as file:
            return " | ".join(file.read().strip().splitlines()[-5:])

    def request(self, path, method="GET", patch=None):
        """As the administrator; patch: of a merge."""
        context = ssl.create_default_context(cafile=self.keys.ca)
        context.load_cert_chain(self.keys.path("admin.crt"), self.keys.path("admin.key"))
        body = json.dumps(patch).encode() if patch is not None else None
        asked = urllib.request.Request(self.url + path, body, {"Content-Type": "application/merge-patch+json"}, method=method)
        with urllib.request.urlopen(asked, context=context, timeout=10) as answer:
            return answer.read()

    def ready(self):
        try:
            return self.request("/readyz") == b"ok"
        except OSError:
            return False

    def start(self, seconds=120):
        if missing():
            raise Trouble(f"not installed: {', '.join(missing())} (on PATH, or named by {', '.join(p.upper().replace('-', '_') for p in missing())})")
        client, peer = free_port("127.0.0.1"), free_port("127.0.0.1")
        self.etcd = f"http://127.0.0.1:{client}"
        self.launch("etcd", "--data-dir", os.path.join(self.folder, "etcd"), "--listen-client-urls", self.etcd, "--advertise-client-urls", self.etcd,
                    "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                    "--initial-cluster", f"default=http://127.0.0.1:{peer}", "--unsafe-no-fsync", "--log-level", "warn")
        self.start_apiserver()
        self.wait("the apiserver's readiness", self.ready, seconds)
        self.start_clients()

    def start_clients(self):
        for program, user in zip(LATER, ("/CN=system:kube-controller-manager", "/CN=system:kube-scheduler")):
            if find(program):
                self.start_later(program, user)

    def start_apiserver(self):
        k = self.keys.path
        self.launch("kube-apiserver", "--etcd-servers", self.etcd, "--bind-address", self.address, "--advertise-address", self.address,
                    "--secure-port", str(self.port), "--tls-cert-file", k("apiserver.crt"), "--tls-private-key-file", k("apiserver.key"),
                    "--client-ca-file", self.keys.ca, "--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction",
                    "--service-cluster-ip-range", SERVICES, "--service-account-issuer", "https://kubernetes.default.svc",
                    "--service-account-signing-key-file", k("sa.key"), "--service-account-key-file", k("sa.pub"), "--allow-privileged",
                    "--kubelet-client-certificate", k("node-client.crt"), "--kubelet-client-key", k("node-client.key"), "--enable-bootstrap-token-auth",
                    "--kubelet-preferred-address-types", "InternalIP,Hostname", "--endpoint-reconciler-type", "none" if self.address.startswith("127.") else "lease",
                    *self.flags)

    def start_later(self, program, subject):
        config = self.kubeconfig(program, subject)
        own = ["--kubeconfig", config, "--leader-elect=false", "--bind-address", "127.0.0.1", "--secure-port", str(free_port("127.0.0.1"))]
        if program == "kube-controller-manager":
            own += ["--authentication-kubeconfig", config, "--authorization-kubeconfig", config, "--service-account-private-key-file", self.keys.path("sa.key"),
                    "--root-ca-file", self.keys.ca, "--use-service-account-credentials", "--allocate-node-cidrs=false",
                    "--service-cluster-ip-range", SERVICES, "--cluster-signing-cert-file", self.keys.ca, "--cluster-signing-key-file", self.keys.path("ca.key")]
        self.launch(program, *own)

    def stop_apiserver(self):
        """Its clients go first: kube-scheduler ends by itself when it loses the apiserver's answers for long enough."""
        for program in (*LATER, "kube-apiserver"):
            self.stop_program(program)

    def return_apiserver(self, seconds=60):
        self.start_apiserver()
        self.wait("the apiserver's readiness", self.ready, seconds)
        self.start_clients()

    def stop_program(self, program):
        for child in [c for c in self.children if c.program == program]:
            child.kill()
            child.wait()
            self.children.remove(child)

    def stop(self):
        for child in reversed(self.children):
            child.terminate()
        for child in self.children:
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.children.clear()


def inline(path):
    with open(path, "rb") as file:
        return base64.b64encode(file.read()).decode()
