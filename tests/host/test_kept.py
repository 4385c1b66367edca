# SPDX-License-Identifier: Apache-2.0
"""A node that boots without its apiserver: what its pods refer to is on the disk, and Secrets are sealed there."""
import base64
import glob
import os
import re
import stat

from apiserver import ApiServer
from coracle import check, contains, container, equal, mount, pod, read, run, shell, until
from test_joined import bound, joined, running
from test_network_soak import reboot
from test_runtime_class import runtime_class
from test_shutdown import HELD, Machine, node_of

SECRET = "a-plain-text-that-nobody-may-find-7391"
CREDS = "/usr/bin/systemd-creds"
# A TPM that the test plays: `refuse` beside the script makes it refuse.
FAKE_CREDS = '''#!/bin/sh
echo "$@" >> "{folder}/asked"
case "$1" in
has-tpm2) exit {has} ;;
encrypt) [ ! -e "{folder}/refuse" ] || {{ echo "Failed to seal: the TPM refuses" >&2; exit 1; }}; base64 | tr A-Za-z B-ZAb-za ;;
decrypt) [ ! -e "{folder}/refuse" ] || {{ echo "Failed to unseal: the TPM refuses" >&2; exit 1; }}; tr B-ZAb-za A-Za-z | base64 -d ;;
esac
'''


def fake_creds(t, has=0):
    """systemd-creds of this test's own mount namespace."""
    folder = f"{t.scratch}/creds"
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/systemd-creds"
    with open(path, "w", encoding="ascii") as f:
        f.write(FAKE_CREDS.format(folder=folder, has=has))
    os.chmod(path, 0o755)
    if not os.path.exists(CREDS):
        with open(CREDS, "w", encoding="ascii"):
            pass
    run("mount", "--bind", path, CREDS)
    return folder


def encoded(**data):
    return {k: base64.b64encode(v.encode()).decode() for k, v in data.items()}


def put_objects(server, word, secret=SECRET):
    server.store.put("ConfigMap", {"metadata": {"name": "c", "namespace": "default"}, "data": {"k": word}})
    server.store.put("Secret", {"metadata": {"name": "s", "namespace": "default"}, "type": "Opaque", "data": encoded(password=secret)})


def put_all(server):
    put_objects(server, "one")
    server.store.put("Service", {"metadata": {"name": "kubernetes", "namespace": "default"},
                                 "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]}})
    server.store.put("Service", {"metadata": {"name": "web-db", "namespace": "default"},
                                 "spec": {"clusterIP": "10.96.0.7", "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}]}})
    server.store.put("ServiceAccount", {"metadata": {"name": "default", "namespace": "default"}})
    token = {"projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}]}}
    server.store.put("Pod", bound(pod("web", container(
        volumeMounts=[mount("c", "/c"), mount("s", "/s"), mount("t", "/t")],
        envFrom=[{"configMapRef": {"name": "c"}}],
        env=[{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}]),
        serviceAccountName="default",
        volumes=[{"name": "c", "configMap": {"name": "c"}}, {"name": "s", "secret": {"secretName": "s"}}, {"name": "t", **token}])))
    return server.store.wait("Pod", "web", running, seconds=20)


def kept(node):
    """Names of the objects on the disk, as their files say."""
    found = []
    for path in glob.glob(f"{node.state_dir}/kept/*"):
        if re.fullmatch(r"[a-z]+-[0-9a-f]{32}", os.path.basename(path)):
            with open(path, "rb") as f:
                found.append(f.read().split(b"\n")[1].decode())
    return sorted(found)


def wait_kept(node):
    def all_there():
        names = kept(node)
        return {"ConfigMap/default/c", "Secret/default/s", "Services", "Node"} <= set(names) and any(n.startswith("Token/") for n in names)
    until(all_there, 15, lambda: f"all objects are on the disk: {kept(node)}\n{node.cli('explain', 'node').stdout}")
    contains_services(node)


def contains_services(node):
    def both():
        return any(b"10.96.0.1" in d and b"10.96.0.7" in d for d in files(node))
    until(both, 15, "the Services are on the disk")


def files(node):
    found = []
    for path in glob.glob(f"{node.state_dir}/kept/services-*"):
        with open(path, "rb") as f:
            found.append(f.read())
    return found


def no_plain_text(node):
    """No file of the state folder has the Secret, as it is or in base64."""
    texts = [SECRET.encode(), base64.b64encode(SECRET.encode())[:-4]]
    texts += [base64.b64encode(b"x" * n + SECRET.encode())[4:-8] for n in (1, 2)]
    for folder, _, names in os.walk(node.state_dir):
        if folder.startswith(f"{node.state_dir}/images") or folder.startswith(f"{node.state_dir}/containers"):
            continue
        for name in names:
            with open(f"{folder}/{name}", "rb") as f:
                data = f.read()
            for text in texts:
                check(text not in data, f"{folder}/{name} has the Secret's text")


def environment(node, p):
    return dict(e.split("=", 1) for e in node.enter(p, "cat", "/proc/1/environ").stdout.split("\0") if "=" in e)


def check_web(node, word, secret=SECRET, token=None):
    web = node.wait_running("web", deadline=30)
    env = environment(node, web)
    equal((env.get("k"), env.get("PASSWORD")), (word, secret), "the environment of ConfigMap and Secret")
    equal((env.get("KUBERNETES_SERVICE_HOST"), env.get("WEB_DB_SERVICE_PORT")), ("10.96.0.1", "5432"), "the environment of Services")
    equal(node.enter(web, "cat", "/c/k").stdout, word, "the file of the ConfigMap")
    equal(node.enter(web, "cat", "/s/password").stdout, secret, "the file of the Secret")
    found = node.enter(web, "cat", "/t/token").stdout
    check(found.count(".") == 2 and (token is None or found == token), f"the token: {found}")
    return web, found


def test_boot_without_the_apiserver(t):
    """after a reboot without its apiserver a pod runs with what it had; when the apiserver is back, its objects win"""
    server, node = joined(t)
    put_all(server)
    before, token = check_web(node, "one")
    wait_kept(node)
    no_plain_text(node)
    folder = f"{node.state_dir}/kept"
    equal(stat.S_IMODE(os.stat(folder).st_mode), 0o700, "the folder's mode")
    equal({stat.S_IMODE(os.stat(p).st_mode) for p in glob.glob(f"{folder}/*")}, {0o600}, "the files' modes")
    contains(node.cli("explain", "node").stdout, "sealed with a key that only root may read")
    server.stop()
    node.kill()
    reboot(t, node, 1)
    node.start()
    after, _ = check_web(node, "one", token=token)
    equal(after.uid, before.uid, "the uid")
    check(after.container_id() != before.container_id(), "the container is an old one")
    contains(node.log(), "its kept content is used")
    no_plain_text(node)
    put_objects(server, "two", "changed-and-just-as-secret")
    server.start()
    until(lambda: node.enter(after, "cat", "/c/k").stdout == "two", 40, "the edit reaches the volume")
    until(lambda: node.enter(after, "cat", "/s/password").stdout == "changed-and-just-as-secret", 10, "the edit of the Secret")
    equal(node.pod("web").container_id(), after.container_id(), "the container when the apiserver is back")
    # a deletion ends the pod, and nothing of it stays
    server.store.remove("Pod", "web", gracePeriodSeconds=1)
    node.wait_gone("web")
    until(lambda: not [n for n in kept(node) if n not in ("Services", "Node", "RuntimeClasses", "CSIDrivers")], 15, lambda: f"what no pod refers to goes: {kept(node)}")
    equal(node.stop(), 0, "the exit code")
    server.stop()


def test_server_that_says_404(t):
    """a ConfigMap and a Secret that the apiserver no longer has stay mounted, and on disk for the next boot"""
    server, node = joined(t)
    put_all(server)
    before, _ = check_web(node, "one")
    wait_kept(node)
    for kind, name in (("ConfigMap", "c"), ("Secret", "s")):
        server.store.remove(kind, name)
    until(lambda: 'configmap \\"c\\" not found' in node.log(), 20, "the daemon has heard of it")
    check_web(node, "one")
    equal(node.pod("web").container_id(), before.container_id(), "the container")
    server.stop()
    node.kill()
    reboot(t, node, 2)
    node.start()
    check_web(node, "one")
    node.stop()


def test_suddenly_empty_list(t):
    """an apiserver that has no pods any more is asked again before pods end, also after a restart of the agent"""
    server, node = joined(t)
    put_all(server)
    before, _ = check_web(node, "one")
    server.stop()
    node.kill()
    node.start()
    # Its first answer is a lie: a watch with an initial set that is empty; its second one is not.
    version = server.store.list(next(k for k in server_kinds() if k.kind == "Pod"), None, None, None)[1]
    lie = ('{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%s",'
           '"annotations":{"k8s.io/initial-events-end":"true"}}}}\n' % version)
    server.fault("garbage", match="/api/v1/pods?", body=lie, times=1)
    server.start()
    until(lambda: len([r for r in server.requests("GET", "/api/v1/pods?") if r["code"] == 200]) >= 3, 40, "it was asked again")
    until(lambda: "its pods are known" in node.cli("explain", "node").stdout, 30, "its pods are known")
    equal(node.pod("web").container_id(), before.container_id(), "the container")
    equal(node.pod("web").phase, "Running", "the phase")
    node.stop()
    server.stop()


def server_kinds():
    from api_store import KINDS  # pylint: disable=import-outside-toplevel
    return KINDS


def test_damaged_files(t):
    """a damaged file, and one in another's place, are named and set aside; the pod waits for the apiserver"""
    server, node = joined(t)
    put_all(server)
    check_web(node, "one")
    wait_kept(node)
    server.stop()
    node.kill()
    reboot(t, node, 3)
    config, secret = glob.glob(f"{node.state_dir}/kept/configmap-*")[0], glob.glob(f"{node.state_dir}/kept/secret-*")[0]
    data = bytearray(read_bytes(secret))
    data[-20] ^= 1
    write_bytes(secret, data)
    write_bytes(config, read_bytes(config).replace(b'"one"', b'"owe"'))
    node.start()
    until(lambda: node.log().count("a kept object is damaged and was set aside") == 2, 20, "both files are named")
    until(lambda: "is not known yet" in node.cli("explain", "pod", "web").stdout, 20, "the pod waits")
    equal(len(glob.glob(f"{node.state_dir}/kept/*.damaged-*")), 2, "files that were set aside")
    server.start()
    check_web(node, "one")
    equal(node.stop(), 0, "the exit code")
    server.stop()


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def write_bytes(path, data):
    with open(path, "wb") as f:
        f.write(data)


def test_tpm(t):
    """with a TPM the key is sealed by it; one that refuses leaves the pods waiting for the apiserver, which explain says"""
    folder = fake_creds(t)
    server, node = joined(t)
    put_all(server)
    check_web(node, "one")
    wait_kept(node)
    contains(node.cli("explain", "node").stdout, "only this machine's TPM gives")
    check(not os.path.exists(f"{node.state_dir}/kept/key"), "the key is on the disk in plain")
    check(os.path.exists(f"{node.state_dir}/kept/key.tpm"), "there is no sealed key")
    contains(read(f"{folder}/asked"), "encrypt --with-key=tpm2 --name=coracle-kept - -")
    server.stop()
    node.kill()
    reboot(t, node, 4)
    node.start()
    check_web(node, "one")
    node.kill()
    reboot(t, node, 5)
    write_bytes(f"{folder}/refuse", b"")
    node.start()
    until(lambda: "the TPM refuses" in node.cli("explain", "node").stdout, 20, lambda: node.cli("explain", "node").stdout)
    until(lambda: 'secret "s" is not known yet' in node.cli("explain", "pod", "web").stdout, 20, lambda: node.cli("explain", "pod", "web").stdout)
    os.unlink(f"{folder}/refuse")
    server.start()
    check_web(node, "one")
    no_plain_text(node)
    equal(node.stop(), 0, "the exit code")
    server.stop()
    node.flags = [f for f in node.flags if "kubeconfig" not in f]
    node.start()
    contains(node.log(), "objects of the cluster were removed from the disk")
    check(not os.path.exists(f"{node.state_dir}/kept"), "a node without a cluster keeps Secrets of it")
    node.stop()


def test_runtime_class(t):
    """after a reboot without its apiserver pods run under the runtime of their RuntimeClass, which only the cluster has: one that ran, and a new one"""
    server, node = joined(t)
    server.store.put("RuntimeClass", runtime_class("of-cluster", "runc"))
    server.store.put("Pod", bound(pod("web", runtimeClassName="of-cluster")))
    server.store.wait("Pod", "web", running, seconds=20)
    before = node.wait_running("web")
    under_runc(node, before)
    wait_names(node, "Services", "Node", "RuntimeClasses")
    server.stop()
    node.kill()
    reboot(t, node, 6)
    node.start()
    after = node.wait_running("web", deadline=30)
    equal(after.uid, before.uid, "the uid")
    check(after.container_id() != before.container_id(), "the container is an old one")
    under_runc(node, after)
    node.put("new.yaml", pod("new", runtimeClassName="of-cluster"))
    under_runc(node, node.wait_running("new-test-node", deadline=30))
    equal(node.stop(), 0, "the exit code")


def under_runc(node, p):
    contains(read(f"{node.run_dir}/containers/{p.container_id()}/meta.json"), '"handler":"runc"', "the record")


def test_trust_bundles(t):
    """ClusterTrustBundles by name and by signer are files of a volume, edits arrive at once, and a boot without the apiserver has them, too"""
    server, node = joined(t)

    def bundle(name, *certificates, signer=None, **labels):
        text = "".join(f"-----BEGIN CERTIFICATE-----\n{base64.b64encode(c).decode()}\n-----END CERTIFICATE-----\n" for c in certificates)
        server.store.put("ClusterTrustBundle", {"metadata": {"name": name, "labels": labels},
                                                "spec": {"trustBundle": text, **({"signerName": signer} if signer else {})}})

    def found(p, name):
        text = node.enter(p, "cat", f"/t/{name}").stdout
        return sorted(base64.b64decode(b.split("-----")[1]) for b in text.split("-----BEGIN ")[1:]) if text else []

    bundle("plain", b"one", b"one", b"two")
    bundle("example.com:sign:a", b"a", signer="example.com/sign", use="web")
    bundle("example.com:sign:b", b"b", b"a", signer="example.com/sign", use="web")
    bundle("example.com:sign:c", b"c", signer="example.com/sign", use="other")
    signer = {"signerName": "example.com/sign", "labelSelector": {"matchExpressions": [{"key": "use", "operator": "In", "values": ["web"]}]}}
    sources = [{"name": "plain", "path": "plain.pem"}, {**signer, "path": "signer.pem"}, {"name": "none", "optional": True, "path": "none.pem"}]
    server.store.put("Pod", bound(pod("web", container(volumeMounts=[mount("t", "/t")]), volumes=[
        {"name": "t", "projected": {"sources": [{"clusterTrustBundle": s} for s in sources]}}])))
    web = node.wait_running("web", deadline=30)
    equal([found(web, n) for n in ("plain.pem", "signer.pem", "none.pem")], [[b"one", b"two"], [b"a", b"b"], []], "the files")
    bundle("example.com:sign:d", b"d", signer="example.com/sign", use="web")
    bundle("none", b"now")
    until(lambda: (found(web, "signer.pem"), found(web, "none.pem")) == ([b"a", b"b", b"d"], [b"now"]), 10, lambda: "the edits arrive")
    server.store.put("Pod", bound(pod("waits", container(volumeMounts=[mount("t", "/t")]), volumes=[
        {"name": "t", "projected": {"sources": [{"clusterTrustBundle": {"name": "late", "path": "p"}}]}}])))
    until(lambda: 'clustertrustbundle "late" not found' in node.cli("explain", "pod", "waits").stdout, 20, lambda: node.cli("explain", "pod", "waits").stdout)
    bundle("late", b"late")
    equal(found(node.wait_running("waits", deadline=30), "p"), [b"late"], "the file of the pod that waited")
    until(lambda: any(b"ZA==" in read_bytes(f) and b"late" in read_bytes(f) for f in glob.glob(f"{node.state_dir}/kept/clustertrustbundles-*")),
          15, lambda: f"they are on the disk: {kept(node)}")
    server.stop()
    node.kill()
    reboot(t, node, 8)
    node.start()
    web = node.wait_running("web", deadline=30)
    equal([found(web, n) for n in ("plain.pem", "signer.pem", "none.pem")], [[b"one", b"two"], [b"a", b"b", b"d"], [b"now"]], "the files after the boot")
    server.store.remove("ClusterTrustBundle", "example.com:sign:d", None)
    server.start()
    until(lambda: found(web, "signer.pem") == [b"a", b"b"], 40, lambda: "what went meanwhile goes")
    equal(node.stop(), 0, "the exit code")
    server.stop()


def wait_names(node, *names):
    until(lambda: set(names) <= set(kept(node)), 15, lambda: f"{names} are on the disk: {kept(node)}")


def test_admission_after_a_shutdown(t):
    """a pod that a shutdown ended starts again in place without the apiserver, though only that knew its node's label and its RuntimeClass"""
    os.chmod(t.scratch, 0o755)
    folder = f"{t.scratch}/apiserver"
    os.makedirs(folder, exist_ok=True)
    server = ApiServer(folder)
    machine = Machine(t)
    try:
        node = node_of(t, machine, "shutdownGracePeriod: 20s\nshutdownGracePeriodCriticalPods: 10s\n",
                       "--kubeconfig", server.kubeconfig("test-node"))
        machine.wait(HELD)
        own = server.store.wait("Node", "test-node", lambda n: n is not None and n["metadata"].get("labels"), seconds=15)
        own["metadata"]["labels"]["example.com/zone"] = "a"
        server.store.put("Node", own)
        server.store.put("RuntimeClass", runtime_class("of-cluster", "runc"))
        node.put("web.yaml", pod("web", container(command=shell("trap 'exit 0' TERM; while true; do sleep 1; done")),
                                 nodeSelector={"example.com/zone": "a"}, runtimeClassName="of-cluster"))
        before = node.wait_running("web-test-node", deadline=30)
        under_runc(node, before)
        wait_names(node, "Services", "Node")
        until(lambda: any(b"example.com/zone" in read_bytes(f) for f in glob.glob(f"{node.state_dir}/kept/node-*")), 20, "the label is on the disk")
        machine.tell("shutdown")
        machine.wait("released", deadline=40)
        equal(node.pod("web-test-node").phase, "Failed", "ended")
        server.stop()
        equal(node.stop(), 0, "the exit code")
    finally:
        machine.stop()
    reboot(t, node, 7)
    since = len(node.log())
    node.start()
    after = node.wait_running("web-test-node", deadline=30)
    equal((after.uid, after.restarts()), (before.uid, 1), "the same pod, a restart")
    under_runc(node, after)
    check("pod rejected" not in node.log()[since:], lambda: f"it was rejected first: {node.log()[since:]}")
    equal(node.stop(), 0, "the exit code")


def test_label_that_nobody_has(t):
    """without an apiserver and without anything on the disk the configuration's labels count, and a pod is refused by them"""
    os.chmod(t.scratch, 0o755)
    folder = f"{t.scratch}/apiserver"
    os.makedirs(folder, exist_ok=True)
    server = ApiServer(folder)
    kubeconfig = server.kubeconfig("test-node")
    server.stop()
    node = t.node("--kubeconfig", kubeconfig, "--node-labels", "example.com/zone=a")
    node.import_image()
    node.put("fits.yaml", pod("fits", nodeSelector={"example.com/zone": "a"}))
    node.put("other.yaml", pod("other", nodeSelector={"example.com/zone": "b"}))
    node.wait_phase("other-test-node", "Failed", deadline=20)
    equal(node.pod("other-test-node").status["reason"], "NodeAffinity", "the reason")
    until(lambda: node.pod("fits-test-node") is not None and node.pod("fits-test-node").condition("PodScheduled").get("status") == "True", 10, "the other pod")
    check(node.pod("fits-test-node").phase != "Failed", "the pod that fits was refused")
    equal(node.stop(), 0, "the exit code")
