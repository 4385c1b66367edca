#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""device_plugin - a device plugin on python3-grpcio, with the flags of the recordings (tests/fixtures/devices).

It serves on its socket, registers, and writes a line of JSON for each call.  SIGHUP turns the device `--toggle`
unhealthy or healthy, SIGUSR1 leaves out the last device or puts it back, SIGTERM closes and removes the socket.
Beyond the recordings: --hang CALL never answers that call, --die CALL ends the process in it, --authority is what
the call that registers has as :authority.
"""
import argparse
import json
import os
import signal
import sys
import threading
import time
from concurrent import futures

import grpc

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from grpc_messages import as_json, dp, go_error, reg  # noqa: E402  (beside this file)

LOOK_S = 0.5  # how often it looks whether kubelet.sock is a new one, and repeats a Register that failed


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="plugin", help="as which it appears in the lines")
    parser.add_argument("--root", required=True, help="the agent's root folder")
    parser.add_argument("--dir", help="folder of kubelet.sock (default: ROOT/device-plugins)")
    parser.add_argument("--resource", default="example.com/dev")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--prefix", default="dev-")
    parser.add_argument("--endpoint")
    parser.add_argument("--version", default="v1beta1")
    parser.add_argument("--mode", choices=("register", "watcher"), default="register")
    parser.add_argument("--no-reregister", dest="reregister", action="store_false")
    parser.add_argument("--numa", default="", help="NUMA nodes of the devices, in turn: 0,1")
    parser.add_argument("--unhealthy", default="", help="ids that are unhealthy from the start")
    parser.add_argument("--toggle", type=int, default=0)
    parser.add_argument("--mount", default="")
    parser.add_argument("--device", default="")
    parser.add_argument("--annotation", default="")
    parser.add_argument("--cdi", action="store_true")
    parser.add_argument("--prestart", action="store_true")
    parser.add_argument("--preferred", action="store_true")
    parser.add_argument("--fail-allocate", action="store_true")
    parser.add_argument("--fail-prestart", action="store_true")
    parser.add_argument("--allocate-delay", default="0s")
    parser.add_argument("--hang", default="", metavar="CALL")
    parser.add_argument("--die", default="", metavar="CALL")
    parser.add_argument("--authority", default="localhost", help="of the call that registers")
    return parser.parse_args(argv)


class Plugin:
    def __init__(self, options):
        self.o = options
        self.name = options.endpoint or options.name + ".sock"
        self.folder = options.dir or options.root + ("/plugins_registry" if options.mode == "watcher" else "/device-plugins")
        self.start, self.streams, self.write_lock = time.monotonic(), 0, threading.Lock()
        self.changed = threading.Condition()
        self.generation, self.dropped, self.stopping = 0, False, False
        self.bad = set(filter(None, options.unhealthy.split(",")))
        self.ids = [f"{options.prefix}{i}" for i in range(options.devices)]
        self.server, self.life = None, 0  # life: of the socket; streams of an earlier one end
        self.say("start", devices=options.devices, mode=options.mode, resource=options.resource)

    def say(self, event, **more):
        line = {"t": round(time.monotonic() - self.start, 3), "plugin": self.o.name, "event": event, **more}
        with self.write_lock:
            os.write(1, (json.dumps(line, sort_keys=False) + "\n").encode())

    # -- what it answers

    def options(self):
        return dp.DevicePluginOptions(pre_start_required=self.o.prestart, get_preferred_allocation_available=self.o.preferred)

    def list(self):
        answer = dp.ListAndWatchResponse()
        numa = [int(n) for n in self.o.numa.split(",") if n]
        ids = self.ids[:-1] if self.dropped else self.ids
        for i, name in enumerate(ids):
            device = answer.devices.add(ID=name, health="Unhealthy" if name in self.bad else "Healthy")
            if numa:
                device.topology.nodes.add(ID=numa[i % len(numa)])
        return answer

    def allocated(self, ids):
        answer = dp.ContainerAllocateResponse()
        answer.envs["DEV_IDS"] = ",".join(ids)
        if self.o.mount:
            host, container, *flags = self.o.mount.split(":")
            answer.mounts.add(host_path=host, container_path=container, read_only=flags == ["ro"])
        if self.o.device:
            host, container, permissions = self.o.device.split(":")
            answer.devices.add(host_path=host, container_path=container, permissions=permissions)
        if self.o.annotation:
            key, _, value = self.o.annotation.partition("=")
            answer.annotations[key] = value
        for name in ids if self.o.cdi else ():
            answer.cdi_devices.add(name=f"{self.o.resource}={name}")
        return answer

    # -- the calls

    def fault(self, call):
        if self.o.die == call:
            self.say(call, dies=True)
            os._exit(9)
        if self.o.hang == call:
            self.say(call, hangs=True)
            threading.Event().wait()

    def answer(self, call, request, response):
        said = {}
        if request is not None:
            said["request"] = as_json(request)
        self.say(call, **said, **({"response": as_json(response)} if response is not None else {}))

    def refuse(self, call, request, context, text):
        self.say(call, error=f"rpc error: code = Internal desc = {text}", request=as_json(request))
        context.abort(grpc.StatusCode.INTERNAL, text)

    def get_options(self, _request, _context):
        self.fault("GetDevicePluginOptions")
        response = self.options()
        self.answer("GetDevicePluginOptions", None, response)
        return response

    def list_and_watch(self, _request, context):
        self.fault("ListAndWatch")
        with self.changed:
            self.streams += 1
            stream, life, sent = self.streams, self.life, -1
        self.say("ListAndWatch", stream=stream)
        ended = []

        def end():
            with self.changed:
                ended.append(True)
                self.changed.notify_all()
        context.add_callback(end)
        while True:
            with self.changed:
                self.changed.wait_for(lambda: ended or self.stopping or life != self.life or sent != self.generation)
                if ended or self.stopping or life != self.life:
                    break
                sent, response = self.generation, self.list()
            self.say("ListAndWatch.send", response=as_json(response), stream=stream)
            yield response
        self.say("ListAndWatch.end", error="context canceled", stream=stream)

    def preferred(self, request, _context):
        self.fault("GetPreferredAllocation")
        response = dp.PreferredAllocationResponse()
        for wish in request.container_requests:
            must = list(wish.must_include_deviceIDs)
            others = sorted(set(wish.available_deviceIDs) - set(must), key=lambda i: (len(i), i), reverse=True)
            response.container_responses.add(deviceIDs=(must + others)[:wish.allocation_size])
        self.answer("GetPreferredAllocation", request, response)
        return response

    def allocate(self, request, context):
        self.fault("Allocate")
        time.sleep(float(self.o.allocate_delay.rstrip("s")))
        if self.o.fail_allocate:
            self.refuse("Allocate", request, context, "plugin: Allocate asked to fail")
        response = dp.AllocateResponse()
        for wish in request.container_requests:
            response.container_responses.append(self.allocated(list(wish.devices_ids)))
        self.answer("Allocate", request, response)
        return response

    def pre_start(self, request, context):
        self.fault("PreStartContainer")
        if self.o.fail_prestart:
            self.refuse("PreStartContainer", request, context, "plugin: PreStartContainer asked to fail")
        self.answer("PreStartContainer", request, None)
        return dp.PreStartContainerResponse()

    def get_info(self, _request, _context):
        self.fault("GetInfo")
        response = reg.PluginInfo(type="DevicePlugin", name=self.o.resource, endpoint=f"{self.folder}/{self.name}",
                                  supported_versions=[self.o.version])
        self.answer("GetInfo", None, response)
        return response

    def notify_status(self, request, _context):
        self.fault("NotifyRegistrationStatus")
        self.answer("NotifyRegistrationStatus", request, None)
        return reg.RegistrationStatusResponse()

    # -- serving and registering

    def serve(self):
        def unary(function, request):
            return grpc.unary_unary_rpc_method_handler(function, request.FromString, lambda m: m.SerializeToString())
        calls = {
            "GetDevicePluginOptions": unary(self.get_options, dp.Empty),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(self.list_and_watch, dp.Empty.FromString,
                                                                 lambda m: m.SerializeToString()),
            "GetPreferredAllocation": unary(self.preferred, dp.PreferredAllocationRequest),
            "Allocate": unary(self.allocate, dp.AllocateRequest),
            "PreStartContainer": unary(self.pre_start, dp.PreStartContainerRequest),
        }
        registration = {"GetInfo": unary(self.get_info, reg.InfoRequest),
                        "NotifyRegistrationStatus": unary(self.notify_status, reg.RegistrationStatus)}
        server = grpc.server(futures.ThreadPoolExecutor(max_workers=32))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", calls),
                                         grpc.method_handlers_generic_handler("pluginregistration.Registration", registration)))
        path = f"{self.folder}/{self.name}"
        if server.add_insecure_port("unix:" + path) == 0:
            raise OSError(f"cannot listen on {path}")
        with self.changed:
            self.life += 1
            self.changed.notify_all()
        server.start()
        self.server = server
        self.say("serving", socket=path)

    def close(self):
        with self.changed:
            self.life += 1
            self.changed.notify_all()
        if self.server is not None:
            self.server.stop(0).wait()
            self.server = None

    def register(self):
        """True if the agent took it."""
        request = dp.RegisterRequest(version=self.o.version, endpoint=self.name, resource_name=self.o.resource,
                                     options=self.options())
        try:
            options = [("grpc.default_authority", self.o.authority)]
            with grpc.insecure_channel(f"unix:{self.folder}/kubelet.sock", options=options) as channel:
                call = channel.unary_unary("/v1beta1.Registration/Register", lambda m: m.SerializeToString(), dp.Empty.FromString)
                call(request, timeout=10)
        except grpc.RpcError as error:
            self.say("Register", error=go_error(error), request=as_json(request))
            return False
        self.say("Register", ok=True, request=as_json(request))
        return True

    def kubelet_socket(self):
        try:
            st = os.stat(f"{self.folder}/kubelet.sock")
            return st.st_dev, st.st_ino, st.st_ctime_ns
        except OSError:
            return None

    def signalled(self, signo):
        """False on SIGTERM."""
        if signo == signal.SIGTERM:
            self.say("stop", signal="terminated")
            self.stopping = True
            self.close()
            try:
                os.unlink(f"{self.folder}/{self.name}")
            except OSError:
                pass
            return False
        with self.changed:
            if signo == signal.SIGHUP:
                name = self.ids[self.o.toggle]
                self.bad ^= {name}
                self.say("SIGHUP", device=name, health="Unhealthy" if name in self.bad else "Healthy")
            else:
                self.dropped = not self.dropped
                self.say("SIGUSR1", lastDeviceDropped=self.dropped)
            self.generation += 1
            self.changed.notify_all()
        return True

    def run(self):
        signals = {signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1}
        self.serve()
        known, registered = self.kubelet_socket(), False
        while True:
            if self.o.mode == "register" and not registered:
                if not os.path.exists(f"{self.folder}/{self.name}"):  # removed by an agent that started between two looks
                    self.close()
                    self.serve()
                known = self.kubelet_socket()
                registered = known is not None and self.register()
            info = signal.sigtimedwait(signals, LOOK_S)
            # After a stop by SIGSTOP, Python returns a structure of nothing.
            if info is not None and info.si_signo in signals and not self.signalled(info.si_signo):
                return
            now = self.kubelet_socket()
            if self.o.mode == "register" and self.o.reregister and now is not None and now != known:
                self.close()
                self.serve()
                registered = False


def main(plugin=Plugin, options=None):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1})
    plugin(options or parse()).run()
    sys.stdout.flush()
    os._exit(0)  # a call that hangs is not waited for


if __name__ == "__main__":
    main()
