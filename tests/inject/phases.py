# SPDX-License-Identifier: Apache-2.0
"""phases - the agent's work while one of its calls fails: before() prepares, do() runs with the fault, after() restores the node."""
import contextlib
import hashlib
import http.client
import io
import json
import os
import tarfile
import time

import coracle
import devices
import registry
from bench import RESIDENTS
from coracle import Failed, check, container, pod, shell

REFRESH_S = 45  # a payload that could not be refreshed is tried again after 30 s


class Phase:
    """before() prepares, do() runs with the fault, after() restores the node and checks the outcome."""

    def __init__(self, bench):
        self.bench, self.node = bench, bench.node

    @staticmethod
    def flags(_world):
        """Additional flags for the daemon, and the files they need."""
        return []

    def before(self):
        pass

    def do(self):
        raise NotImplementedError

    def after(self):
        pass

    def gone(self, p):
        self.bench.wait(lambda pods: "web" in pods and p.name not in pods, f"{p.name} gone")
        self.node.wait_no_traces(p, deadline=20)

    def remove(self, name):
        with contextlib.suppress(FileNotFoundError):
            self.node.remove(f"{name}.yaml")

    def start_one(self, name, **spec):
        volumes = [{"name": "config", "configMap": {"name": "config"}}, {"name": "scratch", "emptyDir": {}}]
        mounts = [coracle.mount("config", "/config"), coracle.mount("scratch", "/scratch")]
        self.node.put(f"{name}.yaml", pod(name, container(volumeMounts=mounts, ports=[{"containerPort": 80, "hostPort": 8300}]),
                                          volumes=volumes, terminationGracePeriodSeconds=1, shareProcessNamespace=True, **spec))

    def running(self, name):
        def is_running(pods):
            return pods[name] if coracle.all_running(pods[name]) and self.node.pid(pods[name]) else None
        return self.bench.wait(is_running, f"{name} running")


class Restart(Phase):
    """The agent's own start over running pods."""

    def before(self):
        self.node.stop()

    def do(self):
        try:
            self.node.start()
        except Failed:
            check(self.node.process.poll() is not None, "the agent runs, but has not said that it is ready")
            self.bench.revive()
        self.bench.wait(lambda pods: all(n in pods for n in RESIDENTS) and pods["web"].ready, "the pods are known")


class Start(Phase):
    """A pod's start."""

    def do(self):
        self.start_one("one")
        self.pod = self.running("one")

    def after(self):
        p = self.running("one")
        last = p.container("main").get("lastState", {}).get("terminated", {})  # a failed start is counted as a restart, as in kubelet
        check(p.restarts() == 0 or last.get("reason") in ("StartError", "ContainerCannotRun"), f"the new pod restarted {p.restarts()} times: {last}")
        check(coracle.read(f"/proc/{self.node.pid(p)}/root/config/text", "?") == self.bench.value, "the new pod has no ConfigMap")
        self.remove("one")
        self.gone(p)


class Stop(Phase):
    """A pod's stop and removal."""

    def before(self):
        self.start_one("one")
        self.pod = self.running("one")

    def do(self):
        self.remove("one")
        self.bench.wait(lambda pods: "web" in pods and "one" not in pods, "one gone")

    def after(self):
        self.gone(self.pod)


class End(Phase):
    """A container ends by itself; its exit code is reported once."""

    def do(self):
        self.node.put("one.yaml", pod("one", container(command=shell("sleep 0.2; exit 5")), restartPolicy="Never"))
        self.pod = self.bench.wait(lambda pods: pods["one"] if pods["one"].phase in ("Failed", "Succeeded") else None, "one ended")

    def after(self):
        word, detail = self.pod.state()
        check((self.pod.phase, word, detail.get("exitCode")) == ("Failed", "terminated", 5), lambda: f"the end of one: {self.pod.phase} {word} {detail}")
        self.remove("one")
        self.gone(self.pod)


class Edit(Phase):
    """A ConfigMap's edit reaches a running pod."""

    def do(self):
        self.bench.put_value(str(int(self.bench.value) + 1))
        pid = self.bench.wanted["web"]["pid"][0]
        coracle.until(lambda: coracle.read(f"/proc/{pid}/root/config/text", "?") == self.bench.value or self.bench.revive(), REFRESH_S,
                      "the edit in the container")


class Answer(Phase):
    """A command of the command line: it succeeds or prints the reason, and succeeds afterwards."""

    wanted = ""

    def command(self):
        raise NotImplementedError

    def result(self):
        result = self.command()
        return result.returncode, result.stdout, result.stderr

    def do(self):
        code, out, err = self.result()
        check(code != 0 or out == self.wanted, lambda: f"exit code 0, but it printed {coracle.short(out)} ({err!r})")
        # `image verify` prints damage on standard output, because that is its result.
        check(code == 0 or err.strip() or out.strip() not in ("", self.wanted.strip()), f"exit code {code} without a reason")

    def after(self):
        end = time.monotonic() + 5 * coracle.SLOW  # a killed agent does not disappear at once
        while True:
            self.bench.revive()
            code, out, err = self.result()
            if (code, out) == (0, self.wanted):
                return
            check(time.monotonic() < end, lambda: f"afterwards: exit code {code}, {coracle.short(out)}, {err!r}")
            time.sleep(0.1)


class Exec(Answer):
    """exec of a command."""

    wanted = "here\n"

    def command(self):
        return self.bench.cli("exec", "web", "--", "echo", "here")


class Logs(Answer):
    """logs of a container."""

    def command(self):
        return self.bench.cli("logs", "web")


class Copy(Answer):
    """cp into a container and back."""

    wanted = "text\n"

    def command(self):
        here = f"{self.bench.world.scratch}/tmp/copy"
        with open(here, "w", encoding="ascii") as f:
            f.write("text\n")
        result = self.bench.cli("cp", here, "web:/tmp/copy")
        if result.returncode == 0:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(here + ".back")
            result = self.bench.cli("cp", "web:/tmp/copy", here + ".back")
            result.stdout = coracle.read(here + ".back", "")
        return result


def member(name, kind=tarfile.REGTYPE, link="", data=b"", mode=0o644):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.mode = kind, link, len(data), mode
    return info, data


def layer(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def write_layout(folder):
    """An image that no resident uses, with every kind of file that a layer can hold, as the folder of an OCI layout."""
    layers = [layer(member("etc", tarfile.DIRTYPE, mode=0o755), member("etc/old", data=b"old"), member("etc/big", data=b"b" * 200000),
                    member("bin", tarfile.DIRTYPE, mode=0o1777), member("bin/link", tarfile.SYMTYPE, "../etc/big"),
                    member("bin/hard", tarfile.LNKTYPE, "etc/big"), member("bin/fifo", tarfile.FIFOTYPE)),
              layer(member("etc/.wh.old"), member("etc/new", data=b"new", mode=0o4755), member("bin/.wh..wh..opq"))]
    blobs = f"{folder}/blobs/sha256"
    os.makedirs(blobs)

    def blob(kind, data):
        digest = hashlib.sha256(data).hexdigest()
        with open(f"{blobs}/{digest}", "wb") as f:
            f.write(data)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}

    described = [blob(registry.LAYER, data) for data in layers]
    config = {"os": "linux", "architecture": registry.ARCH, "config": {"Cmd": ["/x"]},
              "rootfs": {"type": "layers", "diff_ids": [d["digest"] for d in described]}}
    manifest = {"schemaVersion": 2, "mediaType": registry.MANIFEST, "config": blob(registry.CONFIG, json.dumps(config).encode()),
                "layers": described}
    entry = blob(registry.MANIFEST, json.dumps(manifest).encode())
    entry["annotations"] = {"org.opencontainers.image.ref.name": "localhost/layers:1"}
    for name, content in (("index.json", {"schemaVersion": 2, "manifests": [entry]}), ("oci-layout", {"imageLayoutVersion": "1.0.0"})):
        with open(f"{folder}/{name}", "w", encoding="ascii") as f:
            json.dump(content, f)


class Bring(Answer):
    """An image is imported or pulled, checked and removed."""

    wanted = "ok\n"
    name = "localhost/layers:1"

    def bring(self):
        raise NotImplementedError

    def command(self):
        result = self.bring()
        if result.returncode == 0:
            result = self.bench.cli("image", "verify")
        if result.returncode == 0:
            result.stdout = "ok\n" if result.stdout.endswith("ok\n") else result.stdout
            removed = self.bench.cli("image", "rm", self.name)
            result = result if removed.returncode == 0 else removed
        return result

    def after(self):
        super().after()
        tmp = f"{self.node.state_dir}/images/tmp"  # unused layers are removed in the background
        coracle.until(lambda: not os.listdir(tmp), 15, lambda: f"left in the image store: {os.listdir(tmp)}")


class Import(Bring):
    """import of an image."""

    def __init__(self, bench):
        super().__init__(bench)
        self.layout = f"{bench.world.scratch}/layout"
        write_layout(self.layout)

    def bring(self):
        return self.bench.cli("image", "import", self.layout)


class Pull(Bring):
    """pull of an image from a registry."""

    @staticmethod
    def flags(world):
        world.registry = registry.Registry(world)
        layout = f"{world.scratch}/layout"
        write_layout(layout)
        Pull.name, _ = world.registry.push(f"oci:{layout}:{Bring.name}", "team/layers:1")
        return [registry.registries_conf(world, world.registry)]

    def bring(self):
        return self.bench.cli("image", "pull", self.name)


class Resize(Phase):
    """A running pod's memory limit."""

    size = 64

    def put(self):
        self.node.put("sized.yaml", pod("sized", container(resources={"limits": {"cpu": "200m", "memory": f"{self.size}Mi"}}),
                                        terminationGracePeriodSeconds=1))

    def before(self):
        self.put()
        p = self.running("sized")
        self.kept = (p.container_id(), self.node.pid(p))

    def do(self):
        self.size += 1
        self.put()
        wanted = f"{self.size}Mi"
        self.bench.wait(lambda pods: pods["sized"].container().get("resources", {}).get("limits", {}).get("memory") == wanted and
                        not pods["sized"].condition("PodResizeInProgress"), "sized resized")

    def after(self):
        p = self.running("sized")
        check((p.container_id(), self.node.pid(p)) == self.kept, "the resized container is another one")
        self.remove("sized")
        self.gone(p)


class Devices(Phase):
    """A pod with devices of a plugin and of a declaration, and a CDI name, starts and ends."""

    limits = {"example.com/dev": "2", "example.com/null": "1"}

    def __init__(self, bench):
        super().__init__(bench)
        self.plugin = devices.Plugin(self.node, "--devices", "3", "--prestart", "--preferred", "--cdi")

    @staticmethod
    def flags(world):
        for folder, name, content in (
                ("devices.d", "null.json", {"domain": "example.com", "devices": [
                    {"name": "null", "groups": [{"paths": [{"path": "/dev/null", "mountPath": "/dev/declared"}]}]}]}),
                ("cdi", "dev.json", {"cdiVersion": "0.6.0", "kind": "example.com/dev", "devices": [
                    {"name": f"dev-{i}", "containerEdits": {"env": [f"CDI_{i}=yes"]}} for i in range(3)]})):
            os.makedirs(f"{world.scratch}/{folder}")
            with open(f"{world.scratch}/{folder}/{name}", "w", encoding="ascii") as f:
                json.dump(content, f)
        return ["--device-declaration-dir", f"{world.scratch}/devices.d", "--cdi-spec-dirs", f"{world.scratch}/cdi"]

    def wait_held(self, wanted, what):
        """The checkpoint's holdings of pod uids: how many devices."""
        def seen():
            found = {}
            for (uid, _, resource), ids in devices.held(devices.checkpoint(self.node)).items():
                found[uid, resource] = found.get((uid, resource), 0) + len(ids)
            return found
        coracle.until(lambda: seen() == wanted or self.bench.revive(), 15, lambda: f"{what}: the checkpoint has {seen()} instead of {wanted}")

    def do(self):
        self.node.put("one.yaml", pod("one", container(resources={"limits": self.limits}), terminationGracePeriodSeconds=1))
        self.pod = self.running("one")

    def after(self):
        p = self.running("one")
        self.wait_held({(p.uid, r): int(n) for r, n in self.limits.items()}, "one runs")
        has = dict(v.partition("=")[::2] for v in coracle.read(f"/proc/{self.node.pid(p)}/environ", "").split("\0"))
        ids = sorted(has.get("DEV_IDS", "").split(","))
        check(ids == sorted(devices.devices_of(p)), f"the plugin gave {ids}, the status has {devices.devices_of(p)}")
        check(all(has.get(f"CDI_{i[-1]}") == "yes" for i in ids), f"not all CDI devices of {ids} came: {has}")
        check(os.path.exists(f"/proc/{self.node.pid(p)}/root/dev/declared"), "the declared device is missing")
        self.remove("one")
        self.gone(p)
        self.wait_held({}, "one is gone")


class DevicesRestart(Devices):
    """The agent's own start over a pod with devices: checkpoint, declarations, CDI specs, registration."""

    def before(self):
        super().do()
        self.wanted = devices.devices_of(self.pod)
        self.node.stop()

    def do(self):
        try:
            self.node.start()
        except Failed:
            check(self.node.process.poll() is not None, "the agent runs, but has not said that it is ready")
            self.bench.revive()
        coracle.until(lambda: self.counted() == ("3", "3") or self.bench.revive(), 15, lambda: f"the plugin's devices are known again: {self.counted()}")

    def counted(self):
        with contextlib.suppress(OSError, Failed, ValueError):
            return devices.node_says(self.node)
        return None

    def after(self):
        self.bench.wait(lambda pods: devices.devices_of(pods["one"]) == self.wanted, f"one has {self.wanted}")
        check(self.node.pod("one").restarts() == 0, "one restarted")
        super().after()


class Write(Phase):
    """Objects of the manifest folder are created, replaced and removed through the socket, alone in a file and one of three in it."""

    START = {"one": "1", "two": "1", "three": "1"}  # in one file; "own" has a file of its own
    FILE = "several.yaml"

    def __init__(self, bench):
        super().__init__(bench)
        self.serial = 0

    def reset(self):
        with contextlib.suppress(FileNotFoundError):
            self.node.remove("configmap-default-own.yaml")
        self.node.put(self.FILE, *[self.map(name, value) for name, value in self.START.items()])
        self.allowed = {name: {value} for name, value in {**self.START, "own": None}.items()}

    def before(self):
        self.reset()
        self.bench.wait(lambda _: self.seen() == {**self.START, "own": None}, "the objects are as they were put")

    @staticmethod
    def map(name, value):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"x": value}}

    def request(self, method, path, body=None):
        """(code, value); (0, None): there was no answer."""
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            code, text = self.node.request(method, path, body and json.dumps(body), timeout=15)
            return code, json.loads(text)
        return 0, None

    def look(self, name):
        return self.request("GET", f"/store/object?apiVersion=v1&kind=ConfigMap&namespace=default&name={name}")

    def seen(self):
        found = {}
        for name in self.allowed:
            code, got = self.look(name)
            if code not in (200, 404):
                return None
            found[name] = got["object"]["data"]["x"] if code == 200 else None
        return found

    def change(self, name, value):
        """Sets or, with None, removes.  What the answer does not exclude is allowed afterwards."""
        self.bench.revive()
        code, got = self.look(name)
        if code not in (200, 404):
            return  # refused, or killed before it began
        mark = {"mark": got["mark"]} if code == 200 else {}
        self.allowed[name] |= {value}
        code, _ = self.request("DELETE" if value is None else "PUT", "/store/object", {"object": self.map(name, value or ""), **mark})
        if code in (200, 201):
            self.allowed[name] = {value}

    def do(self):
        self.serial += 1
        for name, value in (("own", "new"), ("own", f"again {self.serial}"), ("two", f"changed {self.serial}"), ("one", None), ("own", None)):
            self.change(name, value)

    def keeps(self, when):
        """Waits until each object is as it was promised, or tried since."""
        seen = {}

        def well(_pods):
            seen["now"] = found = self.seen()
            return found is not None and all(found[n] in self.allowed[n] for n in found)
        try:
            self.bench.wait(well, when)
        except Failed:
            raise Failed(f"{when}: {seen.get('now')}, allowed are {self.allowed}") from None

    def after(self):
        self.keeps("after the writes")
        self.bench.revive()
        self.node.stop()  # what the folder has counts, not what is remembered; and what was not finished is removed
        self.node.start()
        self.keeps("after a restart")
        check(not [f for f in os.listdir(self.node.manifests) if f.startswith(".")], f"left in the folder: {os.listdir(self.node.manifests)}")
        self.reset()
        self.bench.wait(lambda _: self.seen() == {**self.START, "own": None}, "the objects are as they were put")


PHASES = {"restart": Restart, "start": Start, "stop": Stop, "end": End, "edit": Edit, "write": Write, "exec": Exec, "logs": Logs, "cp": Copy,
          "import": Import, "pull": Pull, "resize": Resize, "devices": Devices, "devices-restart": DevicesRestart}


