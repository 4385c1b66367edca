# SPDX-License-Identifier: Apache-2.0
"""grpc_messages - the messages of device plugins, their registration and podresources, for python3-grpcio.

The tables below are the public definitions (v1beta1, pluginregistration v1, podresources v1 and v1alpha1) once more, written
independently of deviceplugin/proto, so that daemon and tests do not share a mistake.  A field is
"name number type"; `*` marks a repeated one.  Needs Debian's python3-grpcio and python3-protobuf: programs that
import this run with /usr/bin/python3.
"""
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

V1BETA1 = {
    "DevicePluginOptions": ["pre_start_required 1 bool", "get_preferred_allocation_available 2 bool"],
    "RegisterRequest": ["version 1 string", "endpoint 2 string", "resource_name 3 string", "options 4 DevicePluginOptions"],
    "Empty": [],
    "ListAndWatchResponse": ["devices 1 *Device"],
    "TopologyInfo": ["nodes 1 *NUMANode"],
    "NUMANode": ["ID 1 int64"],
    "Device": ["ID 1 string", "health 2 string", "topology 3 TopologyInfo"],
    "PreStartContainerRequest": ["devices_ids 1 *string"],
    "PreStartContainerResponse": [],
    "PreferredAllocationRequest": ["container_requests 1 *ContainerPreferredAllocationRequest"],
    "ContainerPreferredAllocationRequest": ["available_deviceIDs 1 *string", "must_include_deviceIDs 2 *string",
                                            "allocation_size 3 int32"],
    "PreferredAllocationResponse": ["container_responses 1 *ContainerPreferredAllocationResponse"],
    "ContainerPreferredAllocationResponse": ["deviceIDs 1 *string"],
    "AllocateRequest": ["container_requests 1 *ContainerAllocateRequest"],
    "ContainerAllocateRequest": ["devices_ids 1 *string"],
    "AllocateResponse": ["container_responses 1 *ContainerAllocateResponse"],
    "ContainerAllocateResponse": ["envs 1 map", "mounts 2 *Mount", "devices 3 *DeviceSpec", "annotations 4 map",
                                  "cdi_devices 5 *CDIDevice"],
    "Mount": ["container_path 1 string", "host_path 2 string", "read_only 3 bool"],
    "DeviceSpec": ["container_path 1 string", "host_path 2 string", "permissions 3 string"],
    "CDIDevice": ["name 1 string"],
}
PLUGIN_REGISTRATION = {
    "InfoRequest": [],
    "PluginInfo": ["type 1 string", "name 2 string", "endpoint 3 string", "supported_versions 4 *string"],
    "RegistrationStatus": ["plugin_registered 1 bool", "error 2 string"],
    "RegistrationStatusResponse": [],
}
CSI = {  # csi.v1; oneofs are plain members, enums are numbers
    "NodeGetInfoRequest": [],
    "NodeGetInfoResponse": ["node_id 1 string", "max_volumes_per_node 2 int64", "accessible_topology 3 Topology"],
    "Topology": ["segments 1 map"],
    "NodeGetCapabilitiesRequest": [],
    "NodeGetCapabilitiesResponse": ["capabilities 1 *NodeServiceCapability"],
    "NodeServiceCapability": ["rpc 1 RPC"],
    "RPC": ["type 1 int32"],
    "VolumeCapability": ["block 1 BlockVolume", "mount 2 MountVolume", "access_mode 3 AccessMode"],
    "BlockVolume": [],
    "MountVolume": ["fs_type 1 string", "mount_flags 2 *string", "volume_mount_group 3 string"],
    "AccessMode": ["mode 1 int32"],
    "NodeStageVolumeRequest": ["volume_id 1 string", "publish_context 2 map", "staging_target_path 3 string",
                               "volume_capability 4 VolumeCapability", "secrets 5 map", "volume_context 6 map"],
    "NodeStageVolumeResponse": [],
    "NodeUnstageVolumeRequest": ["volume_id 1 string", "staging_target_path 2 string"],
    "NodeUnstageVolumeResponse": [],
    "CapacityRange": ["required_bytes 1 int64", "limit_bytes 2 int64"],
    "NodeExpandVolumeRequest": ["volume_id 1 string", "volume_path 2 string", "capacity_range 3 CapacityRange",
                                "staging_target_path 4 string", "volume_capability 5 VolumeCapability", "secrets 6 map"],
    "NodeExpandVolumeResponse": ["capacity_bytes 1 int64"],
    "NodePublishVolumeRequest": ["volume_id 1 string", "publish_context 2 map", "staging_target_path 3 string", "target_path 4 string",
                                 "volume_capability 5 VolumeCapability", "readonly 6 bool", "secrets 7 map", "volume_context 8 map"],
    "NodePublishVolumeResponse": [],
    "NodeUnpublishVolumeRequest": ["volume_id 1 string", "target_path 2 string"],
    "NodeUnpublishVolumeResponse": [],
    "NodeGetVolumeStatsRequest": ["volume_id 1 string", "volume_path 2 string", "staging_target_path 3 string"],
    "NodeGetVolumeStatsResponse": ["usage 1 *VolumeUsage", "volume_condition 2 VolumeCondition"],
    "VolumeCondition": ["abnormal 1 bool", "message 2 string"],
    "VolumeUsage": ["available 1 int64", "total 2 int64", "used 3 int64", "unit 4 int32"],
}
PODRESOURCES = {
    "AllocatableResourcesRequest": [],
    "AllocatableResourcesResponse": ["devices 1 *ContainerDevices", "cpu_ids 2 *int64", "memory 3 *ContainerMemory"],
    "ListPodResourcesRequest": [],
    "ListPodResourcesResponse": ["pod_resources 1 *PodResources"],
    "GetPodResourcesRequest": ["pod_name 1 string", "pod_namespace 2 string"],
    "GetPodResourcesResponse": ["pod_resources 1 PodResources"],
    "PodResources": ["name 1 string", "namespace 2 string", "containers 3 *ContainerResources"],
    "ContainerResources": ["name 1 string", "devices 2 *ContainerDevices", "cpu_ids 3 *int64", "memory 4 *ContainerMemory",
                           "dynamic_resources 5 *DynamicResource"],
    "ContainerMemory": ["memory_type 1 string", "size 2 uint64", "topology 3 TopologyInfo"],
    "ContainerDevices": ["resource_name 1 string", "device_ids 2 *string", "topology 3 TopologyInfo"],
    "TopologyInfo": ["nodes 1 *NUMANode"],
    "NUMANode": ["ID 1 int64"],
    "DynamicResource": ["claim_name 2 string", "claim_namespace 3 string"],
}
PODRESOURCES_ALPHA = {
    "ListPodResourcesRequest": [],
    "ListPodResourcesResponse": ["pod_resources 1 *PodResources"],
    "PodResources": ["name 1 string", "namespace 2 string", "containers 3 *ContainerResources"],
    "ContainerResources": ["name 1 string", "devices 2 *ContainerDevices"],
    "ContainerDevices": ["resource_name 1 string", "device_ids 2 *string"],
}


def _field(message, package, text):
    name, number, kind = text.split()
    field = message.field.add(name=name, number=int(number))
    plain = kind.lstrip("*")
    field.label = field.LABEL_REPEATED if kind != plain or kind == "map" else field.LABEL_OPTIONAL
    if kind == "map":  # map<string, string>: an entry message inside
        entry = message.nested_type.add(name="".join(w.capitalize() for w in name.split("_")) + "Entry")
        entry.options.map_entry = True
        _field(entry, package, "key 1 string")
        _field(entry, package, "value 2 string")
        field.type, field.type_name = field.TYPE_MESSAGE, f".{package}.{message.name}.{entry.name}"
    elif plain[0].islower():
        field.type = getattr(field, "TYPE_" + plain.upper())
    else:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{package}.{plain}"


class Package:
    """The message classes of a table, as attributes."""

    def __init__(self, package, table):
        file = descriptor_pb2.FileDescriptorProto(name=package + ".proto", package=package, syntax="proto3")
        for name, fields in table.items():
            message = file.message_type.add(name=name)
            for field in fields:
                _field(message, package, field)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        factory = message_factory.MessageFactory(pool)
        for name in table:
            setattr(self, name, factory.GetPrototype(pool.FindMessageTypeByName(f"{package}.{name}")))


dp = Package("v1beta1", V1BETA1)
reg = Package("pluginregistration", PLUGIN_REGISTRATION)
csi = Package("csi.v1", CSI)
res = Package("v1", PODRESOURCES)
res_alpha = Package("v1alpha1", PODRESOURCES_ALPHA)


def as_json(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def go_error(error):
    """An RpcError in the words of grpc-go, as the recordings have them."""
    code = "".join(w.capitalize() for w in error.code().name.split("_")).replace("Cancelled", "Canceled")
    return f"rpc error: code = {code} desc = {error.details()}"
