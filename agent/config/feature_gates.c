/* SPDX-License-Identifier: Apache-2.0 */
/* Feature gates of the node agent (the gates of Kubernetes 1.36, and some removed ones), with their actual
 * state in this agent. The set of gates changes with every version, and a node's file may be older or newer
 * than this table, so an unknown gate is only a warning, whereas kubelet refuses to start. */
#include "agent/config/internal.h"

#include <string.h>

static const struct {
    const char *name;
    bool on;
} gates[] = {
    { "AllAlpha", false },
    { "AllBeta", false },
    { "AppArmor", true },
    { "CPUManagerPolicyAlphaOptions", false },
    { "CPUManagerPolicyBetaOptions", true },
    { "CPUManagerPolicyOptions", true },
    { "CSIVolumeHealth", false },
    { "CloudDualStackNodeIPs", true },
    { "ClusterTrustBundleProjection", true },
    { "ContainerCheckpoint", false },
    { "ContainerRestartRules", true },
    { "ContainerStopSignals", true },
    { "ContextualLogging", true },
    { "CustomCPUCFSQuotaPeriod", true },
    { "DRAAdminAccess", false },
    { "DRAConsumableCapacity", false },
    { "DRADeviceTaints", false },
    { "DRAExtendedResource", false },
    { "DRAPartitionableDevices", false },
    { "DRAPrioritizedList", false },
    { "DRAResourceClaimDeviceStatus", false },
    { "DevicePluginCDIDevices", false },
    { "DisableCPUQuotaWithExclusiveCPUs", true },
    { "DynamicResourceAllocation", false },
    { "EnvFiles", false },
    { "EventedPLEG", true },
    { "ExecProbeTimeout", true },
    { "ExtendWebSocketsToKubelet", true },
    { "GracefulNodeShutdown", true },
    { "GracefulNodeShutdownBasedOnPodPriority", true },
    { "HostnameOverride", true },
    { "ImageMaximumGCAge", true },
    { "ImageVolume", false },
    { "InPlacePodLevelResourcesVerticalScaling", false },
    { "InPlacePodVerticalScaling", true },
    { "InPlacePodVerticalScalingExclusiveCPUs", false },
    { "InPlacePodVerticalScalingExclusiveMemory", false },
    { "KubeletCgroupDriverFromCRI", true },
    { "KubeletCrashLoopBackOffMax", true },
    { "KubeletEnsureSecretPulledImages", true },
    { "KubeletFineGrainedAuthz", true },
    { "KubeletInUserNamespace", false },
    { "KubeletPSI", false },
    { "KubeletPodResources", false },
    { "KubeletPodResourcesDynamicResources", false },
    { "KubeletPodResourcesGet", false },
    { "KubeletSeparateDiskGC", false },
    { "KubeletServiceAccountTokenForCredentialProviders", false },
    { "KubeletTracing", false },
    { "LocalStorageCapacityIsolationFSQuotaMonitoring", false },
    { "LoggingAlphaOptions", false },
    { "LoggingBetaOptions", true },
    { "MemoryManager", false },
    { "MutableCSINodeAllocatableCount", false },
    { "NodeDeclaredFeatures", false },
    { "NodeLogQuery", false },
    { "NodeSwap", true },
    { "PodAndContainerStatsFromCRI", false },
    { "PodCertificateRequest", false },
    { "PodLevelResourceManagers", false },
    { "PodLevelResources", true },
    { "PodLifecycleSleepAction", true },
    { "PodLifecycleSleepActionAllowZero", true },
    { "PodLogsQuerySplitStreams", false },
    { "PodObservedGenerationTracking", true },
    { "PodReadyToStartContainersCondition", true },
    { "PreferAlignCpusByUncoreCache", false },
    { "PreventStaticPodAPIReferences", false },
    { "ProcMountType", true },
    { "QOSReserved", false },
    { "RecursiveReadOnlyMounts", true },
    { "ReduceDefaultCrashLoopBackOffDecay", false },
    { "RelaxedEnvironmentVariableValidation", true },
    { "ReloadKubeletServerCertificateFile", true },
    { "ResourceHealthStatus", false },
    { "RestartAllContainersOnContainerExits", true },
    { "RotateKubeletServerCertificate", true },
    { "RuntimeClassInImageCriApi", false },
    { "SELinuxChangePolicy", false },
    { "SELinuxMount", false },
    { "SELinuxMountReadWriteOncePod", false },
    { "SidecarContainers", true },
    { "SupplementalGroupsPolicy", true },
    { "SystemdWatchdog", true },
    { "TopologyManagerPolicyAlphaOptions", false },
    { "TopologyManagerPolicyBetaOptions", true },
    { "TopologyManagerPolicyOptions", true },
    { "UserNamespacesHostNetworkSupport", false },
    { "UserNamespacesPodSecurityStandards", false },
    { "UserNamespacesSupport", true },
};

/* Both settings are supported. */
static const char *const switches[] = { "MemoryQoS", "CPUManagerPolicyAlphaOptions", "CSIVolumeHealth" };

const char *config_gate_problem(const char *name, bool on)
{
    for (size_t i = 0; i < ARRAY_LEN(switches); i++)
        if (strcmp(switches[i], name) == 0)
            return NULL;
    for (size_t i = 0; i < ARRAY_LEN(gates); i++)
        if (strcmp(gates[i].name, name) == 0)
            return gates[i].on == on ? NULL
                   : on              ? "this feature is not supported"
                                     : "this feature cannot be disabled";
    return "unknown feature gate";
}
