/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/plugin/plugin.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/scope.h"
#include "cni/plugin/result.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* libcni's values. */
#define TRIES_MAX 6
#define RETRY_MS 1000

/* Bytes of foreign text in one of our messages. */
#define QUOTE_MAX 300

static const struct {
    const char *upper, *lower, *operation;
} verbs[] = {
    [CNI_ADD] = { "ADD", "add", "cni add plugin" },
    [CNI_DEL] = { "DEL", "del", "cni del plugin" },
    [CNI_CHECK] = { "CHECK", "check", "cni check plugin" },
    [CNI_GC] = { "GC", "gc", "cni gc plugin" },
    [CNI_STATUS] = { "STATUS", "status", "cni status plugin" },
    [CNI_VERSION] = { "VERSION", "version", "cni version plugin" },
};

static struct presence plugin_find(const char *const *bin_dirs, const char *type, bool regular, char **ret,
                                   struct err *e)
{
    *ret = NULL;
    for (size_t i = 0; bin_dirs[i] != NULL; i++) {
        str_auto path = str_printf("%s/%s", bin_dirs[i], type);
        struct presence found;
        struct stat st;

        if (path == NULL) {
            err_nomem(e);
            return presence_unknown(e);
        }
        if (fstatat(AT_FDCWD, path, &st, 0) != 0) {
            err_sys(e, errno, "find plugin %s", path);
            found = presence_from_err(e);
            if (presence_is_unknown(found))
                return found;
        } else if ((S_ISREG(st.st_mode) != 0) == regular) {
            *ret = take_ptr(&path);
            return presence_present();
        }
    }
    return presence_absent();
}

struct presence cni_plugin_find(const char *const *bin_dirs, const char *type, char **ret, struct err *e)
{
    return plugin_find(bin_dirs, type, true, ret, e);
}

struct presence cni_plugin_find_other(const char *const *bin_dirs, const char *type, char **ret,
                                      struct err *e)
{
    return plugin_find(bin_dirs, type, false, ret, e);
}

/* ---- errors ---- */

/* At most QUOTE_MAX bytes of foreign text as one line, trimmed. */
static void one_line(const char *text, size_t n, char ret[QUOTE_MAX + 1])
{
    while (n > 0 && (unsigned char)text[n - 1] <= ' ')
        n--;
    while (n > 0 && (unsigned char)text[0] <= ' ') {
        text++;
        n--;
    }
    if (n > QUOTE_MAX) {
        n = QUOTE_MAX;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) /* do not cut a character in two */
            n--;
    }
    for (size_t i = 0; i < n; i++)
        ret[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i];
    ret[n] = '\0';
}

static enum err_code code_of(int cni_code)
{
    switch (cni_code) {
    case 1: /* incompatible cniVersion */
    case 2: /* unsupported field */
    case 7: /* invalid network configuration */
        return ERR_PRECONDITION;
    case 11: /* try again later */
    case 50: /* STATUS: not available */
    case 51: /* STATUS: and existing attachments may be affected */
        return ERR_UNAVAILABLE;
    default:
        return ERR_UNKNOWN;
    }
}

static void exit_text(int wait_status, char ret[32])
{
    if (WIFSIGNALED(wait_status))
        snprintf(ret, 32, "killed by signal %d", WTERMSIG(wait_status));
    else
        snprintf(ret, 32, "exit status %d", WEXITSTATUS(wait_status));
}

enum err_code cni_plugin_error(const char *out, size_t out_n, const char *err_out, int wait_status,
                               int *ret_cni_code, struct err *e)
{
    char said[QUOTE_MAX + 1], details[QUOTE_MAX + 1], how[32], number[32] = "";
    json_auto_t *v = NULL;
    struct err bad = { 0 };
    json_int_t code;
    const char *msg;

    *ret_cni_code = 0;
    exit_text(wait_status, how);
    if (out_n == 0) {
        one_line(err_out, strlen(err_out), said);
        if (said[0] == '\0')
            return err_set(e, ERR_UNKNOWN, "netplugin failed with no error message: %s", how);
        return err_set(e, ERR_UNKNOWN, "netplugin failed: \"%s\": %s", said, how);
    }
    one_line(out, out_n, said);
    if (json_parse(out, out_n, CNI_RESULT_MAX, &v, "JSON", &bad) != ERR_OK)
        return err_set(e, ERR_UNKNOWN,
                       "netplugin failed but error parsing its diagnostic message \"%s\": %.100s: %s", said,
                       bad.text, how);
    msg = json_str(v, "msg");
    if (msg == NULL)
        return err_set(e, ERR_UNKNOWN, "netplugin failed and its diagnostic message \"%s\" has no msg: %s",
                       said, how);
    code = json_int(v, "code", 0);
    *ret_cni_code = code >= 0 && code <= INT_MAX ? (int)code : 0;
    one_line(msg, strlen(msg), said);
    msg = json_str(v, "details");
    one_line(msg != NULL ? msg : "", msg != NULL ? strlen(msg) : 0, details);
    if (said[0] == '\0')
        snprintf(said, sizeof(said), "netplugin failed with an empty message: %s", how);
    if (*ret_cni_code > 0)
        snprintf(number, sizeof(number), " (CNI code %d)", *ret_cni_code);
    return err_set(e, code_of(*ret_cni_code), "%s%s%s%s", said, details[0] != '\0' ? ": " : "", details,
                   number);
}

/* Some plugins report an error but exit with 0; only an error object has a code. */
static bool is_error_object(const struct buf *out)
{
    json_auto_t *v = NULL;

    return out->n > 0 && json_parse(out->p, out->n, CNI_RESULT_MAX, &v, "JSON", ERR_IGNORED) == ERR_OK &&
           json_int(v, "code", 0) != 0;
}

/* ---- the run ---- */

static void plugin_run(struct cni_plugin *p);

static void plugin_end(struct cni_plugin *p, struct err *e)
{
    if (e->code != ERR_OK)
        err_wrap(e, "plugin type=\"%s\" failed (%s)", p->call.type, verbs[p->call.verb].lower);
    for (size_t i = 0; i < ARRAY_LEN(p->env); i++)
        free(p->env[i]);
    free(p->program);
    free(p->input);
    /* cancelled while it was succeeding: not a success */
    if (e->code != ERR_OK || p->op.why.code != ERR_OK) {
        json_decref(p->result);
        p->result = NULL;
    }
    op_close_handle(&p->op, (uv_handle_t *)&p->retry);
    op_finish(&p->op, e->code != ERR_OK ? e : NULL);
}

static void abort_plugin(struct op *op)
{
    struct cni_plugin *p = container_of(op, struct cni_plugin, op);
    struct err e = { 0 };

    if (p->waiting) {
        p->waiting = false;
        err_set(&e, ERR_CANCELLED, "cancelled");
        plugin_end(p, &e);
    } else {
        proc_cancel(&p->proc);
    }
}

static void plugin_on_retry(uv_timer_t *timer)
{
    struct cni_plugin *p = timer->data;

    p->waiting = false;
    plugin_run(p);
}

/* Whether the program is still being installed (ETXTBSY). */
static bool plugin_try_again(struct cni_plugin *p)
{
    if (p->op.why.code != ERR_OK || p->tries >= TRIES_MAX ||
        clock_mono_ms() + RETRY_MS >= p->call.deadline_at_ms)
        return false;
    p->waiting = true;
    uv_timer_start(&p->retry, plugin_on_retry, RETRY_MS, 0);
    return true;
}

static void plugin_on_proc_done(struct op *op, const struct err *result)
{
    struct cni_plugin *p = op->owner;
    const struct proc *proc = &p->proc;
    struct err e = *result;

    if (e.sys == ETXTBSY && plugin_try_again(p))
        return;
    /* Other errnos occurred before the program ran; ENOMEM may also come from its output. */
    p->never_ran = e.sys != 0 && e.sys != ENOMEM && e.code != ERR_DEADLINE && e.code != ERR_CANCELLED;
    if ((e.code == ERR_UNKNOWN && e.sys == 0 && proc->exited) ||
        (e.code == ERR_OK && is_error_object(&proc->out))) {
        e = (struct err){ 0 };
        cni_plugin_error(proc->out.p, proc->out.n, proc->err_out.p, proc->status, &p->cni_code, &e);
    } else if (e.code == ERR_OK && p->call.verb == CNI_ADD) {
        /* Check the result here, so that errors name the plugin; other verbs have none. */
        if (cni_result_parse(&p->result, proc->out.p, proc->out.n, p->call.config_version, &e) != ERR_OK)
            p->result = NULL;
    } else if (e.code == ERR_OK && p->call.verb == CNI_VERSION &&
               json_parse(proc->out.p, proc->out.n, CNI_RESULT_MAX, &p->result, "VERSION", &e) != ERR_OK) {
        p->result = NULL;
    }
    plugin_end(p, &e);
}

static void plugin_run(struct cni_plugin *p)
{
    const char *const argv[] = { p->program, NULL };
    uint64_t now = clock_mono_ms();
    struct proc_spec spec = {
        .name = "CNI plugin",
        .subject = p->op.subject,
        .argv = argv,
        .env = (const char *const *)p->env,
        .stdin_data = p->input,
        .stdin_size = strlen(p->input),
        .stdout_max = CNI_RESULT_MAX,
        .cgroup_fd = p->call.cgroup_fd,
        .cgroup_procs = p->call.cgroup_procs,
        .deadline_ms = now < p->call.deadline_at_ms ? p->call.deadline_at_ms - now : 1,
    };

    p->tries++;
    proc_start(&p->proc, &spec, p->op.loop, plugin_on_proc_done, p);
}

static char *join_dirs(const char *const *dirs)
{
    struct buf b = BUF_INIT(64 * 1024);

    buf_adds(&b, "CNI_PATH=");
    for (size_t i = 0; dirs[i] != NULL; i++)
        buf_addf(&b, "%s%s", i > 0 ? ":" : "", dirs[i]);
    if (b.failed) {
        buf_done(&b);
        return NULL;
    }
    return buf_detach(&b);
}

/* Only the verb's variables; see plugin.h. */
static bool build_env(struct cni_plugin *p)
{
    const struct cni_plugin_call *c = &p->call;
    bool dummies = c->verb == CNI_VERSION;
    size_t n = 0;

    p->env[n++] = str_printf("CNI_COMMAND=%s", verbs[c->verb].upper);
    if (c->verb != CNI_GC && c->verb != CNI_STATUS) {
        p->env[n++] = str_printf("CNI_CONTAINERID=%s", dummies ? "dummy" : c->container_id);
        p->env[n++] = str_printf("CNI_NETNS=%s", dummies ? "dummy" : c->netns);
        p->env[n++] = str_printf("CNI_IFNAME=%s", dummies ? "dummy" : c->ifname);
        if (!dummies)
            p->env[n++] = str_printf("CNI_ARGS=%s", c->args);
    }
    p->env[n++] = join_dirs(c->bin_dirs);
    p->env[n++] = str_printf("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    p->env[n++] = str_printf("GOMAXPROCS=1");
    for (size_t i = 0; i < n; i++)
        if (p->env[i] == NULL) /* the entries after it are freed by plugin_end() */
            return false;
    return true;
}

static enum err_code prepare(struct cni_plugin *p, struct err *e)
{
    const struct cni_plugin_call *c = &p->call;

    p->never_ran = true;
    if (presence_is_unknown(cni_plugin_find(c->bin_dirs, c->type, &p->program, e)))
        return e->code;
    if (p->program == NULL) { /* not ERR_NOT_FOUND: a DEL would treat that as success */
        str_auto path = join_dirs(c->bin_dirs);

        if (path == NULL)
            return err_nomem(e);
        return err_set(e, ERR_UNAVAILABLE, "failed to find plugin \"%s\" in path [%s]", c->type,
                       strchr(path, '=') + 1);
    }
    p->never_ran = false;
    p->input = json_text(c->input);
    if (p->input == NULL || !build_env(p))
        return err_nomem(e);
    return ERR_OK;
}

void cni_plugin_start(struct cni_plugin *p, const struct cni_plugin_call *call, uv_loop_t *loop,
                      op_done_fn done, void *owner)
{
    struct err e = { 0 };

    *p = (struct cni_plugin){ .call = *call };
    /* It needs no deadline: the child's deadline covers it and produces the message. */
    op_init(&p->op, loop, verbs[call->verb].operation, 0, abort_plugin, done, owner);
    op_set_subject(&p->op, call->container_id);
    uv_timer_init(loop, &p->retry);
    p->retry.data = p;
    if (prepare(p, &e) != ERR_OK) {
        plugin_end(p, &e);
        return;
    }
    plugin_run(p);
}
