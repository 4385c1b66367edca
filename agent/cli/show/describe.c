/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/show/internal.h"
#include "base/codec/percent.h"

#include <string.h>

struct describe {
    struct cli *cli;
    const struct api_kind_row *kind;
    const char *namespace_, *format;
    json_t *items; /* the objects to print at the end in that format; otherwise NULL */
    size_t n;      /* the number of objects described so far */
};

/* ---- events ---- */

static int describe_by_last_time(const void *a, const void *b)
{
    return strcmp(cli_text(*(json_t *const *)a, "lastTimestamp"),
                  cli_text(*(json_t *const *)b, "lastTimestamp"));
}

/* The events of the object, oldest first; NULL if its kind has none. */
static json_t *events_of(struct describe *d, const json_t *object)
{
    const char *kind = cli_text(object, "kind"), *uid = cli_text(object, "metadata.uid");
    buf_auto url = BUF_INIT(64 * 1024);
    json_auto_t *list = NULL;

    if (strcmp(kind, "Pod") != 0 && strcmp(kind, "Node") != 0)
        return NULL;
    buf_adds(&url, "/api/v1");
    if (d->kind->namespaced) {
        buf_adds(&url, "/namespaces/");
        percent_add(&url, cli_text(object, "metadata.namespace"));
    }
    buf_addf(&url, "/events?fieldSelector=involvedObject.kind%%3D%s%%2CinvolvedObject.name%%3D", kind);
    percent_add(&url, cli_text(object, "metadata.name"));
    if (uid[0] != '\0') {
        buf_adds(&url, "%2CinvolvedObject.uid%3D");
        percent_add(&url, uid);
    }
    list = cli_get(d->cli, url.p, NULL);
    return cli_sorted(cli_at(list, "items"), describe_by_last_time);
}

/* ---- objects ---- */

static void describe_node(struct describe *d, const json_t *node, const json_t *events, struct buf *out)
{
    json_auto_t *pods = cli_get_all(d->cli, cli_kind_find("pods"), NULL, NULL, NULL);
    json_auto_t *devices = cli_read_held_devices(d->cli);
    json_auto_t *placement = cli_read_placement(d->cli);

    cli_describe_node(d->cli, node, pods, devices, placement, out);
    cli_describe_events(d->cli, events, out);
}

/* A workload, or a kind that is only stored and shown: its conditions, and its statement about its pods. */
static void describe_other(const json_t *object, struct buf *out)
{
    const json_t *condition, *value;
    const char *field;
    size_t i;

    buf_addf(out, "Name:\t%s\n", cli_text(object, "metadata.name"));
    if (cli_text(object, "metadata.namespace")[0] != '\0')
        buf_addf(out, "Namespace:\t%s\n", cli_text(object, "metadata.namespace"));
    buf_addf(out, "Kind:\t%s\n", cli_text(object, "kind"));
    json_object_foreach (cli_at(object, "status"), field, value)
        if (json_is_integer(value))
            buf_addf(out, "%s:\t%lld\n", field, (long long)json_integer_value(value));
    json_array_foreach (cli_at(object, "status.conditions"), i, condition)
        buf_addf(out, "%s:\t%s, %s%s%s\n", cli_text(condition, "type"), cli_text(condition, "status"),
                 cli_text(condition, "reason"), cli_text(condition, "message")[0] != '\0' ? ": " : "",
                 cli_text(condition, "message"));
}

static void add_description(struct describe *d, const json_t *object, const json_t *events, struct buf *out)
{
    const char *kind = cli_text(object, "kind");

    if (strcmp(kind, "Pod") == 0)
        cli_describe_pod(d->cli, object, events, out);
    else if (strcmp(kind, "Node") == 0)
        describe_node(d, object, events, out);
    else if (strcmp(kind, "ConfigMap") == 0)
        cli_describe_config_map(d->cli, object, out);
    else if (strcmp(kind, "Secret") == 0)
        cli_describe_secret(d->cli, object, out);
    else if (strcmp(kind, "PriorityClass") == 0)
        cli_describe_class(d->cli, object, out);
    else if (kind[0] != '\0')
        describe_other(object, out);
    else
        cli_describe_image(d->cli, object, out);
}

static int describe_one(struct describe *d, const json_t *object, const json_t *events)
{
    buf_auto text = BUF_INIT(64u << 20), shown = BUF_INIT(64u << 20);

    if (d->n > 0)
        buf_adds(&shown, "\n\n");
    add_description(d, object, events, &text);
    cli_align(text.p, 0, 2, &shown);
    if (text.failed || shown.failed)
        return cli_error(d->cli, "%s %s: too much to describe", d->kind->singular,
                         cli_text(object, "metadata.name"));
    cli_show_described(d->cli, &shown);
    return EXIT_OK;
}

static int describe_take(struct describe *d, json_t *object)
{
    json_auto_t *events = events_of(d, object);
    int code = EXIT_OK;

    if (d->items != NULL)
        json_array_append_new(d->items,
                              json_pack("{s:O, s:O*}", d->kind->singular, object, "events", events));
    else
        code = describe_one(d, object, events);
    d->n++;
    return code;
}

/* ---- selecting objects ---- */

static json_t *describe_listed(struct describe *d, const json_t *o, int *ret_code)
{
    if (d->kind->id != API_KIND_CONFIG_MAP /* whose list omits the data */)
        return json_incref((json_t *)(uintptr_t)o);
    return cli_get_one(d->cli, d->kind, cli_text(o, "metadata.namespace"), cli_text(o, "metadata.name"),
                       ret_code);
}

static int describe_all(struct describe *d)
{
    int code, its = EXIT_OK;
    json_auto_t *items = cli_get_all(d->cli, d->kind, d->namespace_, NULL, &code);
    const json_t *o;
    size_t i;

    json_array_foreach (items, i, o) {
        json_auto_t *whole = describe_listed(d, o, &its);

        if (whole != NULL)
            its = describe_take(d, whole);
        cli_keep_first(&code, its);
    }
    if (code == EXIT_OK && d->n == 0 && d->items == NULL)
        fprintf(d->cli->err,
                d->kind->namespaced ? "No resources found in %s namespace.\n" : "No resources found\n",
                d->namespace_);
    return code;
}

static int describe_named(struct describe *d, int argc, char **argv, bool slashes)
{
    int code = EXIT_OK;

    for (int i = 0; i < argc; i++) {
        const char *name = slashes ? strchr(argv[i], '/') : NULL;
        json_auto_t *object = NULL;
        int its;

        if (slashes && (d->kind = cli_kind_find(argv[i])) == NULL)
            return cli_unknown_kind(d->cli, argv[i], "");
        if (slashes && name == NULL)
            return cli_wrong(d->cli, "%s: either all or none must be KIND/NAME", argv[i]);
        object = cli_get_one(d->cli, d->kind, d->namespace_, slashes ? name + 1 : argv[i], &its);
        cli_keep_first(&code, its);
        if (object != NULL)
            cli_keep_first(&code, describe_take(d, object));
    }
    return code;
}

/* ---- the command ---- */

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct describe, namespace_, "the object's namespace (default)"),
    CLI_OUTPUT(struct describe, format, "json|yaml",
               "json or yaml: {\"items\": [{\"pod\": ..., \"events\": [...]}]}"),
    CLI_FLAGS_END,
};

static int describe_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct describe d = { .cli = cli, .namespace_ = "default" };
    bool slashes;
    int code;

    if (!cli_parse(cli, command, &d, &argc, argv, &code))
        return code;
    if (argc == 0)
        return cli_usage_error(cli, command, "you must specify the type of resource to describe: pod NAME");
    if (cli_check_format(cli, d.format) != EXIT_OK)
        return EXIT_USAGE;
    slashes = strchr(argv[0], '/') != NULL;
    d.kind = cli_kind_find(argv[0]);
    if (d.kind == NULL)
        return cli_unknown_kind(cli, argv[0], "");
    d.items = d.format != NULL ? json_array() : NULL;
    code = !slashes && argc == 1 ? describe_all(&d)
                                 : describe_named(&d, argc - !slashes, argv + !slashes, slashes);
    if (d.items != NULL) {
        json_auto_t *all = json_pack("{s:o}", "items", d.items);

        cli_keep_first(&code, cli_print_value(cli, all, d.format));
    }
    return code;
}

static const struct cli_example examples[] = {
    { "describe one pod", "coracle describe pod web" },
    { "describe all pods of a namespace", "coracle describe pods -n shop" },
    { "capacity, requests of pods, and devices of the node", "coracle describe node" },
    { "the content of a ConfigMap", "coracle describe configmap settings" },
    { NULL, NULL },
};

const struct cli_command command_describe = {
    .name = "describe",
    .run = describe_run,
    .summary = "show details of a pod, the node, a ConfigMap ...",
    .usage = "describe pod|node|configmap|secret|priorityclass|image [NAME...] [flags]",
    .about = "Shows the details of objects, and the events of pods and the node.  For a Secret, only the "
             "keys and the sizes of the values are shown; the daemon never discloses values.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "get explain",
    .words = "pod|node|configmap|secret|priorityclass|image @named ...",
};
