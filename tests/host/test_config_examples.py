# SPDX-License-Identifier: Apache-2.0
"""Pods like those of the Kubernetes documentation on ConfigMaps, Secrets, projected volumes, downward API and environment."""
import base64
import os

from coracle import IMAGE, check, config_map, container, contains, equal, pod, run, secret, shell, until

END = "\necho end"


def report(node, name, inner=None, deadline=30):
    """The container's output, when it is complete."""
    return until(lambda: (lambda text: text if text.endswith("end\n") else "")(node.logs(name, inner)), deadline,
                 lambda: f"the report of {name}/{inner}; so far {node.logs(name, inner)!r}")


NODE_IP = "192.0.2.10"


def start(t, *objects):
    node = t.node("--node-ip", NODE_IP)
    node.import_image()
    node.put("objects.yaml", *objects)
    return node


def finished(node, name):
    node.wait_pod(name, lambda p: all("terminated" in c["state"] for c in p.status.get("containerStatuses", [{"state": {}}])), 30)


def from_map(name, key, **more):
    return {"configMapKeyRef": {"name": name, "key": key, **more}}


def from_secret(name, key, **more):
    return {"secretKeyRef": {"name": name, "key": key, **more}}


def from_field(path):
    return {"fieldRef": {"fieldPath": path}}


def from_resource(resource, **more):
    return {"resourceFieldRef": {"resource": resource, **more}}


def once(name, *containers, **spec):
    return pod(name, *containers, restartPolicy="Never", **spec)


def env(**values):
    """Values: text, or what valueFrom holds; in order."""
    return [{"name": n, **({"value": v} if isinstance(v, str) else {"valueFrom": v})} for n, v in values.items()]


def test_config_maps(t):
    """ConfigMaps: single keys, all keys, with prefix, in arguments; whole volumes, items, one path; optional ones"""
    game = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "game"},
            "data": {"lives": "3", "ui_file": "ui.properties", "game.properties": "enemies=aliens\nlives=3\n",
                     "ui.properties": "color.good=purple\n"},
            "binaryData": {"splash.bin": base64.b64encode(bytes(range(256))).decode()}}
    node = start(t, game, config_map("level", SPECIAL_LEVEL="very", SPECIAL_TYPE="charm"), config_map("log", log_level="INFO"))
    node.put("pod.yaml", once(
        "maps",
        container("keys", shell('echo "$LIVES $UI $LOG"' + END),
                  env=env(LIVES=from_map("game", "lives"), UI=from_map("game", "ui_file"), LOG=from_map("log", "log_level"))),
        container("all", shell('echo "$SPECIAL_LEVEL $SPECIAL_TYPE|$X_SPECIAL_LEVEL|$X_SPECIAL_TYPE"; env | grep -c splash' + END),
                  envFrom=[{"configMapRef": {"name": "level"}}, {"configMapRef": {"name": "level"}, "prefix": "X_"},
                           {"configMapRef": {"name": "game"}}, {"configMapRef": {"name": "nowhere", "optional": True}}]),
        container("args", ["/bin/sh", "-c", 'echo "$@"; echo end', "sh"],
                  args=["$(LEVEL)", "$(TYPE)", "$$(LEVEL)", "$(UNKNOWN)", "$LEVEL"],
                  env=env(LEVEL=from_map("level", "SPECIAL_LEVEL"), TYPE=from_map("level", "SPECIAL_TYPE"))),
        container("optional", shell('echo "${MISSING-unset} ${NOKEY-unset}"; ls -A /nothing | grep -vc "^\\.\\."' + END),
                  env=env(MISSING=from_map("nowhere", "k", optional=True), NOKEY=from_map("game", "no", optional=True)),
                  volumeMounts=[{"name": "nothing", "mountPath": "/nothing"}]),
        container("files", shell(
            'cd /whole; for f in *; do echo $f; done; cat game.properties; sha256sum < splash.bin; cd /some; find -L . -type f |'
            ' grep -v "^./\\.\\." | sort; cat keys/lives; cat /etc/one.properties; ls /etc | grep -c hosts' + END),
            volumeMounts=[{"name": "whole", "mountPath": "/whole"}, {"name": "some", "mountPath": "/some"},
                          {"name": "whole", "mountPath": "/etc/one.properties", "subPath": "ui.properties"}]),
        volumes=[{"name": "whole", "configMap": {"name": "game"}},
                 {"name": "some", "configMap": {"name": "game", "items": [{"key": "lives", "path": "keys/lives"},
                                                                          {"key": "ui.properties", "path": "ui"}]}},
                 {"name": "nothing", "configMap": {"name": "nowhere", "optional": True}}]))
    finished(node, "maps")
    equal(report(node, "maps", "keys"), "3 ui.properties INFO\nend\n", "single keys")
    equal(report(node, "maps", "all"), "very charm|very|charm\n0\nend\n", "all keys; bytes are no variables")
    equal(report(node, "maps", "args"), "very charm $(LEVEL) $(UNKNOWN) $LEVEL\nend\n", "arguments")
    equal(report(node, "maps", "optional"), "unset unset\n0\nend\n", "what is missing and may be")
    digest = run("sh", "-c", f"echo {game['binaryData']['splash.bin']} | base64 -d | sha256sum").stdout
    equal(report(node, "maps", "files"), "game.properties\nlives\nsplash.bin\nui.properties\nui_file\nenemies=aliens\nlives=3\n"
          + digest + "./keys/lives\n./ui\n3color.good=purple\n1\nend\n", "files")
    node.stop()


def typed(name, kind, annotations=None, **data):
    return {**secret(name, **data), "type": kind, "metadata": {"name": name, "annotations": annotations or {}}}


def test_secrets(t):
    """Secrets: keys, all keys, dot files, modes, every type that is built in; each bad one is refused where it is wrong"""
    pair = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pair"}, "immutable": True,
            "data": {"username": "YWRtaW4=", "password": "b2xk"}, "stringData": {"password": "t0p-Secret"}}
    node = start(t, pair, secret("dot", **{".hidden": "value-2"}),
                 typed("tls", "kubernetes.io/tls", **{"tls.crt": "CERT", "tls.key": "KEY"}),
                 typed("ssh", "kubernetes.io/ssh-auth", **{"ssh-privatekey": "PRIVATE"}),
                 typed("basic", "kubernetes.io/basic-auth", username="me", password="p"),
                 typed("pull", "kubernetes.io/dockerconfigjson", **{".dockerconfigjson": '{"auths":{}}'}),
                 typed("cfg", "kubernetes.io/dockercfg", **{".dockercfg": "{}"}),
                 typed("boot", "bootstrap.kubernetes.io/token", **{"token-id": "5emitj", "token-secret": "kq4gihvszzgn1p0r"}),
                 typed("account", "kubernetes.io/service-account-token", {"kubernetes.io/service-account.name": "build"}, extra="bar"))
    names = ["pair", "dot", "tls", "ssh", "basic", "pull", "cfg", "boot", "account"]
    node.put("pod.yaml", once(
        "secrets",
        container("env", shell('echo "$USER_NAME $PASSWORD $username $S_password ${OPT-unset}"; echo "url $URL"' + END),
                  envFrom=[{"secretRef": {"name": "pair"}}, {"secretRef": {"name": "pair"}, "prefix": "S_"},
                           {"secretRef": {"name": "nowhere", "optional": True}}],
                  env=env(USER_NAME=from_secret("pair", "username"), PASSWORD=from_secret("pair", "password"),
                          URL="db://$(USER_NAME):$(PASSWORD)@host", OPT=from_secret("pair", "no", optional=True))),
        container("files", shell(
            'cd /s; for v in *; do for f in $v/* $v/.[a-z]*; do [ -f $f ] && echo "$f=$(cat $f)"; done; done;'
            ' stat -L -c "%a %n" /s/pair/username /mine/login/name' + END),
            volumeMounts=[{"name": n, "mountPath": f"/s/{n}", "readOnly": True} for n in names] +
            [{"name": "mine", "mountPath": "/mine"}]),
        volumes=[{"name": n, "secret": {"secretName": n}} for n in names] +
        [{"name": "mine", "secret": {"secretName": "pair", "defaultMode": 0o400,
                                     "items": [{"key": "username", "path": "login/name", "mode": 0o440}]}}]))
    finished(node, "secrets")
    equal(report(node, "secrets", "env"), "admin t0p-Secret admin t0p-Secret unset\nurl db://admin:t0p-Secret@host\nend\n", "variables")
    equal(set(report(node, "secrets", "files").splitlines()), {
        "pair/username=admin", "pair/password=t0p-Secret", "dot/.hidden=value-2", "tls/tls.crt=CERT", "tls/tls.key=KEY",
        "ssh/ssh-privatekey=PRIVATE", "basic/username=me", "basic/password=p", 'pull/.dockerconfigjson={"auths":{}}',
        "cfg/.dockercfg={}", "boot/token-id=5emitj", "boot/token-secret=kq4gihvszzgn1p0r", "account/extra=bar",
        "644 /s/pair/username", "440 /mine/login/name", "end"}, "files")
    bad = [(typed("b", "kubernetes.io/tls", **{"tls.crt": "x"}), "data[tls.key]: required for type kubernetes.io/tls"),
           (typed("b", "kubernetes.io/ssh-auth", other="x"), "data[ssh-privatekey]: required for type"),
           (typed("b", "kubernetes.io/basic-auth", other="x"), "data[username]: required for type kubernetes.io/basic-auth"),
           (typed("b", "kubernetes.io/dockerconfigjson", **{".dockerconfigjson": "no json"}),
            "data[.dockerconfigjson]: must be a JSON object"),
           (typed("b", "kubernetes.io/service-account-token", x="y"), "service-account.name]: required for type"),
           (secret("b", **{"a/b": "x"}), 'the key "a/b"'), (secret("b", **{"..x": "x"}), 'the key "..x"'),
           ({**secret("b"), "data": {"k": "not base64!"}}, "data[k]: expected base64"),
           (config_map("b", k="x" * (1 << 20), j="y"), "data: 1048577 bytes are too many, at most 1048576 (1 MiB) are allowed"),
           ({**config_map("b", k="x"), "binaryData": {"k": "eA=="}}, "data[k]: the key is in binaryData, too")]
    for i, (document, _) in enumerate(bad):
        node.put(f"bad-{i}.yaml", config_map(f"good-{i}", k="v"), document)
    problems = until(lambda: (lambda p: p if len(p) >= len(bad) else None)(node.problems()), 10, "problems of all bad files")
    for i, (_, text) in enumerate(bad):
        equal(len(problems[f"bad-{i}.yaml"]), 2 if "basic-auth" in text else 1, f"problems of bad-{i}.yaml")
        contains(problems[f"bad-{i}.yaml"][0], text, "what it is")
    for file in (f for f in node.get("/manifests")["items"] if f["name"] in problems):
        equal({(p["file"], p["document"]) for p in file["problems"]}, {(file["path"], 2)}, "where it is: file, document")
    node.stop()


def test_projected(t):
    """projected volumes: all sources in one folder, with their own modes; a hidden file is reported, a collision rejected"""
    node = start(t, secret("user", username="admin"), secret("pass", password="1f2d", username="later"), config_map("conf", k="v"))
    node.put("pod.yaml", {**once(
        "projected",
        container("main", shell(
            'cd /all; find -L . -type f | grep -v "^./\\.\\." | sort | while read f; do echo "$f $(stat -L -c %a $f) $(cat $f)"; done;'
            ' cat /later/username; echo' + END),
            resources={"limits": {"cpu": "1500m"}},
            volumeMounts=[{"name": "all", "mountPath": "/all", "readOnly": True}, {"name": "later", "mountPath": "/later"}]),
        volumes=[{"name": "all", "projected": {"defaultMode": 0o440, "sources": [
            {"secret": {"name": "user", "items": [{"key": "username", "path": "my-group/my-username"}]}},
            {"secret": {"name": "pass", "items": [{"key": "password", "path": "my-group/my-password", "mode": 0o511}]}},
            {"downwardAPI": {"items": [
                {"path": "labels", **from_field("metadata.labels")},
                {"path": "cpu_limit", **from_resource("limits.cpu", containerName="main", divisor="1m")}]}},
            {"configMap": {"name": "conf", "items": [{"key": "k", "path": "my-group/my-config"}]}},
            {"configMap": {"name": "nowhere", "optional": True}}]}},
            {"name": "later", "projected": {"sources": [{"secret": {"name": "user"}}, {"secret": {"name": "pass"}}]}}]),
        "metadata": {"name": "projected", "labels": {"app": "web"}}})
    finished(node, "projected")
    equal(report(node, "projected"), './cpu_limit 440 1500\n./labels 440 app="web"\n./my-group/my-config 440 v\n'
          "./my-group/my-password 511 1f2d\n./my-group/my-username 440 admin\nlater\nend\n", "files of all sources")
    hidden = node.pod("projected").condition("coracle.dev/VolumeFilesHidden")
    equal((hidden["status"], hidden["reason"], hidden["message"]), (
        "True", "LaterSourceWins",
        'volume "later": "username" of secret "user" (sources[0]) is hidden by secret "pass" (sources[1])'), "the condition")
    equal([e["type"] for e in node.events("projected") if e["reason"] == "VolumeFilesHidden"], ["Warning"], "its event")
    contains(node.cli("describe", "pod", "projected").stdout, "VolumeFilesHidden", "describe")
    sources = [{"secret": {"name": "user", "items": [{"key": "username", "path": "a/b"}]}},
               {"configMap": {"name": "conf", "items": [{"key": "k", "path": "a//b"}]}}]
    node.put("bad.yaml", once("bad", volumes=[{"name": "v", "projected": {"sources": sources}}]))
    problems = until(lambda: node.problems().get("bad.yaml"), 10, "the problems of bad.yaml")
    equal(sorted(problems), [
        'spec.volumes[0].projected.sources[1].configMap.items[0].path: conflicting duplicate paths: "a//b" is also '
        "that of sources[0].secret.items[0].path"], "problems")
    node.stop()


def test_downward_api(t):
    """the downward API: fields and resources as variables and as files, divisors, the node's amounts where there is no limit"""
    node = start(t, config_map("unused"))
    labels = {"zone": "us-est-coast", "cluster": "test-cluster1", "rack": "rack-22"}
    annotations = {"build": "two", "builder": 'john "the" doe\nx'}
    limited = {"requests": {"cpu": "125m", "memory": "32Mi"}, "limits": {"cpu": "250m", "memory": "64Mi"}}
    fields = {"NODE": "spec.nodeName", "POD": "metadata.name", "NS": "metadata.namespace", "UID_": "metadata.uid",
              "IP": "status.podIP", "IPS": "status.podIPs", "HOST": "status.hostIP", "SA": "spec.serviceAccountName",
              "ZONE": "metadata.labels['zone']", "BUILD": "metadata.annotations['build']", "NONE": "metadata.labels['none']"}
    amounts = {"CPU_REQ": from_resource("requests.cpu"), "CPU_LIM": from_resource("limits.cpu"),
               "CPU_LIM_M": from_resource("limits.cpu", divisor="1m"), "MEM_REQ": from_resource("requests.memory"),
               "MEM_LIM": from_resource("limits.memory", divisor="1Mi"), "OTHER": from_resource("limits.memory", containerName="bare"),
               "DISK": from_resource("limits.ephemeral-storage", divisor="1Gi"), "NO_REQ": from_resource("requests.cpu", containerName="bare")}
    printed = list(fields) + list(amounts)
    node.put("pod.yaml", {**once(
        "down",
        container("env", shell("; ".join(f'echo "{n}=${n}"' for n in printed) + END),
                  env=env(**{n: from_field(p) for n, p in fields.items()}, **amounts), resources=limited),
        container("bare", shell('for f in /info/*; do echo "== $f"; cat $f; echo; done' + END),
                  volumeMounts=[{"name": "info", "mountPath": "/info"}]),
        serviceAccountName="build-robot", volumes=[{"name": "info", "downwardAPI": {"items": [
            {"path": "labels", **from_field("metadata.labels")}, {"path": "annotations", **from_field("metadata.annotations")},
            {"path": "rack", **from_field("metadata.labels['rack']")}, {"path": "name", **from_field("metadata.name")},
            {"path": "cpu_limit", **from_resource("limits.cpu", containerName="env")},
            {"path": "cpu_limit_m", **from_resource("limits.cpu", containerName="env", divisor="1m")},
            {"path": "mem_request", **from_resource("requests.memory", containerName="env", divisor="1Ki")}]}}]),
        "metadata": {"name": "down", "labels": labels, "annotations": annotations}})
    finished(node, "down")
    down = node.pod("down")
    seen = dict(line.split("=", 1) for line in report(node, "down", "env").splitlines()[:-1])
    node_memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    equal({n: seen[n] for n in printed if n not in ("NODE", "OTHER", "DISK")}, {
        "POD": "down", "NS": "default", "UID_": down.uid, "IP": down.ip, "IPS": down.ip, "HOST": NODE_IP, "SA": "build-robot",
        "ZONE": labels["zone"], "BUILD": "two", "NONE": "", "CPU_REQ": "1", "CPU_LIM": "1", "CPU_LIM_M": "250",
        "MEM_REQ": str(32 << 20), "MEM_LIM": "64", "NO_REQ": "0"}, "variables")
    equal(seen["NODE"], down["spec"]["nodeName"], "the node's name")
    check(0 < int(seen["OTHER"]) <= node_memory, f"no limit: the node's memory, not {seen['OTHER']}")
    check(int(seen["DISK"]) > 0, f"no limit: the node's storage, not {seen['DISK']}")
    equal(report(node, "down", "bare"), '== /info/annotations\nbuild="two"\nbuilder="john \\"the\\" doe\\nx"\n== /info/cpu_limit\n1\n'
          "== /info/cpu_limit_m\n250\n== /info/labels\ncluster=\"test-cluster1\"\nrack=\"rack-22\"\nzone=\"us-est-coast\"\n"
          "== /info/mem_request\n32768\n== /info/name\ndown\n== /info/rack\nrack-22\nend\n", "files")
    node.stop()


def test_environment(t):
    """variables: order, references, unchanged text, precedence, odd names, sub paths by their value"""
    node = start(t, config_map("first", A="map-1", B="map-1", **{"odd.name-x": "odd"}), config_map("second", B="map-2", C="map-2"))
    node.put("pod.yaml", once(
        "environment",
        container("main", ["/bin/sh", "-c", 'tr "\\0" "\\n" < /proc/1/environ; echo "args $*"; ls /dirs; echo end', "sh", "$(GREETING) $(NAME)", "$(odd.name-x)"],
                  envFrom=[{"configMapRef": {"name": "first"}}, {"configMapRef": {"name": "second"}},
                           {"configMapRef": {"name": "first"}, "prefix": "9-"}],
                  env=env(UNCHANGED="$(PROTOCOL)://$(IP)", PROTOCOL="https", IP="172.17.0.1", SERVICE="$(PROTOCOL)://$(IP)",
                          ESCAPED="$$(PROTOCOL)://$(IP)", GREETING="Warm greetings to", NAME="Kubernetes", C="own", A="$(A)+$(B)",
                          EMPTY="", POD=from_field("metadata.name"), RAW=from_map("second", "C"))
                  + [{"name": "TWICE", "value": "1"}, {"name": "TWICE", "value": "$(TWICE)2"}, {"name": "odd name!", "value": "x"}],
                  volumeMounts=[{"name": "logs", "mountPath": "/dirs/here", "subPathExpr": "$(POD)/$(NAME)"},
                                {"name": "logs", "mountPath": "/dirs/all"}]),
        container("after", shell("until [ -d /all/environment/Kubernetes ]; do sleep 0.1; done; echo found" + END),
                  volumeMounts=[{"name": "logs", "mountPath": "/all"}]),
        volumes=[{"name": "logs", "emptyDir": {}}]))
    finished(node, "environment")
    lines = report(node, "environment", "main").splitlines()
    for line in ("UNCHANGED=$(PROTOCOL)://$(IP)", "SERVICE=https://172.17.0.1", "ESCAPED=$(PROTOCOL)://172.17.0.1", "B=map-2", "C=own",
                 "A=map-1+map-2", "EMPTY=", "RAW=map-2", "TWICE=12", "odd name!=x", "odd.name-x=odd", "9-A=map-1", "9-odd.name-x=odd",
                 "args Warm greetings to Kubernetes odd"):
        check(line in lines, lambda: f"{line!r} is not in {lines}")  # pylint: disable=W0640
    equal(report(node, "environment", "after"), "found\nend\n", "the sub path")
    node.stop()


FORMS = r"""---
{
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "flow", },
  data: {
    # comments, commas at the end, texts folded with backslashes
    lives: "3",
    game.properties: "\
       enemies=aliens\n\
       lives=5\n\
      ",
  },
}
---
apiVersion: v1
data:
  allowed: '"true"'
kind: ConfigMap
metadata:
  creationTimestamp: "2019-12-27T18:36:28Z"
  name: read-back
  namespace: default
  resourceVersion: "809965"
  uid: d9d1ca5b-eb34-11e7-887b-42010a8002b8
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: listed}
  type: Opaque
  data:
    word: |
      c3dvcmRm
      aXNo
  stringData: {other: plain}
---
apiVersion: v1
kind: Pod
metadata: {name: forms}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: IMAGE
    command: ["sh", "-c", "echo \'$LIVES\' $allowed; cat /flow/* /listed/word; stat -L -c \" %a\" /listed/other; echo end"]
    env:
    - name: LIVES
      valueFrom:
        configMapKeyRef:
          name: flow
          key: lives
    envFrom:
    - configMapRef:
        name: read-back
    volumeMounts:
    - {name: flow, mountPath: /flow}
    - {name: listed, mountPath: /listed, readOnly: true}
  volumes:
  - name: flow
    configMap: {name: flow, items: [{key: game.properties, path: game.properties}]}
  - name: listed
    secret:
      secretName: listed
      defaultMode: 0400
"""


def test_forms(t):
    """manifests as the documentation and kubectl write them: flow style with comments, block style, read back, in a list"""
    node = start(t, FORMS.replace("IMAGE", IMAGE))
    finished(node, "forms")
    equal(report(node, "forms"), "$LIVES \"true\"\nenemies=aliens\nlives=5\nswordfish 400\nend\n", "what the container has")
    equal(node.problems(), {}, "problems")
    node.stop()


def test_dropped_together(t):
    """optional ConfigMaps that were put before their pod are there from its first moment, however long they take to read"""
    node = start(t, config_map("unused"))
    for i in range(5):
        node.put(f"big-{i}.yaml", config_map(f"big-{i}", k="there", **{f"filler-{n}": "x" * 1000 for n in range(900)}))
        node.put(f"pod-{i}.yaml", once(
            f"pod-{i}", container("main", shell('echo "${K-unset} ${k-unset} $(cat /map/k)"' + END),
                                  env=env(K=from_map(f"big-{i}", "k", optional=True)),
                                  volumeMounts=[{"name": "map", "mountPath": "/map"}]),
            volumes=[{"name": "map", "configMap": {"name": f"big-{i}", "optional": True, "items": [{"key": "k", "path": "k"}]}}]))
    for i in range(5):
        finished(node, f"pod-{i}")
        equal(report(node, f"pod-{i}"), "there unset there\nend\n", f"pod-{i}")
    node.stop()


def test_environment_files(t):
    """variables from a file that an init container wrote into an emptyDir; the container waits for a missing one"""
    node = start(t, config_map("unused"))
    write = "cat > /data/config.env <<'X'\n# made here\nDB_ADDRESS='address'  # where\nREST='one\n two'\nX"

    def from_file(key, **more):
        return {"fileKeyRef": {"volumeName": "config", "path": "config.env", "key": key, **more}}
    node.put("pod.yaml", once(
        "files",
        container("use", shell('echo "$DB|$REST|$URL|${NONE-unset}|${NOFILE-unset}"; ls -A /data 2>/dev/null | wc -l' + END),
                  env=env(DB=from_file("DB_ADDRESS"), REST=from_file("REST"), URL="db://$(DB)", NONE=from_file("NO", optional=True),
                          NOFILE={"fileKeyRef": {"volumeName": "config", "path": "no.env", "key": "k", "optional": True}})),
        initContainers=[container("setup", shell(write), volumeMounts=[{"name": "config", "mountPath": "/data"}])],
        volumes=[{"name": "config", "emptyDir": {}}]))
    node.put("late.yaml", pod(
        "late", container("writer", volumeMounts=[{"name": "config", "mountPath": "/data"}]),
        container("reader", env=env(A=from_file("DB_ADDRESS"))), volumes=[{"name": "config", "emptyDir": {"medium": "Memory"}}]))
    finished(node, "files")
    equal(report(node, "files", "use"), "address|one\n two|db://address|unset|unset\n0\nend\n",
          "variables")

    def waits_with(text):
        late = node.wait_pod("late", lambda p: p.state("reader")[1].get("message") == text and p.state("writer")[0] == "running", 30,
                             what=text)
        equal(late.state("reader")[1]["reason"], "CreateContainerConfigError", "reason")
        return late
    late = waits_with('couldn\'t read environment file "config.env" of volume "config": it does not exist')
    node.enter(late, "sh", "-c", write, container="writer")
    node.wait_pod("late", lambda p: p.state("reader")[0] == "running", 30)  # a new file sends no event, so the agent looks every 10 s
    node.stop()


def test_missing_references(t):
    """a container whose ConfigMap, Secret or key is missing waits, names it, and starts as soon as it exists"""
    node = start(t, config_map("there", k="v"))
    cases = {"map": (env(A=from_map("late", "k")), [], 'configmap "late" not found'),
             "secret": (env(A=from_secret("late", "k")), [], 'secret "late" not found'),
             "map-key": (env(A=from_map("there", "later")), [], "couldn't find key later in ConfigMap default/there"),
             "secret-key": (env(A=from_secret("half", "later")), [], "couldn't find key later in Secret default/half"),
             "all": ([], [{"configMapRef": {"name": "late"}}], 'configmap "late" not found')}
    node.put("half.yaml", secret("half", k="v"))
    node.put("pod.yaml", pod("waits", container("free"), *(container(n, env=e, envFrom=f) for n, (e, f, _) in cases.items())))
    waits = node.wait_pod("waits", lambda p: all(p.state(n)[1].get("message") == text
                                                 for n, (_, _, text) in cases.items()) and p.state("free")[0] == "running",
                          what="all wait with the reason")
    equal({waits.state(n)[1]["reason"] for n in cases}, {"CreateContainerConfigError"}, "reason")
    node.put("late.yaml", config_map("late", k="v"), secret("late", k="v"))
    node.wait_pod("waits", lambda p: all(p.state(n)[0] == "running" for n in ("map", "secret", "all")), 5)
    node.put("objects.yaml", config_map("there", k="v", later="x"))
    node.put("half.yaml", secret("half", k="v", later="x"))
    done = node.wait_pod("waits", lambda p: all(p.state(n)[0] == "running" for n in cases), 5)
    equal([done.restarts(n) for n in cases], [0] * len(cases), "restarts")
    node.stop()
