/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of Kubernetes' protobuf (generated.proto of k8s.io/api and apimachinery, 1.36) that make up
 * the objects which clients send, as one text each: "NUMBER[-]NAME:TYPE ...", where NAME is that of JSON.
 *
 * TYPE: s text, i integer, b boolean, B bytes (base64 in JSON), m map of texts, M map of bytes, q map of
 * quantities, Q quantity, I number or text, T time, F fields of a manager (JSON), x not taken; otherwise a
 * message. In front of it: * a list, ~ its members are those of the message around it. "-": Go writes an
 * empty value that JSON leaves out. Sorted by name.
 */
#include "agent/kube/apiserver/proto.h"

/* clang-format off */
const struct proto_message proto_messages[] = {
    { "AWSElasticBlockStoreVolumeSource", "1volumeID:s 2-fsType:s 3-partition:i 4-readOnly:b" },
    { "Affinity", "1nodeAffinity:NodeAffinity 2podAffinity:PodAffinity 3podAntiAffinity:PodAntiAffinity" },
    { "AggregationRule", "1clusterRoleSelectors:*LabelSelector" },
    { "AppArmorProfile", "1type:s 2localhostProfile:s" },
    { "AzureDiskVolumeSource", "1diskName:s 2diskURI:s 3cachingMode:s 4fsType:s 5readOnly:b 6kind:s" },
    { "AzureFilePersistentVolumeSource", "1secretName:s 2shareName:s 3-readOnly:b 4secretNamespace:s" },
    { "AzureFileVolumeSource", "1secretName:s 2shareName:s 3-readOnly:b" },
    { "CSIPersistentVolumeSource",
      "1driver:s 2volumeHandle:s 3-readOnly:b 4-fsType:s 5volumeAttributes:m "
      "6controllerPublishSecretRef:SecretReference 7nodeStageSecretRef:SecretReference "
      "8nodePublishSecretRef:SecretReference 9controllerExpandSecretRef:SecretReference "
      "10nodeExpandSecretRef:SecretReference" },
    { "CSIVolumeSource",
      "1driver:s 2readOnly:b 3fsType:s 4volumeAttributes:m 5nodePublishSecretRef:LocalObjectReference" },
    { "Capabilities", "1add:*s 2drop:*s" },
    { "CephFSPersistentVolumeSource",
      "1monitors:*s 2-path:s 3-user:s 4-secretFile:s 5secretRef:SecretReference 6-readOnly:b" },
    { "CephFSVolumeSource",
      "1monitors:*s 2-path:s 3-user:s 4-secretFile:s 5secretRef:LocalObjectReference 6-readOnly:b" },
    { "CinderPersistentVolumeSource", "1volumeID:s 2-fsType:s 3-readOnly:b 4secretRef:SecretReference" },
    { "CinderVolumeSource", "1volumeID:s 2-fsType:s 3-readOnly:b 4secretRef:LocalObjectReference" },
    { "ClientIPConfig", "1timeoutSeconds:i" },
    { "ClusterRole", "1metadata:ObjectMeta 2rules:*PolicyRule 3aggregationRule:AggregationRule" },
    { "ClusterRoleBinding", "1metadata:ObjectMeta 2subjects:*Subject 3roleRef:RoleRef" },
    { "ClusterTrustBundleProjection",
      "1name:s 2signerName:s 3labelSelector:LabelSelector 5optional:b 4path:s 6user:i" },
    { "ConfigMap", "1metadata:ObjectMeta 4immutable:b 2data:m 3binaryData:M" },
    { "ConfigMapEnvSource", "1localObjectReference:~LocalObjectReference 2optional:b" },
    { "ConfigMapKeySelector", "1localObjectReference:~LocalObjectReference 2key:s 3optional:b" },
    { "ConfigMapProjection", "1localObjectReference:~LocalObjectReference 2items:*KeyToPath 4optional:b" },
    { "ConfigMapVolumeSource",
      "1localObjectReference:~LocalObjectReference 2items:*KeyToPath 3defaultMode:i 4optional:b "
      "5defaultUser:i" },
    { "Container",
      "1name:s 2-image:s 3command:*s 4args:*s 5-workingDir:s 6ports:*ContainerPort "
      "19envFrom:*EnvFromSource 7env:*EnvVar 8resources:ResourceRequirements "
      "23resizePolicy:*ContainerResizePolicy 24restartPolicy:s 25restartPolicyRules:*ContainerRestartRule "
      "9volumeMounts:*VolumeMount 21volumeDevices:*VolumeDevice 10livenessProbe:Probe "
      "11readinessProbe:Probe 22startupProbe:Probe 12lifecycle:Lifecycle 13-terminationMessagePath:s "
      "20-terminationMessagePolicy:s 14-imagePullPolicy:s 15securityContext:SecurityContext 16-stdin:b "
      "17-stdinOnce:b 18-tty:b" },
    { "ContainerPort", "1-name:s 2-hostPort:i 3containerPort:i 4-protocol:s 5-hostIP:s" },
    { "ContainerResizePolicy", "1resourceName:s 2restartPolicy:s" },
    { "ContainerRestartRule", "1-action:s 2exitCodes:ContainerRestartRuleOnExitCodes" },
    { "ContainerRestartRuleOnExitCodes", "1-operator:s 2values:*i" },
    { "CronJob", "1metadata:ObjectMeta 2spec:CronJobSpec 3status:x" },
    { "CronJobSpec",
      "1schedule:s 8timeZone:s 2startingDeadlineSeconds:i 3-concurrencyPolicy:s 4suspend:b "
      "5jobTemplate:JobTemplateSpec 6successfulJobsHistoryLimit:i 7failedJobsHistoryLimit:i" },
    { "DaemonSet", "1metadata:ObjectMeta 2spec:DaemonSetSpec 3status:x" },
    { "DaemonSetSpec",
      "1selector:LabelSelector 2template:PodTemplateSpec 3updateStrategy:DaemonSetUpdateStrategy "
      "4-minReadySeconds:i 6revisionHistoryLimit:i" },
    { "DaemonSetUpdateStrategy", "1-type:s 2rollingUpdate:RollingUpdateDaemonSet" },
    { "DeleteOptions",
      "1gracePeriodSeconds:i 2preconditions:Preconditions 3orphanDependents:b 4propagationPolicy:s "
      "5dryRun:*s 6ignoreStoreReadErrorWithClusterBreakingPotential:b" },
    { "Deployment", "1metadata:ObjectMeta 2spec:DeploymentSpec 3status:x" },
    { "DeploymentSpec",
      "1replicas:i 2selector:LabelSelector 3template:PodTemplateSpec 4strategy:DeploymentStrategy "
      "5-minReadySeconds:i 6revisionHistoryLimit:i 7-paused:b 9progressDeadlineSeconds:i" },
    { "DeploymentStrategy", "1-type:s 2rollingUpdate:RollingUpdateDeployment" },
    { "DownwardAPIProjection", "1items:*DownwardAPIVolumeFile" },
    { "DownwardAPIVolumeFile",
      "1path:s 2fieldRef:ObjectFieldSelector 3resourceFieldRef:ResourceFieldSelector 4mode:i 5user:i" },
    { "DownwardAPIVolumeSource", "1items:*DownwardAPIVolumeFile 2defaultMode:i 3defaultUser:i" },
    { "EmptyDirVolumeSource", "1-medium:s 2sizeLimit:Q 3mode:i" },
    { "EndpointAddress", "1ip:s 3-hostname:s 4nodeName:s 2targetRef:ObjectReference" },
    { "EndpointPort", "1-name:s 2port:i 3-protocol:s 4appProtocol:s" },
    { "EndpointSubset",
      "1addresses:*EndpointAddress 2notReadyAddresses:*EndpointAddress 3ports:*EndpointPort" },
    { "Endpoints", "1metadata:ObjectMeta 2subsets:*EndpointSubset" },
    { "EnvFromSource", "1-prefix:s 2configMapRef:ConfigMapEnvSource 3secretRef:SecretEnvSource" },
    { "EnvVar", "1name:s 2-value:s 3valueFrom:EnvVarSource" },
    { "EnvVarSource",
      "1fieldRef:ObjectFieldSelector 2resourceFieldRef:ResourceFieldSelector "
      "3configMapKeyRef:ConfigMapKeySelector 4secretKeyRef:SecretKeySelector 5fileKeyRef:FileKeySelector" },
    { "EphemeralContainer", "1ephemeralContainerCommon:~EphemeralContainerCommon 2-targetContainerName:s" },
    { "EphemeralContainerCommon",
      "1name:s 2-image:s 3command:*s 4args:*s 5-workingDir:s 6ports:*ContainerPort "
      "19envFrom:*EnvFromSource 7env:*EnvVar 8resources:ResourceRequirements "
      "23resizePolicy:*ContainerResizePolicy 24restartPolicy:s 25restartPolicyRules:*ContainerRestartRule "
      "9volumeMounts:*VolumeMount 21volumeDevices:*VolumeDevice 10livenessProbe:Probe "
      "11readinessProbe:Probe 22startupProbe:Probe 12lifecycle:Lifecycle 13-terminationMessagePath:s "
      "20-terminationMessagePolicy:s 14-imagePullPolicy:s 15securityContext:SecurityContext 16-stdin:b "
      "17-stdinOnce:b 18-tty:b" },
    { "EphemeralVolumeSource", "1volumeClaimTemplate:PersistentVolumeClaimTemplate" },
    { "Eviction", "1metadata:ObjectMeta 2deleteOptions:DeleteOptions" },
    { "EvictionResponder", "1name:s 2priority:i" },
    { "ExecAction", "1command:*s" },
    { "FCVolumeSource", "1targetWWNs:*s 2lun:i 3-fsType:s 4-readOnly:b 5wwids:*s" },
    { "FieldSelectorAttributes", "1-rawSelector:s 2requirements:*FieldSelectorRequirement" },
    { "FieldSelectorRequirement", "1key:s 2operator:s 3values:*s" },
    { "FileKeySelector", "1volumeName:s 2path:s 3key:s 4optional:b" },
    { "FlexPersistentVolumeSource",
      "1driver:s 2-fsType:s 3secretRef:SecretReference 4-readOnly:b 5options:m" },
    { "FlexVolumeSource", "1driver:s 2-fsType:s 3secretRef:LocalObjectReference 4-readOnly:b 5options:m" },
    { "FlockerVolumeSource", "1-datasetName:s 2-datasetUUID:s" },
    { "GCEPersistentDiskVolumeSource", "1pdName:s 2-fsType:s 3-partition:i 4-readOnly:b" },
    { "GRPCAction", "1port:i 2service:s 3mode:s" },
    { "GitRepoVolumeSource", "1repository:s 2-revision:s 3-directory:s" },
    { "GlusterfsPersistentVolumeSource", "1endpoints:s 2path:s 3-readOnly:b 4endpointsNamespace:s" },
    { "GlusterfsVolumeSource", "1endpoints:s 2path:s 3-readOnly:b" },
    { "HTTPGetAction", "1-path:s 2port:I 3-host:s 4-scheme:s 5httpHeaders:*HTTPHeader 6protocol:s" },
    { "HTTPHeader", "1name:s 2value:s" },
    { "HTTPIngressPath", "1-path:s 3pathType:s 2backend:IngressBackend" },
    { "HTTPIngressRuleValue", "1paths:*HTTPIngressPath" },
    { "HostAlias", "1ip:s 2hostnames:*s" },
    { "HostPathVolumeSource", "1path:s 2type:s" },
    { "IPBlock", "1cidr:s 2except:*s" },
    { "ISCSIPersistentVolumeSource",
      "1targetPortal:s 2iqn:s 3lun:i 4-iscsiInterface:s 5-fsType:s 6-readOnly:b 7portals:*s "
      "8-chapAuthDiscovery:b 11-chapAuthSession:b 10secretRef:SecretReference 12initiatorName:s" },
    { "ISCSIVolumeSource",
      "1targetPortal:s 2iqn:s 3lun:i 4-iscsiInterface:s 5-fsType:s 6-readOnly:b 7portals:*s "
      "8-chapAuthDiscovery:b 11-chapAuthSession:b 10secretRef:LocalObjectReference 12initiatorName:s" },
    { "ImageVolumeSource", "1-reference:s 2-pullPolicy:s" },
    { "Ingress", "1metadata:ObjectMeta 2spec:IngressSpec 3status:x" },
    { "IngressBackend", "4service:IngressServiceBackend 3resource:TypedLocalObjectReference" },
    { "IngressClass", "1metadata:ObjectMeta 2spec:IngressClassSpec" },
    { "IngressClassParametersReference", "1apiGroup:s 2kind:s 3name:s 4scope:s 5namespace:s" },
    { "IngressClassSpec", "1-controller:s 2parameters:IngressClassParametersReference" },
    { "IngressRule", "1-host:s 2ingressRuleValue:~IngressRuleValue" },
    { "IngressRuleValue", "1http:HTTPIngressRuleValue" },
    { "IngressServiceBackend", "1name:s 2port:ServiceBackendPort" },
    { "IngressSpec",
      "4ingressClassName:s 1defaultBackend:IngressBackend 2tls:*IngressTLS 3rules:*IngressRule" },
    { "IngressTLS", "1hosts:*s 2-secretName:s" },
    { "Job", "1metadata:ObjectMeta 2spec:JobSpec 3status:x" },
    { "JobSchedulingConfiguration", "" },
    { "JobSpec",
      "1parallelism:i 2completions:i 3activeDeadlineSeconds:i 11podFailurePolicy:PodFailurePolicy "
      "16successPolicy:SuccessPolicy 7backoffLimit:i 12backoffLimitPerIndex:i 13maxFailedIndexes:i "
      "4selector:LabelSelector 5manualSelector:b 6template:PodTemplateSpec 8ttlSecondsAfterFinished:i "
      "9completionMode:s 10suspend:b 14podReplacementPolicy:s 15managedBy:s "
      "17scheduling:JobSchedulingConfiguration" },
    { "JobTemplateSpec", "1metadata:ObjectMeta 2spec:JobSpec" },
    { "KeyToPath", "1key:s 2path:s 3mode:i 4user:i" },
    { "LabelSelector", "1matchLabels:m 2matchExpressions:*LabelSelectorRequirement" },
    { "LabelSelectorAttributes", "1-rawSelector:s 2requirements:*LabelSelectorRequirement" },
    { "LabelSelectorRequirement", "1key:s 2operator:s 3values:*s" },
    { "Lifecycle", "1postStart:LifecycleHandler 2preStop:LifecycleHandler 3stopSignal:s" },
    { "LifecycleHandler",
      "1exec:ExecAction 2httpGet:HTTPGetAction 3tcpSocket:TCPSocketAction 4sleep:SleepAction" },
    { "LimitRange", "1metadata:ObjectMeta 2spec:LimitRangeSpec" },
    { "LimitRangeItem", "1type:s 2max:q 3min:q 4default:q 5defaultRequest:q 6maxLimitRequestRatio:q" },
    { "LimitRangeSpec", "1limits:*LimitRangeItem" },
    { "LocalObjectReference", "1-name:s" },
    { "LocalVolumeSource", "1path:s 2fsType:s" },
    { "ManagedFieldsEntry",
      "1-manager:s 2-operation:s 3-apiVersion:s 4time:T 6-fieldsType:s 7fieldsV1:F 8-subresource:s" },
    { "NFSVolumeSource", "1server:s 2path:s 3-readOnly:b" },
    { "Namespace", "1metadata:ObjectMeta 2spec:NamespaceSpec 3status:x" },
    { "NamespaceSpec", "1finalizers:*s" },
    { "NetworkPolicy", "1metadata:ObjectMeta 2spec:NetworkPolicySpec" },
    { "NetworkPolicyEgressRule", "1ports:*NetworkPolicyPort 2to:*NetworkPolicyPeer" },
    { "NetworkPolicyIngressRule", "1ports:*NetworkPolicyPort 2from:*NetworkPolicyPeer" },
    { "NetworkPolicyPeer", "1podSelector:LabelSelector 2namespaceSelector:LabelSelector 3ipBlock:IPBlock" },
    { "NetworkPolicyPort", "1protocol:s 2port:I 3endPort:i" },
    { "NetworkPolicySpec",
      "1podSelector:LabelSelector 2ingress:*NetworkPolicyIngressRule 3egress:*NetworkPolicyEgressRule "
      "4policyTypes:*s" },
    { "NodeAffinity",
      "1requiredDuringSchedulingIgnoredDuringExecution:NodeSelector "
      "2preferredDuringSchedulingIgnoredDuringExecution:*PreferredSchedulingTerm" },
    { "NodeSelector", "1nodeSelectorTerms:*NodeSelectorTerm" },
    { "NodeSelectorRequirement", "1key:s 2operator:s 3values:*s" },
    { "NodeSelectorTerm",
      "1matchExpressions:*NodeSelectorRequirement 2matchFields:*NodeSelectorRequirement" },
    { "NonResourceAttributes", "1-path:s 2-verb:s" },
    { "ObjectFieldSelector", "1-apiVersion:s 2fieldPath:s" },
    { "ObjectMeta",
      "1-name:s 2-generateName:s 3-namespace:s 4-selfLink:s 5-uid:s 6-resourceVersion:s 7-generation:i "
      "8creationTimestamp:T 9deletionTimestamp:T 10deletionGracePeriodSeconds:i 11labels:m "
      "12annotations:m 13ownerReferences:*OwnerReference 14finalizers:*s "
      "17managedFields:*ManagedFieldsEntry" },
    { "ObjectReference",
      "1-kind:s 2-namespace:s 3-name:s 4-uid:s 5-apiVersion:s 6-resourceVersion:s 7-fieldPath:s" },
    { "Overhead", "1podFixed:q" },
    { "OwnerReference", "5apiVersion:s 1kind:s 3name:s 4uid:s 6controller:b 7blockOwnerDeletion:b" },
    { "PersistentVolume", "1metadata:ObjectMeta 2spec:PersistentVolumeSpec 3status:x" },
    { "PersistentVolumeClaim", "1metadata:ObjectMeta 2spec:PersistentVolumeClaimSpec 3status:x" },
    { "PersistentVolumeClaimSpec",
      "1accessModes:*s 4selector:LabelSelector 2resources:VolumeResourceRequirements 3-volumeName:s "
      "5storageClassName:s 6volumeMode:s 7dataSource:TypedLocalObjectReference "
      "8dataSourceRef:TypedObjectReference 9volumeAttributesClassName:s" },
    { "PersistentVolumeClaimTemplate", "1metadata:ObjectMeta 2spec:PersistentVolumeClaimSpec" },
    { "PersistentVolumeClaimVolumeSource", "1claimName:s 2-readOnly:b" },
    { "PersistentVolumeSource",
      "1gcePersistentDisk:GCEPersistentDiskVolumeSource "
      "2awsElasticBlockStore:AWSElasticBlockStoreVolumeSource 3hostPath:HostPathVolumeSource "
      "4glusterfs:GlusterfsPersistentVolumeSource 5nfs:NFSVolumeSource 6rbd:RBDPersistentVolumeSource "
      "7iscsi:ISCSIPersistentVolumeSource 8cinder:CinderPersistentVolumeSource "
      "9cephfs:CephFSPersistentVolumeSource 10fc:FCVolumeSource 11flocker:FlockerVolumeSource "
      "12flexVolume:FlexPersistentVolumeSource 13azureFile:AzureFilePersistentVolumeSource "
      "14vsphereVolume:VsphereVirtualDiskVolumeSource 15quobyte:QuobyteVolumeSource "
      "16azureDisk:AzureDiskVolumeSource 17photonPersistentDisk:PhotonPersistentDiskVolumeSource "
      "18portworxVolume:PortworxVolumeSource 19scaleIO:ScaleIOPersistentVolumeSource "
      "20local:LocalVolumeSource 21storageos:StorageOSPersistentVolumeSource "
      "22csi:CSIPersistentVolumeSource" },
    { "PersistentVolumeSpec",
      "1capacity:q 2persistentVolumeSource:~PersistentVolumeSource 3accessModes:*s "
      "4claimRef:ObjectReference 5-persistentVolumeReclaimPolicy:s 6-storageClassName:s 7mountOptions:*s "
      "8volumeMode:s 9nodeAffinity:VolumeNodeAffinity 10volumeAttributesClassName:s" },
    { "PhotonPersistentDiskVolumeSource", "1pdID:s 2-fsType:s" },
    { "Pod", "1metadata:ObjectMeta 2spec:PodSpec 3status:x" },
    { "PodAffinity",
      "1requiredDuringSchedulingIgnoredDuringExecution:*PodAffinityTerm "
      "2preferredDuringSchedulingIgnoredDuringExecution:*WeightedPodAffinityTerm" },
    { "PodAffinityTerm",
      "1labelSelector:LabelSelector 2namespaces:*s 3topologyKey:s 4namespaceSelector:LabelSelector "
      "5matchLabelKeys:*s 6mismatchLabelKeys:*s" },
    { "PodAntiAffinity",
      "1requiredDuringSchedulingIgnoredDuringExecution:*PodAffinityTerm "
      "2preferredDuringSchedulingIgnoredDuringExecution:*WeightedPodAffinityTerm" },
    { "PodCertificateProjection",
      "1-signerName:s 2-keyType:s 3maxExpirationSeconds:i 4-credentialBundlePath:s 5-keyPath:s "
      "6-certificateChainPath:s 7userAnnotations:m 8user:i" },
    { "PodDNSConfig", "1nameservers:*s 2searches:*s 3options:*PodDNSConfigOption" },
    { "PodDNSConfigOption", "1-name:s 2value:s" },
    { "PodDisruptionBudget", "1metadata:ObjectMeta 2spec:PodDisruptionBudgetSpec 3status:x" },
    { "PodDisruptionBudgetSpec",
      "1minAvailable:I 2selector:LabelSelector 3maxUnavailable:I 4unhealthyPodEvictionPolicy:s" },
    { "PodFailurePolicy", "1rules:*PodFailurePolicyRule" },
    { "PodFailurePolicyOnExitCodesRequirement", "1containerName:s 2operator:s 3values:*i" },
    { "PodFailurePolicyOnPodConditionsPattern", "1type:s 2status:s" },
    { "PodFailurePolicyRule",
      "1action:s 2onExitCodes:PodFailurePolicyOnExitCodesRequirement "
      "3onPodConditions:*PodFailurePolicyOnPodConditionsPattern" },
    { "PodOS", "1name:s" },
    { "PodReadinessGate", "1conditionType:s" },
    { "PodResourceClaim", "1name:s 3resourceClaimName:s 4resourceClaimTemplateName:s" },
    { "PodSchedulingGate", "1name:s" },
    { "PodSchedulingGroup", "1podGroupName:s" },
    { "PodSecurityContext",
      "1seLinuxOptions:SELinuxOptions 8windowsOptions:WindowsSecurityContextOptions 2runAsUser:i "
      "6runAsGroup:i 3runAsNonRoot:b 4supplementalGroups:*i 12supplementalGroupsPolicy:s 5fsGroup:i "
      "7sysctls:*Sysctl 9fsGroupChangePolicy:s 10seccompProfile:SeccompProfile "
      "11appArmorProfile:AppArmorProfile 13seLinuxChangePolicy:s" },
    { "PodSpec",
      "1volumes:*Volume 20initContainers:*Container 2containers:*Container "
      "34ephemeralContainers:*EphemeralContainer 3-restartPolicy:s 4terminationGracePeriodSeconds:i "
      "5activeDeadlineSeconds:i 6-dnsPolicy:s 7nodeSelector:m 8-serviceAccountName:s 9-serviceAccount:s "
      "21automountServiceAccountToken:b 10-nodeName:s 11-hostNetwork:b 12-hostPID:b 13-hostIPC:b "
      "27shareProcessNamespace:b 14securityContext:PodSecurityContext "
      "15imagePullSecrets:*LocalObjectReference 16-hostname:s 17-subdomain:s 18affinity:Affinity "
      "19-schedulerName:s 22tolerations:*Toleration 23hostAliases:*HostAlias 24-priorityClassName:s "
      "25priority:i 26dnsConfig:PodDNSConfig 28readinessGates:*PodReadinessGate 29runtimeClassName:s "
      "30enableServiceLinks:b 31preemptionPolicy:s 32overhead:q "
      "33topologySpreadConstraints:*TopologySpreadConstraint 35setHostnameAsFQDN:b 36os:PodOS "
      "37hostUsers:b 38schedulingGates:*PodSchedulingGate 39resourceClaims:*PodResourceClaim "
      "40resources:ResourceRequirements 41hostnameOverride:s 43schedulingGroup:PodSchedulingGroup "
      "44evictionResponders:*EvictionResponder" },
    { "PodTemplateSpec", "1metadata:ObjectMeta 2spec:PodSpec" },
    { "PolicyRule", "1verbs:*s 2apiGroups:*s 3resources:*s 4resourceNames:*s 5nonResourceURLs:*s" },
    { "PortworxVolumeSource", "1volumeID:s 2-fsType:s 3-readOnly:b" },
    { "Preconditions", "1uid:s 2resourceVersion:s" },
    { "PreferredSchedulingTerm", "1weight:i 2preference:NodeSelectorTerm" },
    { "PriorityClass",
      "1metadata:ObjectMeta 2value:i 3-globalDefault:b 4-description:s 5preemptionPolicy:s" },
    { "Probe",
      "1handler:~ProbeHandler 2-initialDelaySeconds:i 3-timeoutSeconds:i 4-periodSeconds:i "
      "5-successThreshold:i 6-failureThreshold:i 7terminationGracePeriodSeconds:i" },
    { "ProbeHandler", "1exec:ExecAction 2httpGet:HTTPGetAction 3tcpSocket:TCPSocketAction 4grpc:GRPCAction" },
    { "ProjectedVolumeSource", "1sources:*VolumeProjection 2defaultMode:i 3defaultUser:i" },
    { "QuobyteVolumeSource", "1registry:s 2volume:s 3-readOnly:b 4-user:s 5-group:s 6-tenant:s" },
    { "RBDPersistentVolumeSource",
      "1monitors:*s 2image:s 3-fsType:s 4-pool:s 5-user:s 6-keyring:s 7secretRef:SecretReference "
      "8-readOnly:b" },
    { "RBDVolumeSource",
      "1monitors:*s 2image:s 3-fsType:s 4-pool:s 5-user:s 6-keyring:s 7secretRef:LocalObjectReference "
      "8-readOnly:b" },
    { "ReplicaSet", "1metadata:ObjectMeta 2spec:ReplicaSetSpec 3status:x" },
    { "ReplicaSetSpec", "1replicas:i 4-minReadySeconds:i 2selector:LabelSelector 3template:PodTemplateSpec" },
    { "ResourceAttributes",
      "1-namespace:s 2-verb:s 3-group:s 4-version:s 5-resource:s 6-subresource:s 7-name:s "
      "8fieldSelector:FieldSelectorAttributes 9labelSelector:LabelSelectorAttributes" },
    { "ResourceClaim", "1name:s 2-request:s" },
    { "ResourceFieldSelector", "1-containerName:s 2resource:s 3divisor:Q" },
    { "ResourceQuota", "1metadata:ObjectMeta 2spec:ResourceQuotaSpec 3status:x" },
    { "ResourceQuotaSpec", "1hard:q 2scopes:*s 3scopeSelector:ScopeSelector" },
    { "ResourceRequirements", "1limits:q 2requests:q 3claims:*ResourceClaim" },
    { "Role", "1metadata:ObjectMeta 2rules:*PolicyRule" },
    { "RoleBinding", "1metadata:ObjectMeta 2subjects:*Subject 3roleRef:RoleRef" },
    { "RoleRef", "1apiGroup:s 2kind:s 3name:s" },
    { "RollingUpdateDaemonSet", "1maxUnavailable:I 2maxSurge:I" },
    { "RollingUpdateDeployment", "1maxUnavailable:I 2maxSurge:I" },
    { "RollingUpdateStatefulSetStrategy", "1partition:i 2maxUnavailable:I" },
    { "RuntimeClass", "1metadata:ObjectMeta 2handler:s 3overhead:Overhead 4scheduling:Scheduling" },
    { "SELinuxOptions", "1-user:s 2-role:s 3-type:s 4-level:s" },
    { "Scale", "1metadata:ObjectMeta 2spec:ScaleSpec 3status:x" },
    { "ScaleIOPersistentVolumeSource",
      "1gateway:s 2system:s 3secretRef:SecretReference 4-sslEnabled:b 5-protectionDomain:s "
      "6-storagePool:s 7-storageMode:s 8-volumeName:s 9-fsType:s 10-readOnly:b" },
    { "ScaleIOVolumeSource",
      "1gateway:s 2system:s 3secretRef:LocalObjectReference 4-sslEnabled:b 5-protectionDomain:s "
      "6-storagePool:s 7-storageMode:s 8-volumeName:s 9-fsType:s 10-readOnly:b" },
    { "ScaleSpec", "1-replicas:i" },
    { "Scheduling", "1nodeSelector:m 2tolerations:*Toleration" },
    { "ScopeSelector", "1matchExpressions:*ScopedResourceSelectorRequirement" },
    { "ScopedResourceSelectorRequirement", "1scopeName:s 2operator:s 3values:*s" },
    { "SeccompProfile", "1type:s 2localhostProfile:s" },
    { "Secret", "1metadata:ObjectMeta 5immutable:b 2data:M 4stringData:m 3-type:s" },
    { "SecretEnvSource", "1localObjectReference:~LocalObjectReference 2optional:b" },
    { "SecretKeySelector", "1localObjectReference:~LocalObjectReference 2key:s 3optional:b" },
    { "SecretProjection", "1localObjectReference:~LocalObjectReference 2items:*KeyToPath 4optional:b" },
    { "SecretReference", "1-name:s 2-namespace:s" },
    { "SecretVolumeSource", "1-secretName:s 2items:*KeyToPath 3defaultMode:i 4optional:b 5defaultUser:i" },
    { "SecurityContext",
      "1capabilities:Capabilities 2privileged:b 3seLinuxOptions:SELinuxOptions "
      "10windowsOptions:WindowsSecurityContextOptions 4runAsUser:i 8runAsGroup:i 5runAsNonRoot:b "
      "6readOnlyRootFilesystem:b 7allowPrivilegeEscalation:b 9procMount:s 11seccompProfile:SeccompProfile "
      "12appArmorProfile:AppArmorProfile" },
    { "SelfSubjectAccessReview", "1metadata:ObjectMeta 2spec:SelfSubjectAccessReviewSpec 3status:x" },
    { "SelfSubjectAccessReviewSpec",
      "1resourceAttributes:ResourceAttributes 2nonResourceAttributes:NonResourceAttributes" },
    { "SelfSubjectReview", "1metadata:ObjectMeta 2status:x" },
    { "SelfSubjectRulesReview", "1metadata:ObjectMeta 2spec:SelfSubjectRulesReviewSpec 3status:x" },
    { "SelfSubjectRulesReviewSpec", "1-namespace:s" },
    { "Service", "1metadata:ObjectMeta 2spec:ServiceSpec 3status:x" },
    { "ServiceAccount",
      "1metadata:ObjectMeta 2secrets:*ObjectReference 3imagePullSecrets:*LocalObjectReference "
      "4automountServiceAccountToken:b" },
    { "ServiceAccountTokenProjection", "1-audience:s 2expirationSeconds:i 3path:s 4user:i" },
    { "ServiceBackendPort", "1-name:s 2-number:i" },
    { "ServicePort", "1-name:s 2-protocol:s 6appProtocol:s 3port:i 4targetPort:I 5-nodePort:i" },
    { "ServiceSpec",
      "1ports:*ServicePort 2selector:m 3-clusterIP:s 18clusterIPs:*s 4-type:s 5externalIPs:*s "
      "7-sessionAffinity:s 8-loadBalancerIP:s 9loadBalancerSourceRanges:*s 10-externalName:s "
      "11-externalTrafficPolicy:s 12-healthCheckNodePort:i 13-publishNotReadyAddresses:b "
      "14sessionAffinityConfig:SessionAffinityConfig 19ipFamilies:*s 17ipFamilyPolicy:s "
      "20allocateLoadBalancerNodePorts:b 21loadBalancerClass:s 22internalTrafficPolicy:s "
      "23trafficDistribution:s" },
    { "SessionAffinityConfig", "1clientIP:ClientIPConfig" },
    { "SleepAction", "1seconds:i" },
    { "StatefulSet", "1metadata:ObjectMeta 2spec:StatefulSetSpec 3status:x" },
    { "StatefulSetOrdinals", "1start:i" },
    { "StatefulSetPersistentVolumeClaimRetentionPolicy", "1-whenDeleted:s 2-whenScaled:s" },
    { "StatefulSetSpec",
      "1replicas:i 2selector:LabelSelector 3template:PodTemplateSpec "
      "4volumeClaimTemplates:*PersistentVolumeClaim 5serviceName:s 6-podManagementPolicy:s "
      "7updateStrategy:StatefulSetUpdateStrategy 8revisionHistoryLimit:i 9-minReadySeconds:i "
      "10persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy "
      "11ordinals:StatefulSetOrdinals" },
    { "StatefulSetUpdateStrategy", "1-type:s 2rollingUpdate:RollingUpdateStatefulSetStrategy" },
    { "StorageClass",
      "1metadata:ObjectMeta 2provisioner:s 3parameters:m 4reclaimPolicy:s 5mountOptions:*s "
      "6allowVolumeExpansion:b 7volumeBindingMode:s 8allowedTopologies:*TopologySelectorTerm" },
    { "StorageOSPersistentVolumeSource",
      "1-volumeName:s 2-volumeNamespace:s 3-fsType:s 4-readOnly:b 5secretRef:ObjectReference" },
    { "StorageOSVolumeSource",
      "1-volumeName:s 2-volumeNamespace:s 3-fsType:s 4-readOnly:b 5secretRef:LocalObjectReference" },
    { "Subject", "1kind:s 2-apiGroup:s 3name:s 4-namespace:s" },
    { "SuccessPolicy", "1rules:*SuccessPolicyRule" },
    { "SuccessPolicyRule", "1succeededIndexes:s 2succeededCount:i" },
    { "Sysctl", "1name:s 2value:s" },
    { "TCPSocketAction", "1port:I 2-host:s" },
    { "Toleration", "1-key:s 2-operator:s 3-value:s 4-effect:s 5tolerationSeconds:i" },
    { "TopologySelectorLabelRequirement", "1key:s 2values:*s" },
    { "TopologySelectorTerm", "1matchLabelExpressions:*TopologySelectorLabelRequirement" },
    { "TopologySpreadConstraint",
      "1maxSkew:i 2topologyKey:s 3whenUnsatisfiable:s 4labelSelector:LabelSelector 5minDomains:i "
      "6nodeAffinityPolicy:s 7nodeTaintsPolicy:s 8matchLabelKeys:*s" },
    { "TypedLocalObjectReference", "1apiGroup:s 2kind:s 3name:s" },
    { "TypedObjectReference", "1apiGroup:s 2kind:s 3name:s 4namespace:s" },
    { "Volume", "1name:s 2volumeSource:~VolumeSource" },
    { "VolumeDevice", "1name:s 2devicePath:s" },
    { "VolumeMount",
      "1name:s 2-readOnly:b 7recursiveReadOnly:s 3mountPath:s 4-subPath:s 5mountPropagation:s "
      "6-subPathExpr:s 8bindMountOptions:*s" },
    { "VolumeNodeAffinity", "1required:NodeSelector" },
    { "VolumeProjection",
      "1secret:SecretProjection 2downwardAPI:DownwardAPIProjection 3configMap:ConfigMapProjection "
      "4serviceAccountToken:ServiceAccountTokenProjection "
      "5clusterTrustBundle:ClusterTrustBundleProjection 6podCertificate:PodCertificateProjection" },
    { "VolumeResourceRequirements", "1limits:q 2requests:q" },
    { "VolumeSource",
      "1hostPath:HostPathVolumeSource 2emptyDir:EmptyDirVolumeSource "
      "3gcePersistentDisk:GCEPersistentDiskVolumeSource "
      "4awsElasticBlockStore:AWSElasticBlockStoreVolumeSource 5gitRepo:GitRepoVolumeSource "
      "6secret:SecretVolumeSource 7nfs:NFSVolumeSource 8iscsi:ISCSIVolumeSource "
      "9glusterfs:GlusterfsVolumeSource 10persistentVolumeClaim:PersistentVolumeClaimVolumeSource "
      "11rbd:RBDVolumeSource 12flexVolume:FlexVolumeSource 13cinder:CinderVolumeSource "
      "14cephfs:CephFSVolumeSource 15flocker:FlockerVolumeSource 16downwardAPI:DownwardAPIVolumeSource "
      "17fc:FCVolumeSource 18azureFile:AzureFileVolumeSource 19configMap:ConfigMapVolumeSource "
      "20vsphereVolume:VsphereVirtualDiskVolumeSource 21quobyte:QuobyteVolumeSource "
      "22azureDisk:AzureDiskVolumeSource 23photonPersistentDisk:PhotonPersistentDiskVolumeSource "
      "26projected:ProjectedVolumeSource 24portworxVolume:PortworxVolumeSource "
      "25scaleIO:ScaleIOVolumeSource 27storageos:StorageOSVolumeSource 28csi:CSIVolumeSource "
      "29ephemeral:EphemeralVolumeSource 30image:ImageVolumeSource" },
    { "VsphereVirtualDiskVolumeSource",
      "1volumePath:s 2-fsType:s 3-storagePolicyName:s 4-storagePolicyID:s" },
    { "WeightedPodAffinityTerm", "1weight:i 2podAffinityTerm:PodAffinityTerm" },
    { "WindowsSecurityContextOptions",
      "1gmsaCredentialSpecName:s 2gmsaCredentialSpec:s 3runAsUserName:s 4hostProcess:b" },
};
/* clang-format on */

const size_t proto_n_messages = sizeof(proto_messages) / sizeof(proto_messages[0]);
