# SPDX-License-Identifier: Apache-2.0
"""What outsiders write reaches no terminal as it is: every command through a pty, over fields and files that hold attacks.

`logs`, `exec`, `attach` and -o json|yaml pass on bytes as they are, like kubectl; only their own messages are looked at here.
"""
import hashlib
import json
import os
import pty
import re
import subprocess
import threading

from coracle import SLOW, check, contains, container, equal, pod, run, shell, until

ATTACKS = ("\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b]52;c;cm0gLXJm\x07", "\x1bP$q\x1b\\", "\u009b31m", "\u009d0;t\u009c", "\r\x1b[Kall is well",
           "\b\b\b\x7f", "\u202eexe.txt", "\u2066\u2067\u2068\u2069", "\u200e\u200f\u061c", "\u2028\u2029", "\x0e\x0f", "\x1b[6n", "\x1b[?1049h", "\x1bc")
ALL = "".join(chr(c) for c in range(1, 0x100)) + "".join(ATTACKS)
LINE = ALL.replace("\n", "")  # where a line break is refused
BYTES = "".join(f"\\{c:03o}" for c in range(1, 0x100))  # for printf
REORDER = {0x061c, 0x200e, 0x200f} | set(range(0x2028, 0x202f)) | set(range(0x2066, 0x206a))


def harm(data, allowed=b"\r\n"):
    """The first thing in the output that a terminal would act on; None: nothing."""
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        return f"{e.object[e.start:e.end]!r}, which is not UTF-8, after {data[max(0, e.start - 60):e.start]!r}"
    for i, c in enumerate(text):
        if (ord(c) < 0x20 and c.encode() not in [bytes([a]) for a in allowed]) or 0x7f <= ord(c) < 0xa0 or ord(c) in REORDER:
            return f"U+{ord(c):04X} in {text[max(0, i - 80):i + 20]!r}"
    return re.search(r"\r(?!\r?\n)", text) and "a carriage return within a line"


def on_terminal(node, argv, timeout=20):
    """Output and errors of a command whose terminal this is."""
    master, slave = pty.openpty()
    shown = []

    def collect():
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:
                return
            if not data:
                return
            shown.append(data)

    reader = threading.Thread(target=collect)
    reader.start()
    env = {**os.environ, "NO_COLOR": "1", "TERM": "xterm"}
    with subprocess.Popen([node.coracle, "--socket", node.socket, *argv], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        try:
            process.wait(timeout * SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
    reader.join()
    os.close(master)
    return b"".join(shown)


def add_tar(folder, files, path):
    for name, data in files.items():
        with open(f"{folder}/{name}", "wb") as f:
            f.write(data)
    run("tar", "-C", folder, "-cf", path, *files)


def hostile_image(t):
    """An image whose configuration is an attack in every text that is its own to choose: the path of its archive."""
    folder = f"{t.scratch}/tmp/hostile"
    os.makedirs(f"{folder}/root")
    with open(f"{folder}/root/file", "w", encoding="ascii") as f:
        f.write("x")
    run("tar", "-C", f"{folder}/root", "-cf", f"{folder}/layer.tar", "file")
    with open(f"{folder}/layer.tar", "rb") as f:
        layer = f.read()
    config = {"architecture": "amd64", "os": "linux", "author": LINE, "created": "2026-01-01T00:00:00Z",
              "config": {"Cmd": [LINE], "Entrypoint": [LINE], "Env": [f"A={LINE}"], "WorkingDir": f"/{LINE}", "User": LINE, "Labels": {LINE: LINE},
                         "StopSignal": LINE},
              "history": [{"created_by": LINE, "comment": LINE, "author": LINE}],
              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}}
    manifest = [{"Config": "config.json", "RepoTags": ["hostile:1"], "Layers": ["layer.tar"]}]
    add_tar(folder, {"layer.tar": layer, "config.json": json.dumps(config).encode(), "manifest.json": json.dumps(manifest).encode()},
            f"{folder}/image.tar")
    return f"{folder}/image.tar"


def write_folder(node):
    """Manifests: what they hold, what they are called, and what is wrong in them."""
    probe = {"exec": {"command": shell(f"printf '{BYTES}'; exit 1")}, "periodSeconds": 1, "failureThreshold": 1}
    hook = {"postStart": {"exec": {"command": shell(f"printf '{BYTES}' >&2; exit 3")}}}
    node.put("told.yaml",
             {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "told", "annotations": {"a": ALL}}, "data": {"key": ALL}},
             {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "told", "annotations": {"a": ALL}}, "stringData": {"key": ALL}},
             {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "told", "annotations": {"a": ALL}}, "value": 1,
              "description": ALL})
    node.put("told-pod.yaml", pod("told", container(
        command=shell(f"printf '{BYTES}' > /dev/termination-log; printf '{BYTES}\\n'; exit 4"), args=[ALL], env=[{"name": "A", "value": ALL}],
        workingDir="/" + LINE.replace("/", ""), readinessProbe={"httpGet": {"port": 1, "path": f"/{LINE}", "httpHeaders": [{"name": "A", "value": LINE}]}}),
        annotations={"a": ALL}, restartPolicy="Never"))
    node.put("ended.yaml", pod("ended", container(command=shell(f"printf '{BYTES}' > /dev/termination-log; exit 4")), restartPolicy="Never"))
    node.put("probed.yaml", pod("probed", container(readinessProbe=probe, startupProbe=None)))
    node.put("hooked.yaml", pod("hooked", container(lifecycle=hook)))
    node.put("mounts.yaml", pod("mounts", container(volumeMounts=[{"name": "v", "mountPath": f"/a{LINE.replace(':', '')}"}]),
                                volumes=[{"name": "v", "hostPath": {"path": f"/nonexistent{LINE}", "type": "Directory"}}]))
    node.put("pulls.yaml", pod("pulls", container(image="127.0.0.1:1/none:1")))
    node.put("hostile.yaml", pod("hostile", container(image="hostile:1", command=None, imagePullPolicy="Never")))
    folder = os.fsencode(node.manifests)
    names = [b"z-" + bytes(c for c in range(1, 0x100) if c != 0x2f) [:120] + b".yaml", b"z-" + bytes(range(0x80, 0xff)) + b".yaml",
             *(f"z-{i}{a.replace('/', '')}.yaml".encode() for i, a in enumerate(ATTACKS))]
    for i, name in enumerate(names):
        wrong = pod(f"p-{LINE}") if i % 2 else {"apiVersion": "v1", "kind": "Pod", f"x{LINE}": 1, "metadata": {"name": "x", LINE: LINE}}
        with open(folder + b"/" + name, "w", encoding="utf-8") as f:
            json.dump(wrong, f)
    with open(folder + b"/y-\x1b[2J.yaml", "w", encoding="utf-8") as f:
        json.dump(pod("strange-file"), f)
    return [folder + b"/" + name for name in names]


def commands(node, t, names):
    """{command: [its arguments, several]}; what needs a field of ours and what fails with one."""
    strange = f"a{LINE.replace('/', '')}"
    here = f"{t.scratch}/tmp/copied"
    bad_config = f"{t.scratch}/tmp/{'bad' + strange}"[:230] + ".yaml"
    with open(bad_config, "w", encoding="utf-8") as f:
        json.dump({LINE: LINE, "maxPods": LINE}, f)
    kubeconfig = f"{t.scratch}/tmp/kubeconfig"
    with open(kubeconfig, "w", encoding="utf-8") as f:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": LINE,
                   "contexts": [{"name": LINE, "context": {"cluster": LINE, "user": LINE, "namespace": LINE}}],
                   "clusters": [{"name": LINE, "cluster": {"server": "https://127.0.0.1:1", "tls-server-name": LINE}}],
                   "users": [{"name": LINE, "user": {"token": LINE}}]}, f)
    kinds = ("pods", "nodes", "configmaps", "secrets", "priorityclasses", "images", "manifests", "events")
    return {
        "run": [["--config", bad_config], ["--manifests", strange], [strange]],
        "get": [[k, *more] for k in kinds for more in ([], ["-A"], ["-o", "wide"], ["-o", "name"]) if k != "manifests" or not more] +
               [["pods", "--show-labels"], ["pod", strange], ["pods", "-o", "jsonpath={.items[*].metadata.annotations}"],
                ["pods", "--sort-by", ".metadata.annotations.a"], [strange], ["pods", "-o", strange], ["all", "-A"], ["pods,cm", "-L", strange],
                ["pods", "-L", "a"], ["pods", "-o", "custom-columns=A:.metadata.annotations.a,B:.spec.containers[*].args"],
                ["pods", "-o", "go-template={{range .items}}{{.metadata.annotations.a}}{{printf \"%s\" .spec}}{{end}}"],
                ["pods", "-o", f"custom-columns=A:{strange}"], ["pods", "-o", f"go-template={{{{{strange}"], ["pods", "-o", f"jsonpath={{{strange}"]],
        "apply": [*(["--dry-run=client", "-f", os.fsdecode(n)] for n in names), ["-f", strange], [strange]],
        "kubeconfig": [[], [strange]],
        "kubectl": [[strange]],
        "describe": [["pods"], ["pod", "told"], ["pod", "ended"], ["pod", "strange-file"], ["nodes"], ["configmaps"], ["secrets"],
                     ["priorityclasses"], ["pod", strange], ["images"]],
        "logs": [[strange], ["told", "-c", strange]],
        "events": [[], ["-A"], ["pod/told"], [strange]],
        "exec": [["probed", "--", strange], ["probed", "-c", strange, "--", "true"]],
        "attach": [[strange], ["ended"]],
        "port-forward": [[strange, "1"], ["probed", strange]],
        "cp": [["probed:/copied", here], [f"probed:/{strange}", here], [strange, "probed:/tmp"]],
        "explain": [["node"], *(["pod", n] for n in ("told", "ended", "probed", "hooked", "mounts", "pulls", "hostile", "strange-file")), ["pod", strange],
                    ["pod.spec"], [f"pod.{strange}"], [f"pod.spec.restartPolicy.{strange}"]],
        "wait": [["pod", strange, "--timeout", "1s"], ["pod", "ended", "--for", strange], ["pod", "ended"],
                 ["pod", "ended", "--for", f"jsonpath={{.status.phase}}={strange}"], ["pod", "ended", "--for", f"jsonpath={{{strange}}}"],
                 ["pod", "told", "--timeout", "1s"]],
        "top": [["pods"], ["node"], ["pods", strange]],
        "validate": [[node.manifests], *([os.fsdecode(n)] for n in names), [strange]],
        "config": [[], ["view"], ["kubeconfig"], ["kubeconfig", "--kubeconfig", bad_config], ["kubeconfig", "--kubeconfig", kubeconfig], [strange]],
        "restart": [["told"], [strange], ["probed", "--wait", "--timeout", "1ms"], ["probed", "--wait", "--timeout", strange],
                    ["probed", "-c", strange], ["-l", strange]],
        "debug": [[strange, "--image", "localhost/busybox:1"], ["probed", "--image", strange], ["probed", "--image", "localhost/busybox:1", "--target", strange],
                  ["probed", "--image", "localhost/busybox:1", "-c", strange], ["probed"]],
        "delete": [["pod", "strange-file", "--dry-run=client"], ["pod", strange], [strange], ["-f", strange], ["pod", "nobody", "--file"],
                   ["pods", "-l", strange], ["pod", "a", "--dry-run", strange], ["pod", "a", "-o", strange]],
        "label": [["pod", strange, "a=b"], ["pod", "told", f"{strange}=1", "--dry-run=client"], ["pod", "told", f"a={strange}", "--dry-run=client"],
                  ["pod", "told", "--list"], [strange], ["pod", "told", strange]],
        "annotate": [["pod", "told", "--list"], ["pod", "told", "a=other", "--dry-run=client"], ["pod", strange, "a=b"], [strange]],
        "edit": [["pod", strange], [strange], ["-f", strange]],
        "scale": [["deployment", strange, "--replicas=1"], ["pod", "told", "--replicas", strange], [strange]],
        "rollout": [["status", strange], [strange], ["restart", "deployment", strange], ["history", f"deployment/{strange}"]],
        "set": [["image", "pod", "told", f"c={strange}", "--dry-run=client"], ["image", "pod", "told", f"{strange}=x"], [strange],
                ["image", "pod", strange, "c=x"]],
        "image": [["ls"], ["ls", "-o", "wide"], ["inspect", strange], ["pull", strange], ["verify"], ["import", strange], ["rm", strange], ["pin", strange], ["tag", "localhost/busybox:1", strange], ["history", strange], ["history", "hostile:1"],
                  ["login", strange, "-u", "a", "--password-stdin"], ["logout", strange],
                  ["export", strange, here], ["prune"], [strange]],
        "version": [[], [strange]],
        "help": [[], [strange]],
        "completion": [["bash"], [strange]],
    }


def test_every_command(t):
    """no command shows a terminal more than text: all bytes and known attacks in fields, outputs, file names, images and arguments"""
    node = t.node()
    node.import_image()
    node.import_image(hostile_image(t))
    names = write_folder(node)
    node.wait_running("probed")
    node.wait_phase("ended", "Failed")
    node.enter(node.pod("probed"), "sh", "-c", f"mkdir -p /copied; cd /copied; > \"$(printf 'a\\033[2Jb')\"; mkfifo \"$(printf 'p\\033]0;x\\007')\"")
    until(lambda: any("Unhealthy" == e["reason"] for e in node.events("probed")), 20, "the event of the probe")
    until(lambda: any("FailedPostStartHook" == e["reason"] for e in node.events("hooked")), 20, "the event of the hook")
    until(lambda: any("FailedMount" == e["reason"] for e in node.events("mounts")), 20, "the event of the mount")

    known = commands(node, t, names)
    listed = re.findall(r"^ {4}coracle ([a-z-]+) ", run(node.coracle, "help").stdout, re.MULTILINE)
    equal(sorted(known), sorted(set(listed)), "the commands that this test has")
    seen, faults = {}, []
    for name, variants in known.items():
        for argv in variants:
            shown = on_terminal(node, [name, *argv])
            seen[name, *argv] = shown
            if name == "image":
                shown = shown.replace(b"\r\x1b[K", b"")  # a line of progress is drawn over the one before
            fault = harm(shown, b"\r\n\t" if name == "completion" else b"\r\n")
            if fault:
                faults.append(f"coracle {name} {' '.join(argv)!r}: {fault}")
    check(not faults, lambda: "\n".join(faults))
    for key in (("describe", "pod", "told"), ("describe", "configmaps"), ("events", "-A"), ("get", "manifests"), ("describe", "pod", "ended"),
                ("explain", "pod", "mounts"), ("validate", os.fsdecode(names[0])), ("delete", "pod", "strange-file", "--dry-run=client")):
        check(b"^B" in seen[key] or b"^[" in seen[key], lambda: f"no attack made visible by {key}: {seen[key]!r}")  # pylint: disable=cell-var-from-loop
    node.stop()
