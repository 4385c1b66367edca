# SPDX-License-Identifier: Apache-2.0
"""Jobs and CronJobs of the manifest folder."""
import json
import os
import re
import time

from coracle import check, container, contains, equal, shell, until
from test_clock import node_with_clock, set_clock
from test_lone_kubectl import Lone

NEVER = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}


def job(name, *containers, pod=None, **spec):
    template = {"spec": {**NEVER, "containers": list(containers) or [container("main", ["true"])], **(pod or {})}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **spec}}


def cron_job(name, schedule, *containers, **spec):
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": schedule, "jobTemplate": {"spec": job(name, *containers)["spec"]}, **spec}}


def path(name):
    return f"/apis/batch/v1/namespaces/default/jobs/{name}"


def jobs(node):
    return {j["metadata"]["name"]: j for j in node.get("/apis/batch/v1/jobs")["items"]}


def conditions(node, name):
    return {c["type"]: c for c in jobs(node).get(name, {}).get("status", {}).get("conditions", []) if c["status"] == "True"}


def ended(node, name, kind, deadline=60):
    until(lambda: kind in conditions(node, name), deadline, f"{name}: {kind}")
    return node.get(path(name))["status"]


def pods(node, name):
    return {p["metadata"]["name"]: p for p in node.pods().values() if p["metadata"]["labels"].get("job-name") == name}


def record(node, kind, name):
    """Its file."""
    for file in os.listdir(f"{node.state_dir}/jobs"):
        with open(f"{node.state_dir}/jobs/{file}", encoding="utf-8") as f:
            text = json.load(f)
        if (text["kind"], text.get("name")) == (kind, name):
            return f"{node.state_dir}/jobs/{file}", text
    return None, None


# ---- Jobs ----

def test_indexed(t):
    """An Indexed Job gives each pod its index, its name and its variable, and says which have succeeded"""
    node = t.node()
    node.import_image()
    say = container("main", shell("echo index $JOB_COMPLETION_INDEX of $(hostname)"))
    node.put("fan.yaml", job("fan", say, completionMode="Indexed", completions=3, parallelism=2))
    status = ended(node, "fan", "Complete")
    equal((status["succeeded"], status["completedIndexes"], status["ready"], status["terminating"]), (3, "0-2", 0, 0), "the status")
    mine = pods(node, "fan")
    equal(sorted(p["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for p in mine.values()), ["0", "1", "2"], "labels")
    for name, one in mine.items():
        index = one["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        equal(one["spec"]["hostname"], f"fan-{index}", "hostname")
        contains(node.logs(name), f"index {index} of fan-{index}")
    selector = node.get(path("fan"))["spec"]["selector"]["matchLabels"]
    check(all(selector.items() <= p["metadata"]["labels"].items() for p in mine.values()), lambda: selector)
    done = conditions(node, "fan")
    equal((done["Complete"]["reason"], done["SuccessCriteriaMet"]["message"]),
          ("CompletionsReached", "Reached expected number of succeeded pods"), "conditions")


def test_index_failures(t):
    """With a limit for each index, a Job runs the others on and then says which have failed"""
    node = t.node()
    node.import_image()
    odd = container("main", shell("exit $((JOB_COMPLETION_INDEX % 2))"))
    node.put("odd.yaml", job("odd", odd, completionMode="Indexed", completions=4, parallelism=4, backoffLimitPerIndex=0))
    status = ended(node, "odd", "Failed")
    equal((status["completedIndexes"], status["failedIndexes"], status["failed"]), ("0,2", "1,3", 2), "the status")
    equal(conditions(node, "odd")["Failed"]["reason"], "FailedIndexes", "reason")
    equal(node.get(path("odd"))["spec"]["backoffLimit"], 2 ** 31 - 1, "the limit of the whole")

    node.put("max.yaml", job("max", container("main", shell("[ $JOB_COMPLETION_INDEX != 0 ] || exit 1; sleep 60")), completionMode="Indexed",
                             completions=2, parallelism=2, backoffLimitPerIndex=0, maxFailedIndexes=0))
    ended(node, "max", "Failed")
    equal(conditions(node, "max")["Failed"]["reason"], "MaxFailedIndexesExceeded", "reason")


def test_policies(t):
    """Failure and success policies decide by exit codes and indexes"""
    node = t.node()
    node.import_image()
    fail = {"rules": [{"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}}]}
    ignore = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [7]}}]}
    success = {"rules": [{"succeededIndexes": "1", "succeededCount": 1}]}
    node.put("fail.yaml", job("fail", container("main", shell("exit 42")), backoffLimit=6, podFailurePolicy=fail))
    node.put("ignore.yaml", job("ignore", container("main", shell("exit 3")), backoffLimit=0, podFailurePolicy=ignore))
    node.put("leader.yaml", job("leader", container("main", shell("[ $JOB_COMPLETION_INDEX = 1 ] || sleep 60")),
                                completionMode="Indexed", completions=2, parallelism=2, successPolicy=success))
    ended(node, "fail", "Failed")
    one = conditions(node, "fail")["Failed"]
    equal(one["reason"], "PodFailurePolicy", "reason")
    equal(one["message"], "Container main for pod default/fail-0 failed with exit code 42 matching FailJob rule at index 0", "message")
    ended(node, "leader", "Complete")
    one = conditions(node, "leader")["SuccessCriteriaMet"]
    equal((one["reason"], one["message"]), ("SuccessPolicy", "Matched rules at index 0"), "success")
    node.watch(lambda p: sum(q["status"]["phase"] == "Failed" for q in pods(node, "ignore").values()) >= 1 or None, what="an ignored failure")
    until(lambda: len(pods(node, "ignore")) == 2, 30, "the pod after an ignored failure")
    equal(node.get(path("ignore"))["status"].get("failed", 0), 0, "failures that count")


def test_deadline_and_suspension(t):
    """A Job ends at its deadline; a suspended one has no pods until it is resumed"""
    node = t.node()
    node.import_image()
    sleep = container("main", shell("sleep 600"))
    node.put("late.yaml", job("late", sleep, activeDeadlineSeconds=3))
    node.put("rest.yaml", job("rest", container("main", ["true"]), suspend=True))
    until(lambda: "Suspended" in conditions(node, "rest"), 20, "Suspended")
    ended(node, "late", "Failed", 30)
    one = conditions(node, "late")["Failed"]
    equal((one["reason"], one["message"]), ("DeadlineExceeded", "Job was active longer than specified deadline"), "the deadline")
    equal(pods(node, "late"), {}, "pods of a Job that failed while they ran")
    equal(pods(node, "rest"), {}, "pods of a suspended Job")
    node.put("rest.yaml", job("rest", container("main", ["true"])))
    ended(node, "rest", "Complete")
    # What is over stays over, even without its pods.
    node.kill()
    node.start()
    equal(node.get(path("late"))["status"]["conditions"][-1]["type"], "Failed", "after a kill")
    equal(len(pods(node, "rest")), 1, "pods")


def test_ttl(t):
    """ttlSecondsAfterFinished removes the Job from its file, and keeps the rest of the file"""
    node = t.node()
    node.import_image()
    node.put("alone.yaml", job("alone", ttlSecondsAfterFinished=0))
    text = "".join(json.dumps(o) + "\n---\n" for o in (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stays"}, "data": {"a": "b"}}, job("beside", ttlSecondsAfterFinished=1)))
    with open(f"{node.manifests}/.two", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(f"{node.manifests}/.two", f"{node.manifests}/two.yaml")
    until(lambda: not os.path.exists(f"{node.manifests}/alone.yaml"), 60, "the end of the file")
    until(lambda: not jobs(node), 60, "the end of both Jobs")
    node.watch(lambda p: not p or None, what="the end of their pods")
    with open(f"{node.manifests}/two.yaml", encoding="utf-8") as f:
        left = f.read()
    check("stays" in left and "beside" not in left, lambda: left)
    equal([f for f in os.listdir(f"{node.state_dir}/jobs") if f.endswith(".json")], [], "records")


# ---- CronJobs ----

def to_second(t, second):
    """Sets the daemon's clock to this second of the minute."""
    set_clock(t, (second - int(time.time())) % 60)


def test_cron_job(t):
    """a CronJob creates Jobs on time, records them across a kill, and keeps the configured number"""
    node = node_with_clock(t)
    to_second(t, 55)
    node.put("tick.yaml", cron_job("tick", "* * * * *", successfulJobsHistoryLimit=1))
    until(lambda: jobs(node), 30, "the first Job")
    (first,) = jobs(node).values()
    name = first["metadata"]["name"]
    check(re.fullmatch(r"tick-\d{8}", name), lambda: name)
    equal(first["metadata"]["ownerReferences"][0]["kind"], "CronJob", "its owner")
    check(first["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"].endswith(":00Z"), lambda: first)
    ended(node, name, "Complete")
    cron = "/apis/batch/v1/namespaces/default/cronjobs/tick"
    until(lambda: "lastSuccessfulTime" in node.get(cron)["status"], 20, "lastSuccessfulTime")
    contains(node.cli("get", "cronjobs").stdout, "* * * * *")
    node.kill()
    node.start()
    equal(list(jobs(node)), [name], "Jobs after a kill")
    equal(len(pods(node, name)), 1, "pods after a kill")

    # A year passes without an agent: one Job is made up for, and the older one goes.
    node.stop()
    set_clock(t, 366 * 86400 + (30 - int(time.time())) % 60)
    node.start()
    until(lambda: list(jobs(node)) != [name], 30, "a new Job")
    (later,) = until(lambda: [n for n in jobs(node) if n != name], 10, "its name")
    ended(node, later, "Complete")
    until(lambda: list(jobs(node)) == [later], 20, "the end of the old Job")
    node.watch(lambda p: all(k.startswith(later) for _, k in p) or None, what="the end of its pods")
    contains(node.log(), "missed more than 100 start times")

    # The clock goes back by a year: nothing is made at once, and the file's end is the end of all.
    node.stop()
    set_clock(t, (20 - int(time.time())) % 60)
    node.start()
    time.sleep(2)
    equal(list(jobs(node)), [later], "Jobs with the clock set back")
    node.remove("tick.yaml")
    node.watch(lambda p: not p or None, what="the end of all pods")
    until(lambda: not jobs(node), 20, "the end of all Jobs")
    equal([f for f in os.listdir(f"{node.state_dir}/jobs") if f.endswith(".json")], [], "records")


def test_concurrency(t):
    """Forbid waits for the running Job, Replace ends it, and a suspended CronJob creates none"""
    node = t.node()
    node.import_image()
    sleep = container("main", shell("sleep 600"))
    node.put("forbid.yaml", cron_job("forbid", "* * * * *", sleep, concurrencyPolicy="Forbid"))
    node.put("replace.yaml", cron_job("replace", "* * * * *", sleep, concurrencyPolicy="Replace", timeZone="Etc/UTC"))
    node.put("rest.yaml", cron_job("rest", "* * * * *", sleep, suspend=True))
    node.put("no.yaml", cron_job("no", "* * * * *", timeZone="Mars/Olympus"))
    until(lambda: record(node, "CronJob", "rest")[0], 20, "records")
    node.wait_log("unknown time zone Mars/Olympus")

    def back(minutes):
        """The last moment was so long ago."""
        node.stop()
        for name in ("forbid", "replace", "rest"):
            file, text = record(node, "CronJob", name)
            text["since"] = int(time.time()) - minutes * 60
            with open(file, "w", encoding="utf-8") as f:
                json.dump(text, f)
        node.start()

    back(5)
    until(lambda: len(jobs(node)) == 2, 30, "a Job of each")
    first = sorted(jobs(node))
    if int(time.time()) % 60 > 40:
        time.sleep(61 - int(time.time()) % 60)
    until(lambda: sorted(jobs(node)) != first, 70, "the next minute")
    until(lambda: len(jobs(node)) == 2, 20, "two Jobs")
    second = sorted(jobs(node))
    equal(second[0], first[0], "the one that forbids")
    check(second[1] != first[1], lambda: second)
    contains(node.log(), "concurrencyPolicy is Forbid")
    equal(len(node.get("/apis/batch/v1/namespaces/default/cronjobs/forbid")["status"]["active"]), 1, "active")


# ---- kubectl ----

def test_kubectl(t):
    """kubectl waits for a Job, reads its logs, describes it, suspends a CronJob and deletes the Job"""
    k = Lone(t)
    node = k.node
    node.put("sum.yaml", job("sum", container("main", shell("echo the sum"))))
    node.put("daily.yaml", cron_job("daily", "0 3 * * *", timeZone="Etc/UTC"))
    until(lambda: "sum" in jobs(node) and k.json("get", "cronjobs.v1.batch")["items"], 30, "both")
    k.kubectl("wait", "--for=condition=complete", "--timeout=60s", "job/sum", timeout=70)
    contains(k.kubectl("logs", "job/sum").stdout, "the sum")
    contains(k.kubectl("get", "jobs").stdout, "1/1")
    described = k.kubectl("describe", "job", "sum").stdout
    contains(described, "1 Succeeded")
    shown = k.json("get", "job", "sum")
    uid = shown["metadata"]["uid"]
    equal(shown["spec"]["selector"], {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}, "its selector")
    equal(shown["spec"]["template"]["metadata"]["labels"]["job-name"], "sum", "labels of its template")
    for word in ("SuccessfulCreate", "Created pod: sum-", "Completed", "job-controller"):
        contains(described, word)
    contains(node.cli("events", "--for", "job/sum").stdout, "Job completed", "coracle events")
    contains(k.kubectl("get", "cronjobs").stdout, "0 3 * * *")

    k.kubectl("patch", "cronjobs.v1.batch", "daily", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    until(lambda: "True" in k.kubectl("get", "cronjobs").stdout, 20, "the suspension")
    k.kubectl("label", "job", "sum", "kept=yes")
    with open(f"{node.manifests}/sum.yaml", encoding="utf-8") as f:
        text = f.read()
    check("kept" in text and "controller-uid" not in text, lambda: text)
    equal(len(pods(node, "sum")), 1, "pods after a label")
    k.kubectl("delete", "job", "sum")
    until(lambda: not os.path.exists(f"{node.manifests}/sum.yaml") and not pods(node, "sum"), 30, "the end of the Job")
