# SPDX-License-Identifier: Apache-2.0
"""patch_model - a plain model of the four patches and of field managers, and random cases for it.

The model knows nothing of the library: it is written from RFC 6902 and 7386 and the pages of Kubernetes on strategic merge
patch and server-side apply, simple and slow.  Its objects are a few members of a Deployment.
"""
import copy
import json

FAILS = "fails"  # the result of a patch that does not apply


# ---- random values ----

def word(r):
    return r.choice("abc")


def scalar(r):
    return r.choice([0, 1, 2, "", "x", "y", True, False, 1.5, None])


def value(r, depth):
    if depth == 0 or r.random() < 0.4:
        return scalar(r)
    if r.random() < 0.4:
        return [value(r, depth - 1) for _ in range(r.randrange(4))]
    return {word(r) + r.choice(["", "/", "~"]): value(r, depth - 1) for _ in range(r.randrange(4))}


def document(r):
    return {word(r): value(r, 3) for _ in range(r.randrange(5))}


# ---- JSON patch ----

def pointer(r, doc):
    """A path that leads somewhere more often than by chance."""
    parts, at = [], doc
    for _ in range(r.randrange(1, 4)):
        if isinstance(at, dict) and at and r.random() < 0.8:
            parts.append(r.choice(sorted(at)))
            at = at[parts[-1]]
        elif isinstance(at, list) and r.random() < 0.8:
            parts.append(r.choice(["-", "0", "1", "2", "-1", "-2", "x"]))
            at = at[int(parts[-1])] if parts[-1] in ("0", "1", "2") and int(parts[-1]) < len(at) else None
        else:
            parts.append(word(r))
            at = None
    return "".join("/" + p.replace("~", "~0").replace("/", "~1") for p in parts)


def json_patch(r, doc):
    patch = []
    for _ in range(r.randrange(4)):
        op = {"op": r.choice(["add", "remove", "replace", "move", "copy", "test"]), "path": pointer(r, doc)}
        if op["op"] in ("move", "copy"):
            op["from"] = pointer(r, doc)
        if op["op"] in ("add", "replace", "test") and r.random() < 0.95:
            op["value"] = value(r, 2)
        if op["op"] == "test" and r.random() < 0.5:
            found = look(doc, op["path"])
            op["value"] = None if found is FAILS else copy.deepcopy(found)
        patch.append(op)
    return patch


def index(text, n):
    """A number in 0..n-1, negative ones from the end; None: not one."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isdigit():
        return None
    i = int(text)
    i = i + n if i < 0 else i
    return i if 0 <= i < n else None


def holder(doc, path):
    """The object or list that a path's last name is in, and that name."""
    names = [n.replace("~1", "/").replace("~0", "~") for n in path.split("/")[1:]]
    for name in names[:-1]:
        if isinstance(doc, dict):
            doc = doc.get(name)
        else:
            i = index(name, len(doc))
            doc = None if i is None else doc[i]
        if not isinstance(doc, (dict, list)):
            return None, None
    return doc, names[-1]


def look(doc, path):
    at, name = holder(doc, path)
    if at is None:
        return FAILS
    if isinstance(at, dict):
        return at.get(name)
    i = index(name, len(at))
    return FAILS if i is None else at[i]


def put(doc, path, new):
    at, name = holder(doc, path)
    if at is None:
        return False
    if isinstance(at, dict):
        at[name] = new
    elif name == "-":
        at.append(new)
    else:
        i = index(name, len(at) + 1)
        if i is None:
            return False
        at.insert(i, new)
    return True


def take(doc, path):
    at, name = holder(doc, path)
    if isinstance(at, dict) and name in at:
        return at.pop(name)
    i = index(name, len(at)) if isinstance(at, list) else None
    return FAILS if i is None else at.pop(i)


def same(a, b):
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def apply_json(doc, patch):
    doc = copy.deepcopy(doc)
    for op in patch:
        path, new = op["path"], copy.deepcopy(op.get("value"))
        if op["op"] == "add":
            ok = put(doc, path, new)
        elif op["op"] == "remove":
            ok = take(doc, path) is not FAILS
        elif op["op"] == "replace":
            ok = look(doc, path) is not FAILS
            if ok:
                at, name = holder(doc, path)
                at[name if isinstance(at, dict) else index(name, len(at))] = new
        elif op["op"] == "move":
            moved = take(doc, op["from"])
            ok = moved is not FAILS and put(doc, path, moved)
        elif op["op"] == "copy":
            copied = copy.deepcopy(look(doc, op["from"]))
            ok = copied is not FAILS and put(doc, path, copied)
        else:
            found = look(doc, path)
            ok = found is not FAILS and same(found, new)
        if not ok:
            return FAILS
    return doc


# ---- merge patch ----

def merge_patch(r, doc):
    patch = {}
    for name in sorted(set(doc) | {word(r), word(r)}):
        if r.random() < 0.3:
            continue
        inner = doc.get(name)
        patch[name] = merge_patch(r, inner) if isinstance(inner, dict) and r.random() < 0.6 else value(r, 3)
    return patch


def apply_merge(doc, patch):
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    doc = copy.deepcopy(doc) if isinstance(doc, dict) else {}
    for name, new in patch.items():
        if new is None:
            doc.pop(name, None)
        else:
            doc[name] = apply_merge(doc.get(name), new)
    return doc


# ---- strategic merge patch ----

# What the members of the model's pods are: the key of a list, SET for a list of values that merges; others are values.
SET = object()
POD = {"metadata": {"finalizers": SET, "labels": {}},
       "spec": {"containers": ("name", {"env": ("name", {}), "ports": ("containerPort", {}), "args": None}),
                "volumes": ("name", {"emptyDir": {}, "secret": {}}), "tolerations": None, "securityContext": {}}}


def element(r, name):
    e = {"name": name}
    for member, make in (("image", lambda: word(r)), ("args", lambda: [word(r) for _ in range(r.randrange(3))]),
                         ("env", lambda: [{"name": n, "value": word(r)} for n in r.sample("xyz", r.randrange(4))]),
                         ("ports", lambda: [{"containerPort": n} for n in r.sample([80, 81, 82], r.randrange(3))])):
        if r.random() < 0.5:
            e[member] = make()
    return e


def pod(r):
    p = {"metadata": {"labels": {word(r): word(r) for _ in range(r.randrange(3))}}, "spec": {}}
    if r.random() < 0.7:
        p["metadata"]["finalizers"] = r.sample(["f/a", "f/b", "f/c", "f/d"], r.randrange(1, 4))
    p["spec"]["containers"] = [element(r, n) for n in r.sample("abcd", r.randrange(1, 4))]
    if r.random() < 0.6:
        p["spec"]["volumes"] = [{"name": n, r.choice(["emptyDir", "secret"]): {}} for n in r.sample("uvw", r.randrange(1, 4))]
    if r.random() < 0.5:
        p["spec"]["tolerations"] = [{"key": word(r)} for _ in range(r.randrange(3))]
    if r.random() < 0.5:
        p["spec"]["securityContext"] = {"runAsUser": r.randrange(3)}
    return p


def patch_of_list(r, key, live, names):
    """Changes, deletions, sometimes a replacement or an order."""
    chosen = r.sample(names, r.randrange(1, len(names) + 1))
    patch = []
    for name in chosen:
        if r.random() < 0.25:
            patch.append({key: name, "$patch": "delete"})
        elif key == "name" and names[0] in "abcd":
            patch.append(element(r, name))
        elif key == "containerPort":
            patch.append({key: name, "protocol": r.choice(["TCP", "UDP"])})
        else:
            patch.append({key: name, "value": word(r)})
    if r.random() < 0.1:
        patch.insert(r.randrange(len(patch) + 1), {"$patch": "replace"})
    order = None
    if r.random() < 0.3:
        kept = [e[key] for e in patch if "$patch" not in e]
        more = [e[key] for e in live or [] if e[key] not in kept]
        order = kept + more if r.random() < 0.5 else r.sample(more, r.randrange(len(more) + 1)) + kept
        order = [{key: name} for name in order]
    return patch, order


def strategic_patch(r, live):
    p = {"metadata": {}, "spec": {}}
    spec, alive = p["spec"], live["spec"]
    if r.random() < 0.7:
        spec["containers"], order = patch_of_list(r, "name", alive["containers"], list("abcd"))
        if order is not None:
            spec["$setElementOrder/containers"] = order
        for e in spec["containers"]:
            if "env" in e and r.random() < 0.7:
                e["env"], order = patch_of_list(r, "name", [], list("xyz"))
    elif r.random() < 0.5:
        names = [e["name"] for e in alive["containers"]]
        spec["$setElementOrder/containers"] = [{"name": n} for n in r.sample(names, len(names))]
    if r.random() < 0.5 and "volumes" in alive:
        name = r.choice("uvw")
        source = r.choice(["emptyDir", "secret"])
        spec["volumes"] = [{"name": name, source: {}}]
        if r.random() < 0.6:
            spec["volumes"][0]["$retainKeys"] = ["name", source]
    if r.random() < 0.4:
        spec["tolerations"] = [{"key": word(r)} for _ in range(r.randrange(3))]
    if r.random() < 0.4:
        spec["securityContext"] = r.choice([None, {"runAsUser": 7}, {"$patch": "replace", "fsGroup": 1}, {"$patch": "delete"}])
    if r.random() < 0.5:
        p["metadata"]["finalizers"] = r.sample(["f/a", "f/b", "f/c", "f/e"], r.randrange(1, 4))
    if r.random() < 0.3:
        p["metadata"]["$deleteFromPrimitiveList/finalizers"] = r.sample(["f/a", "f/d"], r.randrange(1, 3))
        p["metadata"].pop("finalizers", None)
    if r.random() < 0.5:
        p["metadata"]["labels"] = {word(r): r.choice([None, "1"]) for _ in range(r.randrange(3))}
    return p


def in_order(merged, order, live):
    """Named ones in the order given; each other goes before the first named one that the live list has behind it."""
    named = [x for x in order if x in merged]
    others = [x for x in live if x in merged and x not in named]
    out = []
    while named or others:
        first = bool(others) and (not named or (named[0] in live and live.index(others[0]) < live.index(named[0])))
        out.append((others if first else named).pop(0))
    return out


def cleaned(new):
    """What is new has neither directives nor nulls."""
    if isinstance(new, dict):
        return {k: cleaned(v) for k, v in new.items() if v is not None and not (isinstance(v, dict) and "$patch" in v)}
    if isinstance(new, list):
        return [cleaned(v) for v in new if not (isinstance(v, dict) and "$patch" in v)]
    return new


def strategic_list(live, patch, order, how):
    key, below = how
    if live is None:
        out = cleaned(patch)
        if order is None:
            return out
        by_name = {e[key]: e for e in out}
        return [by_name[n] for n in in_order(list(by_name), [o[key] for o in order], [])]
    changes = [e for e in patch or [] if "$patch" not in e]
    gone = [e[key] for e in patch or [] if e.get("$patch") == "delete"]
    if any(e.get("$patch") == "replace" for e in patch or []):
        live_names, elements = [], {e[key]: e for e in changes}
    else:
        live_names = [e[key] for e in live if e[key] not in gone]
        elements = {e[key]: e for e in live if e[key] not in gone}
        for e in changes:
            elements[e[key]] = strategic(elements[e[key]], e, below) if e[key] in elements else e
    names = list(elements)
    if order is not None:
        added = [e[key] for e in changes if e[key] not in live_names] if live_names or gone else []
        room = len(live) - len(live_names)  # an apiserver deletes and adds in place: so many of the added are in order, too
        names = in_order(names, [o[key] for o in order], live_names + added[:room] if live_names else [e[key] for e in live])
        return [elements[n] for n in names]
    return [elements[n] for n in in_order(names, [e[key] for e in changes], live_names)]


def strategic(live, patch, how):
    patch = dict(patch)
    if "$patch" in patch:
        kind = patch.pop("$patch")
        return patch if kind == "replace" else {}
    out = dict(live)
    keep = patch.pop("$retainKeys", None)
    if keep is not None:
        out = {k: v for k, v in out.items() if k in keep}
    for name in [n for n in patch if n.startswith("$setElementOrder/")]:
        target = name.split("/", 1)[1]
        order = patch.pop(name)
        if target in out or target in patch:
            out[target] = strategic_list(out.get(target), patch.pop(target, None), order, how[target])
    for name, new in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            name = name.split("/", 1)[1]
            if name in out:
                out[name] = [v for v in out[name] if v not in new]
            continue
        rule, old = (how or {}).get(name), out.get(name)
        if new is None:
            out.pop(name, None)
        elif old is None or type(old) is not type(new):
            if not (isinstance(new, dict) and "$patch" in new):
                out[name] = cleaned(new)
        elif isinstance(new, dict):
            out[name] = strategic(old, new, rule)
        elif isinstance(new, list) and rule is SET:
            out[name] = in_order(old + [v for v in new if v not in old], new, old)
        elif isinstance(new, list) and isinstance(rule, tuple):
            out[name] = strategic_list(old, new, None, rule) if old or new else old
        else:
            out[name] = new
    return out


def apply_strategic(live, patch):
    return strategic(copy.deepcopy(live), copy.deepcopy(patch), POD)


# ---- server-side apply ----

def configuration(r):
    c = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    spec = {}
    if r.random() < 0.6:
        c["metadata"]["labels"] = {word(r): r.choice("12") for _ in range(r.randrange(1, 3))}
    if r.random() < 0.4:
        c["metadata"]["finalizers"] = r.sample(["f/a", "f/b", "f/c"], r.randrange(1, 3))
    if r.random() < 0.5:
        c["spec"] = {"replicas": r.randrange(3)}
    if r.random() < 0.5:
        spec["nodeSelector"] = {word(r): r.choice("12")}
    containers = []
    for name in r.sample("ab", r.randrange(3)):
        e = {"name": name}
        if r.random() < 0.6:
            e["image"] = r.choice("12")
        if r.random() < 0.4:
            e["args"] = [r.choice("12")]
        if r.random() < 0.5:
            e["env"] = [{"name": n, "value": r.choice("12")} for n in r.sample("xy", r.randrange(1, 3))]
        containers.append(e)
    if containers:
        spec["containers"] = containers
    if spec:
        c.setdefault("spec", {})["template"] = {"spec": spec}
    return c


LEAVES = {"nodeSelector", "args"}
ELEMENT = "(element)"


def flat(node, path=()):
    """The fields that an object has, each with its value; an element of a list is one itself, null is none."""
    out = {}
    for name, v in node.items():
        at = path + (name,)
        if not path and name in ("apiVersion", "kind") or at == ("metadata", "name") or name == "managedFields" or v is None:
            continue
        if name == "finalizers":
            out.update({at + (x,): ELEMENT for x in v})
        elif isinstance(v, list) and name not in LEAVES:
            for e in v:
                out[at + (e["name"],)] = ELEMENT
                out.update(flat(e, at + (e["name"],)))
        elif isinstance(v, dict) and name not in LEAVES:
            out.update(flat(v, at))
        else:
            out[at] = json.dumps(v, sort_keys=True)
    return out


def flat_fields(fields, path=()):
    """FieldsV1 as a set of the same paths."""
    out = set()
    for name, below in fields.items():
        if name == ".":
            continue
        at = path + ((json.loads(name[2:])["name"],) if name[0] == "k" else (json.loads(name[2:]),) if name[0] == "v" else (name[2:],))
        if not below or "." in below:
            out.add(at)
        out |= flat_fields(below, at)
    return out


class Managers:
    """An object that managers apply to."""

    def __init__(self):
        self.fields, self.owned = {}, {}

    def apply(self, manager, config, force):
        """The conflicts, none if it was done."""
        new, last = flat(config), self.owned.get(manager, set())
        clashes = {(m, p) for m, owned in self.owned.items() if m != manager
                   for p in owned if p in new and new[p] != self.fields.get(p)}
        if clashes and not force:
            return clashes
        for m, p in clashes:
            self.owned[m] = self.owned[m] - {p}
        self.owned[manager] = set(new)
        self.fields.update(new)
        held = set().union(*self.owned.values())
        for p in last - held:
            self.fields.pop(p, None)
        self.owned = {m: o for m, o in self.owned.items() if o}
        return set()
