/* SPDX-License-Identifier: Apache-2.0 */
/* Completion. The shells' scripts are short (`coracle completion`): they pass on the words and get the
 * candidates for the last one, from the same tables as everything else, with names from the daemon. Without a
 * daemon there are just no names. */
#include "agent/cli/internal.h"
#include "agent/config/config.h"
#include "base/codec/json.h"
#include "base/codec/percent.h"

#include <string.h>

enum { PATIENCE_MS = 2000 }; /* the user is waiting */

struct completion {
    struct cli *cli;
    const struct cli_command *command;
    char **words; /* after the command */
    int n;        /* without the last one, which is being completed */
    const char *begun;
    const char *namespace_, *pod;    /* as typed so far */
    const char *first, *second;      /* of the command's own words */
    int place;                       /* which of the command's own words is next; 0: the first */
    const struct cli_flag *value_of; /* the last word is the value of this flag */
    const char *before;              /* the text before a candidate: "--output=" */
    struct buf *out;
};

static void candidate(struct completion *c, const char *word, size_t n, const char *meaning)
{
    size_t begun = strlen(c->begun);

    if (n < begun || strncmp(word, c->begun, begun) != 0)
        return;
    buf_adds(c->out, c->before);
    buf_add(c->out, word, n);
    if (meaning != NULL)
        buf_addf(c->out, "\t%s", meaning);
    buf_addc(c->out, '\n');
}

/* ---- names from the daemon ---- */

static json_t *complete_ask(const struct completion *c, const char *url)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    json_t *value = NULL;

    if (cli_request(c->cli, "GET", url, false, NULL, NULL, &r, ERR_IGNORED) == ERR_OK && r.code == 200)
        ERR_IGNORE(json_parse(r.body.p, r.body.n, CLI_BODY_MAX, &value, "answer", ERR_IGNORED));
    buf_done(&r.body);
    return value;
}

static json_t *ask_pods(const struct completion *c, bool all)
{
    buf_auto url = BUF_INIT(64 * 1024);

    buf_adds(&url, "/api/v1");
    if (!all) {
        buf_adds(&url, "/namespaces/");
        percent_add(&url, c->namespace_);
    }
    buf_adds(&url, "/pods");
    return complete_ask(c, url.p);
}

static void complete_name_of(struct completion *c, const char *name)
{
    if (name[0] != '\0' && cli_is_clean(name))
        candidate(c, name, strlen(name), NULL);
}

static void pods(struct completion *c)
{
    json_auto_t *list = ask_pods(c, false);
    const json_t *pod;
    size_t i;

    json_array_foreach (cli_at(list, "items"), i, pod)
        complete_name_of(c, cli_text(pod, "metadata.name"));
}

static void namespaces(struct completion *c)
{
    json_auto_t *list = ask_pods(c, true), *seen = json_object();
    const json_t *pod;
    size_t i;

    json_array_foreach (cli_at(list, "items"), i, pod) {
        const char *name = cli_text(pod, "metadata.namespace");

        if (json_object_get(seen, name) == NULL)
            complete_name_of(c, name);
        json_object_set_new(seen, name, json_true());
    }
}

static void containers(struct completion *c)
{
    static const char *const lists[] = { "spec.containers", "spec.initContainers",
                                         "spec.ephemeralContainers" };
    json_auto_t *list = NULL;
    const json_t *pod, *container;
    size_t i, k;

    if (c->pod == NULL)
        return;
    list = ask_pods(c, false);
    json_array_foreach (cli_at(list, "items"), i, pod) {
        for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
            if (strcmp(cli_text(pod, "metadata.name"), c->pod) != 0)
                continue;
            json_array_foreach (cli_at(pod, lists[l]), k, container)
                complete_name_of(c, cli_text(container, "name"));
        }
    }
}

/* "pod/web", "node/n1": the objects of events. */
static void objects(struct completion *c)
{
    json_auto_t *all_pods = ask_pods(c, false), *nodes = complete_ask(c, "/api/v1/nodes");
    const json_t *const lists[] = { all_pods, nodes };
    static const char *const kinds[] = { "pod", "node" };
    const json_t *o;
    size_t i;

    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        json_array_foreach (cli_at(lists[k], "items"), i, o) {
            str_auto word = str_printf("%s/%s", kinds[k], cli_text(o, "metadata.name"));

            if (word != NULL)
                complete_name_of(c, word);
        }
    }
}

static void images(struct completion *c)
{
    json_auto_t *list = complete_ask(c, "/images");
    const json_t *image, *name;
    size_t i, k;

    json_array_foreach (cli_at(list, "items"), i, image) {
        json_array_foreach (cli_at(image, "names"), k, name)
            complete_name_of(c, json_string_value(name));
    }
}

static void names_of(struct completion *c, const struct api_kind_row *kind)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_auto_t *list = NULL;
    const json_t *o;
    size_t i;

    if (kind->id == API_KINDS) {
        images(c);
        return;
    }
    cli_add_kind_path(&url, kind, c->namespace_, NULL);
    list = complete_ask(c, url.p);
    json_array_foreach (cli_at(list, "items"), i, o)
        complete_name_of(c, cli_text(o, "metadata.name"));
}

/* The resources that have devices; the list is grouped by them. */
static void device_resources(struct completion *c)
{
    json_auto_t *list = complete_ask(c, "/devices");
    const char *last = "";
    const json_t *device;
    size_t i;

    json_array_foreach (cli_at(list, "items"), i, device) {
        const char *resource = cli_text(device, "resource");

        if (strcmp(resource, last) != 0)
            complete_name_of(c, resource);
        last = resource;
    }
}

/* Of the kind given by the first word, or by the second ("rollout status deployment"). */
static void named(struct completion *c)
{
    static const char *const device_kinds[] = { "devices", "device", NULL };
    const struct api_kind_row *kind = c->first != NULL ? cli_kind_find(c->first) : NULL;

    if (kind == NULL && c->second != NULL)
        kind = cli_kind_find(c->second);
    if (kind != NULL)
        names_of(c, kind);
    else if (c->first != NULL && cli_is_kind(c->first, device_kinds))
        device_resources(c);
}

/* ---- words and flags ---- */

static void commands(struct completion *c)
{
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        if (!cli_commands[i]->hidden && strchr(cli_commands[i]->name, ' ') == NULL)
            candidate(c, cli_commands[i]->name, strlen(cli_commands[i]->name), cli_commands[i]->summary);
}

static bool complete_is(const char *word, size_t n, const char *what)
{
    return strlen(what) == n && strncmp(word, what, n) == 0;
}

/* "a|b|@pod" */
static void alternatives(struct completion *c, const char *spec, size_t n)
{
    for (const char *end = spec + n; spec < end;) {
        const char *bar = memchr(spec, '|', (size_t)(end - spec));
        size_t length = (size_t)((bar != NULL ? bar : end) - spec);

        if (spec[0] != '@')
            candidate(c, spec, length, NULL);
        else if (complete_is(spec, length, "@pod"))
            pods(c);
        else if (complete_is(spec, length, "@named"))
            named(c);
        else if (complete_is(spec, length, "@object"))
            objects(c);
        else if (complete_is(spec, length, "@container"))
            containers(c);
        else if (complete_is(spec, length, "@namespace"))
            namespaces(c);
        else if (complete_is(spec, length, "@image"))
            images(c);
        else if (complete_is(spec, length, "@command"))
            commands(c);
        else if (complete_is(spec, length, "@file"))
            buf_adds(c->out, ":files\n");
        spec += length + 1;
    }
}

static bool has(const char *spec, size_t n, const char *what)
{
    return memmem(spec, n, what, strlen(what)) != NULL;
}

/* "pod/w", if a name, or a kind followed by a name, is expected. False: neither. */
static bool with_kind(struct completion *c, const char *spec)
{
    const char *slash = strchr(c->begun, '/');
    const struct api_kind_row *kind = slash != NULL ? cli_kind_find(c->begun) : NULL;
    const char *next = spec + strcspn(spec, " ");
    size_t n = c->place == 0 && next[0] != '\0' ? (size_t)(next + 1 + strcspn(next + 1, " ") - spec)
                                                : (size_t)(next - spec);
    buf_auto before = BUF_INIT(4096);

    if (kind == NULL || has(spec, n, "@file") ||
        !(has(spec, n, "@named") || (has(spec, n, "@pod") && kind->id == API_KIND_POD)))
        return false;
    buf_add(&before, c->begun, (size_t)(slash + 1 - c->begun));
    c->before = before.p;
    c->begun = slash + 1;
    names_of(c, kind);
    c->before = "";
    return true;
}

static void complete_place(struct completion *c)
{
    const char *spec = c->command->words;

    for (int i = 0; i < c->place && *spec != '\0'; i++) {
        const char *next = spec + strcspn(spec, " ");

        next += strspn(next, " ");
        if (strcmp(next, "...") == 0)
            break;
        spec = next;
    }
    if (!with_kind(c, spec))
        alternatives(c, spec, strcspn(spec, " "));
}

static void complete_add_flag(struct completion *c, const char *name, const char *help)
{
    buf_auto word = BUF_INIT(256);

    buf_addf(&word, "--%s", name);
    candidate(c, word.p, word.n, help);
}

static void add_setting(const struct config_documented *s, void *arg)
{
    if (s->flag != NULL && s->why == NULL && s->flag[1] != '\0')
        complete_add_flag(arg, s->flag, s->help);
}

static bool takes_settings(const struct cli_command *command)
{
    return command == &command_run || command == &command_config;
}

static void common_flags(struct completion *c)
{
    for (const struct cli_flag *f = cli_common_flags; f->name != NULL; f++)
        complete_add_flag(c, f->name, f->help);
}

static void flags(struct completion *c)
{
    for (const struct cli_flag *f = c->command->flags; f->name != NULL; f++)
        complete_add_flag(c, f->name, f->help);
    if (takes_settings(c->command))
        config_documented(add_setting, c);
    if (c->command != &command_run)
        common_flags(c);
}

/* ---- the words typed so far ---- */

static const struct cli_flag *flag_of(const struct cli_flag *flags, const char *word, size_t n)
{
    for (; flags->name != NULL; flags++)
        if ((n == 2 && word[1] == flags->letter && flags->letter != 0) ||
            (n > 2 && strlen(flags->name) == n - 2 && strncmp(word + 2, flags->name, n - 2) == 0))
            return flags;
    return NULL;
}

static const struct cli_flag *find_flag(const struct completion *c, const char *word, size_t n)
{
    const struct cli_flag *f = flag_of(c->command != NULL ? c->command->flags : cli_early_flags, word, n);

    return f != NULL ? f : flag_of(cli_common_flags, word, n);
}

static void note_value(struct completion *c, const struct cli_flag *f, const char *value)
{
    if (strcmp(f->name, "namespace") == 0)
        c->namespace_ = value;
    else if (strcmp(f->name, "socket") == 0)
        c->cli->socket = value;
}

static void note_word(struct completion *c, const char *word)
{
    const char *spec = c->command->words;

    if (c->place == 0)
        c->first = word;
    else if (c->place == 1)
        c->second = word;
    for (int i = 0; i < c->place && *spec != '\0'; i++) {
        spec += strcspn(spec, " ");
        spec += strspn(spec, " ");
    }
    if (strncmp(spec, "@pod", 4) == 0 && c->pod == NULL)
        c->pod = strchr(word, '/') != NULL ? strchr(word, '/') + 1 : word;
    c->place++;
}

static void read_words(struct completion *c)
{
    for (int i = 0; i < c->n; i++) {
        const char *word = c->words[i], *equals = strchr(word, '=');
        const struct cli_flag *f;

        if (word[0] != '-' || word[1] == '\0') {
            note_word(c, word);
            continue;
        }
        f = find_flag(c, word, equals != NULL ? (size_t)(equals - word) : strlen(word));
        if (f == NULL || f->type == FLAG_SWITCH)
            continue;
        if (equals != NULL)
            note_value(c, f, equals + 1);
        else if (++i < c->n)
            note_value(c, f, c->words[i]);
        else
            c->value_of = f;
    }
}

/* The words before the command; returns their number. */
static int read_early(struct completion *c, int n, char **words)
{
    const struct cli_flag *f;
    const char *value;
    int at = 0, taken;

    while ((f = cli_early_flag(n - at, words + at, &value, &taken)) != NULL) {
        if (value != NULL)
            note_value(c, f, value);
        else if (f->type == FLAG_TEXT)
            c->value_of = f;
        at += taken;
    }
    return at;
}

static void early_flags(struct completion *c)
{
    common_flags(c);
    for (const struct cli_flag *f = cli_early_flags; f->name != NULL; f++)
        complete_add_flag(c, f->name, f->help);
    complete_add_flag(c, "version", "of this program");
}

static void complete_value(struct completion *c)
{
    const char *spec = c->value_of->words != NULL ? c->value_of->words : "";

    alternatives(c, spec, strlen(spec));
}

/* "--output=js": the value is completed. */
static void split_begun(struct completion *c, struct buf *before)
{
    const char *equals = strchr(c->begun, '=');

    if (c->value_of != NULL || equals == NULL || strncmp(c->begun, "--", 2) != 0)
        return;
    c->value_of = find_flag(c, c->begun, (size_t)(equals - c->begun));
    if (c->value_of == NULL || c->value_of->type == FLAG_SWITCH) {
        c->value_of = NULL;
        return;
    }
    buf_add(before, c->begun, (size_t)(equals + 1 - c->begun));
    c->before = before->p;
    c->begun = equals + 1;
}

/* The remaining words belong to another program or are not flags. */
static bool complete_is_over(const struct completion *c)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->words[i], "--") == 0)
            return true;
    return c->command->rest_from > 0 && c->place >= c->command->rest_from;
}

/* Candidates for the last of the words (those after "coracle"; it may be empty): one per line, with a tab and
 * its meaning if known; ":files" if file names are expected. */
static void words(struct cli *cli, int argc, char **argv, struct buf *out)
{
    struct completion c = { .cli = cli, .out = out, .namespace_ = "default", .before = "" };
    buf_auto before = BUF_INIT(4096);
    int early;

    if (argc < 1)
        return;
    cli->patience_ms = PATIENCE_MS;
    c.begun = argv[argc - 1];
    early = read_early(&c, argc - 1, argv);
    argv += early;
    argc -= early;
    if (argc == 1) {
        split_begun(&c, &before);
        if (c.value_of != NULL)
            complete_value(&c);
        else if (c.begun[0] == '-')
            early_flags(&c);
        else
            commands(&c);
        return;
    }
    c.command = cli_command_find(argv[0]);
    if (c.command == NULL)
        return;
    if (c.command == &command_config && argc > 2 && strcmp(argv[1], "kubeconfig") == 0) {
        c.command = &command_kubeconfig;
        argv++;
        argc--;
    }
    c.words = argv + 1;
    c.n = argc - 2;
    read_words(&c);
    split_begun(&c, &before);
    if (c.value_of != NULL)
        complete_value(&c);
    else if (c.begun[0] == '-' && !complete_is_over(&c))
        flags(&c);
    else
        complete_place(&c);
}

/* ---- the commands ---- */

static int run_complete(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    buf_auto out = BUF_INIT(4u << 20);

    (void)command;
    words(cli, argc, argv, &out);
    cli_write(cli, out.p, out.n);
    return EXIT_OK;
}

static const struct cli_flag no_flags[] = { CLI_FLAGS_END };

static const struct cli_example complete_examples[] = {
    { "candidates after \"logs \"", "coracle __complete logs ''" },
    { NULL, NULL },
};

const struct cli_command command_complete = {
    .name = "__complete",
    .run = run_complete,
    .summary = "for shell completion",
    .usage = "__complete [WORD...]",
    .about = "Prints candidates for the last word.",
    .flags = no_flags,
    .examples = complete_examples,
    .exits = cli_exits_local,
    .words = "@nothing",
    .hidden = true,
};
