# SPDX-License-Identifier: Apache-2.0
"""Devices of device plugins: over restarts of agent and plugin, while a plugin is away, and inside the container."""
import base64
import json
import os
import shutil
import signal
import time

import coracle
import devices
from coracle import alive, check, contains, equal, until
from devices import MAJOR, RESOURCE, Plugin, asking, checkpoint, devices_of, held, plugin_at_work, wait_node



def held_by(node, pod, container="main", resource=RESOURCE):
    return held(checkpoint(node)).get((pod.uid, container, resource), [])


def environ(pid):
    return dict(v.split("=", 1) for v in coracle.read(f"/proc/{pid}/environ").split("\0") if "=" in v)


def got(node, pod, container=None):
    """The ids that the container's process has been given."""
    return environ(node.pid(pod, container))["DEV_IDS"].split(",")


def finish(node, *plugins):
    node.clear()
    for plugin in plugins:
        plugin.stop()
    node.stop()


def test_authority(t):
    """peers that name the socket's path as authority are served, as grpc-go 1.56 and older does"""
    node = devices.start(t)
    plugin = plugin_at_work(node, "--authority", f"{node.root_dir}/device-plugins/kubelet.sock")
    node.put("a.yaml", asking("a"))
    node.wait_running("a")
    client = devices.Client()
    listed = client.podresources(node, "List", authority=f"{node.root_dir}/pod-resources/kubelet.sock")
    client.close()
    equal([c["devices"][0]["device_ids"] for c in listed["response"]["pod_resources"][0]["containers"]], [["dev-0"]], "List")
    finish(node, plugin)


def test_restart_orders(t):
    """agent and plugin end and start in every order: a running pod keeps its device, the node counts correctly, another pod gets the other device"""
    node = devices.start(t)
    plugin = plugin_at_work(node, "--prestart", "--preferred")
    node.put("a.yaml", asking("a"))
    a = node.wait_running("a")
    pid, ids = node.pid(a), got(node, a)
    orders = ("agent- plugin- agent+ plugin+", "agent- plugin- plugin+ agent+", "plugin- agent- agent+ plugin+",
              "plugin- agent- plugin+ agent+", "agent- agent+ plugin- plugin+", "plugin- plugin+ agent- agent+")
    for number, order in enumerate(orders):
        for step in order.split():
            if step == "agent-":
                node.stop() if number % 2 else node.kill()
            elif step == "agent+":
                node.start()
            elif step == "plugin-":
                plugin.stop() if number % 3 else plugin.kill()
            else:
                plugin = Plugin(node, "--devices", "2", "--prestart", "--preferred", wait=False)
        wait_node(node, 2, 2)
        check(alive(pid), f"{order}: the pod's process lives")
        a = node.wait_pod("a", lambda p: set(devices_of(p).values()) == {"Healthy"}, what=f"{order}: healthy again")
        equal((sorted(devices_of(a)), held_by(node, a), a.restarts()), (ids, ids, 0), f"{order}: pod a has")
        node.put("b.yaml", asking("b"))
        b = node.wait_running("b")
        check(set(got(node, b)) | set(ids) == {"dev-0", "dev-1"}, lambda: f"{order}: b has {got(node, b)} beside {ids}")
        node.finish(b)
    finish(node, plugin)


def test_pod_before_plugin(t):
    """a pod waits for a plugin that has not registered since the agent's restart; explain and an event say for what; then it runs"""
    node = devices.start(t)
    plugin = plugin_at_work(node, "--no-reregister")
    node.stop()
    plugin.stop()
    node.put("a.yaml", asking("a"))
    node.put("plain.yaml", coracle.pod("plain"))
    node.start()
    node.wait_running("plain")
    a = node.wait_pod("a", lambda p: p.phase == "Pending")
    until(lambda: RESOURCE in node.cli("explain", "pod", "a").stdout, 10, "explain names the resource")
    until(lambda: any(RESOURCE in e["message"] for e in node.events("a")), 10, lambda: f"an event names it: {node.events('a')}")
    equal(held_by(node, a), [], "nothing is held while it waits")
    plugin = Plugin(node, "--devices", "2")
    node.wait_running("a")
    finish(node, plugin)


def test_first_registration(t):
    """a pod that asks before the plugin's first registration gets its device when it comes"""
    node = devices.start(t)
    node.put("a.yaml", asking("a"))
    until(lambda: node.pod("a"), 10, "the pod is known")
    plugin = Plugin(node, "--devices", "1")
    a = node.wait_running("a")
    equal(got(node, a), ["dev-0"], "the devices of pod a")
    finish(node, plugin)


def test_wait_ends(t):
    """after devicePluginWait a pod that still waits is rejected with kubelet's reason"""
    node = devices.start(t, "--device-plugin-wait", "2s")
    plugin = plugin_at_work(node)
    plugin.stop()
    wait_node(node, 2, 0)
    node.put("a.yaml", asking("a"))
    a = node.wait_phase("a", "Failed")
    equal(a.status["reason"], "UnexpectedAdmissionError", "reason")
    contains(a.status["message"], "no healthy devices present; cannot allocate unhealthy devices example.com/dev")
    finish(node)


def test_died_while_agent_was_down(t):
    """a container that ended while agent and plugin were down starts again with its device when both are back"""
    node = devices.start(t)
    plugin = plugin_at_work(node, "--prestart")
    node.put("a.yaml", asking("a"))
    a = node.wait_running("a")
    ids = got(node, a)
    pid = node.pid(a)
    node.kill()
    plugin.stop()
    os.kill(pid, signal.SIGKILL)
    node.start()
    node.put("b.yaml", asking("b"))
    until(lambda: node.pod("b"), 10, "b is known")
    equal(held_by(node, a), ids, "the device is kept")
    check(node.pod("a").phase != "Failed", "the pod is not failed")
    plugin = Plugin(node, "--devices", "2", "--prestart")
    a = node.wait_pod("a", lambda p: p.restarts() == 1 and p.state()[0] == "running")
    node.wait_running("a")
    b = node.wait_running("b")
    equal(got(node, a), ids, "its devices after the restart")
    check(set(got(node, b)).isdisjoint(ids), "b has the other one")
    finish(node, plugin)


def test_folder_removed(t):
    """the folder device-plugins disappears while the agent runs: the plugin registers again, and the checkpoint comes back"""
    node = devices.start(t)
    plugin = plugin_at_work(node)
    node.put("a.yaml", asking("a"))
    a = node.wait_running("a")
    ids = got(node, a)
    os.rename(f"{node.root_dir}/device-plugins", f"{t.scratch}/away")
    plugin.wait_call("Register", count=2, ok=True)
    wait_node(node, 2, 2)
    until(lambda: held_by(node, a) == ids, 10, lambda: f"the new checkpoint has {held_by(node, a)} instead of {ids}")
    finish(node, plugin)


def test_unhealthy_and_vanished(t):
    """an unhealthy and a vanished device are shown; their pods keep running; no other pod gets them"""
    node = devices.start(t, "--device-plugin-wait", "0s")
    plugin = plugin_at_work(node, "--preferred", "--toggle", "1", devices=3)
    for name in ("a", "b"):
        node.put(f"{name}.yaml", asking(name))
        node.wait_running(name)
    a, b = node.pod("a"), node.pod("b")
    equal((got(node, a), got(node, b)), (["dev-2"], ["dev-1"]), "devices of a and b")
    plugin.signal("HUP")  # dev-1
    node.wait_pod("b", lambda p: devices_of(p) == {"dev-1": "Unhealthy"}, what="dev-1 is unhealthy")
    wait_node(node, 3, 2)
    plugin.signal("USR1")  # dev-2 leaves the list
    node.wait_pod("a", lambda p: set(devices_of(p)) == {"dev-2"} and devices_of(p)["dev-2"] != "Healthy", what="dev-2 is gone")
    wait_node(node, 2, 1)
    node.put("c.yaml", asking("c", 2))
    contains(node.wait_phase("c", "Failed").status["message"], "Requested: 2, Available: 1")
    plugin.signal("USR1")
    plugin.signal("HUP")
    node.wait_pod("a", lambda p: devices_of(p) == {"dev-2": "Healthy"})
    node.wait_pod("b", lambda p: devices_of(p) == {"dev-1": "Healthy"})
    equal((node.pod("a").restarts(), node.pod("b").restarts()), (0, 0), "nobody started again")
    finish(node, plugin)


def test_two_processes(t):
    """a second process of a resource replaces the first; when the first one ends, the second still serves"""
    node = devices.start(t, "--device-plugin-wait", "0s")
    first = plugin_at_work(node, "--preferred")
    node.put("a.yaml", asking("a"))
    node.wait_running("a")
    second = plugin_at_work(node, "--preferred", "--prefix", "other-", name="p2", devices=3)
    first.stop()
    node.put("b.yaml", asking("b"))
    b = node.wait_running("b")
    equal(got(node, b), ["other-2"], "devices of b")
    wait_node(node, 3, 3)
    check(not second.calls("ListAndWatch.end"), "the second one's stream goes on")
    finish(node, second)


def test_side_by_side(t):
    """Allocate is called for different pods in parallel; a plugin that hangs in it blocks no other pod"""
    node = devices.start(t)
    slow = plugin_at_work(node, "--allocate-delay", "3s", devices=8)
    stuck = plugin_at_work(node, "--hang", "Allocate", "--resource", "example.com/stuck", name="stuck")
    node.put("stuck.yaml", asking("stuck", resource="example.com/stuck"))
    stuck.wait_call("Allocate")
    begun = time.monotonic()
    names = [f"s{i}" for i in range(5)]
    for name in names:
        node.put(f"{name}.yaml", asking(name))
    node.put("plain.yaml", coracle.pod("plain"))
    node.wait_running("plain")
    plain = time.monotonic() - begun
    node.wait_running(*names)
    took = time.monotonic() - begun
    check(plain < took, "the pod without devices was first")
    check(took < 3 + 7 * coracle.SLOW, f"five Allocates of 3 s each took {took:.1f} s")
    contains(node.cli("explain", "pod", "stuck").stdout, "example.com/stuck")
    stuck.kill()
    finish(node, slow)


def test_killed_in_allocate(t):
    """the agent is killed while Allocate is under way: the pod gets its devices once, nothing stays reserved"""
    node = devices.start(t)
    plugin = plugin_at_work(node, "--allocate-delay", "1s", devices=2)
    for name in ("a", "b"):
        node.put(f"{name}.yaml", asking(name))
    until(lambda: node.pod("b"), 10, "pods are known")
    time.sleep(0.3)  # amid the delay
    node.kill()
    checkpoint(node)
    node.start()
    node.wait_running("a", "b")
    a, b = node.pod("a"), node.pod("b")
    equal(sorted(got(node, a) + got(node, b)), ["dev-0", "dev-1"], "devices of both")
    equal(sorted(held_by(node, a) + held_by(node, b)), ["dev-0", "dev-1"], "the checkpoint")
    finish(node, plugin)


def test_kubelets_checkpoint(t):
    """a node that changes over: what kubelet's checkpoint gives to a pod stays the pod's, with kubelet's stored answer; what it gives to others is free"""
    node = devices.start(t, wait=True)
    node.stop()
    # ContainerAllocateResponse{envs: {"DEV_IDS": "dev-2"}}
    answer = base64.b64encode(b"\x0a\x10\x0a\x07DEV_IDS\x12\x05dev-2").decode()
    uid, other = "7a0e4c4a-c14f-44a0-b6d4-24e04fc6ad67", "bcf2c7fc-5b62-4e06-a721-7dcc9e32f9b9"
    data = {"PodDeviceEntries": [
        {"PodUID": u, "ContainerName": "main", "ResourceName": RESOURCE, "DeviceIDs": {"-1": [i]}, "AllocResp": answer}
        for u, i in ((uid, "dev-2"), (other, "dev-1"))], "RegisteredDevices": {RESOURCE: ["dev-0", "dev-1", "dev-2"]}}
    with open(devices.checkpoint_path(node), "w", encoding="ascii") as f:
        json.dump({"Data": data, "Checksum": devices.checksum(data)}, f, separators=(",", ":"))
    pod = asking("a")
    pod["metadata"]["uid"] = uid
    node.put("a.yaml", pod)
    node.start()
    equal(devices.node_says(node), ("0", "0"), "the resource is known, without its plugin")
    plugin = plugin_at_work(node, devices=3)
    a = node.wait_running("a")
    equal((a.uid, got(node, a)), (uid, ["dev-2"]), "the pod and its device")
    node.put("b.yaml", asking("b", 2))
    b = node.wait_running("b")
    equal(sorted(got(node, b)), ["dev-0", "dev-1"], "another pod has the rest")
    equal([sorted(ids) for ids in plugin.allocated()], [["dev-0", "dev-1"]], "Allocate is called for the other pod only")
    finish(node, plugin)


def rules(t, runtime):
    """What a container may do with devices of different permissions."""
    node = devices.start(t, "--runtime", shutil.which(runtime))
    plugins = []
    for minor, permissions in ((1, "r"), (2, "w"), (3, "rw"), (4, "rwm")):
        path = devices.device_node(f"{t.scratch}/{permissions}", minor)
        plugins.append(plugin_at_work(node, "--resource", f"example.com/{permissions}", "--device", f"{path}:/dev/x-{permissions}:{permissions}",
                                      name=permissions, devices=1))
    command = """
for p in r w rw rwm; do
  (: < /dev/x-$p) 2> /tmp/e; echo "$p read: $(cat /tmp/e)"
  (: > /dev/x-$p) 2> /tmp/e; echo "$p write: $(cat /tmp/e)"
done
rm -f /tmp/other; mknod /tmp/other c %d 9 && (: < /tmp/other) 2> /tmp/e; echo "other read: $(cat /tmp/e)"
stat -c 'node %%t:%%T %%F' /dev/x-r
echo end; exec sleep 100000""" % MAJOR
    pod = asking("a", None, command=command, ctr={
        "resources": {"limits": {f"example.com/{p}": "1" for p in ("r", "w", "rw", "rwm")}},
        "volumeMounts": [coracle.mount("tmp", "/tmp")]}, volumes=[{"name": "tmp", "emptyDir": {}}])
    node.put("a.yaml", pod)

    def verify(when):
        node.wait_running("a")
        until(lambda: "end" in node.logs("a"), 10, "the report is there")
        log = node.logs("a")
        seen = dict(line.split(": ", 1) for line in log.splitlines() if ": " in line)
        for permissions in ("r", "w", "rw", "rwm"):
            for what in ("read", "write"):
                may = what[0] in permissions
                text = "No such device" if may else "not permitted"
                check(text in seen.get(f"{permissions} {what}", ""), lambda: f"{when}, {permissions} {what}: wanted {text!r} in\n{log}")
        check("not permitted" in seen["other read"], lambda: f"{when}: a node of its own making opens:\n{log}")
        contains(log, f"node {MAJOR:x}:1 character special file")

    verify("at first")
    node.kill()
    node.start()
    a = node.pod("a")
    os.kill(node.pid(a), signal.SIGKILL)
    node.wait_pod("a", lambda p: p.restarts() == 1 and p.state()[0] == "running")
    verify("after a restart of agent and container")
    finish(node, *plugins)


def test_rules_crun(t):
    """a container may read, write and create nodes exactly as the plugin's permissions allow, also after restarts (crun)"""
    rules(t, "crun")


def test_rules_runc(t):
    """the same with runc"""
    rules(t, "runc")


def test_two_resources_disagree(t):
    """two plugins answer the same variable, mount, device and annotation: the first by name wins each time, and the conflict is named"""
    node = devices.start(t)
    for name in ("one", "two"):
        os.makedirs(f"{t.scratch}/{name}")
        with open(f"{t.scratch}/{name}/who", "w", encoding="ascii") as f:
            f.write(name)
    plugins = [plugin_at_work(node, "--resource", f"example.com/{n}", "--mount", f"{t.scratch}/{n}:/mnt/x:ro", "--device",
                              f"{d}:/dev/x:rw", "--prefix", f"{n}-", name=n, devices=4)
               for n, d in (("two", "/dev/zero"), ("one", "/dev/null"))]
    limits = {"resources": {"limits": {"example.com/one": "1", "example.com/two": "1"}}}
    for name in ("a", "b", "c"):
        node.put(f"{name}.yaml", asking(name, None, command="cat /mnt/x/who; stat -c ' %t:%T' /dev/x; echo end; exec sleep 100000", ctr=limits))
        pod = node.wait_running(name)
        until(lambda: "end" in node.logs(name), 10, "the report is there")
        equal(node.logs(name).split("\n")[0], "one 1:3", f"{name} has")
        check(got(node, pod)[0].startswith("one-"), f"{name}: the variable of example.com/one")
    until(lambda: any("DEV_IDS" in e["message"] or "/dev/x" in e["message"] or "/mnt/x" in e["message"] for e in node.events("a"))
          or "example.com/two" in node.cli("explain", "pod", "a").stdout, 10, "the conflict is named")
    finish(node, *plugins)


def test_no_wakeups(t):
    """an agent with idle plugins does not wake up"""
    node = devices.start(t)
    plugins = [plugin_at_work(node, "--resource", f"example.com/r{i}", name=f"r{i}") for i in range(3)]
    node.put("a.yaml", asking("a", resource="example.com/r0"))
    node.wait_running("a")
    time.sleep(2)

    def switches():
        text = coracle.read(f"/proc/{node.process.pid}/status")
        return int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0])

    def checks():  # of the node's resources, which other work on this machine causes (I/O pressure)
        return node.log().count("looking at the node's resources")
    for _ in range(12):
        before, checked = switches(), checks()
        time.sleep(5)
        woken, allowed = switches() - before, 3 + 4 * (checks() - checked)
        if woken <= allowed:
            break
    print(f"MEASURED wake-ups of the agent in 5 s with three plugins: {woken}, {allowed} allowed")
    check(woken <= allowed, f"{woken} wake-ups in 5 s")
    finish(node, *plugins)


