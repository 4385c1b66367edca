# SPDX-License-Identifier: Apache-2.0
"""Changes of ConfigMaps and Secrets that a running container's environment came from."""
from coracle import (check, config_map, container, contains, equal, pod, secret, shell, until)

ANNOTATION = "coracle.dev/on-config-change"
OUTDATED = "coracle.dev/EnvironmentOutdated"
FROM_BOTH = {"envFrom": [{"configMapRef": {"name": "settings"}}],
             "env": [{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "word"}}}]}


def objects(node, word="swordfish", more="x", **settings):
    node.put("settings.yaml", config_map("settings", **{"LEVEL": "1", **settings}))
    node.put("login.yaml", secret("login", word=word, more=more))


def outdated(node, name="p"):
    return node.pod(name).condition(OUTDATED).get("message", "")


def test_status(t):
    """ignore, the default: status, explain and describe name container and object, also after a restart of the agent, until it restarts"""
    node = t.node()
    node.import_image()
    objects(node)
    node.put("p.yaml", pod("p", container("user", **FROM_BOTH), container("other")))
    before = node.wait_running("p")
    equal(outdated(node), "", "the condition at first")
    objects(node, more="y")  # a key that nobody uses
    node.put("settings.yaml", config_map("settings", LEVEL="2"))
    said = 'container "user" runs with an environment that is older than ConfigMap "settings"'
    node.wait_pod("p", lambda p: p.condition(OUTDATED).get("message") == said, what="the condition")
    contains(node.cli("explain", "pod", "p", ok=False).stdout, 'its environment is older than ConfigMap "settings"')
    contains(node.cli("describe", "pod", "p").stdout, said)
    node.kill()
    node.put("login.yaml", secret("login", word="marlin"))  # while no agent runs
    node.start()
    p = node.wait_pod("p", lambda p: 'Secret "login"' in p.condition(OUTDATED).get("message", ""), what="both objects")
    contains(outdated(node), 'ConfigMap "settings"')
    equal((p.container_id("user"), p.container_id("other")), (before.container_id("user"), before.container_id("other")),
          "the containers run on")
    node.put("settings.yaml", config_map("settings", LEVEL="1"))  # as it was made
    node.wait_pod("p", lambda p: "ConfigMap" not in p.condition(OUTDATED).get("message", "ConfigMap"),
                  what="only the Secret is another")
    node.remove("login.yaml")
    node.put("login.yaml", secret("login", word="swordfish"))
    node.wait_pod("p", lambda p: not p.condition(OUTDATED), what="no condition any more")
    equal(node.pod("p").restarts("user"), 0, "restarts")
    node.stop()


def test_restart(t):
    """restart: only the container whose environment changed is started anew with the new values, whatever the pod's policy"""
    node = t.node()
    node.import_image()
    objects(node)
    stay = shell("trap 'exit 0' TERM; echo LEVEL=$LEVEL; while :; do sleep 1000 & wait $!; done")
    node.put("p.yaml", pod("p", container("user", stay, **FROM_BOTH), container("other"), annotations={ANNOTATION: "restart"},
                           restartPolicy="Never"))
    before = node.wait_running("p")
    node.put("settings.yaml", config_map("settings", LEVEL="2"))
    p = node.wait_pod("p", lambda p: p.restarts("user") == 1 and p.state("user")[0] == "running", what="the restart")
    until(lambda: "LEVEL=2" in node.logs("p", "user"), 5, "the new value in its environment")
    equal(p.container_id("other"), before.container_id("other"), "the other container")
    check(any('ConfigMap "settings" changed, container user will be restarted' in e["message"] for e in node.events("p")),
          lambda: f"the event: {[e['message'] for e in node.events('p')]}")
    node.kill()
    node.put("settings.yaml", config_map("settings", LEVEL="3"))
    node.start()
    node.wait_pod("p", lambda p: p.restarts("user") == 2 and p.state("user")[0] == "running", what="that of a change meanwhile")
    until(lambda: "LEVEL=3" in node.logs("p", "user"), 5, "the newest value in its environment")
    node.kill()
    node.start()
    node.wait_pod("p", lambda p: p.ready)
    equal((node.pod("p").restarts("user"), outdated(node)), (2, ""), "restarts and condition after one without a change")
    node.remove("settings.yaml")
    node.put("mark.yaml", pod("mark"))
    node.wait_running("mark")
    equal(node.pod("p").restarts("user"), 2, "restarts after the object's removal")
    node.stop()


def test_signal(t):
    """signal=HUP: the container gets it once for each change, even one made while no agent ran, and runs on"""
    node = t.node()
    node.import_image()
    objects(node)
    count = shell("n=0; trap 'n=$((n + 1)); echo HUP $n' HUP; trap 'exit 0' TERM; echo up; while :; do sleep 1000 & wait $!; done")
    node.put("p.yaml", pod("p", container("user", count, **FROM_BOTH), annotations={ANNOTATION: "signal=HUP"}))
    before = node.wait_running("p")
    until(lambda: "up" in node.logs("p"), 5, "its trap is set")
    for number in (1, 2):
        node.put("settings.yaml", config_map("settings", LEVEL=f"1{number}"))
        until(lambda: f"HUP {number}" in node.logs("p"), 10, f"signal {number}")
    node.kill()
    node.put("login.yaml", secret("login", word="marlin"))
    node.start()
    until(lambda: "HUP 3" in node.logs("p"), 10, "the signal of a change meanwhile")
    node.kill()
    node.start()
    node.put("settings.yaml", config_map("settings", LEVEL="14"))
    until(lambda: "HUP 4" in node.logs("p"), 10, "the next one, and none for the restart itself")
    check("HUP 5" not in node.logs("p"), "one signal a change")
    p = node.pod("p")
    equal((p.container_id(), p.restarts()), (before.container_id(), 0), "the container")
    contains(outdated(node), 'Secret "login"')
    check(any("signal HUP sent" in e["message"] for e in node.events("p")), "the event")
    node.stop()


def test_invalid(t):
    """another value of the annotation is a problem of the manifest that says what is allowed; an edit with it changes nothing"""
    node = t.node()
    node.import_image()
    node.put("p.yaml", pod("p", annotations={ANNOTATION: "ignore"}))
    before = node.wait_running("p")
    node.put("p.yaml", pod("p", annotations={ANNOTATION: "reload"}))
    problems = until(lambda: node.problems().get("p.yaml"), 10, "the problem")
    contains(problems[0], "\"reload\" is not allowed, allowed are ignore, restart and signal=<name>, as signal=HUP")
    equal(node.pod("p").container_id(), before.container_id(), "the container")
    node.stop()
