/* SPDX-License-Identifier: Apache-2.0 */
/* Flags without a key: locations of files, and old and new kubelet flags that have no effect here. */
#include "agent/config/internal.h"

#define NO_CRI "conmon and an OCI runtime run the containers; there is no CRI runtime"
#define GONE "kubelet no longer supports it"
#define NO_KLOG "the agent logs to standard error; see --log-level and --log-format"
#define NO_CADVISOR "the agent reads cgroups directly, without cAdvisor"
#define NO_CREDENTIALS                                                                                       \
    "credentials come from imagePullSecrets, registryAuthFile and imageCredentialProviderConfig"

#define IGNORED(flag, type, why)                                                                             \
    {                                                                                                        \
        NULL, flag, type, NULL, NULL, ALWAYS, NONE, 0, NULL, why                                             \
    }

static const struct config_row rows[] = {
    { NULL, "config", T_TEXT, NULL, NULL, 0, WORKS, 0,
      "configuration file (default " CONFIG_FILE ", if it exists)" },
    { NULL, "config-dir", T_TEXT, NULL, NULL, 0, WORKS, 0,
      "folder of drop-ins: *.conf, merged over the configuration file in the order of their names" },
    { NULL, "register-schedulable", T_BOOL, "true", NULL, JOINED, WORKS, FIELD(kube.register_schedulable),
      "register the node as schedulable; false: with the taint node.kubernetes.io/unschedulable" },
    IGNORED("cloud-provider", T_TEXT, "the agent does not use cloud providers"),
    IGNORED("cloud-config", T_TEXT, GONE),
    IGNORED("master-service-namespace", T_TEXT, GONE),
    IGNORED("allow-privileged", T_BOOL, GONE),
    IGNORED("dynamic-config-dir", T_TEXT, GONE),
    IGNORED("exit-on-lock-contention", T_BOOL, "a lock in the state folder ensures that only one agent runs"),
    IGNORED("lock-file", T_TEXT, "a lock in the state folder ensures that only one agent runs"),
    IGNORED("keep-terminated-pod-volumes", T_BOOL, GONE),
    IGNORED("minimum-container-ttl-duration", T_DURATION,
            "a container's leftovers are removed when it restarts"),
    IGNORED("maximum-dead-containers", T_INT, "a container's leftovers are removed when it restarts"),
    IGNORED("maximum-dead-containers-per-container", T_INT,
            "a container's leftovers are removed when it restarts"),
    IGNORED("non-masquerade-cidr", T_TEXT, "the CNI network list configures masquerading"),
    IGNORED("experimental-mounter-path", T_TEXT, GONE),
    IGNORED("experimental-allocatable-ignore-eviction", T_BOOL, GONE),
    IGNORED("experimental-kernel-memcg-notification", T_BOOL, GONE),
    IGNORED("experimental-check-node-capabilities-before-mount", T_BOOL, GONE),
    IGNORED("node-status-report-frequency", T_DURATION,
            "use the configuration key nodeStatusReportFrequency"),
    IGNORED("really-crash-for-testing", T_BOOL, GONE),
    IGNORED("chaos-chance", T_TEXT, GONE),
    IGNORED("seccomp-profile-root", T_TEXT, "profiles are read from <root-dir>/seccomp"),
    IGNORED("container-runtime", T_TEXT, NO_CRI),
    IGNORED("runtime-cgroups", T_TEXT, NO_CRI),
    IGNORED("pod-infra-container-image", T_TEXT, "pods need no pause container"),
    IGNORED("redirect-container-streaming", T_BOOL, GONE),
    IGNORED("docker", T_TEXT, NO_CRI),
    IGNORED("docker-endpoint", T_TEXT, NO_CRI),
    IGNORED("docker-only", T_BOOL, NO_CRI),
    IGNORED("docker-root", T_TEXT, NO_CRI),
    IGNORED("docker-tls", T_BOOL, NO_CRI),
    IGNORED("docker-tls-ca", T_TEXT, NO_CRI),
    IGNORED("docker-tls-cert", T_TEXT, NO_CRI),
    IGNORED("docker-tls-key", T_TEXT, NO_CRI),
    IGNORED("docker-env-metadata-whitelist", T_TEXT, NO_CRI),
    IGNORED("docker-disable-shared-pid", T_BOOL, NO_CRI),
    IGNORED("network-plugin", T_TEXT, "the network always uses CNI"),
    IGNORED("network-plugin-mtu", T_INT, "the CNI network list configures the MTU"),
    IGNORED("cni-cache-dir", T_TEXT, "results are kept in <state-dir>/cni"),
    IGNORED("azure-container-registry-config", T_TEXT, NO_CREDENTIALS),
    IGNORED("cadvisor-port", T_INT, NO_CADVISOR),
    IGNORED("enable-cadvisor-json-endpoints", T_BOOL, NO_CADVISOR),
    IGNORED("application-metrics-count-limit", T_INT, NO_CADVISOR),
    IGNORED("boot-id-file", T_TEXT, NO_CADVISOR),
    IGNORED("container-hints", T_TEXT, NO_CADVISOR),
    IGNORED("containerd", T_TEXT, NO_CADVISOR),
    IGNORED("containerd-namespace", T_TEXT, NO_CADVISOR),
    IGNORED("enable-load-reader", T_BOOL, NO_CADVISOR),
    IGNORED("event-storage-age-limit", T_TEXT, NO_CADVISOR),
    IGNORED("event-storage-event-limit", T_TEXT, NO_CADVISOR),
    IGNORED("global-housekeeping-interval", T_DURATION, NO_CADVISOR),
    IGNORED("housekeeping-interval", T_DURATION, NO_CADVISOR),
    IGNORED("log-cadvisor-usage", T_BOOL, NO_CADVISOR),
    IGNORED("machine-id-file", T_TEXT, NO_CADVISOR),
    IGNORED("storage-driver-buffer-duration", T_DURATION, NO_CADVISOR),
    IGNORED("storage-driver-db", T_TEXT, NO_CADVISOR),
    IGNORED("storage-driver-host", T_TEXT, NO_CADVISOR),
    { NULL, "storage-driver-password", T_TEXT, NULL, NULL, ALWAYS | SECRET, NONE, 0, NULL, NO_CADVISOR },
    IGNORED("storage-driver-secure", T_BOOL, NO_CADVISOR),
    IGNORED("storage-driver-table", T_TEXT, NO_CADVISOR),
    IGNORED("storage-driver-user", T_TEXT, NO_CADVISOR),
    IGNORED("vmodule", T_TEXT, NO_KLOG),
    IGNORED("logtostderr", T_BOOL, NO_KLOG),
    IGNORED("alsologtostderr", T_BOOL, NO_KLOG),
    IGNORED("stderrthreshold", T_TEXT, NO_KLOG),
    IGNORED("log-dir", T_TEXT, NO_KLOG),
    IGNORED("log-file", T_TEXT, NO_KLOG),
    IGNORED("log-file-max-size", T_TEXT, NO_KLOG),
    IGNORED("log-backtrace-at", T_TEXT, NO_KLOG),
    IGNORED("add-dir-header", T_BOOL, NO_KLOG),
    IGNORED("skip-headers", T_BOOL, NO_KLOG),
    IGNORED("skip-log-headers", T_BOOL, NO_KLOG),
    IGNORED("one-output", T_BOOL, NO_KLOG),
};

const struct config_rows config_rows_flags = { rows, ARRAY_LEN(rows) };
