# SPDX-License-Identifier: Apache-2.0
"""Device plugins that hang, die, flood, lie and break the rules of HTTP/2: a named error, and nothing else stops."""
import os
import re
import time

import coracle
import devices
from coracle import check, contains, equal, until
from devices import Plugin, asking, checkpoint, plugin_at_work

BAD = "example.com/bad"
# Of the agent, over what it had before: a message of the greatest size (4 MiB, base/grpc), its decoded form, and a
# list of the most devices of one resource (65536), as it was and as it is.  A sanitizer takes three times as much.
MEMORY_KB = 48 * 1024
SETTLED_KB = 24 * 1024  # what malloc keeps when it is over


def memory(pid, what="VmRSS"):
    return int(re.search(rf"{what}:\s+(\d+)", coracle.read(f"/proc/{pid}/status")).group(1))


class Bed:
    """An agent with a good plugin, whose pod runs; hostile ones come and go beside it."""

    def __init__(self, t, *flags):
        self.t, self.node, self.serial = t, devices.start(t, *flags), 0
        self.good = plugin_at_work(self.node, "--resource", "example.com/good", "--prestart", name="good", devices=40)
        self.node.put("stays.yaml", asking("stays", resource="example.com/good"))
        self.node.wait_running("stays")
        self.pid = self.node.process.pid
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as f:
            f.write("5")  # VmHWM counts from now on
        self.memory, self.fds = memory(self.pid), self.descriptors()
        # AddressSanitizer keeps up to 256 MiB of freed memory, whatever the agent holds.
        self.quarantine_kb = 2 * 256 * 1024 if "asan" in coracle.read(f"/proc/{self.pid}/maps") else 0

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def plugin(self, how, *flags):
        self.serial += 1
        return Plugin(self.node, "--how", how, "--resource", BAD, *flags, name=f"bad{self.serial}", program="hostile_plugin.py", wait=False)

    def goes_on(self, when, deadline=10):
        """A pod with a good device starts, and requests are answered, while the hostile plugin is at it."""
        self.serial += 1
        name = f"g{self.serial}"
        self.node.put(f"{name}.yaml", asking(name, resource="example.com/good"))
        pod = self.node.wait_running(name, deadline=deadline)
        begun = time.monotonic()
        self.node.get("/api/v1/pods")
        check(time.monotonic() - begun < 2 * coracle.SLOW, f"{when}: a request took {time.monotonic() - begun:.1f} s")
        self.node.finish(pod)
        equal(self.node.process.poll(), None, f"{when}: the agent lives")

    def named(self, *words, deadline=10):
        """`explain node` has all these words."""
        text = []

        def found():
            text[:] = [self.node.cli("explain", "node").stdout]
            return all(w in text[0] for w in words)
        until(found, deadline, lambda: f"explain node names {words}:\n{text[0]}", interval=0.1)

    def bounded(self, when):
        peak = memory(self.pid, "VmHWM")
        check(peak - self.memory < MEMORY_KB + self.quarantine_kb, f"{when}: the agent had {peak} KiB, {self.memory} before")

    def ended(self, when, plugin):
        plugin.kill()
        until(lambda: self.descriptors() <= self.fds, 10, lambda: f"{when}: {self.descriptors()} descriptors, {self.fds} before:\n" + "\n".join(
            sorted(os.readlink(f"/proc/{self.pid}/fd/{f}") for f in os.listdir(f"/proc/{self.pid}/fd"))))
        self.bounded(when)
        checkpoint(self.node)

    def finish(self):
        settled = memory(self.pid)
        check(settled - self.memory < SETTLED_KB + self.quarantine_kb, f"at the end the agent has {settled} KiB, {self.memory} before")
        equal(self.node.pod("stays").restarts(), 0, "restarts of the pod that stays")
        print(f"MEASURED the agent's memory beside hostile plugins: {self.memory} KiB before, at most {memory(self.pid, 'VmHWM')}, {settled} at the end")
        for file in os.listdir(self.node.manifests):
            self.node.remove(file)
        until(lambda: not self.node.pods(), 60, "pods are gone")
        self.good.stop()
        self.node.stop()


def test_dies_in_each_call(t):
    """a plugin that dies in a call: its pod waits with a reason, and runs with a plugin that answers"""
    bed = Bed(t)
    node = bed.node
    for call in ("GetDevicePluginOptions", "ListAndWatch", "GetPreferredAllocation", "Allocate", "PreStartContainer"):
        plugin = Plugin(node, "--resource", BAD, "--devices", "1", "--prestart", "--preferred", "--die", call, name="bad", wait=False)
        if call in ("GetDevicePluginOptions", "ListAndWatch"):
            plugin.process.wait(timeout=20)
            bed.goes_on(call)
        else:
            devices.wait_node(node, 1, 1, BAD)
            node.put("victim.yaml", asking("victim", resource=BAD))
            plugin.process.wait(timeout=20)
            contains(node.cli("explain", "pod", "victim").stdout, BAD)
            bed.goes_on(call)
        bed.ended(call, plugin)
        if call not in ("GetDevicePluginOptions", "ListAndWatch"):
            plugin = Plugin(node, "--resource", BAD, "--devices", "1", "--prestart", "--preferred", name="bad")
            victim = node.pod("victim")
            if victim.phase == "Failed":  # Allocate itself may be refused for good
                node.finish(victim)
                node.put("victim.yaml", asking("victim", resource=BAD))
            node.finish(node.wait_running("victim"))
            plugin.stop()
    bed.finish()


def test_hangs_in_each_call(t):
    """a plugin that never answers a call blocks no other pod; explain names it"""
    bed = Bed(t)
    node = bed.node
    plugins = {}
    for call in ("GetDevicePluginOptions", "ListAndWatch", "GetPreferredAllocation", "Allocate", "PreStartContainer"):
        name = "hang-" + call.lower()
        plugins[call] = Plugin(node, "--resource", f"example.com/{name}", "--devices", "1", "--prestart", "--preferred", "--hang", call,
                               name=name, wait=False)
    for call in ("GetPreferredAllocation", "Allocate", "PreStartContainer"):
        name = "hang-" + call.lower()
        devices.wait_node(node, 1, 1, f"example.com/{name}")
        node.put(f"{name}.yaml", asking(name, resource=f"example.com/{name}"))
    for call, plugin in plugins.items():
        plugin.wait_call(call, hangs=True)
    bed.goes_on("all hang")
    for call in ("GetPreferredAllocation", "Allocate", "PreStartContainer"):
        contains(node.cli("explain", "pod", "hang-" + call.lower()).stdout, f"example.com/hang-{call.lower()}")
    before = bed.descriptors()
    node.put("hang-other.yaml", asking("hang-other", resource="example.com/hang-allocate"))  # a second one that wants the same
    bed.goes_on("a second pod waits, too")
    check(bed.descriptors() <= before + 2, "calls that hang pile up no descriptors")
    for file in [f for f in os.listdir(node.manifests) if f.startswith("hang-")]:
        node.remove(file)
    until(lambda: not [n for _, n in node.pods() if n.startswith("hang-")], 20, "pods of plugins that hang can be removed")
    for plugin in list(plugins.values())[1:]:
        plugin.kill()
    bed.ended("all hang", plugins["GetDevicePluginOptions"])
    bed.finish()


def wrong(t, hows, counted):
    """Each of these in turn beside good ones; counted: devices of the resource afterwards, or None."""
    bed = Bed(t)
    for how in hows:
        plugin = bed.plugin(how)
        plugin.wait_call("ListAndWatch" if not how.startswith("options") else "GetDevicePluginOptions")
        bed.goes_on(how)
        if counted is None:
            bed.named(BAD)
            check(devices.node_says(bed.node, BAD)[1] in (None, "0"), f"{how}: nothing can be had of it: {devices.node_says(bed.node, BAD)}")
        bed.ended(how, plugin)
    bed.finish()


def test_wrong_frames(t):
    """broken HTTP/2 and gRPC: half frames, 16 MiB frames, no trailers, endless headers, floods of unknown streams"""
    wrong(t, ("options-garbage", "options-no-trailers", "options-not-grpc", "options-bad-status", "list-half-then-close",
              "list-16mb-frame", "list-compressed", "list-garbage", "list-continuation-flood", "list-window-overflow"), None)


def test_wrong_lists(t):
    """lists that are too large or that end: 16 MiB, four GiB announced, a million devices"""
    wrong(t, ("list-16mb-message", "list-4gb-length", "list-million", "list-65537", "list-ends"), None)


def test_refused_ids(t):
    """ids that no checkpoint could carry: NUL, no UTF-8, none at all, too long; the list is refused by name"""
    wrong(t, ("list-nul-id", "list-bad-utf8", "list-empty-id", "list-long-id"), None)


def test_half_frame(t):
    """half a frame and then nothing, streams without a call, the longest list: other plugins are not affected"""
    wrong(t, ("list-half-frame", "list-stray-streams", "list-65536"), 0)


def test_odd_ids(t):
    """ids with odd bytes: the checkpoint stays readable, no log line is forged, and the valid devices can be allocated"""
    bed = Bed(t)
    for how in ("list-odd-ids", "list-odd-health"):
        plugin = bed.plugin(how)
        plugin.wait_call("Register", ok=True)
        bed.goes_on(how)
        count = devices.node_says(bed.node, BAD)[0]
        check(count is not None and int(count) >= 2, f"{how}: {count} devices are counted")
        bed.node.put("odd.yaml", asking("odd", int(devices.node_says(bed.node, BAD)[1]), resource=BAD))
        pod = bed.node.wait_running("odd")
        checkpoint(bed.node)
        for text in (bed.node.cli("explain", "node").stdout, bed.node.cli("explain", "pod", "odd").stdout,
                     bed.node.cli("describe", "node").stdout, bed.node.log()):
            check("\x1b[31m" not in text and "\0" not in text, f"{how}: bytes of a plugin reach a terminal")
        bed.node.kill()
        bed.node.start()
        bed.pid = bed.node.process.pid
        checkpoint(bed.node)
        equal(bed.node.pod("odd").container_id(), pod.container_id(), "the pod stays")
        bed.good.wait_call("Register", count=2 if how == "list-odd-ids" else 3, ok=True)
        bed.memory = memory(bed.pid)
        bed.node.finish(bed.node.pod("odd"))
        plugin.kill()
    bed.finish()


def test_wrong_answers(t):
    """answers that lie: ids that were not offered, too many, none, 16 MiB, odd paths and names; each is named, devices come free"""
    bed = Bed(t)
    node = bed.node
    for how in ("preferred-lies", "preferred-twice", "preferred-too-many", "preferred-none"):
        plugin = bed.plugin(how)
        devices.wait_node(node, 2, 2, BAD)
        node.put("v.yaml", asking("v", 2, resource=BAD))
        node.finish(node.wait_running("v"))
        bed.ended(how, plugin)
    for how in ("preferred-bad-utf8", "allocate-no-response", "allocate-garbage", "allocate-16mb", "allocate-many-env", "allocate-odd-paths", "allocate-odd-env",
                "allocate-bad-cdi", "allocate-half-then-close", "allocate-goaway", "allocate-reset"):
        plugin = bed.plugin(how)
        devices.wait_node(node, 2, 2, BAD)
        node.put("v.yaml", asking("v", resource=BAD))
        plugin.wait_call("Allocate" if how.startswith("allocate") else "GetPreferredAllocation")
        v = node.wait_pod("v", lambda p: p.phase == "Failed" or p.state()[0] == "waiting" and p.state()[1].get("reason") not in
                          ("ContainerCreating", "PodInitializing") or BAD in node.cli("explain", "pod", "v").stdout, what=f"{how}: shown")
        check(v.state()[0] != "running", f"{how}: it runs")
        bed.goes_on(how)
        text = node.cli("explain", "pod", "v").stdout
        check(BAD in text or "Allocate failed due to" in text or "CDI" in text, f"{how}: {text}")
        node.finish(v)
        until(lambda: not [k for k in devices.held(checkpoint(node)) if k[2] == BAD], 10, f"{how}: the device came free")
        bed.ended(how, plugin)
    bed.finish()


def test_endpoints(t):
    """a registration that names the agent's own socket, another plugin's, or a path outside: refused or harmless"""
    bed = Bed(t)
    for endpoint in ("kubelet.sock", "../plugins_registry/x.sock", "/etc/passwd", "x" * 300, "a\nb", "nobody.sock"):
        plugin = bed.plugin("polite", "--endpoint", endpoint)
        said = plugin.wait_call("Register", deadline=45)
        check("error" in said, f"{endpoint!r}: {said}")
        bed.goes_on(endpoint)
        bed.ended(endpoint, plugin)
    bed.finish()


def test_floods(t):
    """floods of lists, pings, settings, empty frames, registrations and connections: others are served, memory is bounded"""
    bed = Bed(t)
    for how in ("flood-lists", "flood-big-lists", "flood-pings", "flood-settings", "flood-empty-data", "flood-registers", "flood-connections"):
        plugin = bed.plugin(how)
        plugin.wait_call({"flood-registers": "Register", "flood-connections": "connections"}.get(how, "ListAndWatch"))
        for _ in range(3):
            bed.goes_on(how, deadline=20)
        bed.ended(how, plugin)
    bed.finish()
