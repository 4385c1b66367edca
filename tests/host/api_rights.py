# SPDX-License-Identifier: Apache-2.0
"""api_rights - what the scripted apiserver lets a node do: the Node authorizer, NodeRestriction, and who a client is.

`system:admin` and members of system:masters may do everything.  A node, `system:node:<name>`, may do what a kubelet needs, for
itself and for its pods; everything else is refused with the words of the apiserver, as far as recordings have them.
"""
from api_store import BY_KIND, Refused, member

MIRROR = "kubernetes.io/config.mirror"
READ = {"get", "list", "watch"}


def forbidden(user, verb, kind, namespace, name, why, subresource=""):
    resource = kind.plural + (f"/{subresource}" if subresource else "")
    scope = f'in the namespace "{namespace}"' if kind.namespaced and namespace else "at the cluster scope"
    return Refused(403, "Forbidden", f'{kind.qualified}{f" {chr(34)}{name}{chr(34)}" if name else ""} is forbidden: User "{user}" cannot {verb} '
                   f'resource "{resource}" in API group "{kind.group}" {scope}{": " + why if why else ""}', kind=kind.plural,
                   **({"name": name} if name else {}))


def _volumes(pod):
    for v in pod["spec"].get("volumes", []):
        yield v
        for source in v.get("projected", {}).get("sources", []):
            yield source


def _refers(pod, kind, name):
    """Whether the pod needs the ConfigMap, Secret or ServiceAccount."""
    if kind == "serviceaccounts":
        return pod["spec"].get("serviceAccountName", "default") == name
    volume, env = {"configmaps": ("configMap", "configMapKeyRef"), "secrets": ("secret", "secretKeyRef")}[kind]
    for v in _volumes(pod):
        if volume in v and name in (v[volume].get("name"), v[volume].get("secretName")):
            return True
    for c in [c for part in ("containers", "initContainers", "ephemeralContainers") for c in pod["spec"].get(part, [])]:
        for e in c.get("env", []):
            if e.get("valueFrom", {}).get(env, {}).get("name") == name:
                return True
        for e in c.get("envFrom", []):
            if e.get(volume + "Ref", {}).get("name") == name:
                return True
    return kind == "secrets" and any(s.get("name") == name for s in pod["spec"].get("imagePullSecrets", []))


class Rights:
    def __init__(self, store):
        self.store = store

    def check(self, user, groups, verb, kind, namespace, name, subresource, fields, body):
        """Refused, unless the user may."""
        if user == "system:admin" or "system:masters" in groups:
            return
        node = user[len("system:node:"):] if user.startswith("system:node:") and "system:nodes" in groups else None
        if node is None:
            if "system:bootstrappers" in groups and kind.plural == "certificatesigningrequests":
                return
            raise forbidden(user, verb, kind, namespace, name, "", subresource)
        rule = getattr(self, kind.plural, None)
        if rule is None or not rule(node, verb, namespace, name, subresource, fields, body):
            raise forbidden(user, verb, kind, namespace, name, self.why(node, kind, verb, name), subresource)

    @staticmethod
    def why(node, kind, verb, name):
        if kind.plural == "pods" and verb in ("list", "watch"):
            return "can only list/watch pods with spec.nodeName field selector"
        if kind.plural in ("secrets", "configmaps", "serviceaccounts"):
            return f"no relationship found between node '{node}' and this object" if name else \
                "can only read resources of this type with a name"
        return ""

    def pods_of(self, node, namespace=None):
        return [p for p in self.store.all("Pod") if p["spec"].get("nodeName") == node and namespace in (None, p["metadata"]["namespace"])]

    # ---- one function for each resource: (node, verb, namespace, name, subresource, fields, body) -> allowed ----

    def pods(self, node, verb, namespace, name, subresource, fields, body):
        if verb in ("list", "watch"):
            return f"spec.nodeName={node}" in (fields or "").split(",")
        if verb == "create":
            return not subresource and self.mirror(node, body)
        try:
            pod = self.store.find(BY_KIND["Pod"], namespace, name)
        except Refused:
            return verb != "patch" or subresource == "status"  # 404 follows
        if pod["spec"].get("nodeName") != node:
            if verb == "get":
                return False
            raise Refused(403, "Forbidden", f'pods "{name}" is forbidden: node "{node}" can only {"delete" if verb == "delete" else "update"} '
                          f'pods with spec.nodeName set to itself', name=name, kind="pods")
        return verb in ("get", "delete") or (verb in ("patch", "update") and subresource == "status")

    def mirror(self, node, pod):
        name, m, spec = pod["metadata"].get("name", ""), pod["metadata"], pod.get("spec", {})

        def refuse(why):
            return Refused(403, "Forbidden", f'pods "{name}" is forbidden: {why}', name=name, kind="pods")

        if MIRROR not in m.get("annotations", {}):
            raise refuse(f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods')
        if spec.get("nodeName") != node:
            raise refuse(f'node "{node}" can only create pods with spec.nodeName set to itself')
        owners = m.get("ownerReferences", [])
        if len(owners) != 1 or (owners[0].get("kind"), owners[0].get("name")) != ("Node", node):
            raise refuse(f'node "{node}" can only create pods with an owner reference set to itself')
        if not owners[0].get("controller") or owners[0].get("blockOwnerDeletion"):
            raise refuse(f'node "{node}" can only create pods with a controller owner reference set to itself')
        own = self.store.get("Node", node)
        if own is None or own["metadata"]["uid"] != owners[0].get("uid"):
            raise refuse(f'node {node} UID mismatch: expected {owners[0].get("uid")} got {member(own, "metadata.uid")}')
        if spec.get("serviceAccountName"):
            raise refuse(f'node "{node}" can not create pods that reference a service account')
        for kind, word in (("secrets", "secrets"), ("configmaps", "configmaps")):
            part = {"secrets": "secret", "configmaps": "configMap"}[kind]
            if any(part in v for v in _volumes(pod)):
                raise refuse(f'node "{node}" can not create pods that reference {word}')
        return True

    def nodes(self, node, verb, _namespace, name, subresource, fields, body):
        if verb == "create":
            if body["metadata"].get("name") != node:
                raise Refused(403, "Forbidden", f'nodes "{body["metadata"].get("name")}" is forbidden: node "{node}" is not allowed to modify node '
                              f'"{body["metadata"].get("name")}"', kind="nodes")
            return True
        if verb in ("list", "watch"):
            return f"metadata.name={node}" in (fields or "").split(",")
        if verb in ("patch", "update") and name == node and not subresource and "taints" in (body or {}).get("spec", {}):
            raise Refused(403, "Forbidden", f'nodes "{node}" is forbidden: node "{node}" is not allowed to modify taints', kind="nodes")
        return name == node and verb in ("get", "patch", "update") and subresource in ("", "status")

    def leases(self, node, verb, namespace, name, _subresource, _fields, body):
        own = body["metadata"].get("name") if verb == "create" else name
        return namespace == "kube-node-lease" and own == node and verb in ("get", "create", "update", "patch", "delete")

    def _of_pod(self, kind, node, verb, namespace, name, fields):
        wanted = name or next((t.split("=", 1)[1] for t in (fields or "").split(",") if t.startswith("metadata.name=")), None)
        return verb in READ and wanted is not None and any(_refers(p, kind, wanted) for p in self.pods_of(node, namespace))

    def secrets(self, node, verb, namespace, name, subresource, fields, _body):
        return not subresource and self._of_pod("secrets", node, verb, namespace, name, fields)

    def configmaps(self, node, verb, namespace, name, subresource, fields, _body):
        return not subresource and self._of_pod("configmaps", node, verb, namespace, name, fields)

    def serviceaccounts(self, node, verb, namespace, name, subresource, _fields, body):
        if subresource != "token" or verb != "create":
            return verb == "get" and any(_refers(p, "serviceaccounts", name) for p in self.pods_of(node, namespace))
        bound = (body.get("spec") or {}).get("boundObjectRef")

        def refuse(why):
            return Refused(403, "Forbidden", f'serviceaccounts "{name}" is forbidden: {why}', name=name, kind="serviceaccounts")

        if not bound or bound.get("kind") != "Pod":
            raise refuse("node requested token not bound to a pod")
        pod = self.store.get("Pod", bound.get("name"), namespace)
        if pod is None or pod["metadata"]["uid"] != bound.get("uid"):
            raise refuse("node requested token bound to a pod that is not there, or has another uid")
        if pod["spec"].get("nodeName") != node:
            raise refuse("node requested token bound to a pod scheduled on a different node")
        return pod["spec"].get("serviceAccountName", "default") == name

    def events(self, _node, verb, *_):
        return verb in ("create", "patch", "update")

    def certificatesigningrequests(self, _node, verb, *_):
        return verb in ("create", "get", "list", "watch")

    def services(self, _node, verb, *_):
        return verb in READ

    runtimeclasses = csidrivers = services
    clustertrustbundles = services

    def csinodes(self, node, verb, _namespace, name, _subresource, _fields, body):
        return (body["metadata"].get("name") if verb == "create" else name) == node

    def resourceslices(self, _node, verb, *_):
        return True

    def persistentvolumeclaims(self, _node, verb, *_):
        return verb == "get"

    persistentvolumes = persistentvolumeclaims
