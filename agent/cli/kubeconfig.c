/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle config kubeconfig`: the kubeconfig file of each value, and the problems of the files. */
#include "agent/cli/internal.h"
#include "agent/kube/config/config.h"
#include "base/codec/json.h"

#include <stdlib.h>
#include <string.h>

#define VALUE_COLUMN 56 /* origins follow it */

struct kubeconfig {
    struct kube_flags flags;
    const char *as_group, *output;
};

#define AT(member) offsetof(struct kubeconfig, flags.member)

static const struct cli_flag kubeconfig_flags[] = {
    { "kubeconfig", 0, FLAG_TEXT, AT(kubeconfig), "FILE", "use only this file, instead of KUBECONFIG",
      "@file" },
    { "context", 0, FLAG_TEXT, AT(context), "NAME", "instead of current-context", NULL },
    { "cluster", 0, FLAG_TEXT, AT(cluster), "NAME", "instead of the context's cluster", NULL },
    { "user", 0, FLAG_TEXT, AT(user), "NAME", "instead of the context's user", NULL },
    { "namespace", 'n', FLAG_TEXT, AT(namespace_), "NS", "instead of the context's namespace", "@nothing" },
    { "server", 's', FLAG_TEXT, AT(server), "URL", "instead of the cluster's server", NULL },
    { "tls-server-name", 0, FLAG_TEXT, AT(tls_server_name), "NAME",
      "server name for certificate verification and SNI", NULL },
    { "certificate-authority", 0, FLAG_TEXT, AT(ca), "FILE", "instead of the cluster's CA", "@file" },
    { "insecure-skip-tls-verify", 0, FLAG_SWITCH, AT(insecure), NULL, "do not check the server's certificate",
      NULL },
    { "disable-compression", 0, FLAG_SWITCH, AT(no_compression), NULL, "do not request compressed responses",
      NULL },
    { "client-certificate", 0, FLAG_TEXT, AT(certificate), "FILE", "instead of the user's certificate",
      "@file" },
    { "client-key", 0, FLAG_TEXT, AT(key), "FILE", "instead of the user's key", "@file" },
    { "token", 0, FLAG_TEXT, AT(token), "TOKEN", "instead of the user's token", NULL },
    { "username", 0, FLAG_TEXT, AT(username), "NAME", "instead of the user's name", NULL },
    { "password", 0, FLAG_TEXT, AT(password), "TEXT", "instead of the user's password", NULL },
    { "as", 0, FLAG_TEXT, AT(as), "USER", "user to impersonate", NULL },
    { "as-uid", 0, FLAG_TEXT, AT(as_uid), "UID", "its uid", NULL },
    { "as-group", 0, FLAG_TEXT, offsetof(struct kubeconfig, as_group), "GROUP", "its group", NULL },
    CLI_OUTPUT(struct kubeconfig, output, "json", "json; default: human-readable"),
    CLI_FLAGS_END,
};

/* ---- for people ---- */

static void kubeconfig_add_value(struct buf *out, const json_t *v)
{
    mem_auto char *text = NULL;

    if (json_flag(v, "secret")) {
        buf_addf(out, "(secret, %lld bytes)", (long long)json_int(v, "bytes", 0));
    } else if (json_is_object(v) && json_object_size(v) == 1 && json_object_get(v, "bytes") != NULL) {
        buf_addf(out, "(%lld bytes)", (long long)json_int(v, "bytes", 0));
    } else if (json_is_string(v)) {
        buf_adds(out, json_string_value(v));
    } else {
        text = json_dumps(v, JSON_ENCODE_ANY);
        buf_adds(out, text != NULL ? text : "");
    }
}

/* `from` is NULL: nothing follows. */
static void end_line(struct buf *out, size_t start, const char *from)
{
    size_t length = out->n - start;

    if (from != NULL)
        buf_addf(out, "%*s  # %s", (int)(length < VALUE_COLUMN ? VALUE_COLUMN - length : 0), "", from);
    buf_addc(out, '\n');
}

static void add_field(struct buf *out, int indent, const char *name, const json_t *v, const char *from)
{
    size_t start = out->n;
    const char *member;
    json_t *inner;

    buf_addf(out, "%*s%s:", indent, "", name);
    if (json_is_object(v) && json_object_get(v, "bytes") == NULL && indent < 8) {
        end_line(out, start, from);
        json_object_foreach ((json_t *)v, member, inner)
            add_field(out, indent + 2, member, inner, NULL);
        return;
    }
    buf_addc(out, ' ');
    kubeconfig_add_value(out, v);
    end_line(out, start, from);
}

static void add_part(struct buf *out, const json_t *shown, const char *kind)
{
    const json_t *part = json_object_get(shown, kind), *value;
    const char *name = json_str(part, "name"), *named = json_str(part, "named"),
               *from = json_str(part, "from"), *field;
    size_t start = out->n;
    str_auto note = NULL;

    if (name == NULL)
        note = strdup("none");
    else if (from == NULL)
        note = str_printf("named by %s; no file has it", named != NULL ? named : "nothing");
    else
        note = str_printf("named by %s", named != NULL ? named : "nothing");
    buf_addf(out, "%s:%s%s", kind, name != NULL ? " " : "", name != NULL ? name : "");
    end_line(out, start, note);
    json_object_foreach (json_object_get(part, "values"), field, value)
        add_field(out, 2, field, json_object_get(value, "value"), json_str(value, "from"));
}

static void add_files(struct buf *out, const json_t *list, const char *what)
{
    json_t *path;
    size_t i;

    json_array_foreach (list, i, path)
        buf_addf(out, "%s %s\n", what, json_string_value(path));
}

static void kubeconfig_print(struct cli *cli, const json_t *shown)
{
    buf_auto out = BUF_INIT(4u << 20), clean = BUF_INIT(16u << 20);

    add_files(&out, json_object_get(shown, "files"), "# file:");
    add_files(&out, json_object_get(shown, "missing"), "# not there:");
    add_part(&out, shown, "context");
    add_part(&out, shown, "cluster");
    add_part(&out, shown, "user");
    cli_add_clean(&clean, out.p); /* names and values are the file's own */
    cli_write(cli, clean.p, clean.n);
}

static int cli_kubeconfig_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct kube_ask ask = kube_ask_of((const char *const *)environ);
    struct kubeconfig o = { 0 };
    const char *groups[2] = { NULL };
    struct kube_config all = { 0 };
    struct kube_choice choice = { 0 };
    json_auto_t *shown = NULL;
    struct err e = { 0 };
    int code = EXIT_OK;

    if (!cli_parse(cli, command, &o, &argc, argv, &code))
        return code;
    if (argc > 0)
        return cli_usage_error(cli, command, "unexpected word \"%s\"", argv[0]);
    if (o.output != NULL && strcmp(o.output, "json") != 0)
        return cli_wrong(cli, "unknown output format \"%s\": json", o.output);
    ask.flags = o.flags;
    groups[0] = o.as_group;
    ask.flags.as_groups = groups;
    if (kube_config_load(&all, &ask, &e) == ERR_OK &&
        kube_config_choose(&choice, &all, &ask.flags, &e) == ERR_OK) {
        shown = kube_config_show(&choice, &all);
        if (shown == NULL)
            err_nomem(&e);
        else if (o.output != NULL)
            cli_print_value(cli, shown, o.output);
        else
            kubeconfig_print(cli, shown);
        if (e.code == ERR_OK)
            ERR_IGNORE(kube_config_check(&choice, &all, &e));
    }
    kube_choice_done(&choice);
    kube_config_done(&all);
    return e.code == ERR_OK ? EXIT_OK : cli_error(cli, "%s", e.text);
}

static const struct cli_example kubeconfig_examples[] = {
    { "the files in KUBECONFIG, or ~/.kube/config", "coracle config kubeconfig" },
    { "the file of a node", "coracle config kubeconfig --kubeconfig /etc/kubernetes/kubelet.conf" },
    { "another context, for a program", "coracle config kubeconfig --context edge -o json" },
    { NULL, NULL },
};

const struct cli_command command_kubeconfig = {
    .name = "config kubeconfig",
    .run = cli_kubeconfig_run,
    .summary = "show the kubeconfig in use and the file of each value",
    .usage =
        "config kubeconfig [--kubeconfig FILE] [--context NAME] [--cluster NAME] [--user NAME] [-o json]",
    .about = "Reads kubeconfig files as kubectl and kubelet do, and shows the effective context, "
             "cluster and user, with the file of each value.  For secrets, only the length is shown.  "
             "The command reports an error for everything that a node could not use.",
    .flags = kubeconfig_flags,
    .examples = kubeconfig_examples,
    .exits = cli_exits_local,
    .see_also = "config",
    .words = "@nothing",
};
