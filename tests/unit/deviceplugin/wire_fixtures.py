#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wire_fixtures > wire_fixtures.h - messages as another encoder writes them: protobuf's own for Python, with classes that protoc
makes of deviceplugin/proto.  Run from the top folder, after a change of a definition or of this file.
"""
import importlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True


def modules():
    """The two sets of messages, compiled into a scratch folder."""
    with tempfile.TemporaryDirectory() as work:
        names = ["deviceplugin", "pluginregistration", "podresources"]
        subprocess.run(["protoc", "-Ideviceplugin/proto", f"--python_out={work}", *(f"{n}.proto" for n in names)], check=True)
        sys.path.insert(0, work)
        return [importlib.import_module(f"{n}_pb2") for n in names]


def fixtures(dp, reg, res):
    ids = ["dev-0", "dev-1", "dev-10"]
    yield "empty", dp.Empty()
    yield "register", dp.RegisterRequest(version="v1beta1", endpoint="nvidia.sock", resource_name="example.com/dev",
                                         options=dp.DevicePluginOptions(pre_start_required=True))
    yield "options_none", dp.DevicePluginOptions()
    yield "options_both", dp.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True)
    yield "options_preferred", dp.DevicePluginOptions(get_preferred_allocation_available=True)
    node = dp.NUMANode
    yield "list", dp.ListAndWatchResponse(devices=[
        dp.Device(ID="dev-0", health="Healthy", topology=dp.TopologyInfo(nodes=[node(ID=0)])),
        dp.Device(ID="dev-1", health="Unhealthy", topology=dp.TopologyInfo(nodes=[node(ID=1), node(ID=-1), node(ID=2 ** 62)])),
        dp.Device(ID="gerät ☃ 𝄞", health="Healthy"),
        dp.Device(ID="odd", health="Broken", topology=dp.TopologyInfo()),
    ])
    yield "list_none", dp.ListAndWatchResponse()
    yield "allocate", dp.AllocateRequest(container_requests=[dp.ContainerAllocateRequest(devices_ids=ids)])
    yield "allocate_none", dp.AllocateRequest(container_requests=[dp.ContainerAllocateRequest()])
    yield "preferred", dp.PreferredAllocationRequest(container_requests=[dp.ContainerPreferredAllocationRequest(
        available_deviceIDs=ids, must_include_deviceIDs=ids[:1], allocation_size=2)])
    yield "preferred_answer", dp.PreferredAllocationResponse(container_responses=[
        dp.ContainerPreferredAllocationResponse(deviceIDs=ids[1:])])
    yield "pre_start", dp.PreStartContainerRequest(devices_ids=ids)
    answer = dp.ContainerAllocateResponse(
        envs={"DEV_IDS": "dev-0"}, annotations={"example.com/note": ""},
        mounts=[dp.Mount(container_path="/mnt", host_path="/srv", read_only=True), dp.Mount(container_path="/a", host_path="/b")],
        devices=[dp.DeviceSpec(container_path="/dev/x", host_path="/dev/null", permissions="rwm")],
        cdi_devices=[dp.CDIDevice(name="example.com/net=net-0")])
    yield "answer", answer
    yield "allocated", dp.AllocateResponse(container_responses=[answer])
    yield "allocated_two", dp.AllocateResponse(container_responses=[answer, dp.ContainerAllocateResponse(envs={"X": "y"})])
    declared = dp.ContainerAllocateResponse()
    declared.CopyFrom(answer)
    declared.annotations["example.com/note"] = "x"
    yield "declared", declared
    yield "info", reg.PluginInfo(type="DevicePlugin", name="example.com/dev", endpoint="/run/x.sock",
                                 supported_versions=["v1alpha", "v1beta1"])
    yield "status_ok", reg.RegistrationStatus(plugin_registered=True)
    yield "status_failed", reg.RegistrationStatus(error="RegisterPlugin error -- no")
    topology = res.TopologyInfo(nodes=[res.NUMANode(ID=0), res.NUMANode(ID=1)])
    yield "pod_resources", res.ListPodResourcesResponse(pod_resources=[res.PodResources(
        name="a", namespace="default", containers=[res.ContainerResources(
            name="main", cpu_ids=[2, 3, 300], memory=[res.ContainerMemory(memory_type="memory", size=2 ** 40, topology=topology)],
            devices=[res.ContainerDevices(resource_name="example.com/dev", device_ids=["dev-0"], topology=topology)])])])


def main():
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Made by wire_fixtures.py: messages in the bytes of Python's encoder. */")
    print("#ifndef TESTS_UNIT_DEVICEPLUGIN_WIRE_FIXTURES_H\n#define TESTS_UNIT_DEVICEPLUGIN_WIRE_FIXTURES_H")
    print("/* clang-format off */")
    for name, message in fixtures(*modules()):
        data = message.SerializeToString(deterministic=True)
        lines = [", ".join(f"0x{b:02x}" for b in data[i:i + 16]) for i in range(0, len(data), 16)] or ["0"]
        print(f"static const unsigned char wire_{name}[] = {{ /* {message.DESCRIPTOR.full_name} */")
        print("".join(f"    {line},\n" for line in lines) + "};")
        print(f"enum {{ wire_{name}_n = {len(data)} }};")
    print("/* clang-format on */\n#endif")


main()
