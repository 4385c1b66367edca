#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""csi_driver - a CSI driver on python3-grpcio: identity is left out, the node service serves inline volumes.

A volume is a folder of its own below --data, named by its id, with `file` and `sub/`; publishing binds it to the target,
which the driver makes (0750) and removes.  It writes a line of JSON for each call.  --faults names a file that is
read at each call: {"METHOD": {"code": "INTERNAL", "text": "..."}}, or one of {"hang": true} (no answer until the file
changes), {"die": "before"}, {"die": "after"}, {"lie": true} (OK without doing anything).
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
                "VOLUME_MOUNT_GROUP": 6}
ACCESS = {1: "SINGLE_NODE_WRITER", 3: "MULTI_NODE_READER_ONLY", 5: "MULTI_NODE_MULTI_WRITER", 6: "SINGLE_NODE_SINGLE_WRITER",
          7: "SINGLE_NODE_MULTI_WRITER"}


def mounted(path):
    """How many mounts are at the path."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return sum(line.split()[4] == path for line in f)


class Driver:
    def __init__(self, options):
        self.o, self.start, self.lock = options, time.monotonic(), threading.Lock()

    def say(self, method, **more):
        line = {"t": round(time.monotonic() - self.start, 3), "driver": self.o.name, "method": method, **more}
        with self.lock:
            os.write(1, (json.dumps(line) + "\n").encode())

    def fault(self, method):
        try:
            with open(self.o.faults, encoding="utf-8") as f:
                return json.load(f).get(method, {})
        except (OSError, ValueError):
            return {}

    def call(self, method, act, response):
        """A handler: what the faults ask for, or act(request) and then the response."""
        def handle(request, context):
            shown = as_json(request)
            capability = shown.get("volume_capability", {}).get("access_mode", {})
            if "mode" in capability:
                capability["mode"] = ACCESS.get(capability["mode"], capability["mode"])
            fault = self.fault(method)
            if fault.get("die") == "before":
                os._exit(9)
            while fault.get("hang") and context.is_active():
                time.sleep(0.05)
                fault = self.fault(method)
            if "code" in fault:
                self.say(method, request=shown, error=fault)
                context.abort(getattr(grpc.StatusCode, fault["code"]), fault.get("text", ""))
            if not fault.get("lie"):
                try:
                    act(request)
                except (OSError, subprocess.SubprocessError) as error:
                    self.say(method, request=shown, error=str(error))
                    context.abort(grpc.StatusCode.INTERNAL, str(error))
            self.say(method, request=shown, response=as_json(response))
            if fault.get("die") == "after":
                os._exit(9)
            return response
        return handle

    # -- volumes

    def publish(self, request):
        folder, target = f"{self.o.data}/{request.volume_id}", request.target_path
        if not os.path.isdir(folder):
            os.makedirs(folder + "/sub", mode=0o755)
            with open(folder + "/file", "w", encoding="ascii") as f:
                f.write("data\n")
            os.chmod(folder + "/file", 0o644)
        if not os.path.isdir(target):
            os.mkdir(target, 0o750)
        with self.lock:
            if mounted(target) == 0:
                subprocess.run(["mount", "--bind", folder, target], check=True)
                if request.readonly:
                    subprocess.run(["mount", "-o", "remount,bind,ro", target], check=True)

    def unpublish(self, request):
        while mounted(request.target_path) > 0:
            subprocess.run(["umount", request.target_path], check=True)
        if os.path.isdir(request.target_path):
            os.rmdir(request.target_path)
        shutil.rmtree(f"{self.o.data}/{request.volume_id}", ignore_errors=True)

    # -- serving

    def services(self, endpoint):
        def nothing(_request):
            pass
        info = csi.NodeGetInfoResponse(node_id=self.o.node_id, max_volumes_per_node=self.o.max_volumes)
        caps = csi.NodeGetCapabilitiesResponse(capabilities=[
            csi.NodeServiceCapability(rpc=csi.RPC(type=CAPABILITIES[name])) for name in filter(None, self.o.caps.split(","))])
        registered = reg.PluginInfo(type="CSIPlugin", name=self.o.name, endpoint=endpoint,
                                    supported_versions=list(filter(None, self.o.versions.split(","))))
        return {
            "csi.v1.Node": {
                "NodeGetInfo": (csi.NodeGetInfoRequest, nothing, info),
                "NodeGetCapabilities": (csi.NodeGetCapabilitiesRequest, nothing, caps),
                "NodeGetVolumeStats": (csi.NodeGetVolumeStatsRequest, nothing, csi.NodeGetVolumeStatsResponse(usage=[
                    csi.VolumeUsage(available=1070596096, total=1073741824, used=3145728, unit=1),
                    csi.VolumeUsage(available=65525, total=65536, used=11, unit=2)])),
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
    parser.add_argument("--max-volumes", type=int, default=0)
    Driver(parser.parse_args()).serve()


if __name__ == "__main__":
    main()
