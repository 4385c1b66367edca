# SPDX-License-Identifier: Apache-2.0
"""api_patch - strategic merge patches and JSON merge patches, as the apiserver applies them to what a node writes."""
import copy

# Lists that are merged by a key, by the last member of their path; all others are replaced. (patchStrategy and
# patchMergeKey of the types of core/v1.)
MERGE_KEYS = {
    "conditions": "type", "addresses": "type", "containers": "name", "initContainers": "name", "ephemeralContainers": "name",
    "env": "name", "volumes": "name", "volumeMounts": "mountPath", "volumeDevices": "devicePath", "ports": "containerPort",
    "podIPs": "ip", "hostIPs": "ip", "hostAliases": "ip", "imagePullSecrets": "name", "ownerReferences": "uid",
    "resourceClaims": "name", "resourceClaimStatuses": "name", "secrets": "name",
}
MERGE_PRIMITIVES = {"finalizers", "podCIDRs"}


def merge(old, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def _in_order(items, order, key):
    """Elements that the order names take its places; others keep theirs, before what followed them."""
    wanted = [o[key] if isinstance(o, dict) else o for o in order]
    rank = {name: i for i, name in enumerate(wanted)}
    named = sorted((i for i in items if (i.get(key) if isinstance(i, dict) else i) in rank),
                   key=lambda i: rank[i.get(key) if isinstance(i, dict) else i])
    others = [i for i in items if (i.get(key) if isinstance(i, dict) else i) not in rank]
    return named + others


def _merge_list(name, old, patch):
    old = list(old or [])
    if any(isinstance(p, dict) and p.get("$patch") == "replace" for p in patch):
        return [copy.deepcopy(p) for p in patch if not (isinstance(p, dict) and "$patch" in p)]
    if name in MERGE_PRIMITIVES:
        return old + [p for p in patch if p not in old]
    key = MERGE_KEYS.get(name)
    if key is None or (patch and not isinstance(patch[0], dict)):
        return copy.deepcopy(patch)
    for element in patch:
        if key not in element:
            raise ValueError(f"map: {element} does not contain declared merge key: {key}")
        at = next((i for i, o in enumerate(old) if o.get(key) == element[key]), None)
        if element.get("$patch") == "delete":
            if at is not None:
                del old[at]
        elif at is None:
            old.append(strategic({}, element))
        else:
            old[at] = strategic(old[at], element)
    return old


def strategic(old, patch):
    """A strategic merge patch with $patch, $setElementOrder, $deleteFromPrimitiveList and $retainKeys. ValueError: it is wrong."""
    if patch.get("$patch") == "replace":
        return {k: copy.deepcopy(v) for k, v in patch.items() if k != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    result = dict(old)
    if "$retainKeys" in patch:
        result = {k: v for k, v in result.items() if k in patch["$retainKeys"]}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.split("/", 1)[1]
            result[name] = [x for x in result.get(name, []) if x not in value]
        if key.startswith("$"):
            continue
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = strategic(result.get(key) if isinstance(result.get(key), dict) else {}, value)
        elif isinstance(value, list):
            result[key] = _merge_list(key, result.get(key), value)
        else:
            result[key] = value
    for key, value in patch.items():
        if key.startswith("$setElementOrder/"):
            name = key.split("/", 1)[1]
            if isinstance(result.get(name), list):
                result[name] = _in_order(result[name], value, MERGE_KEYS.get(name))
    return result
