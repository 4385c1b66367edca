# SPDX-License-Identifier: Apache-2.0
"""Credentials that end while the agent runs, and clocks that disagree: the daemon, coracle-kube and a scripted apiserver."""
import datetime
import json
import os
import time

from coracle import SLOW, check, equal, pod, until
from joined_node import Joined

SUBJECT = "/O=system:nodes/CN=system:node:test-node"


def reissue(server, **how):
    """The client certificate's files are written anew; connections that are open do not ask for it again."""
    server.authority.issue("node-test-node", SUBJECT, **how)
    server.drop_connections()


def test_expired_certificate(t):
    """an expired client certificate is reported with its time; a new one in its file is used without a restart"""
    j = Joined(t, pods=[pod("stays")])
    j.remember("stays")
    pid = j.kube_pid()
    reissue(j.server, days=-1)
    j.wait_connected(False, 30)
    until(lambda: "the client certificate expired at 2020-01-02T00:00:00Z" in j.explain(), 20, j.explain)
    j.put(pod("new"))
    reissue(j.server)
    print(f"connected {j.wait_connected(seconds=40):.1f} s after the new certificate")
    j.wait_phase("new", "Running", 40)
    equal(j.kube_pid(), pid, "the process")
    j.undisturbed()
    j.stop()


def test_bootstrap_again(t):
    """with a bootstrap kubeconfig, a certificate that expires while the agent runs is replaced by a request"""
    paths = {}

    def bootstraps(server, config):
        token = server.token("system:bootstrap:abcdef", "system:bootstrappers")
        paths["bootstrap"] = f"{server.folder}/bootstrap"
        with open(paths["bootstrap"], "w", encoding="ascii") as f:
            json.dump({**config, "users": [{"name": "node", "user": {"token": token}}]}, f)

    pki = f"{t.scratch}/pki"
    j = Joined(t, "--bootstrap-kubeconfig", f"{t.scratch}/apiserver/bootstrap", "--cert-dir", pki, "--rotate-certificates", change=bootstraps, wait=False)
    # The kubeconfig names the files that the test issued: from now on they have expired.
    j.server.store.wait("Node", "test-node", lambda n: n is not None, seconds=20)
    j.put(pod("stays"))
    j.wait_phase("stays", "Running")
    j.remember("stays")
    equal(j.server.store.all("CertificateSigningRequest"), [], "requests before the certificate expired")
    reissue(j.server, days=-1)
    until(lambda: j.server.store.all("CertificateSigningRequest"), 40, "a request for a certificate")
    until(lambda: os.path.exists(f"{pki}/kubelet-client-current.pem"), 20, "the certificate is written")
    j.put(pod("new"))
    j.wait_phase("new", "Running", 40)
    j.undisturbed()
    j.stop()


def test_revoked_token(t):
    """a revoked token causes a 401 without further effect; the next token is read from its file"""
    path = f"{t.scratch}/apiserver/token"

    def write(token):
        with open(f"{path}.new", "w", encoding="ascii") as f:
            f.write(token)
        os.rename(f"{path}.new", path)

    tokens = []

    def use_file(server, config):
        tokens.append(server.token("system:node:test-node", "system:nodes"))
        write(tokens[0])
        config["users"][0]["user"] = {"tokenFile": path}

    j = Joined(t, change=use_file, pods=[pod("stays")])
    j.remember("stays")
    j.server.revoke(tokens[0])
    j.server.drop_connections()
    last = len(j.server.requests())
    j.server.wait_request("GET", "/api/v1/pods", lambda r: r["code"] == 401, after=last, seconds=40)
    until(lambda: "Unauthorized" in j.explain(), 20, j.explain)
    before = len(j.server.requests())
    time.sleep(4)
    asked = len(j.server.requests()) - before
    check(asked < 60, f"{asked} requests in 4 s with a token that is refused")
    j.put(pod("new"))
    write(j.server.token("system:node:test-node", "system:nodes"))
    j.wait_phase("new", "Running", 60)
    j.undisturbed()
    j.stop()


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_clocks(t):
    """a server an hour ahead or behind changes nothing: heart-beats have our clock, and Ready stays"""
    j = Joined(t, "--node-status-update-frequency", "1s", "--node-status-report-frequency", "2s", pods=[pod("stays")])
    j.remember("stays")
    for shift in (3600, -3600):
        j.server.front.date_s = shift
        last = time.time()
        for kind, part in (("PUT", "/leases/"), ("PATCH", "/nodes/test-node/status")):
            r = j.server.wait_request(kind, part, lambda r, last=last: r["at"] > last and r["code"] == 200, seconds=25 * SLOW)
            stamp = r["request"]["spec"]["renewTime"] if kind == "PUT" else next(
                c["lastHeartbeatTime"] for c in r["request"]["status"]["conditions"] if c["type"] == "Ready")
            check(abs(seconds_of(stamp) - r["at"]) < 5 * SLOW, f"{part} has {stamp} at {r['at']}")
    pods = [j.put(pod(f"p{shift}")) for shift in ("a", "b")]
    for p in pods:
        j.wait_phase(p["metadata"]["name"], "Running")
    j.undisturbed()
    j.stop()


def test_certificate_of_the_future(t):
    """a server certificate that is not valid yet is an error that names our clock; later the connection recovers"""
    j = Joined(t, pods=[pod("stays")])
    j.remember("stays")
    j.server.stop()
    j.server.reissue(future=True)
    j.server.start()
    until(lambda: "certificate is not yet valid; this node's clock says 20" in j.explain(), 20, j.explain)
    j.server.stop()
    j.server.reissue()
    j.server.start()
    j.put(pod("new"))
    j.wait_phase("new", "Running", 60)
    j.undisturbed()
    j.stop()
