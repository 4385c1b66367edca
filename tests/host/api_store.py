# SPDX-License-Identifier: Apache-2.0
"""api_store - the objects of the scripted apiserver (apiserver.py): versions, watches, patches, deletion with grace.

Small, but faithful where a node can tell: uid, resourceVersion and generation, conflicts, immutable fields, `status` as a
subresource, lists of pages, selectors, the history that watches read and that is forgotten (410).  Thread safe.
"""
import copy
import datetime
import threading
import time
import uuid

import api_patch


class Refused(Exception):
    """An answer that is a Status object."""

    def __init__(self, code, reason, message, **details):
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def status(self):
        body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
                "reason": self.reason, "code": self.code}
        if self.details:
            body["details"] = self.details
        return body


class Kind:
    def __init__(self, version, kind, plural, namespaced):
        self.api_version, self.kind, self.plural, self.namespaced = version, kind, plural, namespaced
        self.group = version.split("/")[0] if "/" in version else ""
        self.prefix = f"/apis/{version}" if self.group else f"/api/{version}"
        self.qualified = f"{plural}.{self.group}" if self.group else plural


KINDS = [Kind(*k) for k in (
    ("v1", "Pod", "pods", True), ("v1", "Node", "nodes", False), ("v1", "ConfigMap", "configmaps", True),
    ("v1", "Secret", "secrets", True), ("v1", "Service", "services", True), ("v1", "Event", "events", True),
    ("v1", "Namespace", "namespaces", False), ("v1", "ServiceAccount", "serviceaccounts", True),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims", True), ("v1", "PersistentVolume", "persistentvolumes", False),
    ("coordination.k8s.io/v1", "Lease", "leases", True), ("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", False),
    ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", False), ("storage.k8s.io/v1", "CSIDriver", "csidrivers", False),
    ("storage.k8s.io/v1", "CSINode", "csinodes", False), ("resource.k8s.io/v1", "ResourceSlice", "resourceslices", False),
    ("certificates.k8s.io/v1", "CertificateSigningRequest", "certificatesigningrequests", False),
    ("certificates.k8s.io/v1beta1", "ClusterTrustBundle", "clustertrustbundles", False))]
BY_KIND = {k.kind: k for k in KINDS}


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def member(obj, path):
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return "" if obj is None else str(obj)


def selects(fields, labels, obj):
    """Whether fieldSelector and labelSelector (=, ==, != only) choose the object."""
    for text, source in ((fields, obj), (labels, obj["metadata"].get("labels", {}))):
        for term in filter(None, (text or "").split(",")):
            name, other, value = (*term.partition("!="),) if "!=" in term else (*term.replace("==", "=").partition("="),)
            have = member(source, name) if source is obj else source.get(name, "")
            if (have == value) == (other == "!="):
                return False
    return True


class Store:
    HISTORY = 10000

    def __init__(self):
        self.lock = threading.RLock()
        self.objects = {}  # (plural, namespace, name): object
        self.version = 100
        self.history = []  # (version, type, plural, object, object before)
        self.compacted = 100
        self.watchers = set()  # functions that are called after each change
        self.put("Namespace", {"metadata": {"name": "default"}})

    # ---- changes ----

    def _changed(self, what, kind, obj, before):
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, what, kind.plural, copy.deepcopy(obj), before))
        if len(self.history) > self.HISTORY:
            self.compacted = self.history[0][0]
            del self.history[0]
        for wake in list(self.watchers):
            wake()

    def compact(self):
        """Watches from an older version than now get 410."""
        with self.lock:
            self.history.clear()
            self.compacted = self.version

    @staticmethod
    def _key(kind, obj):
        m = obj["metadata"]
        return kind.plural, m.get("namespace", "") if kind.namespaced else "", m["name"]

    def create(self, kind, obj):
        with self.lock:
            obj = copy.deepcopy(obj)
            m = obj.setdefault("metadata", {})
            if "name" not in m and "generateName" in m:
                m["name"] = m["generateName"] + uuid.uuid4().hex[:5]
            if kind.namespaced:
                m.setdefault("namespace", "default")
            if self._key(kind, obj) in self.objects:
                raise Refused(409, "AlreadyExists", f'{kind.qualified} "{m["name"]}" already exists', name=m["name"], kind=kind.plural)
            obj.update(kind=kind.kind, apiVersion=kind.api_version)
            m.update(uid=str(uuid.uuid4()), creationTimestamp=now())
            if kind.kind in ("Pod", "RuntimeClass", "PriorityClass"):
                m["generation"] = 1
            if kind.kind == "Pod":
                obj.setdefault("status", {}).setdefault("phase", "Pending")
                obj["status"].setdefault("qosClass", "BestEffort")
                obj["spec"].setdefault("terminationGracePeriodSeconds", 30)
            self.objects[self._key(kind, obj)] = obj
            self._changed("ADDED", kind, obj, None)
            return copy.deepcopy(obj)

    def find(self, kind, namespace, name):
        with self.lock:
            obj = self.objects.get((kind.plural, namespace if kind.namespaced else "", name))
            if obj is None:
                raise Refused(404, "NotFound", f'{kind.qualified} "{name}" not found', name=name, kind=kind.plural,
                              **({"group": kind.group} if kind.group else {}))
            return obj

    def replace(self, kind, namespace, name, new, subresource=""):
        """A PUT: the resourceVersion, where it is given, has to be the current one."""
        with self.lock:
            old = self.find(kind, namespace, name)
            version = new.get("metadata", {}).get("resourceVersion")
            if version not in (None, "", old["metadata"]["resourceVersion"]):
                raise Refused(409, "Conflict", f'Operation cannot be fulfilled on {kind.qualified} "{name}": the object has been modified; '
                              "please apply your changes to the latest version and try again", name=name, kind=kind.plural)
            return self._write(kind, old, new, subresource)

    def patch(self, kind, namespace, name, body, content_type, subresource=""):
        with self.lock:
            old = self.find(kind, namespace, name)
            try:
                if "strategic-merge" in content_type:
                    new = api_patch.strategic(copy.deepcopy(old), body)
                elif "merge-patch" in content_type:
                    new = api_patch.merge(copy.deepcopy(old), body)
                else:
                    raise Refused(415, "UnsupportedMediaType", f"the body of the request was in an unknown format: {content_type}")
            except ValueError as e:
                raise Refused(400, "BadRequest", str(e)) from e
            version = body.get("metadata", {}).get("resourceVersion")
            if version not in (None, old["metadata"]["resourceVersion"]):
                raise Refused(409, "Conflict", f'Operation cannot be fulfilled on {kind.qualified} "{name}": the object has been modified', name=name)
            return self._write(kind, old, new, subresource)

    def _write(self, kind, old, new, subresource):
        name, before = old["metadata"]["name"], copy.deepcopy(old)
        uid = new.get("metadata", {}).get("uid", old["metadata"]["uid"])
        if uid != old["metadata"]["uid"]:
            raise Refused(422, "Invalid", f'{kind.kind} "{name}" is invalid: metadata.uid: Invalid value: "{uid}": field is immutable',
                          name=name, kind=kind.kind)
        if subresource == "status":
            old["status"] = copy.deepcopy(new.get("status", {}))
            if kind.kind == "Node":  # a kubelet may change annotations and labels of its node through status
                for part in ("annotations", "labels"):
                    if part in new.get("metadata", {}):
                        old["metadata"][part] = copy.deepcopy(new["metadata"][part])
        else:
            kept = {k: old["metadata"].get(k) for k in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
                                                         "generation", "name", "namespace")}
            status = old.get("status")
            old.clear()
            old.update(copy.deepcopy(new), kind=kind.kind, apiVersion=kind.api_version)
            old["metadata"].update({k: v for k, v in kept.items() if v is not None})
            if kind.kind in ("Pod", "Node", "CertificateSigningRequest") and status is not None:
                old["status"] = status
            if old.get("spec") != before.get("spec") and "generation" in old["metadata"]:
                old["metadata"]["generation"] += 1
        ended = old["metadata"].get("deletionTimestamp") and not old["metadata"].get("finalizers") and \
            old["metadata"].get("deletionGracePeriodSeconds", 0) == 0
        if ended:
            return self._remove(kind, old, before)
        if {**old, "metadata": {**old["metadata"], "resourceVersion": ""}} != {**before, "metadata": {**before["metadata"], "resourceVersion": ""}}:
            self._changed("MODIFIED", kind, old, before)
        return copy.deepcopy(old)

    def _remove(self, kind, obj, before):
        del self.objects[self._key(kind, obj)]
        self._changed("DELETED", kind, obj, before)
        return copy.deepcopy(obj)

    def delete(self, kind, namespace, name, options=None):
        with self.lock:
            obj, options = self.find(kind, namespace, name), options or {}
            before, m = copy.deepcopy(obj), obj["metadata"]
            uid = options.get("preconditions", {}).get("uid", m["uid"])
            if uid != m["uid"]:
                raise Refused(409, "Conflict", f'Operation cannot be fulfilled on {kind.qualified} "{name}": Precondition failed: '
                              f"UID in precondition: {uid}, UID in object meta: {m['uid']}", name=name, kind=kind.plural)
            grace = 0
            if kind.kind == "Pod" and obj["spec"].get("nodeName") and obj.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
                grace = options.get("gracePeriodSeconds", obj["spec"].get("terminationGracePeriodSeconds", 30))
            if grace == 0 and not m.get("finalizers"):
                m["deletionGracePeriodSeconds"] = 0 if kind.kind == "Pod" else m.pop("deletionGracePeriodSeconds", None)
                if m["deletionGracePeriodSeconds"] is None:
                    del m["deletionGracePeriodSeconds"]
                return self._remove(kind, obj, before)
            if "deletionTimestamp" in m and m.get("deletionGracePeriodSeconds", 0) <= grace:
                return copy.deepcopy(obj)
            end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=grace)
            m.update(deletionTimestamp=end.strftime("%Y-%m-%dT%H:%M:%SZ"), deletionGracePeriodSeconds=grace)
            if "generation" in m:
                m["generation"] += 1
            self._changed("MODIFIED", kind, obj, before)
            return copy.deepcopy(obj)

    # ---- what tests call, as a user with all rights ----

    def put(self, kind, obj):
        """Creates the object, or replaces what there is, status included."""
        kind = BY_KIND[kind] if isinstance(kind, str) else kind
        with self.lock:
            m = {"namespace": "default", **obj["metadata"]} if kind.namespaced else obj["metadata"]
            old = self.objects.get((kind.plural, m.get("namespace", "") if kind.namespaced else "", m["name"]))
            if old is None:
                return self.create(kind, {**obj, "metadata": m})
            before = copy.deepcopy(old)
            old["metadata"].update(copy.deepcopy(m))
            old.update({k: copy.deepcopy(v) for k, v in obj.items() if k != "metadata"})
            if old.get("spec") != before.get("spec") and "generation" in old["metadata"]:
                old["metadata"]["generation"] += 1
            self._changed("MODIFIED", kind, old, before)
            return copy.deepcopy(old)

    def get(self, kind, name, namespace="default"):
        """The object, or None."""
        kind = BY_KIND[kind]
        with self.lock:
            obj = self.objects.get((kind.plural, namespace if kind.namespaced else "", name))
            return copy.deepcopy(obj)

    def remove(self, kind, name, namespace="default", **options):
        """As `kubectl delete`; gracePeriodSeconds=0: by force."""
        return self.delete(BY_KIND[kind], namespace, name, options)

    def all(self, kind):
        with self.lock:
            return [copy.deepcopy(o) for (plural, _, _), o in sorted(self.objects.items()) if plural == BY_KIND[kind].plural]

    def wait(self, kind, name, fulfilled, namespace="default", seconds=10):
        """The object, once fulfilled(object or None); TimeoutError with what it is by then."""
        end = time.monotonic() + seconds
        while True:
            obj = self.get(kind, name, namespace)
            if fulfilled(obj):
                return obj
            if time.monotonic() > end:
                raise TimeoutError(f"{kind} {namespace}/{name} did not become as expected within {seconds} s: {obj}")
            time.sleep(0.02)

    # ---- lists and watches ----

    def list(self, kind, namespace, fields, labels):
        with self.lock:
            return [copy.deepcopy(o) for (plural, ns, _), o in sorted(self.objects.items())
                    if plural == kind.plural and namespace in (None, ns) and selects(fields, labels, o)], str(self.version)

    def since(self, kind, namespace, fields, labels, version):
        """[(version, type, object)] after `version`, as a watch with these selectors has them, and the newest version."""
        with self.lock:
            if version < self.compacted:
                raise Refused(410, "Expired", f"too old resource version: {version} ({self.compacted})")
            events = []
            for at, what, plural, obj, before in self.history:
                if at <= version or plural != kind.plural or namespace not in (None, obj["metadata"].get("namespace", "")):
                    continue
                is_in = what != "DELETED" and selects(fields, labels, obj)
                was_in = before is not None and selects(fields, labels, before)
                if is_in:
                    events.append((at, "MODIFIED" if was_in else "ADDED", obj))
                elif was_in:
                    events.append((at, "DELETED", obj))
            return events, self.version
