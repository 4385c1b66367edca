/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle top`: kubectl's columns, sums and rounding (k8s.io/kubectl/pkg/metricsutil), from
 * /stats/summary. */
#include "agent/cli/show/internal.h"
#include "base/codec/percent.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SUMMARY_URL "/stats/summary?only_cpu_and_memory=true"

struct top {
    struct cli *cli;
    const char *namespace_, *format, *selector, *sort_by;
    bool all, containers, no_headers, sum, watch;
};

struct usage {
    int64_t nano_cores, bytes;
    bool known; /* both */
};

struct entry { /* a line: a pod or a container */
    const json_t *pod, *container;
    const char *namespace_, *name, *container_name;
    struct usage usage;
};

static struct usage top_usage_of(const json_t *o)
{
    return (struct usage){
        .nano_cores = cli_number(o, "cpu.usageNanoCores"),
        .bytes = cli_number(o, "memory.workingSetBytes"),
        .known = cli_at(o, "cpu.usageNanoCores") != NULL && cli_at(o, "memory.workingSetBytes") != NULL,
    };
}

/* Kubernetes rounds quantities up to thousandths. */
static int64_t milli(int64_t nano_cores)
{
    return nano_cores / 1000000 + (nano_cores % 1000000 != 0);
}

static void add_cells(struct cli_table *t, const struct usage *u)
{
    char cpu[32], memory[32];

    snprintf(cpu, sizeof(cpu), "%" PRId64 "m", milli(u->nano_cores));
    snprintf(memory, sizeof(memory), "%" PRId64 "Mi", u->bytes / (1024 * 1024));
    cli_table_cell(t, cpu);
    cli_table_cell(t, memory);
}

/* ---- sorting ---- */

static int top_by_name(const struct entry *x, const struct entry *y)
{
    int order = strcmp(x->namespace_, y->namespace_);

    if (order == 0)
        order = strcmp(x->name, y->name);
    return order != 0 ? order : strcmp(x->container_name, y->container_name);
}

static int order_by_name(const void *a, const void *b)
{
    return top_by_name(a, b);
}

static int order_by_cpu(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->usage.nano_cores != y->usage.nano_cores)
        return x->usage.nano_cores < y->usage.nano_cores ? 1 : -1;
    return top_by_name(x, y);
}

static int order_by_memory(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->usage.bytes != y->usage.bytes)
        return x->usage.bytes < y->usage.bytes ? 1 : -1;
    return top_by_name(x, y);
}

static void sort(const struct top *t, struct entry *v, size_t n)
{
    if (n > 0)
        qsort(v, n, sizeof(*v),
              str_eq(t->sort_by, "cpu")      ? order_by_cpu
              : str_eq(t->sort_by, "memory") ? order_by_memory
                                             : order_by_name);
}

/* ---- pods ---- */

/* The selected pods, as {"namespace/name": true}; NULL with *ret_code on failure. */
static json_t *top_selected(const struct top *t, int *ret_code)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_auto_t *list = NULL;
    json_t *found = json_object(), *pod;
    size_t i;

    buf_adds(&url, "/api/v1/pods?labelSelector=");
    percent_add(&url, t->selector);
    list = cli_get(t->cli, url.p, ret_code);
    if (list == NULL) {
        json_decref(found);
        return NULL;
    }
    json_array_foreach (cli_at(list, "items"), i, pod) {
        str_auto key =
            str_printf("%s/%s", cli_text(pod, "metadata.namespace"), cli_text(pod, "metadata.name"));
        if (key != NULL)
            json_object_set_new(found, key, json_true());
    }
    return found;
}

static bool top_wanted(const struct top *t, const json_t *pod, const char *name, const json_t *chosen)
{
    str_auto key = str_printf("%s/%s", cli_text(pod, "podRef.namespace"), cli_text(pod, "podRef.name"));

    if (!t->all && strcmp(cli_text(pod, "podRef.namespace"), t->namespace_) != 0)
        return false;
    if (name != NULL && strcmp(cli_text(pod, "podRef.name"), name) != 0)
        return false;
    return chosen == NULL || (key != NULL && json_object_get(chosen, key) != NULL);
}

static size_t top_fill(const struct top *t, const json_t *pods, const char *name, const json_t *chosen,
                       struct entry *v)
{
    const json_t *pod, *c;
    size_t i, k, n = 0;

    json_array_foreach (pods, i, pod) {
        struct entry e = { .pod = pod,
                           .namespace_ = cli_text(pod, "podRef.namespace"),
                           .name = cli_text(pod, "podRef.name"),
                           .container_name = "",
                           .usage = top_usage_of(pod) };
        if (!top_wanted(t, pod, name, chosen))
            continue;
        if (!t->containers || t->format != NULL) {
            if (e.usage.known && json_array_size(cli_at(pod, "containers")) > 0)
                v[n++] = e;
            continue;
        }
        json_array_foreach (cli_at(pod, "containers"), k, c) {
            e.container = c;
            e.container_name = cli_text(c, "name");
            e.usage = top_usage_of(c);
            if (e.usage.known)
                v[n++] = e;
        }
    }
    return n;
}

static void print_pods(const struct top *t, const struct entry *v, size_t n)
{
    static const char *const pods[] = { "NAMESPACE", "NAME", "CPU(cores)", "MEMORY(bytes)", NULL };
    static const char *const containers[] = {
        "NAMESPACE", "POD", "NAME", "CPU(cores)", "MEMORY(bytes)", NULL
    };
    struct usage total = { 0 };
    struct cli_table table;

    cli_table_init(&table, (t->containers ? containers : pods) + (t->all ? 0 : 1), !t->no_headers);
    for (size_t i = 0; i < n; i++) {
        if (t->all)
            cli_table_cell(&table, v[i].namespace_);
        cli_table_cell(&table, v[i].name);
        if (t->containers)
            cli_table_cell(&table, v[i].container_name);
        add_cells(&table, &v[i].usage);
        total.nano_cores += v[i].usage.nano_cores;
        total.bytes += v[i].usage.bytes;
    }
    if (t->sum) { /* kubectl prints a line of underscores before it */
        for (int line = 0; line < 2; line++) {
            for (int i = 0; i < t->all + t->containers; i++)
                cli_table_cell(&table, "");
            cli_table_cell(&table, "");
            if (line == 0) {
                cli_table_cell(&table, "________");
                cli_table_cell(&table, "________");
            } else {
                add_cells(&table, &total);
            }
        }
    }
    cli_table_print(&table, t->cli);
    cli_table_done(&table);
}

/* ---- objects ---- */

/* {"cpu": "12345n", "memory": "5120Ki"}, as in the metrics API */
static json_t *usage_json(const struct usage *u)
{
    char cpu[32], memory[32];

    snprintf(cpu, sizeof(cpu), "%" PRId64 "n", u->nano_cores);
    snprintf(memory, sizeof(memory), "%" PRId64 "Ki", u->bytes / 1024);
    return json_pack("{s:s, s:s}", "cpu", cpu, "memory", memory);
}

static json_t *pod_json(const struct entry *e)
{
    json_t *containers = json_array();
    const json_t *c;
    size_t i;

    json_array_foreach (cli_at(e->pod, "containers"), i, c) {
        struct usage u = top_usage_of(c);
        if (u.known)
            json_array_append_new(
                containers, json_pack("{s:s, s:o}", "name", cli_text(c, "name"), "usage", usage_json(&u)));
    }
    return json_pack("{s:s, s:s, s:{s:s, s:s}, s:s, s:o}", "kind", "PodMetrics", "apiVersion",
                     "metrics.k8s.io/v1beta1", "metadata", "name", e->name, "namespace", e->namespace_,
                     "timestamp", cli_text(e->pod, "cpu.time"), "containers", containers);
}

static int print_pod_objects(const struct top *t, const struct entry *v, size_t n, bool single)
{
    json_auto_t *list = NULL;
    json_t *items = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(items, pod_json(&v[i]));
    if (single && n == 1) {
        json_auto_t *one = json_incref(json_array_get(items, 0));
        json_decref(items);
        return cli_print_value(t->cli, one, t->format);
    }
    list = json_pack("{s:s, s:s, s:{}, s:o}", "kind", "PodMetricsList", "apiVersion",
                     "metrics.k8s.io/v1beta1", "metadata", "items", items);
    return cli_print_value(t->cli, list, t->format);
}

/* Prints that the pod does not exist or is not running. */
static int no_metrics(const struct top *t, const char *name)
{
    int code;
    json_auto_t *pod = cli_get_pod(t->cli, t->namespace_, name, &code);

    return pod == NULL ? code : cli_error(t->cli, "metrics not available for pod %s/%s", t->namespace_, name);
}

static int top_pods(const struct top *t, const char *name)
{
    json_auto_t *summary = NULL, *chosen = NULL;
    mem_auto struct entry *v = NULL;
    size_t n, room = 1, i;
    const json_t *pod;
    int code = EXIT_OK;

    if (name != NULL && (t->selector != NULL || t->all))
        return cli_wrong(t->cli, t->all ? "a resource cannot be retrieved by name across all namespaces"
                                        : "name cannot be provided when a selector is specified");
    if (t->selector != NULL && (chosen = top_selected(t, &code)) == NULL)
        return code;
    summary = cli_get(t->cli, SUMMARY_URL, &code);
    if (summary == NULL)
        return code;
    json_array_foreach (cli_at(summary, "pods"), i, pod)
        room += 1 + json_array_size(cli_at(pod, "containers"));
    v = calloc(room, sizeof(*v));
    if (v == NULL)
        return cli_error(t->cli, "out of memory");
    n = top_fill(t, cli_at(summary, "pods"), name, chosen, v);
    sort(t, v, n);
    if (n == 0 && name != NULL)
        return no_metrics(t, name);
    if (t->format != NULL)
        return print_pod_objects(t, v, n, name != NULL);
    if (n > 0)
        print_pods(t, v, n);
    else if (t->all)
        fputs("No resources found\n", t->cli->err);
    else
        cli_note(t->cli, "No resources found in %s namespace.\n", t->namespace_);
    return EXIT_OK;
}

/* ---- node ---- */

static void add_percent(struct cli_table *t, int64_t used, int64_t of)
{
    char text[32] = "<unknown>";

    if (of > 0)
        snprintf(text, sizeof(text), "%" PRId64 "%%", (int64_t)((double)used / (double)of * 100));
    cli_table_cell(t, text);
}

static int top_node(const struct top *t, const char *name)
{
    static const char *const headers[] = {
        "NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)", NULL
    };
    int code;
    json_auto_t *summary = cli_get(t->cli, SUMMARY_URL, &code);
    const json_t *node = cli_at(summary, "node");
    struct usage u = top_usage_of(node);
    struct cli_table table;
    char text[32];

    if (summary == NULL)
        return code;
    if (name != NULL && strcmp(name, cli_text(node, "nodeName")) != 0) {
        cli_error(t->cli, "nodes \"%s\" not found: this node is %s", name, cli_text(node, "nodeName"));
        return EXIT_NOT_FOUND;
    }
    if (!u.known)
        return cli_error(t->cli, "metrics not available for node %s", cli_text(node, "nodeName"));
    if (t->format != NULL) {
        json_auto_t *o = json_pack("{s:s, s:s, s:{s:s}, s:s, s:o}", "kind", "NodeMetrics", "apiVersion",
                                   "metrics.k8s.io/v1beta1", "metadata", "name", cli_text(node, "nodeName"),
                                   "timestamp", cli_text(node, "cpu.time"), "usage", usage_json(&u));
        return cli_print_value(t->cli, o, t->format);
    }
    cli_table_init(&table, headers, !t->no_headers);
    cli_table_cell(&table, cli_text(node, "nodeName"));
    snprintf(text, sizeof(text), "%" PRId64 "m", milli(u.nano_cores));
    cli_table_cell(&table, text);
    add_percent(&table, milli(u.nano_cores), cli_number(node, "allocatable.nanoCores") / 1000000);
    snprintf(text, sizeof(text), "%" PRId64 "Mi", u.bytes / (1024 * 1024));
    cli_table_cell(&table, text);
    add_percent(&table, u.bytes, cli_number(node, "allocatable.memoryBytes"));
    cli_table_print(&table, t->cli);
    cli_table_done(&table);
    return EXIT_OK;
}

/* ---- repeating ---- */

typedef int (*show_fn)(const struct top *t, const char *name);

/* Shows one round at the top of the terminal: overwrites each line and the rest of the screen. Text that does
 * not fit is cut off, so that the top stays visible. */
static void redraw(struct cli *cli, const char *text)
{
    buf_auto screen = BUF_INIT(64u << 20);
    struct winsize size = { 0 };
    unsigned left;

    left = ioctl(fileno(cli->out), TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : UINT_MAX;
    buf_adds(&screen, "\033[H\033[?7l"); /* do not wrap lines */
    for (; *text != '\0' && left > 0; text++) {
        if (*text != '\n')
            buf_addc(&screen, *text);
        else
            buf_adds(&screen, --left > 0 ? "\033[K\n" : "\033[K");
    }
    buf_adds(&screen, "\033[J\033[?7h");
    cli_write(cli, screen.p, screen.n);
}

static int top_watch(const struct top *t, show_fn show, const char *name)
{
    const struct timespec pause = { .tv_sec = 2 };
    struct cli *cli = t->cli;
    FILE *out = cli->out;
    bool terminal = isatty(fileno(out));
    int code = EXIT_OK;

    if (terminal)
        cli_write(cli, "\033[2J", strlen("\033[2J"));
    for (;;) {
        mem_auto char *text = NULL;
        size_t n = 0;

        cli->out = open_memstream(&text, &n);
        if (cli->out != NULL)
            code = show(t, name);
        if (cli->out == NULL || fclose(cli->out) != 0)
            code = cli_error(cli, "out of memory");
        cli->out = out;
        if (code != EXIT_OK)
            return code;
        if (terminal)
            redraw(cli, text);
        else
            cli_write(cli, text, n);
        if (!cli_flush(cli))
            return EXIT_OK;
        nanosleep(&pause, NULL);
    }
}

/* ---- the command ---- */

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct top, namespace_, "the namespace (default)"),
    { "all-namespaces", 'A', FLAG_SWITCH, offsetof(struct top, all), NULL, "all namespaces" },
    { "containers", 0, FLAG_SWITCH, offsetof(struct top, containers), NULL, "one line per container" },
    { "selector", 'l', FLAG_TEXT, offsetof(struct top, selector), "SELECTOR",
      "only pods with these labels: app=web,tier!=db" },
    { "sort-by", 0, FLAG_TEXT, offsetof(struct top, sort_by), "cpu|memory",
      "sort by this column, largest first, instead of by name", "cpu|memory" },
    { "sum", 0, FLAG_SWITCH, offsetof(struct top, sum), NULL, "add a line with the sums" },
    { "watch", 'w', FLAG_SWITCH, offsetof(struct top, watch), NULL,
      "refresh every two seconds until Ctrl-C" },
    CLI_OUTPUT(struct top, format, "json|yaml", "json or yaml: objects of the metrics API"),
    { "no-headers", 0, FLAG_SWITCH, offsetof(struct top, no_headers), NULL, "do not print headers" },
    CLI_FLAGS_END,
};

static int top_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct top t = { .cli = cli, .namespace_ = "default" };
    const char *name;
    show_fn show;
    int code;

    if (!cli_parse(cli, command, &t, &argc, argv, &code))
        return code;
    if (argc < 1 || argc > 2)
        return cli_usage_error(cli, command, "you must specify pods or node, and at most one name");
    if (t.sort_by != NULL && strcmp(t.sort_by, "cpu") != 0 && strcmp(t.sort_by, "memory") != 0)
        return cli_wrong(cli, "--sort-by accepts only cpu or memory");
    if (cli_check_format(cli, t.format) != EXIT_OK)
        return EXIT_USAGE;
    name = argc == 2 ? argv[1] : NULL;
    if (cli_is_kind(argv[0], cli_node_kinds))
        show = top_node;
    else if (cli_is_kind(argv[0], cli_pod_kinds))
        show = top_pods;
    else
        return cli_usage_error(cli, command, "there are pods and node, not \"%s\"", argv[0]);
    if (t.watch && t.format != NULL)
        return cli_wrong(cli, "--watch shows tables, not %s", t.format);
    return t.watch ? top_watch(&t, show, name) : show(&t, name);
}

static const struct cli_example examples[] = {
    { "pods by memory usage", "coracle top pods -A --sort-by memory" },
    { "watch pods by CPU usage", "coracle top pods -A --sort-by cpu -w" },
    { "each container of a pod", "coracle top pod web --containers" },
    { NULL, NULL },
};

const struct cli_command command_top = {
    .name = "top",
    .run = top_run,
    .summary = "show resource usage of pods and the node",
    .usage = "top pods [NAME] [flags]\n"
             "top node [flags]",
    .about = "Shows the current CPU and memory usage of pods, containers or the node.  The first request "
             "takes half a second, because a rate needs two samples.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "get",
    .words = "pods|node @pod",
};
