/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kube-apiserver 1.36 refuses of workloads, claims and Services, in its words. Each expectation is one
 * that it gave for this object.
 */
#include "helper.h"

#include "agent/api/serve/words.h"
#include "base/codec/json.h"

/* The causes of an object, as "field: message". */
static json_t *causes_of(const char *text)
{
    json_auto_t *object = json_loads(text, 0, NULL);
    json_t *causes = json_array();
    struct decoded d;

    assert_non_null(object);
    decode(&d, text);
    for (size_t i = 0; i < d.problems.n; i++)
        words_add(causes, object, d.problems.v[i].field, d.problems.v[i].message);
    decoded_done(&d);
    return causes;
}

static bool has_cause(const json_t *causes, const char *wanted)
{
    const json_t *one;
    size_t i;

    json_array_foreach (causes, i, one) {
        str_auto text = str_printf("%s: %s", json_str(one, "field"), json_str(one, "message"));

        if (strcmp(text, wanted) == 0)
            return true;
    }
    return false;
}

static void says_(const char *text, const char *const *wanted, int line)
{
    json_auto_t *causes = causes_of(text);
    bool ok = true;
    size_t n = 0;

    for (; wanted[n] != NULL; n++)
        ok = has_cause(causes, wanted[n]) && ok;
    if (ok && json_array_size(causes) == n)
        return;
    for (size_t i = 0; i < json_array_size(causes); i++)
        print_message("got %s: %s\n", json_str(json_array_get(causes, i), "field"),
                      json_str(json_array_get(causes, i), "message"));
    fail_msg("line %d: %s", line, text);
}

#define OBJECT(version, kind, spec)                                                                          \
    "{\"apiVersion\":\"" version "\",\"kind\":\"" kind "\",\"metadata\":{\"name\":\"w\"},\"spec\":{" spec "}}"
#define POD(rest) "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"a:1\"}]" rest "}"
#define TEMPLATE(rest) "\"template\":{\"metadata\":{\"labels\":{\"app\":\"x\"}}," POD(rest) "}"
#define SELECTOR "\"selector\":{\"matchLabels\":{\"app\":\"x\"}}"
#define WORK(kind, rest) OBJECT("apps/v1", kind, SELECTOR "," TEMPLATE("") rest)
#define JOB(rest) OBJECT("batch/v1", "Job", TEMPLATE(",\"restartPolicy\":\"Never\"") rest)
#define INDEXED(rest) JOB(",\"completionMode\":\"Indexed\",\"completions\":3" rest)
#define CRON(rest)                                                                                           \
    OBJECT("batch/v1", "CronJob",                                                                            \
           "\"jobTemplate\":{\"spec\":{" TEMPLATE(",\"restartPolicy\":\"Never\"") "}}" rest)
#define CLAIM(rest) OBJECT("v1", "PersistentVolumeClaim", rest)
/* The object of this text has just these causes; none: it is accepted. */
#define SAYS(text, ...) says_(text, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL }, __LINE__)

#define LONG64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define NO_MATCH "`selector` does not match template `labels`"
#define NAME_RULE                                                                                            \
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "     \
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define DOMAIN_RULE                                                                                          \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "    \
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "   \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

static void selectors(void **state)
{
    (void)state;
    SAYS(OBJECT("apps/v1", "Deployment", ""), "spec.selector: Required value",
         "spec.template.metadata.labels: Invalid value: null: " NO_MATCH,
         "spec.template.spec.containers: Required value");
    SAYS(OBJECT("apps/v1", "ReplicaSet", "\"selector\":{}," TEMPLATE("")),
         "spec.selector: Invalid value: {}: empty selector is invalid for deployment");
    SAYS(
        OBJECT("apps/v1", "StatefulSet",
               "\"selector\":{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\"}]}," TEMPLATE("")),
        "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' "
        "or 'NotIn'",
        "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\"}]}: "
        "invalid label selector");
    SAYS(OBJECT("apps/v1", "DaemonSet",
                "\"selector\":{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Foo\"}]}," TEMPLATE("")),
         "spec.selector.matchExpressions[0].operator: Invalid value: \"Foo\": not a valid selector operator",
         "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Foo\"}]}: "
         "invalid label selector");
    SAYS(OBJECT("apps/v1", "Deployment", "\"selector\":{\"matchLabels\":{\"a b\":\"c\"}}," TEMPLATE("")),
         "spec.selector.matchLabels: Invalid value: \"a b\": " NAME_RULE,
         "spec.selector: Invalid value: {\"matchLabels\":{\"a b\":\"c\"}}: invalid label selector");
    SAYS(OBJECT("apps/v1", "Deployment",
                SELECTOR ",\"template\":{\"metadata\":{\"labels\":{\"app\":\"" LONG64 "\"}}," POD("") "}"),
         "spec.template.labels: Invalid value: \"" LONG64 "\": must be no more than 63 bytes",
         "spec.template.metadata.labels: Invalid value: {\"app\":\"" LONG64 "\"}: " NO_MATCH);
    SAYS(OBJECT("apps/v1", "Deployment",
                "\"selector\":{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":[\"x\","
                "\"y\"]}]}," TEMPLATE("")));
}

/* A key that is missing was once followed. */
static void a_selector_without_a_key(void **state)
{
    json_auto_t *causes =
        causes_of(OBJECT("apps/v1", "Deployment",
                         "\"selector\":{\"matchExpressions\":[{\"operator\":\"Exists\"}]}," TEMPLATE("")));

    (void)state;
    assert_true(json_array_size(causes) > 0);
}

static void updates(void **state)
{
#define DAEMON(rolling) WORK("DaemonSet", ",\"updateStrategy\":{\"rollingUpdate\":{" rolling "}}")
    (void)state;
    SAYS(
        DAEMON("\"maxUnavailable\":1,\"maxSurge\":1"),
        "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is "
        "non-zero");
    SAYS(DAEMON("\"maxSurge\":\"30%\""),
         "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: \"30%\": may not be set when "
         "maxUnavailable is non-zero");
    SAYS(DAEMON("\"maxUnavailable\":\"0%\",\"maxSurge\":0"),
         "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0");
    SAYS(
        DAEMON("\"maxUnavailable\":\"150%\""),
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"150%\": must not be greater than "
        "100%");
    SAYS(DAEMON("\"maxUnavailable\":0,\"maxSurge\":1"));
    SAYS(
        WORK("Deployment", ",\"strategy\":{\"rollingUpdate\":{\"maxUnavailable\":\"120%\","
                           "\"maxSurge\":\"120%\"}}"),
        "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"120%\": must not be greater than 100%");
    SAYS(WORK("Deployment", ",\"strategy\":{\"type\":\"Foo\"}"),
         "spec.strategy: Unsupported value: {\"Type\":\"Foo\",\"RollingUpdate\":null}: supported values: "
         "\"Recreate\", \"RollingUpdate\"");
    SAYS(WORK("Deployment", ",\"strategy\":{\"type\":\"Recreate\",\"rollingUpdate\":{}}"),
         "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'");
    SAYS(WORK("Deployment", ",\"progressDeadlineSeconds\":5,\"minReadySeconds\":5"),
         "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds");
    SAYS(OBJECT("apps/v1", "Deployment", SELECTOR "," TEMPLATE(",\"activeDeadlineSeconds\":5")),
         "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not "
         "Supported");
    SAYS(WORK("StatefulSet", ",\"updateStrategy\":{\"rollingUpdate\":{\"maxUnavailable\":0}}"));
    SAYS(WORK("StatefulSet", ",\"updateStrategy\":{\"type\":\"Foo\"}"),
         "spec.updateStrategy: Invalid value: {\"Type\":\"Foo\",\"RollingUpdate\":null}: must be "
         "'RollingUpdate' or 'OnDelete'");
    SAYS(WORK("StatefulSet", ",\"podManagementPolicy\":\"Foo\""),
         "spec.podManagementPolicy: Invalid value: \"Foo\": must be 'OrderedReady' or 'Parallel'");
#undef DAEMON
}

static void stateful_sets(void **state)
{
#define SET(claim)                                                                                           \
    WORK("StatefulSet", ",\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"d\"},\"spec\":{" claim "}}]")
    (void)state;
    SAYS(WORK("StatefulSet", ",\"serviceName\":\"a.b\""),
         "spec.serviceName: Invalid value: \"a.b\": must not contain dots");
    SAYS(WORK("StatefulSet", ",\"serviceName\":\"" LONG64 "\""),
         "spec.serviceName: Invalid value: \"" LONG64 "\": must be no more than 63 characters");
    SAYS(SET(""),
         "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
         "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value");
    SAYS(SET("\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"0\"}}"),
         "spec.volumeClaimTemplates[0].spec.resources[storage]: Invalid value: \"0\": must be greater than "
         "zero");
    SAYS(SET("\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1\"}}"));
#undef SET
}

static void claims(void **state)
{
    (void)state;
    SAYS(CLAIM("\"accessModes\":[\"Foo\"],\"resources\":{\"requests\":{\"storage\":\"1\"}}"),
         "spec.accessModes: Unsupported value: \"Foo\": supported values: \"ReadOnlyMany\", "
         "\"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"");
    SAYS(CLAIM("\"accessModes\":[\"ReadWriteOncePod\",\"ReadWriteOnce\"],\"resources\":{\"requests\":{"
               "\"storage\":\"1\"}}"),
         "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes");
    SAYS(CLAIM("\"accessModes\":[\"ReadWriteOnce\"],\"storageClassName\":\"Bad_\",\"resources\":{"
               "\"requests\":{\"storage\":\"-1\"}}"),
         "spec.resources[storage]: Invalid value: \"-1\": must be greater than zero",
         "spec.storageClassName: Invalid value: \"Bad_\": " DOMAIN_RULE);
}

static void jobs(void **state)
{
    (void)state;
    SAYS(OBJECT("batch/v1", "Job", ""), "spec.template.spec.containers: Required value",
         "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"");
    SAYS(JOB(",\"completionMode\":\"Indexed\""),
         "spec.completions: Required value: when completion mode is Indexed");
    SAYS(JOB(",\"backoffLimitPerIndex\":2"),
         "spec.backoffLimitPerIndex: Invalid value: 2: requires indexed completion mode");
    SAYS(INDEXED(",\"parallelism\":200000"), "spec.parallelism: Invalid value: 200000: must be less than or "
                                             "equal to 100000 when completion mode is "
                                             "Indexed");
    SAYS(INDEXED(",\"maxFailedIndexes\":1"),
         "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified");
    SAYS(JOB(",\"selector\":{\"matchLabels\":{\"app\":\"x\"}}"),
         "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"x\"}}: `selector` not auto-generated");
    SAYS(JOB(",\"manualSelector\":true"), "spec.selector: Required value",
         "spec.template.metadata.labels: Invalid value: {\"app\":\"x\"}: " NO_MATCH);
    SAYS(JOB(",\"manualSelector\":true,\"selector\":{\"matchLabels\":{\"app\":\"x\"}}"));
    SAYS(JOB(",\"managedBy\":\"bad\""),
         "spec.managedBy: Invalid value: \"bad\": must be a domain-prefixed path (such as \"acme.io/foo\")");
    SAYS(JOB(",\"managedBy\":\"A.B/c\""), "spec.managedBy: Invalid value: \"A.B\": " DOMAIN_RULE);
    SAYS(JOB(",\"managedBy\":\"\""), "spec.managedBy: Required value");
    SAYS("{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"" LONG64
         "\"},\"spec\":{" TEMPLATE(",\"restartPolicy\":\"Never\"") "}}",
         "metadata.labels: Invalid value: \"" LONG64 "\": must be no more than 63 bytes",
         "spec.template.labels: Invalid value: \"" LONG64 "\": must be no more than 63 bytes");
}

static void policies_of_jobs(void **state)
{
#define RULE(rule) JOB(",\"podFailurePolicy\":{\"rules\":[" rule "]}")
#define EXITS(values) "{\"action\":\"Count\",\"onExitCodes\":{\"operator\":\"In\",\"values\":[" values "]}}"
#define AT "spec.podFailurePolicy.rules[0]"
    (void)state;
    SAYS(JOB(",\"podFailurePolicy\":{}"));
    SAYS(RULE("{}"),
         AT ".action: Required value: valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]",
         AT ": Invalid value: specifying one of OnExitCodes and OnPodConditions is required");
    SAYS(RULE(EXITS("0,1")),
         AT ".onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator");
    SAYS(RULE(EXITS("1,2,1")), AT ".onExitCodes.values[2]: Duplicate value: 1",
         AT ".onExitCodes.values: Invalid value: [1,2,1]: must be ordered");
    SAYS(RULE("{\"action\":\"FailIndex\",\"onExitCodes\":{\"containerName\":\"z\",\"operator\":\"In\","
              "\"values\":[1]}}"),
         AT ".action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be set",
         AT ".onExitCodes.containerName: Invalid value: \"z\": must be one of the container or initContainer "
            "names in the pod template");
    SAYS(JOB(",\"podReplacementPolicy\":\"TerminatingOrFailed\",\"podFailurePolicy\":{\"rules\":[" EXITS(
             "1") "]}"),
         "spec.podReplacementPolicy: Unsupported value: \"TerminatingOrFailed\": supported values: "
         "\"Failed\"");
    SAYS(OBJECT("batch/v1", "Job",
                TEMPLATE(",\"restartPolicy\":\"OnFailure\"") ",\"podFailurePolicy\":{\"rules\":[" EXITS(
                    "1") "]}"),
         "spec.template.spec.restartPolicy: Invalid value: \"OnFailure\": only \"Never\" is supported when "
         "podFailurePolicy is specified");
#undef AT
#define SUCCESS(rules) INDEXED(",\"successPolicy\":{\"rules\":[" rules "]}")
#define AT "spec.successPolicy.rules"
    SAYS(SUCCESS(""), AT ": Required value: at least one rules must be specified when the successPolicy is "
                         "specified");
    SAYS(SUCCESS("{\"succeededIndexes\":\"0-9\"},{\"succeededIndexes\":\"2-1\"},{}"),
         AT "[0].succeededIndexes: Invalid value: \"0-9\": error parsing succeededIndexes: too large index: "
            "\"9\"",
         AT "[1].succeededIndexes: Invalid value: \"2-1\": error parsing succeededIndexes: non-increasing "
            "order, previous: 2, current: 1",
         AT "[2]: Required value: at least one of succeededCount or succeededIndexes must be specified");
    SAYS(SUCCESS("{\"succeededIndexes\":\"0\",\"succeededCount\":2}"),
         AT "[0].succeededCount: Invalid value: 2: must be less than or equal to 1 (the number of indexes in "
            "the specified succeededIndexes field)");
    SAYS(SUCCESS("{\"succeededCount\":4}"),
         AT "[0].succeededCount: Invalid value: 4: must be less than or equal to 3 (the number of specified "
            "completions)");
#undef AT
#undef SUCCESS
#undef EXITS
#undef RULE
}

static void cron_jobs(void **state)
{
#define ZONE(zone) CRON(",\"schedule\":\"* * * * *\",\"timeZone\":\"" zone "\"")
    (void)state;
    SAYS(OBJECT("batch/v1", "CronJob", ""), "spec.schedule: Required value",
         "spec.jobTemplate.spec.template.spec.containers: Required value",
         "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", "
         "\"Never\"");
    SAYS(ZONE(""), "spec.timeZone: Invalid value: \"\": timeZone must be nil or non-empty string");
    SAYS(ZONE("local"),
         "spec.timeZone: Invalid value: \"local\": timeZone must be an explicit time zone as defined in "
         "https://www.iana.org/time-zones",
         "spec.timeZone: Invalid value: \"local\": unknown time zone local");
    SAYS(ZONE("/etc/passwd"), "spec.timeZone: Invalid value: \"/etc/passwd\": unknown time zone /etc/passwd");
    SAYS(CRON(",\"schedule\":\"* * * * *\",\"startingDeadlineSeconds\":2147483648"));
    SAYS("{\"apiVersion\":\"batch/v1\",\"kind\":\"CronJob\",\"metadata\":{\"name\":\"" LONG64
         "\"},\"spec\":{\"schedule\":\"* * * * *\",\"jobTemplate\":{\"spec\":{" TEMPLATE(
             ",\"restartPolicy\":\"Never\"") "}}}}",
         "metadata.name: Invalid value: \"" LONG64 "\": must be no more than 52 characters");
#undef ZONE
}

static void services(void **state)
{
#define SERVICE(rest) OBJECT("v1", "Service", "\"ports\":[{\"port\":80}]" rest)
#define BALANCER(rest) SERVICE(",\"type\":\"LoadBalancer\"" rest)
#define RANGE(range) BALANCER(",\"loadBalancerSourceRanges\":[\"" range "\"]")
#define RANGES "spec.LoadBalancerSourceRanges[0]: Invalid value: "
#define HEALTH                                                                                               \
    "spec.healthCheckNodePort: Invalid value: 30500: may only be set when `type` is 'LoadBalancer' and "     \
    "`externalTrafficPolicy` is 'Local'"
    (void)state;
    SAYS(RANGE("x"), RANGES "\"x\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    SAYS(RANGE("fe80::/200"),
         RANGES "\"fe80::/200\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    SAYS(RANGE("1.2.3.4/24"), RANGES "\"1.2.3.4/24\": must not have bits set beyond the prefix length");
    SAYS(RANGE("01.2.3.0/24"), RANGES "\"01.2.3.0/24\": must not have leading 0s in IP or prefix length");
    SAYS(RANGE(" 1.2.3.0/24 "));
    SAYS(SERVICE(",\"loadBalancerSourceRanges\":[\"1.2.3.0/24\"]"),
         "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'");
    SAYS(BALANCER(",\"loadBalancerClass\":\"A.b/c\""),
         "spec.loadBalancerClass: Invalid value: \"A.b/c\": prefix part " DOMAIN_RULE);
    SAYS(BALANCER(",\"healthCheckNodePort\":30500"), HEALTH);
    SAYS(BALANCER(",\"healthCheckNodePort\":30500,\"externalTrafficPolicy\":\"Local\""));
    SAYS(SERVICE(",\"trafficDistribution\":\"Foo\""),
         "spec.trafficDistribution: Unsupported value: \"Foo\": supported values: \"PreferClose\", "
         "\"PreferSameZone\", \"PreferSameNode\"");
    SAYS(SERVICE(",\"ipFamilies\":[\"IPv5\",\"IPv4\",\"IPv4\"]"),
         "spec.ipFamilies[0]: Unsupported value: \"IPv5\": supported values: \"IPv4\", \"IPv6\"",
         "spec.ipFamilies[2]: Duplicate value: \"IPv4\"");
    SAYS(SERVICE(",\"ipFamilyPolicy\":\"SingleStack\",\"ipFamilies\":[\"IPv4\",\"IPv6\"]"),
         "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or "
         "'PreferDualStack' when multiple IP families are specified");
    SAYS(SERVICE(",\"clusterIP\":\"None\",\"clusterIPs\":[\"10.0.0.1\"]"),
         "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: first value must match `clusterIP`");
    SAYS(SERVICE(",\"clusterIPs\":[\"10.96.0.9\"]"),
         "spec.clusterIPs: Invalid value: [\"10.96.0.9\"]: must be empty when `clusterIP` is not specified");
    SAYS(SERVICE(",\"clusterIP\":\"10.96.0.9\",\"clusterIPs\":[\"10.96.0.9\",\"10.96.0.9\"]"),
         "spec.clusterIPs: Invalid value: [\"10.96.0.9\",\"10.96.0.9\"]: may specify no more than one IP for "
         "each IP family");
    SAYS(SERVICE(",\"externalIPs\":[\"127.0.0.1\",\"0.0.0.0\",\"fe80::1\",\"010.1.1.1\",\"2001:db8::1\"]"),
         "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, "
         "::1/128)",
         "spec.externalIPs[1]: Invalid value: \"0.0.0.0\": may not be unspecified (0.0.0.0)",
         "spec.externalIPs[2]: Invalid value: \"fe80::1\": may not be in the link-local range "
         "(169.254.0.0/16, fe80::/10)",
         "spec.externalIPs[3]: Invalid value: \"010.1.1.1\": must not have leading 0s");
    SAYS(OBJECT("v1", "Service",
                "\"type\":\"ExternalName\",\"externalName\":\"a.b\",\"ipFamilies\":[\"IPv4\"]"),
         "spec.ipFamilies: Forbidden: may not be set for ExternalName services");
    SAYS(OBJECT("v1", "Service",
                "\"type\":\"NodePort\",\"ports\":[{\"name\":\"a\",\"port\":80,\"nodePort\":30080},{\"name\":"
                "\"b\",\"port\":81,\"nodePort\":30080}]"),
         "spec.ports[1].nodePort: Invalid value: 30080: provided port is already allocated");
    SAYS(OBJECT("v1", "Service", "\"ports\":[{\"port\":80,\"targetPort\":\"8080\",\"appProtocol\":\"\"}]"),
         "spec.ports[0].targetPort: Invalid value: \"8080\": must contain at least one letter (a-z)",
         "spec.ports[0].appProtocol: Invalid value: \"\": name part must be non-empty",
         "spec.ports[0].appProtocol: Invalid value: \"\": " NAME_RULE);
#undef HEALTH
#undef RANGES
#undef RANGE
#undef BALANCER
#undef SERVICE
}

static void names(void **state)
{
#define MAP(meta)                                                                                            \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"," meta                       \
    "},\"data\":{\"a\":\"1\"}}"
#define LABEL(key) MAP("\"labels\":{\"" key "\":\"v\"}")
    (void)state;
    SAYS(LABEL(LONG64),
         "metadata.labels: Invalid value: \"" LONG64 "\": name part must be no more than 63 bytes");
    SAYS(LABEL("/c"), "metadata.labels: Invalid value: \"/c\": prefix part must be non-empty");
    SAYS(LABEL("A.b/c"), "metadata.labels: Invalid value: \"A.b/c\": prefix part " DOMAIN_RULE);
    SAYS(LABEL(""), "metadata.labels: Invalid value: \"\": name part must be non-empty",
         "metadata.labels: Invalid value: \"\": " NAME_RULE);
    SAYS(LABEL("a.b/c_d.e"));
    SAYS("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},\"data\":{\"..a\":"
         "\"2\"}}",
         "data[..a]: Invalid value: \"..a\": must not start with '..'");
#undef LABEL
#undef MAP
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selectors),        cmocka_unit_test(a_selector_without_a_key),
        cmocka_unit_test(updates),          cmocka_unit_test(stateful_sets),
        cmocka_unit_test(claims),           cmocka_unit_test(jobs),
        cmocka_unit_test(policies_of_jobs), cmocka_unit_test(cron_jobs),
        cmocka_unit_test(services),         cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
