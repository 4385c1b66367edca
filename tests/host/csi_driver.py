#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""csi_driver - a CSI driver on python3-grpcio: identity is left out.

A volume is a folder of its own below --data, named by its id, with `file` and `sub/`; staging binds it to the staging path,
publishing binds that (or the folder) to the target, which the driver makes (0750) and removes.  A block volume is a file
with a loop device, which is bound to a file.  Volumes that are not inline outlive all calls.  It writes a line of JSON for
each call, with `twice` if what it was asked for was there already.  --faults names a file that is read at each call:
{"METHOD": {"code": "INTERNAL", "text": "..."}} (with "done": true it did it all the same), or one of {"hang": true} (no answer until the file changes), {"die": "before"},
{"die": "after"}, {"lie": true} (OK without doing anything), {"slow": SECONDS} (done even if the caller gives up; as with "hang", a
line "begins METHOD" comes first), or {"of": {VOLUME_ID: one of these}}; of NodeGetInfo also {"max": N} (it allows so many volumes now).
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent import futures

import grpc

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from grpc_messages import as_json, csi, reg  # noqa: E402  (beside this file)

CAPABILITIES = {"STAGE_UNSTAGE_VOLUME": 1, "GET_VOLUME_STATS": 2, "EXPAND_VOLUME": 3, "SINGLE_NODE_MULTI_WRITER": 5,
                "VOLUME_MOUNT_GROUP": 6, "VOLUME_CONDITION": 4}
ACCESS = {1: "SINGLE_NODE_WRITER", 3: "MULTI_NODE_READER_ONLY", 5: "MULTI_NODE_MULTI_WRITER", 6: "SINGLE_NODE_SINGLE_WRITER",
          7: "SINGLE_NODE_MULTI_WRITER"}


def mounted(path):
    """How many mounts are at the path."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return sum(line.split()[4] == path for line in f)


class Driver:
    def __init__(self, options):
        self.o, self.start, self.lock = options, time.monotonic(), threading.RLock()

    def say(self, method, **more):
        line = {"t": round(time.monotonic() - self.start, 3), "driver": self.o.name, "method": method, **more}
        with self.lock:
            os.write(1, (json.dumps(line) + "\n").encode())

    def fault(self, method, volume=""):
        try:
            with open(self.o.faults, encoding="utf-8") as f:
                fault = json.load(f).get(method, {})
        except (OSError, ValueError):
            return {}
        return fault["of"].get(volume, {}) if "of" in fault else fault

    def call(self, method, act, response):
        """A handler: what the faults ask for, or act(request) and then the response."""
        def handle(request, context):
            shown = as_json(request)
            capability = shown.get("volume_capability", {}).get("access_mode", {})
            if "mode" in capability:
                capability["mode"] = ACCESS.get(capability["mode"], capability["mode"])
            volume = getattr(request, "volume_id", "")
            fault = self.fault(method, volume)
            if fault.get("die") == "before":
                os._exit(9)
            if "hang" in fault or "slow" in fault:
                self.say("begins " + method, request=shown)
            while fault.get("hang") and context.is_active():
                time.sleep(0.05)
                fault = self.fault(method, volume)
            time.sleep(fault.get("slow", 0))
            if fault.get("done"):
                act(request)
            if "code" in fault:
                self.say(method, request=shown, error=fault)
                context.abort(getattr(grpc.StatusCode, fault["code"]), fault.get("text", ""))
            twice = None
            if not fault.get("lie"):
                try:
                    twice = act(request)
                except (OSError, subprocess.SubprocessError) as error:
                    self.say(method, request=shown, error=str(error))
                    context.abort(grpc.StatusCode.INTERNAL, str(error))
            self.say(method, request=shown, response=as_json(response), **({"twice": True} if twice else {}))
            if fault.get("die") == "after" and self.fault(method, volume).get("die"):  # not if it was forgiven meanwhile
                os._exit(9)
            return response
        return handle

    # -- volumes

    def folder(self, volume):
        folder = f"{self.o.data}/{volume}"
        if not os.path.isdir(folder):
            os.makedirs(folder + "/sub", mode=0o755)
            with open(folder + "/file", "w", encoding="ascii") as f:
                f.write("data\n")
            os.chmod(folder + "/file", 0o644)
        return folder

    def loop(self, volume):
        """The loop device of a block volume."""
        file = f"{self.o.data}/{volume}.img"
        if not os.path.exists(file):
            with open(file, "wb") as f:
                f.truncate(8 << 20)
        found = subprocess.run(["losetup", "-n", "-O", "NAME", "-j", file], check=True, capture_output=True, text=True).stdout.split()
        return found[0] if found else subprocess.run(["losetup", "-f", "--show", file], check=True, capture_output=True,
                                                     text=True).stdout.strip()

    def drop_loop(self, volume):
        file = f"{self.o.data}/{volume}.img"
        for name in subprocess.run(["losetup", "-n", "-O", "NAME", "-j", file], check=True, capture_output=True, text=True).stdout.split():
            subprocess.run(["losetup", "-d", name], check=True)

    def bind(self, source, target, read_only):
        if mounted(target) > 0:
            return True
        subprocess.run(["mount", "--bind", source, target], check=True)
        if read_only:
            subprocess.run(["mount", "-o", "remount,bind,ro", target], check=True)
        return False

    def unbind(self, target):
        was = mounted(target) > 0
        while mounted(target) > 0:
            subprocess.run(["umount", target], check=True)
        return not was

    def stage(self, request):
        with self.lock:
            if request.volume_capability.HasField("block"):
                self.loop(request.volume_id)
                return False
            return self.bind(self.folder(request.volume_id), request.staging_target_path, False)

    def unstage(self, request):
        with self.lock:
            self.drop_loop(request.volume_id)
            return self.unbind(request.staging_target_path)

    def publish(self, request):
        target = request.target_path
        read_only = request.readonly or "ro" in request.volume_capability.mount.mount_flags
        with self.lock:
            if request.volume_capability.HasField("block"):
                if not os.path.exists(target):
                    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
                return self.bind(self.loop(request.volume_id), target, False)
            if not os.path.isdir(target):
                (os.makedirs if self.o.parents else os.mkdir)(target, 0o750)
            if request.staging_target_path and mounted(request.staging_target_path) == 0:
                raise OSError(f"{request.staging_target_path} is not staged")
            return self.bind(request.staging_target_path or self.folder(request.volume_id), target, read_only)

    def unpublish(self, request):
        with self.lock:
            was = self.unbind(request.target_path)
            if os.path.isdir(request.target_path):
                os.rmdir(request.target_path)
            elif os.path.exists(request.target_path):
                os.unlink(request.target_path)
            if request.volume_id.startswith("csi-"):
                shutil.rmtree(f"{self.o.data}/{request.volume_id}", ignore_errors=True)
            if "STAGE_UNSTAGE_VOLUME" not in self.o.caps:
                self.drop_loop(request.volume_id)
        return was

    def expand(self, request):
        if not os.path.exists(request.volume_path):
            raise OSError(f"{request.volume_path} is not there")

    # -- serving

    def services(self, endpoint):
        def nothing(_request):
            pass
        info = csi.NodeGetInfoResponse(node_id=self.o.node_id, max_volumes_per_node=self.o.max_volumes)
        for pair in filter(None, self.o.topology.split(",")):
            key, _, value = pair.partition("=")
            info.accessible_topology.segments[key] = value

        def count_anew(_request):
            info.max_volumes_per_node = self.fault("NodeGetInfo").get("max", self.o.max_volumes)
        caps = csi.NodeGetCapabilitiesResponse(capabilities=[
            csi.NodeServiceCapability(rpc=csi.RPC(type=CAPABILITIES[name])) for name in filter(None, self.o.caps.split(","))])
        registered = reg.PluginInfo(type="CSIPlugin", name=self.o.name, endpoint=endpoint,
                                    supported_versions=list(filter(None, self.o.versions.split(","))))
        return {
            "csi.v1.Node": {
                "NodeGetInfo": (csi.NodeGetInfoRequest, count_anew, info),
                "NodeGetCapabilities": (csi.NodeGetCapabilitiesRequest, nothing, caps),
                "NodeGetVolumeStats": (csi.NodeGetVolumeStatsRequest, nothing, csi.NodeGetVolumeStatsResponse(usage=[
                    csi.VolumeUsage(available=1070596096, total=1073741824, used=3145728, unit=1),
                    csi.VolumeUsage(available=65525, total=65536, used=11, unit=2)],
                    volume_condition=csi.VolumeCondition(abnormal=self.o.ill, message="ill") if self.o.ill else None)),
                "NodeStageVolume": (csi.NodeStageVolumeRequest, self.stage, csi.NodeStageVolumeResponse()),
                "NodeUnstageVolume": (csi.NodeUnstageVolumeRequest, self.unstage, csi.NodeUnstageVolumeResponse()),
                "NodeExpandVolume": (csi.NodeExpandVolumeRequest, self.expand, csi.NodeExpandVolumeResponse()),
                "NodePublishVolume": (csi.NodePublishVolumeRequest, self.publish, csi.NodePublishVolumeResponse()),
                "NodeUnpublishVolume": (csi.NodeUnpublishVolumeRequest, self.unpublish, csi.NodeUnpublishVolumeResponse()),
            },
            "pluginregistration.Registration": {
                "GetInfo": (reg.InfoRequest, nothing, registered),
                "NotifyRegistrationStatus": (reg.RegistrationStatus, nothing, reg.RegistrationStatusResponse()),
            },
        }

    def serve(self):
        folder = f"{self.o.root}/plugins/{self.o.socket or self.o.name}"
        os.makedirs(folder, exist_ok=True)
        os.makedirs(f"{self.o.root}/plugins_registry", exist_ok=True)
        endpoint, registry = folder + "/csi.sock", f"{self.o.root}/plugins_registry/{self.o.socket or self.o.name}-reg.sock"
        services = self.services(endpoint)
        servers = []
        for service, path in (("csi.v1.Node", endpoint), ("pluginregistration.Registration", registry)):
            if os.path.exists(path):
                os.unlink(path)
            server = grpc.server(futures.ThreadPoolExecutor(max_workers=32))
            handlers = {name: grpc.unary_unary_rpc_method_handler(self.call(name, act, response), request.FromString,
                                                                  lambda m: m.SerializeToString())
                        for name, (request, act, response) in services[service].items()}
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
            if server.add_insecure_port("unix:" + path) == 0:
                raise OSError(f"cannot listen on {path}")
            server.start()
            servers.append(server)
        self.say("serving")
        servers[0].wait_for_termination()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", required=True, help="the agent's root folder")
    parser.add_argument("--name", required=True, help="of the driver")
    parser.add_argument("--socket", help="name of its folder and socket (default: the driver's)")
    parser.add_argument("--data", required=True)
    parser.add_argument("--faults", default="")
    parser.add_argument("--caps", default="", help="A,B")
    parser.add_argument("--versions", default="1.0.0")
    parser.add_argument("--node-id", default="id-of-node1")
    parser.add_argument("--parents", action="store_true", help="makes missing parents of a target, too")
    parser.add_argument("--ill", action="store_true", help="volumes have an abnormal condition")
    parser.add_argument("--max-volumes", type=int, default=0)
    parser.add_argument("--topology", default="", help="KEY=VALUE,...")
    Driver(parser.parse_args()).serve()


if __name__ == "__main__":
    main()
