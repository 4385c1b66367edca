# SPDX-License-Identifier: Apache-2.0
"""Patches and applies (agent/api/patch): random ones against a plain model (patch_model.py), and recorded ones of a kube-apiserver.

PATCH_ROUNDS is how many of each type (500), PATCH_SEED the chance; CORACLE_GOLDEN names a folder with recordings."""
import json
import os
import random

import patch_model
import patch_peer
from coracle import Failed, Skip, check

CODES = {"json": 422, "merge": 400, "strategic": 500}


def chance():
    seed = int(os.environ.get("PATCH_SEED") or random.randrange(1 << 30))
    print(f"PATCH_SEED={seed}")
    return random.Random(seed), int(os.environ.get("PATCH_ROUNDS") or 500)


def differs(what, live, patch, ours, model):
    raise Failed(f"{what}:\nlive   {json.dumps(live)}\npatch  {json.dumps(patch)}\nours   {json.dumps(ours)}\nmodel  {json.dumps(model)}")


def random_patches(t, kind, make_live, make_patch, model):
    r, rounds = chance()
    peer = patch_peer.Peer(t.build)
    for _ in range(rounds):
        live = make_live(r)
        patch = make_patch(r, live)
        expected = model(live, patch)
        answer = peer.ask(do=kind, apiVersion="v1", kind="Pod", live=live, patch=patch)
        if expected is patch_model.FAILS:
            if answer.get("status", {}).get("code") != CODES[kind]:
                differs(kind, live, patch, answer, expected)
        elif not patch_model.same(answer.get("result"), expected):
            differs(kind, live, patch, answer, expected)
    check(peer.close() == 0, "patch_lines ended well")


def test_json_patches(t):
    """random JSON patches give what the model gives"""
    random_patches(t, "json", patch_model.document, patch_model.json_patch, patch_model.apply_json)


def test_merge_patches(t):
    """random merge patches give what the model gives"""
    random_patches(t, "merge", patch_model.document, patch_model.merge_patch, patch_model.apply_merge)


def test_strategic_patches(t):
    """random strategic merge patches give what the model gives"""
    random_patches(t, "strategic", patch_model.pod, patch_model.strategic_patch, patch_model.apply_strategic)


def compare_managers(live, state, asked):
    managed = {e["manager"]: patch_model.flat_fields(e["fieldsV1"]) for e in live["metadata"].get("managedFields", [])}
    if patch_model.flat(live) != state.fields or managed != state.owned:
        differs("apply", live, asked, {m: sorted(map(str, f)) for m, f in managed.items()},
                [sorted(map(str, state.fields.items())), {m: sorted(map(str, f)) for m, f in state.owned.items()}])


def test_applies(t):
    """random applies of three managers give the model's objects, owners and conflicts"""
    r, rounds = chance()
    peer = patch_peer.Peer(t.build)
    live, state = None, patch_model.Managers()
    for n in range(rounds):
        if n % 12 == 0:
            live, state = None, patch_model.Managers()
        asked = {"manager": r.choice(["m1", "m2", "m3"]), "force": r.random() < 0.3, "patch": patch_model.configuration(r)}
        before = live
        answer = peer.ask(do="apply", apiVersion="apps/v1", kind="Deployment", live=live, now=f"2030-01-01T00:00:{n % 60:02}Z", **asked)
        conflicts = state.apply(asked["manager"], asked["patch"], asked["force"])
        if conflicts:
            status = answer.get("status", {})
            if status.get("code") != 409 or len(status["details"]["causes"]) != len(conflicts):
                differs("apply", before, asked, answer, sorted(map(str, conflicts)))
            continue
        if "result" not in answer:
            differs("apply", before, asked, answer, "no conflict")
        live = answer["result"]
        compare_managers(live, state, asked)
    check(peer.close() == 0, "patch_lines ended well")


for _test in (test_json_patches, test_merge_patches, test_strategic_patches, test_applies):
    _test.seconds = int(os.environ.get("PATCH_ROUNDS") or 500) / 20


# ---- recorded ----

def plain(o, managers):
    o = json.loads(json.dumps(o))
    meta = o.get("metadata", {})
    for name in ("resourceVersion", "uid", "creationTimestamp"):
        meta.pop(name, None)
    if not managers:
        meta.pop("managedFields", None)
    for e in meta.get("managedFields", []):
        if "time" in e:
            e["time"] = "time"
    meta.get("managedFields", []).sort(key=lambda e: json.dumps(e, sort_keys=True))
    return o


def verdict(case, answer):
    """passes; words: code and reason are right, the text shows the object in another order; later: a rule of the
    kind's own validation, which is not this library's; differs."""
    if case["code"] in (200, 201):
        managers = "managedFields" in json.dumps(case["result"])
        expected = plain(patch_peer.without_numbers(case["result"]), managers)
        return "passes" if "result" in answer and plain(answer["result"], managers) == expected else "differs"
    expected = patch_peer.without_numbers(case.get("status"))
    if answer.get("status") == expected:
        return "passes"
    ours = answer.get("status") or {}
    if (ours.get("code"), ours.get("reason")) == (case["code"], (expected or {}).get("reason")):
        return "words"
    return "later" if case["code"] in (403, 404, 422) and "result" in answer else "differs"


def test_recorded_cases(t):
    """recorded patches, applies and updates of a kube-apiserver give its answers"""
    if patch_peer.recordings() is None:
        raise Skip("no recordings of an apiserver: CORACLE_GOLDEN names no folder with them")
    peer = patch_peer.Peer(t.build)
    differing = []
    for folder in patch_peer.FOLDERS:
        counts = {}
        for case in patch_peer.cases(folder):
            write = patch_peer.write_of(case, folder)
            found = verdict(case, peer.ask(**write)) if write is not None else "outside"
            counts[found] = counts.get(found, 0) + 1
            if found not in ("passes", "outside"):
                print(f"{folder}/{case['name']}: {found}")
            if found == "differs" and case["name"] not in ARGUED:
                differing.append(case["name"])
        print(f"COUNT {folder} " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    check(peer.close() == 0, "patch_lines ended well")
    if differing:
        raise Failed(f"these differ: {' '.join(differing)}")


ARGUED = {
    # The tolerations that an admission plugin of the apiserver adds to pods; a node without one adds none.
    "pod-tolerations-replaced", "pod-toleration-appended-atomic-refused", "create-pod", "pod-tolerations-owned-by-admission",
    # Events are written by the node alone, and in one version.
    "managers-in-different-apiversions-events",
    # The apiserver panics; this answers 400.
    "tolerations-set-element-order",
    # Another writer came in between, which the recording does not show.
    "cm-stale-rv",
    # YAML is read before, by the server; and JSON's \u0000 does not reach this library.
    "duplicate-key-strict", "fieldmanager-bad-character",
}
