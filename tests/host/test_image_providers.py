# SPDX-License-Identifier: Apache-2.0
"""Image credential providers: programs that hand out credentials for registries."""
import json
import os

from coracle import check, contains, container, equal, pod, read, until
from registry import BAD, GOOD, Registry, busybox, pull_secret, registries_conf

V1 = "credentialprovider.kubelet.k8s.io/v1"


def of(image):
    return container(image=image, imagePullPolicy="Always")


def failures(node, name):
    return [e["message"] for e in node.events(name) if e["reason"] == "Failed"]


class Providers:
    """A folder of shell scripts and their configuration; each writes its requests to <name>.asked."""

    def __init__(self, t):
        self.dir, self.file, self.rows = f"{t.scratch}/providers", f"{t.scratch}/providers.yaml", []
        os.mkdir(self.dir)

    def add(self, name, match, script, **more):
        with open(f"{self.dir}/{name}", "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nread -r request\necho "$request" >> {self.dir}/{name}.asked\n{script}\n')
        os.chmod(f"{self.dir}/{name}", 0o755)
        self.rows.append({"name": name, "apiVersion": V1, "matchImages": match, "defaultCacheDuration": "1h", **more})
        self.write()

    def write(self, **more):
        with open(self.file, "w", encoding="utf-8") as f:
            json.dump({"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": self.rows, **more}, f)

    @property
    def flags(self):
        return f"--image-credential-provider-config={self.file}", f"--image-credential-provider-bin-dir={self.dir}"

    def asked(self, name):
        return [json.loads(line) for line in read(f"{self.dir}/{name}.asked", "").splitlines()]


def answer(address, pair, scope="Registry", **more):
    user, password = pair.split(":")
    text = json.dumps({"apiVersion": V1, "kind": "CredentialProviderResponse", "cacheKeyType": scope,
                       "auth": {address: {"username": user, "password": password}}, **more})
    return f"cat << 'END'\n{text}\nEND"


def test_provider(t):
    """a provider's password pulls an image, after a wrong pull secret, too; its answer is kept for the registry, in memory only"""
    registry = Registry(t, closed=True)
    one, _ = registry.push(busybox(), "team/one:1")
    two, _ = registry.push(busybox(), "team/two:1")
    uncached, _ = registry.push(busybox(), "uncached/x:1")
    providers = Providers(t)
    providers.add("good", [f"{registry.address}/team"],
                  f'[ "$1 $WHO $FROM" = "get me agent" ] || {{ echo "wrong: $1 $WHO $FROM" >&2; exit 1; }}\n{answer(registry.address, GOOD)}',
                  args=["get"], env=[{"name": "WHO", "value": "me"}])
    providers.add("uncached", [f"{registry.address}/uncached"], answer("*.0.0.*:5000", GOOD, cacheDuration="0s"))
    node = t.node(*providers.flags, env={"SSL_CERT_FILE": registry.certificate, "FROM": "agent"})
    node.put("a.yaml", pull_secret("bad", registry.address, BAD), pod("a", of(one), imagePullSecrets=[{"name": "bad"}]))
    node.wait_running("a")
    request = {"apiVersion": V1, "kind": "CredentialProviderRequest", "image": f"{registry.address}/team/one"}
    equal(providers.asked("good"), [request], "the request")
    node.put("b.yaml", pod("b", of(one)), pod("c", of(two)))
    node.wait_running("b", "c")
    equal(len(providers.asked("good")), 1, "calls for three pods and two images")
    for number in (1, 2):
        node.cli("image", "pull", uncached)
        equal(len(providers.asked("uncached")), number, "calls without a cache")
    for folder, _, names in os.walk(node.state_dir):
        for name in names:
            if not folder.startswith(f"{node.state_dir}/images/layers"):
                with open(f"{folder}/{name}", "rb") as f:
                    check(b"geheim" not in f.read(), f"the password stands in {folder}/{name}")
    equal(node.stop(), 0, "exit code")
    check("geheim" not in node.log(), "the password stands in the log")


def test_bad_providers(t):
    """a provider that fails, answers garbage, returns a wrong password or hangs is named, and the pull continues without it; a hanging one ends with its pull"""
    registry = Registry(t, closed=True)
    tags = {name: registry.push(busybox(), f"{name}/x:1")[0] for name in ("slow", "fails", "garbage", "wrong", "saved", "ended")}
    providers = Providers(t)
    hang = f"echo $$ >> {providers.dir}/hanging\nsleep 1000 &\nwait"
    providers.add("slow", [f"{registry.address}/slow", f"{registry.address}/ended"], hang)
    providers.add("fails", [f"{registry.address}/fails", f"{registry.address}/saved"], "echo no token today >&2; exit 3")
    providers.add("garbage", [f"{registry.address}/garbage"], "echo geheim")
    providers.add("wrong", [f"{registry.address}/wrong"], answer(registry.address, BAD))
    node = t.node(*providers.flags, env={"SSL_CERT_FILE": registry.certificate})
    node.put("slow.yaml", pod("slow", of(tags["slow"])))
    node.put("a.yaml", pull_secret("good", registry.address, GOOD), *(pod(n, of(tags[n])) for n in ("fails", "garbage", "wrong")),
             pod("saved", of(tags["saved"]), imagePullSecrets=[{"name": "good"}]))
    node.wait_running("saved")
    expected = {
        "fails": '; image credential provider "fails": image credential provider: exit status 3: no token today',
        "garbage": '; image credential provider "garbage": its answer is not a CredentialProviderResponse',
        "wrong": " (refused with the credentials of image credential providers)",
    }
    for name, text in expected.items():
        until(lambda n=name: failures(node, n), 40, f"{name}: a failed pull")
        contains(failures(node, name)[0], "unauthorized", name)
        contains(failures(node, name)[0], text, name)
    contains(node.log(), "an image credential provider failed; the image is pulled without it", "log")

    def hanging():
        return [int(pid) for pid in read(f"{providers.dir}/hanging", "").split()]
    until(lambda: len(hanging()) == 1, 20, "the one that hangs runs")
    node.put("ended.yaml", pod("ended", of(tags["ended"])))
    until(lambda: len(hanging()) == 2, 20, "it runs for another pull")
    node.remove("ended.yaml")
    until(lambda: not os.path.exists(f"/proc/{hanging()[1]}"), 20, "it ends with its pull")
    node.wait_gone("ended")
    until(lambda: failures(node, "slow"), 100, "the pull goes on after a minute")
    contains(failures(node, "slow")[0], '; image credential provider "slow": image credential provider: ', "slow")
    check(not os.path.exists(f"/proc/{hanging()[0]}"), "it runs on")
    equal(node.stop(), 0, "exit code")
    check("geheim" not in node.log(), "what it answered stands in the log")


def test_provider_that_hangs(t):
    """with one pull at a time, a provider that hangs does not hold up an image of another registry, nor does its pull begin beside another"""
    one, other = Registry(t, closed=True), Registry(t, "other", 5001)
    slow, quick = one.push(busybox(), "slow/x:1")[0], other.push(busybox(), "quick/x:1")[0]
    providers = Providers(t)
    providers.add("slow", [f"{one.address}/slow"], f"touch {providers.dir}/asked\nwhile [ ! -e {providers.dir}/go ]; do sleep 0.1; done\n" + answer(one.address, GOOD))
    with open(f"{t.scratch}/config.yaml", "w", encoding="ascii") as f:
        f.write("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxParallelImagePulls: 1\n")
    node = t.node(registries_conf(t, other), *providers.flags, "--config", f"{t.scratch}/config.yaml", env={"SSL_CERT_FILE": one.certificate})
    node.put("slow.yaml", pod("slow", of(slow)))
    until(lambda: os.path.exists(f"{providers.dir}/asked"), 20, "the provider runs")
    node.put("quick.yaml", pod("quick", of(quick)))
    node.wait_running("quick", deadline=30)
    with open(f"{providers.dir}/go", "w", encoding="ascii"):
        pass
    node.wait_running("slow", deadline=30)
    equal(node.stop(), 0, "exit code")


def test_wrong_settings(t):
    """a wrong configuration is one error at the start that names file and field"""
    providers = Providers(t)
    providers.add("p", ["r.io"], "")
    providers.rows[0]["matchImages"] = []
    providers.write()
    node = t.node(*providers.flags, wait=False)
    node.process.wait(20)
    contains(node.log(), f"{providers.file}: providers[0]: matchImages: needs at least one entry", "the error")

    def refused(text):
        before = len(node.log())
        node.start(wait=False)
        equal(node.process.wait(20), 1, "exit code")
        contains(node.log()[before:], text, "the error")
    providers.rows[0].update(matchImages=["r.io"], tokenAttributes={"serviceAccountTokenAudience": "x"})
    providers.write()
    refused("providers[0]: tokenAttributes: is not supported")
    del providers.rows[0]["tokenAttributes"]
    providers.write()
    os.unlink(f"{providers.dir}/p")
    refused(f"{providers.dir}/p: No such file or directory")
    node.flags.remove(providers.flags[1])
    refused("imageCredentialProviderConfig is set, but imageCredentialProviderBinDir is not: image credential providers need both")
