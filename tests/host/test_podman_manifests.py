# SPDX-License-Identifier: Apache-2.0
"""Manifests as podman writes and plays them: its kinds, its annotations, several documents in a file."""
import os

from coracle import check, contains, equal, until

# What `podman kube generate` adds, and nothing here needs.
GENERATED = """
# Save the output of this file and use kubectl create -f to import it into Kubernetes.
"""

CONFIG_AND_POD = GENERATED + """
apiVersion: v1
kind: ConfigMap
metadata:
  name: greeting
data:
  WORD: hello
  PLACE: here
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: pantry
  annotations:
    volume.podman.io/driver: local
    volume.podman.io/uid: "1000"
    volume.podman.io/mount-options: noexec
spec:
  accessModes: [ReadWriteOnce]
  resources:
    requests:
      storage: 1Gi
status: {}
---
apiVersion: v1
kind: Pod
metadata:
  creationTimestamp: "2026-01-02T03:04:05Z"
  name: larder
  labels:
    app: larder
  annotations:
    io.podman.annotations.init.container.type: always
    io.podman.annotations.ulimit: nofile=1024:1024
spec:
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 1
  initContainers:
  - name: stock
    image: localhost/busybox:1
    command: [sh, -c, "echo bread > /pantry/shelf"]
    volumeMounts:
    - {name: pantry-pvc, mountPath: /pantry}
  containers:
  - name: main
    image: localhost/busybox:1
    command: [sh, -c, 'echo "$WORD $THERE $(cat /pantry/shelf)"; sleep 3600']
    envFrom:
    - configMapRef: {name: greeting, optional: false}
    env:
    - name: THERE
      valueFrom: {configMapKeyRef: {name: greeting, key: PLACE}}
    securityContext:
      capabilities: {drop: [CAP_MKNOD, CAP_AUDIT_WRITE]}
    resources: {}
    stdin: true
    tty: true
    volumeMounts:
    - {name: pantry-pvc, mountPath: /pantry}
  volumes:
  - name: pantry-pvc
    persistentVolumeClaim: {claimName: pantry}
status: {}
"""

WORKLOADS = GENERATED + """
apiVersion: apps/v1
kind: Deployment
metadata:
  creationTimestamp: "2026-01-02T03:04:05Z"
  labels: {app: shop}
  name: shop-deployment
spec:
  replicas: 2
  selector:
    matchLabels: {app: shop}
  strategy: {}
  template:
    metadata:
      creationTimestamp: "2026-01-02T03:04:05Z"
      labels: {app: shop}
      name: shop
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: "localhost/busybox:1", command: [sleep, "3600"], resources: {}}
status: {}
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: guard-daemonset
  labels: {app: guard}
spec:
  selector:
    matchLabels: {app: guard}
  template:
    metadata:
      labels: {app: guard}
      name: guard
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: "localhost/busybox:1", command: [sleep, "3600"]}
  updateStrategy: {}
status: {currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: sweep-job
  labels: {app: sweep}
spec:
  template:
    metadata:
      creationTimestamp: "2026-01-02T03:04:05Z"
      labels: {app: sweep}
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: "localhost/busybox:1", command: [echo, swept]}
status: {}
"""


def put_text(node, file, text):
    with open(f"{node.manifests}/.new", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(f"{node.manifests}/.new", f"{node.manifests}/{file}")


def test_pod_with_its_neighbours(t):
    """A Pod, its ConfigMap and its claim in one file run, and podman's annotations are named as ignored"""
    node = t.node()
    node.import_image()
    put_text(node, "larder.yaml", CONFIG_AND_POD)
    node.wait_running("larder")
    until(lambda: "bread" in node.logs("larder"), 20, "the log")
    contains(node.logs("larder"), "hello here bread")
    ignored = node.pod("larder").condition("coracle.dev/FieldsIgnored")["message"]
    contains(ignored, "io.podman.annotations.init.container.type")
    contains(node.log(), "volume.podman.io/driver")
    claim = node.get("/api/v1/namespaces/default/persistentvolumeclaims/pantry")
    equal((claim["status"]["phase"], claim["metadata"]["annotations"]["volume.podman.io/uid"]), ("Bound", "1000"), "the claim")


def test_workloads(t):
    """A Deployment, a DaemonSet and a Job of one file run as podman plays them"""
    node = t.node()
    node.import_image()
    put_text(node, "all.yaml", WORKLOADS)

    def shows(path, field, number):
        return any(o.get("status", {}).get(field) == number for o in node.get(path)["items"])

    until(lambda: shows("/apis/apps/v1/deployments", "availableReplicas", 2), 60, "the Deployment")
    until(lambda: shows("/apis/apps/v1/daemonsets", "numberReady", 1), 60, "the DaemonSet")
    until(lambda: shows("/apis/batch/v1/jobs", "succeeded", 1), 60, "the Job")
    mine = [p["metadata"]["name"] for p in node.pods().values() if p["metadata"]["name"].startswith("sweep-job-")]
    equal(node.logs(mine[0]).strip(), "swept", "its log")
    node.remove("all.yaml")
    node.watch(lambda pods: not pods or None, what="the end of all pods")
    check(not node.get("/apis/batch/v1/jobs")["items"], "a Job is left")
