#include "agent/cli/internal.h"

#include "base/json.h"

#include <string.h>

enum { ANNOTATION_MAX = 140 }; /* kubectl cuts longer lines */

static const char *const skipped_annotations[] = { "kubectl.kubernetes.io/last-applied-configuration" };

static int by_key(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The members' names, sorted; malloc'ed array of borrowed strings, NULL-terminated. */
static const char **sorted_keys(const json_t *object)
{
    const char **keys = calloc(json_object_size(object) + 1, sizeof(*keys));
    const char *key;
    json_t *value;
    size_t n = 0;

    if (keys == NULL)
        return NULL;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value)
        keys[n++] = key;
    qsort(keys, n, sizeof(*keys), by_key);
    return keys;
}

static void add_pairs(struct buf *out, const char *title, const json_t *object)
{
    mem_auto const char **keys = sorted_keys(object);
    bool any = false;

    buf_addf(out, "%s:\t", title);
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++) {
        buf_addf(out, "%s%s=", any ? "\t" : "", keys[i]);
        cli_add_clean(out, json_str(object, keys[i]) != NULL ? json_str(object, keys[i]) : "");
        buf_addc(out, '\n');
        any = true;
    }
    if (!any)
        buf_adds(out, "<none>\n");
}

static bool is_skipped(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(skipped_annotations); i++)
        if (strcmp(skipped_annotations[i], key) == 0)
            return true;
    return false;
}

static void add_annotation(struct buf *out, const char *key, const char *value)
{
    size_t n = strlen(value);
    str_auto copy = NULL;

    if (n > 0 && value[n - 1] == '\n')
        n--;
    copy = strndup(value, n);
    if (copy == NULL)
        return;
    if (n + strlen(key) + 2 <= ANNOTATION_MAX && strchr(copy, '\n') == NULL) {
        buf_addf(out, "%s: ", key);
        cli_add_clean(out, copy);
        buf_addc(out, '\n');
        return;
    }
    buf_addf(out, "%s:\n", key);
    for (char *line = copy, *next; line != NULL; line = next) {
        bool cut;

        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        cut = strlen(line) > ANNOTATION_MAX - 2;
        if (cut)
            line[ANNOTATION_MAX - 2] = '\0';
        buf_adds(out, "\t  ");
        cli_add_clean(out, line);
        buf_adds(out, cut ? "...\n" : "\n");
    }
}

static void add_annotations(struct buf *out, const json_t *annotations)
{
    mem_auto const char **keys = sorted_keys(annotations);
    bool any = false;

    buf_adds(out, "Annotations:\t");
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++) {
        const char *value = json_str(annotations, keys[i]);

        if (is_skipped(keys[i]))
            continue;
        if (any)
            buf_addc(out, '\t');
        add_annotation(out, keys[i], value != NULL ? value : "");
        any = true;
    }
    if (!any)
        buf_adds(out, "<none>\n");
}

static void add_head(const struct cli *cli, const json_t *pod, struct buf *out)
{
    const char *phase = cli_text(pod, "status.phase"), *deleted = cli_text(pod, "metadata.deletionTimestamp");
    const char *node = cli_text(pod, "spec.nodeName");
    char when[CLI_TIME_SIZE], age[CLI_AGE_SIZE];
    static const struct {
        const char *title, *path;
    } optional[] = { { "Priority Class Name", "spec.priorityClassName" },
                     { "Runtime Class Name", "spec.runtimeClassName" },
                     { "Service Account", "spec.serviceAccountName" } };

    buf_addf(out, "Name:\t%s\nNamespace:\t%s\n", cli_text(pod, "metadata.name"),
             cli_text(pod, "metadata.namespace"));
    if (json_is_integer(cli_at(pod, "spec.priority")))
        buf_addf(out, "Priority:\t%lld\n", (long long)cli_number(pod, "spec.priority"));
    for (size_t i = 0; i < ARRAY_LEN(optional); i++)
        if (cli_text(pod, optional[i].path)[0] != '\0')
            buf_addf(out, "%s:\t%s\n", optional[i].title, cli_text(pod, optional[i].path));
    if (node[0] != '\0')
        buf_addf(out, "Node:\t%s/%s\n", node, cli_text(pod, "status.hostIP"));
    else
        buf_adds(out, "Node:\t<none>\n");
    if (cli_text(pod, "status.startTime")[0] != '\0') {
        cli_time(cli_text(pod, "status.startTime"), when);
        buf_addf(out, "Start Time:\t%s\n", when);
    }
    add_pairs(out, "Labels", cli_at(pod, "metadata.labels"));
    add_annotations(out, cli_at(pod, "metadata.annotations"));
    if (deleted[0] != '\0' && strcmp(phase, "Failed") != 0 && strcmp(phase, "Succeeded") != 0) {
        cli_age(cli, deleted, age);
        buf_addf(out, "Status:\tTerminating (lasts %s)\n", age);
        buf_addf(out, "Termination Grace Period:\t%llds\n",
                 (long long)cli_number(pod, "metadata.deletionGracePeriodSeconds"));
    } else {
        buf_addf(out, "Status:\t%s\n", phase);
    }
}

static void add_text(struct buf *out, const char *title, const char *text)
{
    if (text[0] == '\0')
        return;
    buf_addf(out, "%s:\t", title);
    cli_add_clean(out, text);
    buf_addc(out, '\n');
}

static void add_status(const json_t *pod, struct buf *out)
{
    const json_t *ips = cli_at(pod, "status.podIPs"), *ip, *owner;
    size_t i;

    add_text(out, "Reason", cli_text(pod, "status.reason"));
    add_text(out, "Message", cli_text(pod, "status.message"));
    add_text(out, "SeccompProfile", cli_text(pod, "spec.securityContext.seccompProfile.type"));
    add_text(out, "LocalhostProfile", cli_text(pod, "spec.securityContext.seccompProfile.localhostProfile"));
    buf_addf(out, "IP:\t%s\n", cli_text(pod, "status.podIP"));
    if (json_array_size(ips) == 0)
        buf_adds(out, "IPs:\t<none>\n");
    else
        buf_adds(out, "IPs:\n");
    json_array_foreach (ips, i, ip)
        buf_addf(out, "  IP:\t%s\n", cli_text(ip, "ip"));
    json_array_foreach (cli_at(pod, "metadata.ownerReferences"), i, owner) {
        if (cli_true(owner, "controller"))
            buf_addf(out, "Controlled By:\t%s/%s\n", cli_text(owner, "kind"), cli_text(owner, "name"));
    }
}

static void add_conditions(const json_t *pod, struct buf *out)
{
    const json_t *gates = cli_at(pod, "spec.readinessGates"), *conditions = cli_at(pod, "status.conditions"),
                 *c, *gate;
    size_t i, k;

    if (json_array_size(gates) > 0)
        buf_adds(out, "Readiness Gates:\n  Type\tStatus\n");
    json_array_foreach (gates, i, gate) {
        const char *status = "<none>";

        json_array_foreach (conditions, k, c) {
            if (strcmp(cli_text(c, "type"), cli_text(gate, "conditionType")) == 0)
                status = cli_text(c, "status");
        }
        buf_addf(out, "  %s \t%s \n", cli_text(gate, "conditionType"), status);
    }
    if (json_array_size(conditions) > 0)
        buf_adds(out, "Conditions:\n  Type\tStatus\n");
    json_array_foreach (conditions, i, c)
        buf_addf(out, "  %s \t%s \n", cli_text(c, "type"), cli_text(c, "status"));
}

static int by_toleration_key(const void *a, const void *b)
{
    return strcmp(cli_text(*(json_t *const *)a, "key"), cli_text(*(json_t *const *)b, "key"));
}

static void add_tolerations(const json_t *tolerations, struct buf *out)
{
    size_t n = json_array_size(tolerations), i;
    mem_auto json_t **v = calloc(n + 1, sizeof(*v));
    json_t *t;

    buf_adds(out, "Tolerations:\t");
    if (n == 0 || v == NULL) {
        buf_adds(out, "<none>\n");
        return;
    }
    json_array_foreach (tolerations, i, t)
        v[i] = t;
    qsort(v, n, sizeof(*v), by_toleration_key);
    for (i = 0; i < n; i++) {
        const char *value = cli_text(v[i], "value"), *effect = cli_text(v[i], "effect");
        bool exists = strcmp(cli_text(v[i], "operator"), "Exists") == 0 && value[0] == '\0';

        buf_addf(out, "%s%s%s%s%s%s", i > 0 ? "\t" : "", cli_text(v[i], "key"), value[0] != '\0' ? "=" : "",
                 value, effect[0] != '\0' ? ":" : "", effect);
        if (exists)
            buf_adds(out, cli_text(v[i], "key")[0] != '\0' || effect[0] != '\0' ? " op=Exists" : "op=Exists");
        if (json_is_integer(cli_at(v[i], "tolerationSeconds")))
            buf_addf(out, " for %llds", (long long)cli_number(v[i], "tolerationSeconds"));
        buf_addc(out, '\n');
    }
}

/* What the agent says in conditions of its own: `a; b`, a line each. */
static void add_own_condition(const json_t *pod, const char *type, const char *title, struct buf *out)
{
    const json_t *c;
    size_t i;

    json_array_foreach (cli_at(pod, "status.conditions"), i, c) {
        str_auto text = strdup(cli_text(c, "message"));
        char *next;

        if (strcmp(cli_text(c, "type"), type) != 0 || text == NULL || text[0] == '\0')
            continue;
        buf_addf(out, "%s:\n", title);
        for (char *one = text; one != NULL; one = next) {
            next = strstr(one, "; ");
            if (next != NULL) {
                *next = '\0';
                next += 2;
            }
            buf_adds(out, "  ");
            cli_add_clean(out, one);
            buf_addc(out, '\n');
        }
    }
}

static void add_events(const struct cli *cli, const json_t *events, struct buf *out)
{
    const json_t *e;
    size_t i;

    if (json_array_size(events) == 0) {
        buf_adds(out, "Events:\t<none>\n");
        return;
    }
    buf_adds(out, "Events:\n  Type\tReason\tAge\tFrom\tMessage\n  ----\t------\t----\t----\t-------\n");
    json_array_foreach (events, i, e) {
        const char *source = cli_text(e, "source.component"), *message = cli_text(e, "message");
        char first[CLI_AGE_SIZE], last[CLI_AGE_SIZE];
        size_t n = strlen(message);
        str_auto trimmed = NULL;

        while (n > 0 && strchr(" \t\r\n", message[n - 1]) != NULL)
            n--;
        trimmed = strndup(message, n);
        cli_age(cli, cli_text(e, cli_text(e, "eventTime")[0] != '\0' ? "eventTime" : "firstTimestamp"),
                first);
        cli_age(cli, cli_text(e, "lastTimestamp"), last);
        buf_addf(out, "  %s\t%s\t", cli_text(e, "type"), cli_text(e, "reason"));
        if (cli_number(e, "count") > 1)
            buf_addf(out, "%s (x%lld over %s)", last, (long long)cli_number(e, "count"), first);
        else
            buf_adds(out, first);
        buf_addf(out, "\t%s\t", source[0] != '\0' ? source : cli_text(e, "reportingComponent"));
        cli_add_clean(out, trimmed != NULL ? trimmed : "");
        buf_addc(out, '\n');
    }
}

void cli_describe_pod(const struct cli *cli, const json_t *pod, const json_t *events, struct buf *out)
{
    const json_t *init = cli_at(pod, "spec.initContainers");

    add_head(cli, pod, out);
    add_status(pod, out);
    if (cli_at(pod, "spec.resources") != NULL) {
        buf_adds(out, "Resources:\n");
        cli_describe_resources(cli_at(pod, "spec.resources"), "  ", out);
    }
    if (json_array_size(init) > 0)
        cli_describe_containers("Init Containers", pod, init, cli_at(pod, "status.initContainerStatuses"),
                                out);
    cli_describe_containers("Containers", pod, cli_at(pod, "spec.containers"),
                            cli_at(pod, "status.containerStatuses"), out);
    add_conditions(pod, out);
    cli_describe_volumes(cli_at(pod, "spec.volumes"), out);
    buf_addf(out, "QoS Class:\t%s\n", cli_text(pod, "status.qosClass"));
    add_pairs(out, "Node-Selectors", cli_at(pod, "spec.nodeSelector"));
    add_tolerations(cli_at(pod, "spec.tolerations"), out);
    add_own_condition(pod, "coracle.dev/FieldsIgnored", "Ignored fields", out);
    add_own_condition(pod, "coracle.dev/VolumeFilesHidden", "Hidden files of volumes", out);
    add_own_condition(pod, "coracle.dev/EnvironmentOutdated", "Outdated environments", out);
    add_events(cli, events, out);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int by_last_time(const void *a, const void *b)
{
    return strcmp(cli_text(*(json_t *const *)a, "lastTimestamp"),
                  cli_text(*(json_t *const *)b, "lastTimestamp"));
}

/* The pod's events, the oldest first. */
static json_t *events_of(struct cli *cli, const json_t *pod)
{
    const char *uid = cli_text(pod, "metadata.uid");
    buf_auto url = BUF_INIT(64 * 1024);
    json_auto_t *list = NULL;
    json_t *items, *ordered = json_array(), *item;
    json_t **v;
    size_t i;

    buf_adds(&url, "/api/v1/namespaces/");
    cli_add_escaped(&url, cli_text(pod, "metadata.namespace"));
    buf_adds(&url, "/events?fieldSelector=involvedObject.name%3D");
    cli_add_escaped(&url, cli_text(pod, "metadata.name"));
    if (uid[0] != '\0') {
        buf_adds(&url, "%2CinvolvedObject.uid%3D");
        cli_add_escaped(&url, uid);
    }
    list = cli_get(cli, url.p, NULL);
    items = cli_at(list, "items");
    v = calloc(json_array_size(items) + 1, sizeof(*v));
    json_array_foreach (items, i, item) {
        if (v != NULL)
            v[i] = item;
    }
    if (v != NULL) {
        qsort(v, json_array_size(items), sizeof(*v), by_last_time);
        for (i = 0; v[i] != NULL; i++)
            json_array_append(ordered, v[i]);
    }
    free(v);
    return ordered;
}

static void describe_one(struct cli *cli, const json_t *pod, bool first)
{
    buf_auto text = BUF_INIT(64u << 20), shown = BUF_INIT(64u << 20);
    json_auto_t *events = events_of(cli, pod);

    if (!first)
        buf_adds(&shown, "\n\n");
    cli_describe_pod(cli, pod, events, &text);
    cli_align(text.p, 0, 2, &shown);
    if (text.failed || shown.failed)
        cli_error(cli, "pod %s: too much to describe", cli_text(pod, "metadata.name"));
    else
        cli_show(cli, &shown);
}

struct describe {
    const char *namespace_, *format;
    json_t *items; /* with a format: what is to be printed at the end; else NULL */
    size_t n;      /* described so far */
};

static void take(struct cli *cli, struct describe *d, json_t *pod)
{
    if (d->items != NULL)
        json_array_append_new(d->items, json_pack("{s:O, s:o}", "pod", pod, "events", events_of(cli, pod)));
    else
        describe_one(cli, pod, d->n == 0);
    d->n++;
}

static int describe_all(struct cli *cli, struct describe *d)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_auto_t *list = NULL;
    json_t *pod;
    size_t i;

    buf_adds(&url, "/api/v1/namespaces/");
    cli_add_escaped(&url, d->namespace_);
    buf_adds(&url, "/pods");
    list = cli_get(cli, url.p, NULL);
    if (list == NULL)
        return EXIT_ERROR;
    json_array_foreach (cli_at(list, "items"), i, pod)
        take(cli, d, pod);
    if (d->n == 0 && d->items == NULL)
        fprintf(cli->err, "No resources found in %s namespace.\n", d->namespace_);
    return EXIT_OK;
}

/* "pod web db", "pod/web pod/db" */
static int describe_named(struct cli *cli, struct describe *d, int argc, char **argv)
{
    int code = EXIT_OK;

    for (int i = 0; i < argc; i++) {
        const char *name = cli_resource_name(argv[i], cli_pod_kinds);
        json_auto_t *pod = NULL;

        if (name == NULL)
            return cli_error(cli, "the server doesn't have a resource type \"%.*s\"",
                             (int)strcspn(argv[i], "/"), argv[i]);
        pod = cli_get_pod(cli, d->namespace_, name);
        if (pod == NULL)
            code = EXIT_ERROR;
        else
            take(cli, d, pod);
    }
    return code;
}

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct describe, namespace_, "the pod's namespace (default)"),
    CLI_OUTPUT(struct describe, format, "json|yaml",
               "json or yaml: {\"items\": [{\"pod\": ..., \"events\": [...]}]}"),
    CLI_FLAGS_END,
};

static int run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct describe d = { .namespace_ = "default" };
    bool slashes;
    int code;

    if (!cli_parse(cli, command, &d, &argc, argv, &code))
        return code;
    if (argc == 0)
        return cli_usage_error(cli, command, "you must specify the type of resource to describe: pod NAME");
    if (cli_check_format(cli, d.format) != EXIT_OK)
        return EXIT_ERROR;
    slashes = strchr(argv[0], '/') != NULL;
    if (!slashes && !cli_is_kind(argv[0], cli_pod_kinds))
        return cli_error(cli, "the server doesn't have a resource type \"%s\"", argv[0]);
    d.items = d.format != NULL ? json_array() : NULL;
    code = !slashes && argc == 1 ? describe_all(cli, &d)
                                 : describe_named(cli, &d, argc - !slashes, argv + !slashes);
    if (d.items != NULL) {
        json_auto_t *all = json_pack("{s:o}", "items", d.items);

        if (cli_print_value(cli, all, d.format) != EXIT_OK)
            code = EXIT_ERROR;
    }
    return code;
}

static const struct cli_example examples[] = {
    { "one pod", "coracle describe pod web" },
    { "all pods of a namespace", "coracle describe pods -n shop" },
    { NULL, NULL },
};

const struct cli_command command_describe = {
    .name = "describe",
    .run = run,
    .summary = "everything about a pod",
    .usage = "describe pod [NAME...] [flags]",
    .about = "Shows everything about a pod, its events included.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "get explain",
    .words = "pod|pods @pod ...",
};
