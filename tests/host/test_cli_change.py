# SPDX-License-Identifier: Apache-2.0
"""Commands that change objects in the manifest folder: delete, label, annotate, scale, rollout, set and edit."""
import json
import os
import time

from coracle import check, config_map, container, contains, equal, pod, read, secret, shell, until

FOREVER = shell("trap 'exit 0' TERM; while :; do sleep 0.1; done")
STUBBORN = shell("trap '' TERM; while :; do sleep 0.1; done")


def deployment(name, replicas=2, **template):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}},
                                  "spec": {"terminationGracePeriodSeconds": 1,
                                           "containers": [{"name": "c", "image": "localhost/busybox:1", "command": FOREVER}], **template}}}}


def files(node):
    return sorted(f for f in os.listdir(node.manifests) if not f.startswith("."))


def said(result):
    return result.returncode, result.stdout, result.stderr


def test_delete(t):
    """delete removes objects from their files: by name, of several kinds, of files, selected, at once, and in dry runs"""
    node = t.node()
    node.import_image()
    cli = lambda *words, **more: node.cli("delete", *words, ok=False, timeout=60, **more)
    node.put("a.yaml", pod("a", container(command=FOREVER), labels={"app": "x"}))
    node.put("more.yaml", pod("b", container(command=FOREVER), labels={"app": "x"}), config_map("one", a="1"), config_map("two", a="2"))
    node.put("stubborn.yaml", pod("stubborn", container(command=STUBBORN), terminationGracePeriodSeconds=600))
    node.wait_running("a", "b", "stubborn")
    equal(said(cli("pod", "a", "--dry-run=client")), (0, 'pod "a" deleted from a.yaml (dry run)\n', ""), "a dry run")
    equal(said(cli("pod", "a", "--dry-run=server")), (0, 'pod "a" deleted from a.yaml (server dry run)\n', ""), "one of the server")
    check(node.pod("a").phase == "Running", "a dry run deletes")
    equal(said(cli("pod/a", "cm/one")), (0, 'pod "a" deleted from a.yaml\nconfigmap "one" deleted from more.yaml\n', ""), "two kinds")
    check("a" not in {name for _, name in node.pods()}, "delete did not wait for the end")
    equal(files(node), ["more.yaml", "stubborn.yaml"], "files")
    contains(read(f"{node.manifests}/more.yaml"), '"two"', "the other documents")
    gone = cli("pod", "a")
    equal((gone.returncode, gone.stderr), (5, 'Error from server (NotFound): pods "a" not found\n'), "again")
    equal(said(cli("pod", "a", "--ignore-not-found")), (0, "", ""), "--ignore-not-found")
    source = f"{t.scratch}/tmp/two.yaml"
    with open(source, "w", encoding="utf-8") as f:
        f.write(json.dumps(config_map("two", a="other")))
    equal(said(cli("-f", source, "-o", "name")), (0, "configmap/two\n", ""), "-f")
    began = time.monotonic()
    late = cli("pod", "stubborn", "--timeout=1s")
    equal((late.returncode, late.stdout), (1, 'pod "stubborn" deleted from stubborn.yaml\n'), "a time limit")
    contains(late.stderr, "timed out waiting for the condition on pods/stubborn")
    node.put("stubborn2.yaml", pod("other", container(command=STUBBORN), terminationGracePeriodSeconds=600))
    node.wait_running("other")
    equal(cli("pod", "other", "--now").returncode, 0, "--now")
    forced = cli("pod", "stubborn", "--force")
    equal((forced.returncode, forced.stdout[:29]), (0, 'pod "stubborn" force deleted\n'), "--force for a pod that is ending")
    check(time.monotonic() - began < 45, "a grace period was waited for")
    equal(said(cli("pods", "-l", "app=none")), (0, "No resources found\n", ""), "nothing selected")
    equal(said(cli("pods", "-l", "app=x")), (0, 'pod "b" deleted from more.yaml\n', ""), "-l")
    node.put("cm.yaml", config_map("m1", a="1"), config_map("m2", a="1"), secret("m3", a="1"))
    node.cli("wait", "cm/m2", "secret/m3", "--for=create")
    equal(said(cli("cm,secret", "--all")), (0, 'configmap "m1" deleted from cm.yaml\nconfigmap "m2" deleted from cm.yaml\n'
                                               'secret "m3" deleted from cm.yaml\n', ""), "--all")
    equal(files(node), [], "files at the end")
    for words, why in ((["pod", "a", "--now", "--grace-period=3"], "--now and --grace-period cannot be specified together"),
                       (["pod", "a", "--grace-period=x"], "--grace-period is a number of seconds"),
                       (["pod", "a", "--dry-run=maybe"], "--dry-run is client, server or none"),
                       (["pods", "--all", "-l", "a=b"], "--all and a selector cannot be given together"),
                       ([], "you must specify objects"), (["pods"], "names are expected, or --all, or -l SELECTOR")):
        wrong = cli(*words)
        equal(wrong.returncode, 2, f"exit code of {words}")
        contains(wrong.stderr, why)
    contains(cli("node", "x").stderr, "objects of kind Node cannot be written on this node", "the node")
    node.stop()


def test_label_and_annotate(t):
    """label and annotate change the file, refuse to overwrite, remove, and list"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=FOREVER), labels={"app": "web"}))
    uid = node.wait_running("a").uid
    cli = lambda *words: node.cli(*words, ok=False)
    equal(said(cli("label", "pod", "a", "tier=front", "app=web")), (0, "pod/a labeled\n", ""), "a label")
    equal(said(cli("label", "pod", "a", "tier=front")), (0, "pod/a not labeled\n", ""), "the same")
    equal(said(cli("label", "pod", "a", "tier=back")), (1, "", "error: 'tier' already has a value (front), and --overwrite is false\n"), "another")
    equal(said(cli("label", "pod", "a", "tier=back", "--overwrite")), (0, "pod/a labeled\n", ""), "--overwrite")
    equal(said(cli("label", "pod/a", "--list")), (0, "app=web\ntier=back\n", ""), "--list")
    equal(said(cli("label", "pods", "--all", "tier-")), (0, "pod/a unlabeled\n", ""), "removed")
    equal(said(cli("label", "pods", "a", "tier-")), (0, 'label "tier" not found.\npod/a not labeled\n', ""), "removed again")
    node.put("cms.yaml", config_map("one", a="1"), config_map("two", a="1"))
    node.cli("wait", "cm/two", "--for=create")
    equal(said(cli("label", "cm", "--all", "stage=test")), (0, "configmap/one labeled\nconfigmap/two labeled\n", ""), "several")
    equal(node.cli("get", "cm", "-l", "stage=test", "-o", "name").stdout, "configmap/one\nconfigmap/two\n", "what they have")
    equal(node.wait_pod("a", lambda p: p["metadata"]["labels"] == {"app": "web"}).uid, uid, "uid")
    bad = cli("label", "pod", "a", "tier=-bad-")
    equal(bad.returncode, 1, "a value that is none")
    contains(bad.stderr, 'Error from server (Invalid): Pod "a" is invalid: metadata.labels')
    equal(said(cli("annotate", "pod", "a", "why=because of that", "--dry-run=client")), (0, "pod/a annotated (dry run)\n", ""), "a dry run")
    equal(said(cli("annotate", "pod", "a", "why=because of that")), (0, "pod/a annotated\n", ""), "an annotation")
    contains(read(f"{node.manifests}/a.yaml"), "because of that", "the file")
    equal(said(cli("annotate", "pod", "nobody", "a=b"))[0::2], (5, 'Error from server (NotFound): pods "nobody" not found\n'), "no such pod")
    for words, why in ((["label", "pod", "a"], "at least one label is expected"), (["label", "pod", "a", "=x"], "a label is KEY=VALUE, or KEY-"),
                       (["label", "pod", "a", "x=1", "b"], "is behind the labels")):
        wrong = cli(*words)
        equal(wrong.returncode, 2, f"exit code of {words}")
        contains(wrong.stderr, why)
    contains(cli("label", "node", node.name if hasattr(node, "name") else "n", "a=b").stderr, "not found", "another node")
    node.stop()


def test_workloads(t):
    """scale, rollout and set image of a Deployment, as with kubectl"""
    node = t.node()
    node.import_image()
    node.put("web.yaml", deployment("web"))
    cli = lambda *words, **more: node.cli(*words, ok=False, timeout=90, **more)
    until(lambda: cli("get", "deployment", "web").returncode == 0, 10, "the Deployment")
    done = cli("rollout", "status", "deployment/web", "--timeout=60s")
    equal((done.returncode, done.stdout.splitlines()[-1]), (0, 'deployment "web" successfully rolled out'), "rollout status")
    equal(said(cli("scale", "deployment/web", "--replicas=3", "--timeout=60s")), (0, "deployment.apps/web scaled\n", ""), "scale")
    until(lambda: len(node.pods()) == 3, 20, "three pods")
    equal(said(cli("scale", "deployment", "web", "--current-replicas=2", "--replicas=1")),
          (1, "", "error: Expected replicas to be 2, was 3\n"), "--current-replicas")
    equal(said(cli("scale", "--replicas=1", "deployment", "web", "--dry-run=server")), (0, "deployment.apps/web scaled (server dry run)\n", ""), "a dry run")
    equal(said(cli("scale", "--replicas=1", "deployment", "web")), (0, "deployment.apps/web scaled\n", ""), "to one")
    equal(cli("rollout", "status", "deployment/web", "--timeout=60s").returncode, 0, "that is done")
    until(lambda: len(node.pods()) == 1, 20, "one pod")
    before = set(node.pods())
    equal(said(cli("rollout", "restart", "deployment/web")), (0, "deployment.apps/web restarted\n", ""), "rollout restart")
    waited = cli("rollout", "status", "deployment/web", "--timeout=60s")
    equal(waited.returncode, 0, f"rollout status after it: {waited}")
    until(lambda: len(node.pods()) == 1 and not before & set(node.pods()), 30, "the pod is replaced")
    equal(said(cli("rollout", "pause", "deployment/web")), (0, "deployment.apps/web paused\n", ""), "pause")
    equal(said(cli("rollout", "pause", "deployment/web")), (1, "", 'error: deployments.apps "web" is already paused\n'), "pause again")
    contains(cli("rollout", "restart", "deployment/web").stderr, "can't restart paused deployment", "restart while paused")
    equal(said(cli("rollout", "resume", "deployment/web")), (0, "deployment.apps/web resumed\n", ""), "resume")
    contains(cli("rollout", "resume", "deployment/web").stderr, '"web" is not paused', "resume again")
    equal(cli("rollout", "history", "deployment/web").stdout, "deployment.apps/web\nREVISION  CHANGE-CAUSE\n1         <none>\n2         <none>\n", "history")
    equal(said(cli("rollout", "undo", "deployment/web", "--dry-run=server")), (0, "deployment.apps/web rolled back (server dry run)\n", ""), "undo")
    contains(cli("rollout", "undo", "deployment/web", "--to-revision=x").stderr, "is not a number of a revision", "no number")
    node.cli("image", "tag", "localhost/busybox:1", "localhost/busybox:2")
    equal(said(cli("set", "image", "deployment/web", "c=localhost/busybox:2")), (0, "deployment.apps/web image updated\n", ""), "set image")
    equal(said(cli("set", "image", "deployment/web", "c=localhost/busybox:2")), (0, "", ""), "the same")
    equal(cli("rollout", "status", "deployment/web", "--timeout=60s").returncode, 0, "the new image")
    until(lambda: [p.container()["image"] for p in node.pods().values()] == ["localhost/busybox:2"], 30, "its pod")
    equal(cli("get", "deployments.apps", "-o", "name").stdout, "deployment.apps/web\n", "its name")
    contains(cli("get", "deployment.v1.apps", "web", "-o", "wide").stdout, "localhost/busybox:2   app=web\n", "-o wide")
    equal(cli("exec", "deployment/web", "--", "echo", "inside").stdout, "inside\n", "exec")
    equal(cli("logs", "deployment/web").returncode, 0, "logs")
    equal(cli("__complete", "rollout", "status", "deployment", "").stdout, "web\n", "completion")
    contains(cli("set", "image", "deployment/web", "d=x:1").stderr, 'unable to find container named "d": web has c', "no such container")
    equal(cli("scale", "pod", next(iter(node.pods()))[1], "--replicas=2").returncode, 2, "pods do not scale")
    contains(cli("scale", "deployment/web").stderr, "--replicas=N flag is required", "no number")
    equal(said(cli("delete", "deployment", "web")), (0, 'deployment.apps "web" deleted from web.yaml\n', ""), "delete")
    until(lambda: not node.pods(), 30, "its pods go")
    node.stop()


def editor(t, script):
    path = f"{t.scratch}/tmp/editor"
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\n{script}\n")
    os.chmod(path, 0o755)
    return {**os.environ, "EDITOR": path, "KUBE_EDITOR": "", "VISUAL": ""}


def test_edit(t):
    """edit opens the file of an object, or the object; a refusal is shown as a comment, and nothing is changed needlessly"""
    node = t.node()
    node.import_image()
    text = "# mine\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  key: value # why\n"
    node.put("one.yaml", text)
    node.put("more.yaml", config_map("two", key="value"), config_map("three", key="value"))
    node.cli("wait", "cm/one", "cm/three", "--for=create")
    one = f"{node.manifests}/one.yaml"
    cli = lambda script, *words: node.cli("edit", *words, ok=False, env=editor(t, script))
    os.chmod(one, 0o640)
    equal(said(cli("sed -i s/value/other/ $1", "cm", "one")), (0, f"configmap/one edited in {one}\n", ""), "an edit")
    equal(read(one), text.replace("value", "other"), "the file, with its comments")
    equal(os.stat(one).st_mode & 0o777, 0o640, "its mode")
    until(lambda: json.loads(node.cli("get", "cm", "one", "-o", "json").stdout)["data"] == {"key": "other"}, 10, "the object")
    equal(said(cli("true", "cm", "one")), (0, "", "Edit cancelled, no changes made.\n"), "no change")
    equal(said(cli(": > $1", "cm", "one")), (0, "", "Edit cancelled, saved file was empty.\n"), "an empty file")
    failed = cli("exit 3", "cm", "one")
    equal(failed.returncode, 1, "an editor that fails")
    contains(failed.stderr, "there was a problem with the editor")
    # the first time it makes a mistake, the second time it mends that, and keeps what it was shown
    seen = f"{t.scratch}/tmp/seen"
    mend = f"if grep -q dota $1; then cp $1 {seen}; sed -i s/dota/data/ $1; else sed -i 's/^data/dota/; s/other/third/' $1; fi"
    equal(said(cli(mend, "cm", "one"))[:2], (0, f"configmap/one edited in {one}\n"), "a mistake that is mended")
    contains(read(seen), '# coracle: configmaps "one" was not valid:\n# coracle: * line ')
    line = int(read(seen).split("* line ")[1].split(":")[0])
    contains(read(seen).splitlines()[line - 1], "dota", "the line that is named")
    contains(read(one), "third")
    twice = cli("sed -i s/^data/dota/ $1", "cm", "one")
    equal(twice.returncode, 1, "the same mistake twice")
    contains(twice.stderr, "Edit cancelled, no valid changes were saved.")
    copy = twice.stderr.split('stored to "')[1].split('"')[0]
    contains(read(copy), "dota", "the copy")
    equal(os.stat(copy).st_mode & 0o777, 0o600, "the copy's mode")
    contains(cli("sed -i s/one/uno/ $1", "cm", "one").stderr, "no valid changes", "another name")
    equal(said(cli("sed -i s/value/other/ $1", "cm/two")), (0, "configmap/two edited\n", ""), "one of several in a file")
    objects = read(f"{node.manifests}/more.yaml")
    contains(objects, "other")
    contains(objects, '"three"', "the other document")
    equal(json.loads(node.cli("get", "cm", "two", "-o", "json").stdout)["data"], {"key": "other"}, "the object")
    contains(cli("true", "cm", "nobody").stderr, 'configmaps "nobody" not found', "no such object")
    node.stop()
