# SPDX-License-Identifier: Apache-2.0
"""The command line: apply, templates of get, and lists of kinds, against a daemon."""
import json
import os

from coracle import check, config_map, contains, equal, pod, read


def test_apply(t):
    """apply writes each object to a file and reports it; unchanged, configured, and nothing after a problem"""
    node = t.node()
    node.import_image()
    folder = node.manifests
    source = f"{t.scratch}/tmp/web.yaml"

    def put(text):
        with open(source, "w", encoding="utf-8") as f:
            f.write(text)

    put("# mine\n" + json.dumps(pod("web", labels={"app": "web"})))
    wanted = f"{folder}/pod-default-web.yaml"
    dry = node.cli("apply", "-f", source, "--dry-run=client").stdout
    equal(dry, f"pod/web created in {wanted} (dry run)\n", "dry run")
    check(not os.path.exists(wanted), "a dry run has written")
    equal(node.cli("apply", "-f", source).stdout, f"pod/web created in {wanted}\n", "created")
    equal(read(wanted), read(source), "the file as it is")
    node.wait_running("web")
    equal(node.cli("apply", "-f", source).stdout, f"pod/web unchanged in {wanted}\n", "unchanged")
    put(json.dumps(pod("web", labels={"app": "other"})))
    equal(node.cli("apply", "-f", source).stdout, f"pod/web configured in {wanted}\n", "configured")
    node.wait_pod("web", lambda p: p["metadata"]["labels"]["app"] == "other")
    put(json.dumps(config_map("one", a="1")) + "\n---\n" + json.dumps(pod("bad", colour="red")))
    bad = node.cli("apply", "-f", source, ok=False)
    equal(bad.returncode, 1, "exit code for a problem")
    contains(bad.stderr, "spec.colour")
    equal(sorted(os.listdir(folder)), ["pod-default-web.yaml"], "files after a problem")
    put(json.dumps(config_map("one", a="1")) + "\n" + json.dumps(config_map("two", a="2")))
    node.cli("apply", "-f", source)
    equal(sorted(os.listdir(folder)), ["configmap-default-one.yaml", "configmap-default-two.yaml", "pod-default-web.yaml"], "files")
    equal(node.cli("validate", folder).returncode, 0, "validate of the folder")

    get = lambda *words: node.cli("get", *words).stdout
    equal(get("pods", "-o", "custom-columns=N:.metadata.name,L:.metadata.labels.app"), "N     L\nweb   other\n", "custom columns")
    equal(get("pods", "-o", "go-template={{range .items}}{{.metadata.name}} {{.status.phase}}{{end}}"), "web Running", "a Go template")
    equal(get("pods", "-o", 'jsonpath={.items[?(@.status.phase=="Running")].metadata.name}'), "web", "a filter")
    lines = get("pods", "-L", "app").splitlines()
    equal((lines[0].split()[-1], lines[1].split()[-1]), ("APP", "other"), "label column")
    both = get("pods,cm")
    contains(both, "pod/web ")
    contains(both, "\n\n")
    contains(both, "configmap/one ")
    equal(len(json.loads(get("pod/web", "cm/one", "-o", "json"))["items"]), 2, "pairs as one list")
    contains(get("all"), "pod/web ")
    equal(node.cli("get", "pod", "nobody", "--ignore-not-found").stdout, "", "--ignore-not-found")
    contains(get("-f", folder), "configmap/two ")
    equal(get("-f", wanted, "-o", "name"), "pod/web\n", "get -f")
    node.put("labelled.yaml", config_map("three", a="3") | {"metadata": {"name": "three", "labels": {"tier": "x"}}})
    equal(node.cli("wait", "cm/three", "--for=create").stdout, "configmap/three condition met\n", "wait for a ConfigMap")
    equal(get("cm", "-l", "tier=x", "-o", "name"), "configmap/three\n", "a selector")
    equal(node.cli("wait", "cm", "--all", "--for=jsonpath={.data.a}", ok=False, timeout=60).returncode, 0, "wait for all")
    node.remove("labelled.yaml")
    equal(node.cli("wait", "cm/three", "--for=delete").stdout, "configmap/three condition met\n", "wait for its end")
    equal(node.cli("wait", "cm/three", "--for=jsonpath={.data.a}=1", ok=False).returncode, 5, "of none")
    node.stop()
