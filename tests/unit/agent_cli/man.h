/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages (docs/man) from the tables: man(7) macros, for man-db and mandoc alike. */
#ifndef TESTS_AGENT_CLI_MAN_H
#define TESTS_AGENT_CLI_MAN_H
#include "agent/api/annotations.h"
#include "agent/cli/internal.h"
#include "agent/config/config.h"

#include <string.h>

/* Date of the last change in this file, so that builds are reproducible. */
#define TEXT_OF "2026-11-23"

/* ---- troff ---- */

/* Escapes text: no request begins in it, and hyphens can be copied. */
static void man_add_text(struct buf *out, const char *text, size_t n)
{
    bool begins = out->n == 0 || out->p[out->n - 1] == '\n';

    for (size_t i = 0; i < n; i++) {
        char c = text[i];

        if (begins && (c == '.' || c == '\''))
            buf_adds(out, "\\&");
        begins = c == '\n';
        if (c == '\\')
            buf_adds(out, "\\e");
        else if (c == '-')
            buf_adds(out, "\\-");
        else if (c == '^')
            buf_adds(out, "\\(ha");
        else if (c == '~')
            buf_adds(out, "\\(ti");
        else if (c == '`')
            buf_adds(out, "\\(ga");
        else if (c == '\'')
            buf_adds(out, "\\(aq");
        else if (c == ' ' && i + 1 < n && text[i + 1] == ' ' && i > 0 && text[i - 1] == '.')
            i++, buf_addc(out, '\n'), begins = true; /* a sentence per line, as usual in troff */
        else
            buf_addc(out, c);
    }
}

static void man_text(struct buf *out, const char *s)
{
    man_add_text(out, s, strlen(s));
}

static void line(struct buf *out, const char *s)
{
    man_text(out, s);
    buf_addc(out, '\n');
}

static void request(struct buf *out, const char *name, const char *argument)
{
    buf_addf(out, ".%s \"", name);
    man_text(out, argument);
    buf_adds(out, "\"\n");
}

static void title(struct buf *out, const char *name, const char *section, const char *what)
{
    buf_adds(out, ".TH ");
    for (const char *p = name; *p != '\0'; p++)
        buf_addc(out, *p >= 'a' && *p <= 'z' ? (char)(*p & ~0x20) : *p);
    buf_addf(out, " %s " TEXT_OF " \"coracle " CORACLE_VERSION "\" \"Coracle\"\n.ad l\n.SH NAME\n", section);
    man_text(out, name);
    buf_adds(out, " \\- ");
    line(out, what);
}

/* ---- coracle(1) ---- */

static void add_flags(struct buf *out, const struct cli_flag *f)
{
    for (; f->name != NULL; f++) {
        buf_adds(out, ".TP\n");
        if (f->letter != 0)
            buf_addf(out, "\\fB\\-%c\\fR, ", f->letter);
        buf_adds(out, "\\fB\\-\\-");
        man_text(out, f->name);
        buf_adds(out, "\\fR");
        if (f->value != NULL) {
            buf_adds(out, " \\fI");
            man_text(out, f->value);
            buf_adds(out, "\\fR");
        }
        buf_addc(out, '\n');
        line(out, f->help);
    }
}

static void add_forms(struct buf *out, const char *usage)
{
    buf_adds(out, ".nf\n");
    for (;;) {
        size_t n = strcspn(usage, "\n");

        buf_adds(out, "\\fBcoracle\\fR ");
        man_add_text(out, usage, n);
        buf_addc(out, '\n');
        if (usage[n] == '\0')
            break;
        usage += n + 1;
    }
    buf_adds(out, ".fi\n");
}

static void add_see_also(struct buf *out, const char *names)
{
    buf_adds(out, ".PP\nSee also ");
    for (const char *p = names; *p != '\0'; p++) {
        if (*p == ' ')
            buf_adds(out, ", ");
        else
            man_add_text(out, p, 1);
    }
    buf_adds(out, ".\n");
}

static void add_command(struct buf *out, const struct cli_command *c)
{
    request(out, "SS", c->name);
    add_forms(out, c->usage);
    buf_adds(out, ".PP\n");
    line(out, c->about);
    add_flags(out, c->flags);
    buf_adds(out, ".PP\nExamples:\n");
    for (const struct cli_example *x = c->examples; x->line != NULL; x++) {
        buf_adds(out, ".PP\n.RS 4\n.nf\n");
        buf_adds(out, "# ");
        line(out, x->what);
        line(out, x->line);
        buf_adds(out, ".fi\n.RE\n");
    }
    if (c->exits != cli_exits && c->exits != cli_exits_local) {
        buf_adds(out, ".PP\nExit codes:\n");
        for (const struct cli_exit *x = c->exits; x->when != NULL; x++) {
            buf_addf(out, ".TP\n.B %d\n", x->code);
            line(out, x->when);
        }
    }
    if (c->see_also != NULL)
        add_see_also(out, c->see_also);
}

static void page_clients(struct buf *out)
{
    title(out, "coracle", "1", "inspect and manage the pods of this node");
    buf_adds(out, ".SH SYNOPSIS\n.B coracle\n[\\fB\\-\\-socket\\fR \\fIPATH\\fR]\n.I COMMAND\n"
                  "[\\fIARGUMENT\\fR...]\n.SH DESCRIPTION\n");
    line(out, "Coracle is an agent that runs Kubernetes pods on a Linux node.  Its commands ask the agent, "
              "coracle(8), over a local socket; commands and output follow kubectl where it has the "
              "same.  Exit codes are more specific than kubectl's, which is 1 for every failure.");
    buf_adds(out, ".PP\nFlags of every command:\n");
    add_flags(out, cli_common_flags);
    buf_adds(out, ".PP\n");
    line(out, "They may also precede the command, as may -n, -A and -o of commands that have them.");
    buf_adds(out, ".SH COMMANDS\n");
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        if (!cli_commands[i]->hidden)
            add_command(out, cli_commands[i]);
    buf_adds(out, ".SH EXIT STATUS\nUnless described otherwise for a command:\n");
    for (const struct cli_exit *x = cli_exits; x->when != NULL; x++) {
        buf_addf(out, ".TP\n.B %d\n", x->code);
        line(out, x->when);
    }
    buf_adds(out,
             ".SH ENVIRONMENT\n.TP\n.B CORACLE_SOCKET\nthe daemon\\(aqs socket, where no "
             "\\fB\\-\\-socket\\fR is given\n.TP\n.B NO_COLOR\nset to anything but empty: no colours; there "
             "are some "
             "only on a terminal, and none where \\fBTERM\\fR is \\fBdumb\\fR\n.SH FILES\n.TP\n.I " CLI_SOCKET
             "\nthe daemon\\(aqs socket\n"
             ".SH SEE ALSO\n.BR coracle (8),\n.BR coracle\\-config (5)\n");
}

/* ---- coracle(8) ---- */

static void add_daemon_flag(const struct config_documented *s, void *arg)
{
    struct buf *out = arg;

    if (s->flag == NULL || s->why != NULL)
        return;
    buf_addf(out, ".TP\n\\fB%s", s->flag[1] == '\0' ? "\\-" : "\\-\\-");
    man_text(out, s->flag);
    buf_adds(out, "\\fR");
    if (s->value[0] != '\0') {
        buf_adds(out, " \\fI");
        man_text(out, s->value);
        buf_adds(out, "\\fR");
    }
    buf_addc(out, '\n');
    man_text(out, s->help);
    if (s->otherwise != NULL && s->value[0] != '\0') {
        buf_adds(out, " (default ");
        man_text(out, s->otherwise);
        buf_addc(out, ')');
    }
    buf_addc(out, '\n');
}

static void man_add_items(struct buf *out, const char *const (*items)[2])
{
    for (; (*items)[0] != NULL; items++) {
        buf_adds(out, ".TP\n.B \"");
        man_text(out, (*items)[0]);
        buf_adds(out, "\"\n");
        line(out, (*items)[1]);
    }
}

static const char *const signals[][2] = {
    { "SIGTERM, SIGINT",
      "The agent ends; pods continue to run and are adopted by the next one.  With --ephemeral all "
      "pods end first." },
    { "SIGHUP", "The configuration is read again; settings that can change at runtime are applied, and the "
                "log lists those that need a restart." },
    { NULL, NULL },
};

static const char *const man_files[][2] = {
    { CONFIG_FILE, "the configuration, if --config is not given; see coracle-config(5)" },
    { "/etc/coracle/manifests", "the manifest folder of the installed unit" },
    { "/run/coracle", "data that may be lost on a reboot, and the socket of the commands" },
    { "/var/lib/coracle", "images, writable layers, pod records, network results" },
    { "/var/lib/kubelet/pods", "pods' volumes" },
    { "/var/log/pods", "containers' logs" },
    { NULL, NULL },
};

static void page_daemon(struct buf *out)
{
    title(out, "coracle", "8", "the node agent: runs Kubernetes pods");
    buf_adds(out, ".SH SYNOPSIS\n.B coracle run\n[\\fIFLAG\\fR...]\n.SH DESCRIPTION\n");
    line(out,
         "Takes the pods assigned to this node from a folder of manifests and makes the node match them: "
         "it does what kubelet and a container engine do together, with crun or runc, conmon, CNI plugins "
         "and skopeo for everything else.  It runs in the foreground, as root, and logs to standard "
         "error.");
    buf_adds(out, ".PP\n");
    line(out, "Pods outlive the agent: it can be restarted and upgraded while they run.");
    buf_adds(out, ".SH OPTIONS\n");
    line(out, "Flags are named as in kubelet; all other kubelet flags are accepted, with a "
              "warning if they would have an effect in kubelet.  Most have a key in the configuration file, "
              "which they override.");
    config_documented(add_daemon_flag, out);
    buf_adds(out, ".SH SIGNALS\n");
    man_add_items(out, signals);
    buf_adds(out, ".SH EXIT STATUS\n");
    for (const struct cli_exit *x = command_run.exits; x->when != NULL; x++) {
        buf_addf(out, ".TP\n.B %d\n", x->code);
        line(out, x->when);
    }
    buf_adds(out, ".SH FILES\n");
    man_add_items(out, man_files);
    buf_adds(out, ".SH SEE ALSO\n.BR coracle (1),\n.BR coracle\\-config (5),\n.BR coracle\\-annotations "
                  "(5),\n.BR systemctl (1)\n");
}

/* ---- coracle-config(5) ---- */

struct keys {
    struct buf *out;
    const char *kind;
    bool works; /* otherwise those without effect */
};

static void man_add_key(const struct config_documented *s, void *arg)
{
    struct keys *k = arg;
    struct buf *out = k->out;

    if (s->key == NULL || strcmp(s->kind, k->kind) != 0 || (s->why == NULL) != k->works)
        return;
    buf_adds(out, ".TP\n.B \"");
    man_text(out, s->key);
    buf_adds(out, "\"\n");
    man_text(out, s->help);
    buf_adds(out, ".\n");
    if (s->words != NULL) {
        buf_adds(out, "One of ");
        man_text(out, s->words);
        buf_adds(out, ".\n");
    }
    if (s->otherwise != NULL) {
        buf_adds(out, "Default: ");
        man_text(out, s->otherwise);
        buf_adds(out, ".\n");
    }
    if (s->why != NULL) {
        buf_adds(out, s->later ? "Not supported yet: " : "No effect here: ");
        man_text(out, s->why);
        buf_adds(out, ".\n");
    }
    if (s->joined)
        line(out, "Only on a node that joins a cluster.");
    if (s->live)
        line(out, "Reloaded by SIGHUP.");
    if (s->flag != NULL) {
        buf_addf(out, "Flag: \\fB%s", s->flag[1] == '\0' ? "\\-" : "\\-\\-");
        man_text(out, s->flag);
        buf_adds(out, "\\fR.\n");
    }
}

static void page_config(struct buf *out)
{
    static const char *const kinds[] = { "KubeletConfiguration", "CoracleConfiguration" };

    title(out, "coracle-config", "5", "configuration of the node agent");
    buf_adds(out, ".SH SYNOPSIS\n.I " CONFIG_FILE "\n.SH DESCRIPTION\n");
    line(out,
         "A YAML file with one or two documents: a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) as "
         "in kubelet, and a CoracleConfiguration (coracle.dev/v1) with settings kubelet does not have.  "
         "Drop-ins (--config-dir) are merged over it, key by key; flags of coracle(8) override both.  An "
         "unknown or invalid key is an error with file, line and key.");
    buf_adds(out, ".PP\n");
    line(out, "`coracle config` shows the settings in force and their origin, `coracle config --sample` "
              "prints a sample file with all keys.");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct keys k = { out, kinds[i], true };

        request(out, "SH", kinds[i]);
        config_documented(man_add_key, &k);
    }
    buf_adds(out, ".SH KEYS WITHOUT EFFECT\n");
    line(out, "They are checked, and a value other than the actual behaviour gives a warning.");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct keys k = { out, kinds[i], false };

        config_documented(man_add_key, &k);
    }
    buf_adds(out, ".SH SEE ALSO\n.BR coracle (1),\n.BR coracle (8)\n");
}

/* ---- lines ---- */

/* How much of a text becomes one line of the page: at most WIDTH bytes if there is a blank to break at. */
static size_t fold_at(const char *p, size_t n)
{
    enum { WIDTH = 78 };
    size_t at = 0;

    for (size_t i = 1; n > WIDTH && i + 1 < n && (i <= WIDTH || at == 0); i++)
        if (p[i] == ' ' && p[i - 1] != ' ' && strchr(" .'", p[i + 1]) == NULL)
            at = i;
    return at != 0 ? at : n;
}

static bool is_request(const char *line, size_t n, const char *name)
{
    return n == strlen(name) && memcmp(line, name, n) == 0;
}

/* Folds running text; requests, tags and unfilled text stay as they are. */
static void add_folded(struct buf *out, const char *page)
{
    bool tag = false, filled = true;

    for (const char *line = page; *line != '\0';) {
        size_t n = strcspn(line, "\n"), part;
        const bool text = line[0] != '.' && !tag && filled;

        if (line[0] == '.')
            filled = is_request(line, n, ".fi") || (filled && !is_request(line, n, ".nf"));
        tag = is_request(line, n, ".TP");
        for (; text && (part = fold_at(line, n)) < n; line += part + 1, n -= part + 1) {
            buf_add(out, line, part);
            buf_addc(out, '\n');
        }
        buf_add(out, line, n);
        buf_addc(out, '\n');
        line += n + (line[n] == '\n');
    }
}

/* ---- coracle-annotations(5) ---- */

static void page_annotations(struct buf *out)
{
    title(out, "coracle-annotations", "5", "annotations of pods that the node agent acts on");
    buf_adds(out, ".SH SYNOPSIS\n.B metadata:\n.br\n.B \\ \\ annotations:\n.br\n.B \\ \\ \\ \\ "
                  "coracle.dev/\\fINAME\\fB: "
                  "\\fIVALUE\\fR\n.SH DESCRIPTION\n");
    line(out, "What kubelet has no field for is asked for by an annotation in the manifest of the pod.  An "
              "edit does not restart the pod.  A value that is not allowed is a problem of the "
              "manifest.  An unknown key below coracle.dev/ is ignored and listed in the pod's condition "
              "coracle.dev/FieldsIgnored; `coracle validate` reports it as a problem.");
    buf_adds(out, ".SH ANNOTATIONS\n");
    for (const struct api_annotation *a = api_annotations; a->key != NULL; a++) {
        buf_adds(out, ".TP\n.B \"");
        man_text(out, a->key);
        buf_adds(out, "\"\n");
        line(out, a->about);
        buf_adds(out, "Allowed: ");
        man_text(out, a->allowed);
        buf_adds(out, ".\nWithout it: ");
        man_text(out, a->otherwise);
        buf_adds(out, ".\n");
    }
    buf_adds(out, ".SH SEE ALSO\n.BR coracle (1),\n.BR coracle (8)\n");
}

/* ---- all of them ---- */

/* "coracle.1"; false: there is no such page. */
static bool man_page(const char *name, struct buf *out)
{
    static const struct {
        const char *name;
        void (*write)(struct buf *out);
    } pages[] = {
        { "coracle.1", page_clients },
        { "coracle.8", page_daemon },
        { "coracle-config.5", page_config },
        { "coracle-annotations.5", page_annotations },
    };
    buf_auto page = BUF_INIT(4u << 20);

    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        if (strcmp(name, pages[i].name) == 0) {
            pages[i].write(&page);
            out->failed = out->failed || page.failed;
            add_folded(out, page.p);
            return true;
        }
    return false;
}
#endif
