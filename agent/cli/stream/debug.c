/* SPDX-License-Identifier: Apache-2.0 */
/* debug - a container beside those of a pod, or a pod in the node's own namespaces, and the streams of its
 * main process. */
#include "agent/cli/stream/internal.h"

#include "base/codec/percent.h"

#include <string.h>

struct debug {
    const char *namespace_, *container, *image, *target, *pull, *profile;
    struct cli_list env;
    bool stdin_, tty, attach, arguments;
    bool node; /* of `debug node/NAME` */
};

/* ---- the container ---- */

/* kubectl's profiles: the additional rights of a debugger. */
static const struct profile {
    const char *name, *of_pod, *of_node; /* securityContext */
} profiles[] = {
    { "general", "{\"capabilities\": {\"add\": [\"SYS_PTRACE\"]}}", NULL },
    { "baseline", NULL, NULL },
    { "restricted",
      "{\"allowPrivilegeEscalation\": false, \"capabilities\": {\"drop\": [\"ALL\"]}, \"runAsNonRoot\": "
      "true, "
      "\"seccompProfile\": {\"type\": \"RuntimeDefault\"}}",
      "{\"allowPrivilegeEscalation\": false, \"capabilities\": {\"drop\": [\"ALL\"]}, \"runAsNonRoot\": "
      "true, "
      "\"seccompProfile\": {\"type\": \"RuntimeDefault\"}}" },
    { "netadmin", "{\"capabilities\": {\"add\": [\"NET_ADMIN\", \"NET_RAW\"]}}",
      "{\"capabilities\": {\"add\": [\"NET_ADMIN\", \"NET_RAW\"]}}" },
    { "sysadmin", "{\"privileged\": true}", "{\"privileged\": true}" },
};

static const struct profile *profile_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(profiles); i++)
        if (strcmp(profiles[i].name, name) == 0)
            return &profiles[i];
    return NULL;
}

/* False: out of memory. */
static bool add_words(json_t *container, const char *field, char **words, int n)
{
    json_t *list = json_array();

    if (n == 0) {
        json_decref(list);
        return true;
    }
    for (int i = 0; i < n; i++)
        if (json_array_append_new(list, json_string(words[i])) != 0) {
            json_decref(list);
            return false;
        }
    return json_object_set_new(container, field, list) == 0;
}

static bool add_env(json_t *container, const struct cli_list *env)
{
    json_t *list = json_array();

    if (list == NULL || json_object_set_new(container, "env", list) != 0)
        return false;
    for (size_t i = 0; i < env->n; i++) {
        const size_t n = strcspn(env->v[i], "=");

        if (json_array_append_new(
                list, json_pack("{s:s%, s:s}", "name", env->v[i], n, "value", env->v[i] + n + 1)) != 0)
            return false;
    }
    return true;
}

/* NULL: out of memory, or a word that is not UTF-8. */
static json_t *container_of_flags(const struct debug *o, const char *name, char **command, int n)
{
    const struct profile *profile = profile_find(o->profile);
    const char *security = NULL;
    json_auto_t *c = json_pack("{s:s, s:s, s:s*, s:s*}", "name", name, "image", o->image,
                               "targetContainerName", o->target, "imagePullPolicy", o->pull);

    if (c == NULL || !add_words(c, o->arguments ? "args" : "command", command, n))
        return NULL;
    if (profile != NULL) /* the flag was checked */
        security = o->node ? profile->of_node : profile->of_pod;
    if (security != NULL && json_object_set_new(c, "securityContext", json_loads(security, 0, NULL)) != 0)
        return NULL;
    if (o->env.n > 0 && !add_env(c, &o->env))
        return NULL;
    if (o->stdin_ && json_object_set_new(c, "stdin", json_true()) != 0)
        return NULL;
    /* A pipe ends once; on a terminal others may attach later. */
    if (o->stdin_ && !o->tty && json_object_set_new(c, "stdinOnce", json_true()) != 0)
        return NULL;
    if (o->tty && json_object_set_new(c, "tty", json_true()) != 0)
        return NULL;
    return json_incref(c);
}

/* ---- waiting for it ---- */

struct awaited {
    struct cli *cli;
    const char *container;
    char pod[DEBUG_POD_SIZE + 64]; /* the pod's name, when it is there */
    char told[64];                 /* the reason for waiting that was printed last */
    bool runs, ended, lost;
};

static void say_why(struct awaited *a, const json_t *waiting)
{
    const char *reason = cli_text(waiting, "reason"), *message = cli_text(waiting, "message");

    if (message[0] == '\0' || strcmp(reason, "PodInitializing") == 0 ||
        strcmp(reason, "ContainerCreating") == 0 || strncmp(reason, a->told, sizeof(a->told) - 1) == 0)
        return;
    snprintf(a->told, sizeof(a->told), "%s", reason);
    cli_note(a->cli, "Warning: container %s: %s: %s\n", a->container, reason, message);
}

static bool debug_on_change(const char *type, json_t *pod, void *arg)
{
    static const char *const lists[] = { "status.ephemeralContainerStatuses", "status.containerStatuses" };
    struct awaited *a = arg;
    const json_t *status = NULL;
    const char *phase = cli_text(pod, "status.phase");

    snprintf(a->pod, sizeof(a->pod), "%s", cli_text(pod, "metadata.name"));
    for (size_t i = 0; i < ARRAY_LEN(lists) && status == NULL; i++)
        status = cli_find(cli_at(pod, lists[i]), "name", a->container);
    a->runs = cli_at(status, "state.running") != NULL;
    a->ended = cli_at(status, "state.terminated") != NULL;
    a->lost = strcmp(type, "DELETED") == 0 || strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0;
    say_why(a, cli_at(status, "state.waiting"));
    return !a->runs && !a->ended && !a->lost;
}

/* `selector`: of the pod. */
static int await(struct awaited *a, const char *namespace_, const char *parameter, const char *selector)
{
    buf_auto url = BUF_INIT(64 * 1024);
    int code;

    buf_adds(&url, "/api/v1/namespaces/");
    percent_add(&url, namespace_);
    buf_addf(&url, "/pods?watch=true&%s=", parameter);
    percent_add(&url, selector);
    code = cli_watch(a->cli, url.p, debug_on_change, a);
    if (code == EXIT_OK && !a->runs && !a->ended)
        code = cli_error(a->cli, "pod %s has ended", a->pod);
    return code;
}

/* ---- its streams ---- */

static bool debug_on_log(const char *data, size_t n, void *arg)
{
    return cli_write(arg, data, n);
}

static int print_log(struct cli *cli, const char *namespace_, const char *pod, const char *container)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    buf_auto url = BUF_INIT(64 * 1024);
    struct err e = { 0 };
    int code = EXIT_OK;

    cli_add_pod_path(&url, namespace_, pod);
    buf_adds(&url, "/log?container=");
    percent_add(&url, container);
    cli_note(cli, "Container %s has ended; this is its log:\n", container);
    if (cli_request(cli, "GET", url.p, false, debug_on_log, cli, &r, &e) != ERR_OK)
        code = cli_failed(cli, &e);
    else if (r.code != 200)
        code = cli_server_error(cli, &r);
    buf_done(&r.body);
    return code;
}

static int stay(struct cli *cli, const struct debug *o, const struct awaited *a)
{
    const struct attach attach = {
        .namespace_ = o->namespace_, .container = a->container, .stdin_ = o->stdin_, .tty = o->tty
    };
    int code;

    if (a->ended)
        return print_log(cli, o->namespace_, a->pod, a->container);
    code = attach_to(cli, &attach, a->pod);
    if (o->tty && o->node)
        cli_note(cli, "The pod stays until it is deleted: coracle delete pod %s -n %s\n", a->pod,
                 o->namespace_);
    else if (o->tty)
        cli_note(cli, "If the container still runs: coracle attach -it -n %s -c %s %s\n", o->namespace_,
                 a->container, a->pod);
    return code;
}

/* ---- the command ---- */

static int debug_pod(struct cli *cli, const struct debug *o, const char *pod, const json_t *container)
{
    const char *name = cli_text(container, "name");
    struct awaited a = { .cli = cli, .container = name };
    buf_auto url = BUF_INIT(64 * 1024), selector = BUF_INIT(1024);
    int code;

    cli_add_pod_path(&url, o->namespace_, pod);
    buf_adds(&url, "/ephemeralcontainers");
    json_decref(cli_post(cli, url.p, container, &code));
    if (code == EXIT_NOT_FOUND)
        cli_hint_pod(cli, o->namespace_, pod);
    if (code != EXIT_OK)
        return code;
    if (o->container == NULL)
        cli_note(cli, "Defaulting debug container name to %s.\n", name);
    if (!o->attach)
        return EXIT_OK;
    buf_addf(&selector, "metadata.name=%s", pod);
    code = await(&a, o->namespace_, "fieldSelector", selector.p);
    return code == EXIT_OK ? stay(cli, o, &a) : code;
}

static int debug_node(struct cli *cli, const struct debug *o, const char *node, const json_t *container)
{
    struct awaited a = { .cli = cli, .container = cli_text(container, "name") };
    char selector[DEBUG_POD_SIZE + 64], pod[DEBUG_POD_SIZE];
    int code = debug_node_make(cli, node, o->namespace_, container, pod);

    if (code != EXIT_OK || !o->attach)
        return code;
    snprintf(selector, sizeof(selector), DEBUG_INSTANCE "=%s", pod);
    code = await(&a, o->namespace_, "labelSelector", selector);
    return code == EXIT_OK ? stay(cli, o, &a) : code;
}

static int check_flags(struct cli *cli, const struct debug *o)
{
    if (profile_find(o->profile) == NULL)
        return cli_wrong(cli, "--profile is general, baseline, restricted, netadmin or sysadmin, not \"%s\"",
                         o->profile);
    for (size_t i = 0; i < o->env.n; i++)
        if (strchr(o->env.v[i], '=') == NULL || o->env.v[i][0] == '=')
            return cli_wrong(cli, "--env: NAME=VALUE is expected, not \"%s\"", o->env.v[i]);
    if (o->node && o->target != NULL)
        return cli_wrong(cli, "--target is for pods");
    return EXIT_OK;
}

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct debug, namespace_, "the pod's namespace (default)"),
    { "image", 0, FLAG_TEXT, offsetof(struct debug, image), "IMAGE", "the container's image (required)",
      "@image" },
    { "container", 'c', FLAG_TEXT, offsetof(struct debug, container), "NAME",
      "the new container's name (debugger-XXXXX)" },
    { "target", 0, FLAG_TEXT, offsetof(struct debug, target), "CONTAINER",
      "the container whose processes are visible", "@container" },
    { "stdin", 'i', FLAG_SWITCH, offsetof(struct debug, stdin_), NULL,
      "pass standard input to the container" },
    { "tty", 't', FLAG_SWITCH, offsetof(struct debug, tty), NULL, "allocate a terminal (with -i)" },
    { "attach", 0, FLAG_SWITCH, offsetof(struct debug, attach), NULL,
      "wait for the container and attach to it (default with -i)" },
    { "env", 0, FLAG_LIST, offsetof(struct debug, env), "NAME=VALUE", "set an environment variable" },
    { "arguments-only", 0, FLAG_SWITCH, offsetof(struct debug, arguments), NULL,
      "the words after -- are arguments of the image's command" },
    { "image-pull-policy", 0, FLAG_TEXT, offsetof(struct debug, pull), "POLICY",
      "Always, IfNotPresent or Never", "Always|IfNotPresent|Never" },
    { "profile", 0, FLAG_TEXT, offsetof(struct debug, profile), "PROFILE",
      "privileges: general (may trace processes), baseline, restricted, netadmin or sysadmin (privileged)",
      "general|baseline|restricted|netadmin|sysadmin" },
    CLI_FLAGS_END,
};

static int cli_debug_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct debug o = { .namespace_ = "default", .profile = "general" };
    json_auto_t *container = NULL;
    char name[64] = "debugger";
    const char *subject;
    int code;

    if (!cli_parse(cli, command, &o, &argc, argv, &code))
        return code;
    if (argc < 1)
        return cli_usage_error(cli, command, "you must specify a pod, or node/NAME");
    if (o.image == NULL)
        return cli_usage_error(cli, command, "you must specify --image");
    o.node = strchr(argv[0], '/') != NULL && cli_is_kind(argv[0], cli_node_kinds);
    o.attach |= o.stdin_;
    o.tty &= o.stdin_;
    code = check_flags(cli, &o);
    if (code != EXIT_OK)
        return code;
    subject = o.node ? strchr(argv[0], '/') + 1 : cli_resource_name(argv[0], cli_pod_kinds);
    if (subject == NULL)
        return cli_no_pod(cli, argv[0]);
    if (o.container != NULL)
        snprintf(name, sizeof(name), "%s", o.container);
    else if (!o.node)
        debug_name("debugger-", name, sizeof(name));
    container = container_of_flags(&o, name, argv + 1, argc - 1);
    if (container == NULL)
        return cli_error(cli, "a word is not UTF-8, or memory is short");
    return o.node ? debug_node(cli, &o, subject, container) : debug_pod(cli, &o, subject, container);
}

static const struct cli_example examples[] = {
    { "a shell that sees the processes of a container without one",
      "coracle debug -it web --image busybox --target main" },
    { "trace a process", "coracle debug -it web --image alpine --target main --profile sysadmin -- sh" },
    { "a shell in the node's namespaces, with the node's files in /host",
      "coracle debug -it node/$(hostname) --image busybox" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 0, "the container was added; with -i: it ended with 0, or ctrl-p, ctrl-q was typed" },
    { 1, "an error, described on standard error" },
    { 2, "a usage error: an invalid word, flag or value" },
    CLI_EXITS_DAEMON,
    { 128, "and above: with a terminal: 128 plus the number of the signal that ended coracle" },
    { 0, NULL },
};

const struct cli_command command_debug = {
    .name = "debug",
    .run = cli_debug_run,
    .summary = "debug a pod or the node with an additional container",
    .usage = "debug POD --image IMAGE [-it] [--target CONTAINER] [flags] [-- COMMAND [ARG...]]\n"
             "debug node/NAME --image IMAGE [-it] [flags] [-- COMMAND [ARG...]]",
    .about = "Adds an ephemeral container to a pod of the manifest folder.  The container has its own "
             "image, shares the pod's network, and with --target sees the processes of another "
             "container.  It is never restarted, and belongs to the pod until the pod ends; the pod's "
             "file does not change.  With node/NAME, the command creates a pod in the manifest folder "
             "that runs in the node's network, process and IPC namespaces, with the node's files at "
             "/host.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "attach exec delete",
    .words = "@pod @nothing",
};
