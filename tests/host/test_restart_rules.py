# SPDX-License-Identifier: Apache-2.0
"""restartPolicy of single containers, and rules on exit codes."""
from coracle import check, container, contains, equal, pod, read, shell, until


def rule(action, *codes, operator="In"):
    return {"action": action, "exitCodes": {"operator": operator, "values": list(codes)}}


def volume():
    return {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}


def counted(name, first, later, **more):
    """A container that writes how often it ran, and ends with `first` once, then runs `later`."""
    return container(name, shell(f"echo x >> /v/{name}; [ $(wc -l < /v/{name}) -gt 1 ] || exit {first}; {later}"), **volume(), **more)


EMPTY_DIR = [{"name": "v", "emptyDir": {}}]


def test_own_policies(t):
    """a container's own restartPolicy overrides the pod's, both ways, for init containers too"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", counted("again", 3, "exec sleep 1000", restartPolicy="OnFailure"),
                           container("once", shell("exit 0"), restartPolicy="OnFailure"), restartPolicy="Never", volumes=EMPTY_DIR))
    node.put("b.yaml", pod("b", container("stays"), container("never", shell("exit 4"), restartPolicy="Never")))
    node.put("c.yaml", pod("c", initContainers=[container("init", shell("exit 5"), restartPolicy="Never")]))
    node.put("d.yaml", pod("d", initContainers=[counted("init", 6, "exit 0", restartPolicy="OnFailure")], restartPolicy="Never",
                           volumes=EMPTY_DIR))
    a = node.wait_pod("a", lambda p: p.state("again")[0] == "running" and p.restarts("again") == 1)
    equal(a.container("again")["lastState"]["terminated"]["exitCode"], 3, "exit code of the first run")
    node.wait_pod("a", lambda p: p.state("once")[0] == "terminated")
    b = node.wait_pod("b", lambda p: p.state("never")[0] == "terminated" and p.state("stays")[0] == "running")
    equal((b.phase, b.state("never")[1]["exitCode"]), ("Running", 4), "the pod that has one of two")
    c = node.wait_pod("c", lambda p: p.phase == "Failed")
    equal(c.state("init")[1]["exitCode"], 5, "exit code of the init container")
    d = node.wait_running("d")
    equal(d.restarts("init"), 1, "restarts of the init container")
    equal(node.pod("a").restarts("once"), 0, "restarts of what ended well")
    node.kill()
    node.start()
    node.wait_running("d")
    equal([node.pod(n).phase for n in "abcd"], ["Running", "Running", "Failed", "Running"], "phases after a restart of the daemon")
    equal(node.pod("b").restarts("never"), 0, "restarts of the one that never does")
    equal(node.stop(), 0, "exit code")


def test_rules(t):
    """the first rule that matches the exit code restarts a container whose policy would not; others do not"""
    node = t.node()
    node.import_image()
    never = {"restartPolicy": "Never"}
    node.put("a.yaml", pod("a", counted("listed", 42, "exec sleep 1000", restartPolicyRules=[rule("Restart", 41, 42)], **never),
                           counted("unlisted", 7, "exec sleep 1000", restartPolicyRules=[rule("Restart", 42)], **never),
                           counted("other", 9, "exec sleep 1000", restartPolicyRules=[rule("Restart", 0, 42, operator="NotIn")], **never),
                           restartPolicy="Never", volumes=EMPTY_DIR))
    a = node.wait_pod("a", lambda p: all(p.restarts(n) == 1 and p.state(n)[0] == "running" for n in ("listed", "other"))
                      and p.state("unlisted")[0] == "terminated")
    equal((a.phase, a.restarts("unlisted")), ("Running", 0), "the pod, and the one without a rule for its exit code")
    node.put("b.yaml", pod("b", container("done", shell("exit 42"), restartPolicy="OnFailure", restartPolicyRules=[rule("Restart", 1)]),
                           restartPolicy="Never"))
    node.wait_pod("b", lambda p: p.restarts() >= 1)  # no rule matches: its policy
    equal(node.stop(), 0, "exit code")


def test_all_restart(t):
    """RestartAllContainers: all end without grace period or hooks and start again, init containers first, in the same sandbox and volumes"""
    node = t.node()
    node.import_image()
    trigger = container("trigger", shell("until [ -e /v/go ]; do sleep 0.05; done; rm /v/go; exit 42"), **volume(),
                        restartPolicy="Never", restartPolicyRules=[rule("RestartAllContainers", 42)])
    hook = {"preStop": {"exec": {"command": shell("echo hook >> /v/hooks")}}}
    node.put("a.yaml", pod("a", container("web", shell("echo web >> /v/order; trap '' TERM; while true; do sleep 0.1; done"), lifecycle=hook, **volume()),
                           container("ended", shell("exit 1"), restartPolicy="Never"), trigger,
                           initContainers=[container("init", shell("echo init >> /v/order"), **volume())],
                           restartPolicy="Never", terminationGracePeriodSeconds=600, volumes=EMPTY_DIR))
    before = node.wait_pod("a", lambda p: p.state("web")[0] == p.state("trigger")[0] == "running" and p.state("ended")[0] == "terminated")
    equal(before.condition("AllContainersRestarting")["status"], "False", "the condition before")
    folder = f"{node.root_dir}/pods/{before.uid}/volumes/kubernetes.io~empty-dir/v"
    until(lambda: read(f"{folder}/order", "") == "init\nweb\n", 10, "the first start is through")
    with open(f"{folder}/go", "w", encoding="ascii"):
        pass
    after = node.wait_pod("a", lambda p: all(p.restarts(n) == 1 for n in ("web", "ended", "trigger", "init"))
                          and p.state("web")[0] == p.state("trigger")[0] == "running" and p.state("ended")[0] == "terminated", 30)
    for name in ("web", "ended", "trigger", "init"):
        last = after.container(name)["lastState"]["terminated"]
        equal((last["exitCode"], last["reason"], last["message"]),
              (137, "RestartingAllContainers", "The container is removed because RestartAllContainers in place"), f"the last state of {name}")
    contains(node.cli("get", "events").stdout, "Stopping container web", "events")
    equal(after.status["podIP"], before.status["podIP"], "the pod's address")
    until(lambda: read(f"{folder}/order") == "init\nweb\n" * 2, 10, lambda: f"order of the starts: {read(f'{folder}/order')!r}")
    check(not read(f"{folder}/hooks", ""), "a preStop hook ran")
    equal(after.condition("AllContainersRestarting")["status"], "False", "the condition afterwards")

    with open(f"{folder}/go", "w", encoding="ascii"):  # and again, with the daemon killed in the midst
        pass
    until(lambda: node.pod("a").state("trigger")[0] != "running" or node.pod("a").restarts("trigger") == 2, 20, "the trigger ends", interval=0.005)
    node.kill()
    node.start()
    after = node.wait_pod("a", lambda p: all(p.restarts(n) == 2 for n in ("web", "trigger", "init"))
                          and p.state("web")[0] == p.state("trigger")[0] == "running", 60)
    until(lambda: read(f"{folder}/order") == "init\nweb\n" * 3, 10, lambda: f"order of the starts: {read(f'{folder}/order')!r}")
    equal(node.stop(), 0, "exit code")


test_all_restart.seconds = 30
