/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Used if it exists: it configures image signatures. Without the file skopeo rejects everything. */
#define SYSTEM_POLICY "/etc/containers/policy.json"
static const char open_policy[] = "{\"default\":[{\"type\":\"insecureAcceptAnything\"}]}";

#define ASK_MIN_MS (60 * 1000) /* answers arrive as a whole: there is no visible progress */
enum {
    ANSWER_MAX = 4 << 20,
    FATAL_MAX = 16 * 1024,
    ADDRESS_MAX = 120,
    ARGS_MAX = 24,
    ENV_MAX = 16,
    PATHS_MAX = 96
};

/* ---- command lines ---- */

char *img_skopeo_source(const char *reference, const char *digest)
{
    const size_t n = strcspn(reference, "@");
    const size_t repository = img_repository(reference);

    /* skopeo rejects a tag together with a digest; the digest decides. */
    if (digest != NULL)
        return str_printf("docker://%.*s@%s", (int)repository, reference, digest);
    if (reference[n] == '@')
        return str_printf("docker://%.*s%s", (int)repository, reference, reference + n);
    return str_printf("docker://%s", reference);
}

struct command {
    const char *argv[ARGS_MAX], *env[ENV_MAX];
    size_t n_argv, n_env;
    const char *reads[PATHS_MAX + 1], *writes[8]; /* NULL-terminated */
    size_t n_reads, n_writes;
    char *owned[ARGS_MAX + ENV_MAX + PATHS_MAX];
    size_t n_owned;
    bool failed;
    struct err unknown; /* why skopeo may not be run */
};

static const char *own(struct command *c, char *text)
{
    c->failed = c->failed || text == NULL;
    if (text != NULL)
        c->owned[c->n_owned++] = text;
    return text;
}

static void arg(struct command *c, const char *text)
{
    c->argv[c->n_argv++] = text;
}

static void command_done(struct command *c)
{
    for (size_t i = 0; i < c->n_owned; i++)
        free(c->owned[i]);
}

/* Of the daemon's environment, only network settings and the registries trusted by the host are passed. The
 * home folder is temporary: root's credentials are not used by accident, and what a credential helper stores
 * (a token) is not written to disk. */
static void set_environment(struct command *c, const char *work, const char *home)
{
    static const char *const passed[] = { "HTTP_PROXY",  "HTTPS_PROXY", "NO_PROXY",      "http_proxy",
                                          "https_proxy", "no_proxy",    "SSL_CERT_FILE", "SSL_CERT_DIR" };

    c->env[c->n_env++] = getenv("PATH") == NULL /* credential helpers are searched in it */
                             ? "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
                             : own(c, str_printf("PATH=%s", getenv("PATH")));
    c->env[c->n_env++] = own(c, str_printf("HOME=%s", home));
    c->env[c->n_env++] = own(c, str_printf("XDG_RUNTIME_DIR=%s", home));
    c->env[c->n_env++] = own(c, str_printf("TMPDIR=%s", work));
    for (size_t i = 0; i < ARRAY_LEN(passed); i++)
        if (getenv(passed[i]) != NULL)
            c->env[c->n_env++] = own(c, str_printf("%s=%s", passed[i], getenv(passed[i])));
}

static void may_read(struct command *c, const char *path)
{
    if (path == NULL || path[0] != '/')
        return;
    if (c->n_reads == PATHS_MAX)
        log_debug("too many folders for skopeo; it cannot read this one", F_STR("path", path));
    else
        c->reads[c->n_reads++] = path;
}

/* Without a policy of the host all images are accepted, so its absence must be proven. */
static void add_policy(struct command *c, const char *folder)
{
    const char *policy;

    switch (presence_of(fs_look_at(AT_FDCWD, SYSTEM_POLICY, NULL, &c->unknown))) {
    case PRESENCE_UNKNOWN:
    case PRESENCE_PRESENT:
        return;
    case PRESENCE_ABSENT:
        break;
    }
    policy = own(c, str_printf("%s/policy.json", folder));
    /* Fails only on disk errors, which skopeo will report. */
    if (policy != NULL && fs_replace_at(AT_FDCWD, policy, open_policy, strlen(open_policy), 0644, false,
                                        ERR_IGNORED) == ERR_OK) {
        arg(c, "--policy");
        arg(c, policy);
        may_read(c, policy);
    }
}

/* ---- access to the host ---- */

/* For parsing network data as root: programs, libraries and their settings, registries' certificates and
 * policies, name resolution. Not: the state folder, /run, /home, /root, other processes. */
static const char *const system_paths[] = {
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/usr",
    "/opt",
    "/etc",
    "/var/lib/ca-certificates",
    "/var/lib/containers/sigstore",
    "/run/systemd/resolve", /* possible targets of /etc/resolv.conf, like the next ones */
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/connman",
    "/run/nscd",
    "/run/systemd/userdb",
    "/dev/urandom",
    "/dev/random",
    "/dev/zero",
    "/proc/self",
    "/proc/sys",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/sys/devices/system/cpu",
    "/sys/kernel/mm/transparent_hugepage",
    "/sys/fs/cgroup",
};

/* A colon-separated list, with a copy of each path. */
static void may_read_each(struct command *c, const char *list)
{
    while (list != NULL && *list != '\0') {
        const size_t n = strcspn(list, ":");

        if (list[0] == '/' && c->n_owned < ARGS_MAX + PATHS_MAX)
            may_read(c, own(c, strndup(list, n)));
        list += n + (list[n] == ':');
    }
}

static void may_write(struct command *c, const char *path)
{
    if (path != NULL)
        c->writes[c->n_writes++] = path;
}

static void set_view(struct command *c, const struct img_job *j)
{
    const struct img_store *s = j->store;

    for (size_t i = 0; i < ARRAY_LEN(system_paths); i++)
        may_read(c, system_paths[i]);
    may_read(c, s->skopeo_path);
    may_read(c, s->registries_conf);
    may_read(c, j->auth_path);
    may_read(c, getenv("SSL_CERT_FILE"));
    may_read_each(c, getenv("SSL_CERT_DIR"));
    may_read_each(c, getenv("PATH"));
    may_write(c, own(c, str_printf("%s/tmp/%s/fetch", s->dir, j->tmp)));
    may_write(c, own(c, str_printf("%s/tmp/blobs", s->dir)));
    may_write(c, j->auth_home);
    may_write(c, "/dev/null");
}

static void begin_command(struct command *c, struct img_job *j, const char *verb)
{
    const struct img_store *s = j->store;
    const char *folder = own(c, str_printf("%s/tmp/%s", s->dir, j->tmp)); /* not skopeo's own */
    const char *work = own(c, str_printf("%s/tmp/%s/fetch", s->dir, j->tmp));

    set_environment(c, work, j->auth_home != NULL ? j->auth_home : work);
    arg(c, s->skopeo_path);
    arg(c, "--tmpdir");
    arg(c, work);
    if (s->registries_conf != NULL) {
        arg(c, "--registries-conf");
        arg(c, s->registries_conf);
    }
    add_policy(c, folder);
    arg(c, verb);
}

static enum err_code run_command(struct command *c, struct img_job *j, const char *name, size_t out_max,
                                 uint64_t deadline_ms, op_done_fn done, struct err *e)
{
    const struct img_store *s = j->store;

    if (c->unknown.code != ERR_OK) {
        *e = c->unknown;
        e->code = ERR_UNAVAILABLE; /* so that the pull is retried */
        command_done(c);
        return err_wrap(e, "pull %.200s", j->key);
    }
    if (s->confine)
        set_view(c, j);
    if (c->failed) {
        command_done(c);
        return err_nomem(e);
    }
    proc_start(&j->proc,
               &(struct proc_spec){ .name = name,
                                    .subject = j->key,
                                    .argv = c->argv,
                                    .env = c->env,
                                    .stdout_max = out_max,
                                    .cgroup_fd = s->ops_cgroup_fd,
                                    .cgroup_procs = s->ops_cgroup_procs,
                                    .read_paths = s->confine ? c->reads : NULL,
                                    .write_paths = s->confine ? c->writes : NULL,
                                    .uid = j->uid,
                                    .gid = j->gid,
                                    .no_rights = true, /* its peer is a registry */
                                    .deadline_ms = deadline_ms },
               s->loop, done, j);
    command_done(c);
    return ERR_OK;
}

enum err_code img_skopeo_ask(struct img_job *j, op_done_fn done, struct err *e)
{
    struct command c = { 0 };
    char full[IMG_NAME_MAX];

    begin_command(&c, j, "inspect");
    arg(&c, "--no-tags");
    arg(&c, "--format");
    arg(&c, "{{.Digest}}{{range .Layers}} {{.}}{{end}}");
    if (j->auth_path != NULL) {
        arg(&c, "--authfile");
        arg(&c, j->auth_path);
    }
    arg(&c, own(&c, img_skopeo_source(img_job_reference(j, full), NULL)));
    return run_command(&c, j, "skopeo inspect", ANSWER_MAX,
                       j->store->stall_ms > ASK_MIN_MS ? j->store->stall_ms : ASK_MIN_MS, done, e);
}

enum err_code img_skopeo_copy(struct img_job *j, op_done_fn done, struct err *e)
{
    struct command c = { 0 };
    char full[IMG_NAME_MAX];

    begin_command(&c, j, "copy");
    arg(&c, "--quiet");
    arg(&c, "--preserve-digests");  /* without it Docker manifests become OCI ones with other digests */
    arg(&c, "--remove-signatures"); /* the policy checks signatures; a layout cannot contain them */
    arg(&c, "--dest-oci-accept-uncompressed-layers");
    arg(&c, "--dest-shared-blob-dir");
    arg(&c, own(&c, str_printf("%s/tmp/blobs", j->store->dir)));
    if (j->auth_path != NULL) {
        arg(&c, "--src-authfile");
        arg(&c, j->auth_path);
    }
    /* Use the digest just read, so that the fetched image is the requested one even if the tag moves
     * meanwhile. */
    arg(&c, own(&c, img_skopeo_source(img_job_reference(j, full), j->digest)));
    arg(&c, own(&c, str_printf("oci:%s/tmp/%s/fetch/layout:image", j->store->dir, j->tmp)));
    return run_command(&c, j, "skopeo copy", 4096, IMG_BRING_DEADLINE_MS, done, e);
}

/* ---- errors ---- */

/* time="..." level=fatal msg="Error parsing ...: \"quoted\"" -> the message, unquoted. */
static bool fatal_message(const char *text, char ret[FATAL_MAX + 1])
{
    static const char mark[] = "level=fatal msg=\"";
    const char *at = NULL, *next = text;
    size_t n = 0;

    while ((next = strstr(next, mark)) != NULL) {
        next += sizeof(mark) - 1;
        at = next;
    }
    if (at == NULL)
        return false;
    for (; *at != '\0' && *at != '"' && n < FATAL_MAX; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
        ret[n++] = (unsigned char)*at < ' ' ? ' ' : *at;
    }
    ret[n] = '\0';
    return n > 0;
}

/* The part after the "?" of an address often is a key: registries redirect to signed addresses of blobs, and
 * the text becomes part of events and the log. The path may also contain the key, and a long address would
 * leave no room for the reason after it: so its end is removed. */
static void shorten_addresses(char *text)
{
    static const char ends[] = " \"'<>";
    char *to = text;
    size_t length = 0; /* of the address so far; 0: not an address */

    for (const char *at = text; *at != '\0';) {
        const size_t rest = strcspn(at, ends);

        length = rest > 0 && (length > 0 || str_starts(at, "://")) ? length + 1 : 0;
        if (length > 0 && *at == '?') {
            at += rest;
        } else if (length > ADDRESS_MAX && rest > strlen("...")) {
            at += rest;
            memcpy(to, "...", 3);
            to += 3;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

/* Removes skopeo's prefix to the registry's answer, because our message names the image anyway. */
static const char *without_name(const char *message)
{
    static const char front[] = "Error parsing image name \"", back[] = "\": ";
    const char *end = str_starts(message, front) ? strstr(message + strlen(front), back) : NULL;

    return end != NULL && end[strlen(back)] != '\0' ? end + strlen(back) : message;
}

struct known {
    const char *words;
    enum err_code code;
    enum img_failure failure;
};

/* The first one found decides. */
static const struct known *known_words(const char *message)
{
    static const struct known known[] = {
        { "source image rejected", ERR_PERMISSION, IMG_SIGNATURE_REJECTED },
        { "rejected by policy", ERR_PERMISSION, IMG_SIGNATURE_REJECTED },
        { "unauthorized", ERR_UNAUTHENTICATED, IMG_FAILED },
        { "authentication required", ERR_UNAUTHENTICATED, IMG_FAILED },
        { "requested access to the resource is denied", ERR_UNAUTHENTICATED, IMG_FAILED },
        { "invalid username/password", ERR_UNAUTHENTICATED, IMG_FAILED },
        { "manifest unknown", ERR_NOT_FOUND, IMG_FAILED },
        { "name unknown", ERR_NOT_FOUND, IMG_FAILED },
        { "repository name not known", ERR_NOT_FOUND, IMG_FAILED },
        { "no image found", ERR_NOT_FOUND, IMG_FAILED },
        { "no space left on device", ERR_EXHAUSTED, IMG_FAILED },
        { "connection refused", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "no route to host", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "network is unreachable", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "connection timed out", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "i/o timeout", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "tls handshake timeout", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "timeout awaiting response headers", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "temporary failure in name resolution", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "server misbehaving", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE }, /* of name servers */
        { "502 (bad gateway)", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "502 bad gateway", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "503 (service unavailable)", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "503 service unavailable", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "504 (gateway timeout)", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
        { "504 gateway timeout", ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE },
    };
    static const struct known other = { "", ERR_UNAVAILABLE,
                                        IMG_FAILED }; /* networks and registries recover */

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcasestr(message, known[i].words) != NULL)
            return &known[i];
    return &other;
}

void img_skopeo_error(struct img_job *j, struct err *e)
{
    char message[FATAL_MAX + 1];
    const struct known *known;

    if (e->code == ERR_NOT_FOUND) { /* of the program itself */
        err_set(e, ERR_PRECONDITION, "cannot pull %.300s: skopeo is not installed (Debian package skopeo)",
                j->key);
        return;
    }
    if (e->code == ERR_DEADLINE)
        j->failure = IMG_REGISTRY_UNAVAILABLE;
    if (e->code == ERR_UNKNOWN &&
        j->proc.err_out.n >= FATAL_MAX) { /* perhaps the end of an address, with its key */
        err_set(e, ERR_UNAVAILABLE, "pull %.300s: skopeo failed with a message of more than %d bytes", j->key,
                FATAL_MAX);
        return;
    }
    if (e->code != ERR_UNKNOWN || !fatal_message(j->proc.err_out.p, message)) {
        shorten_addresses(e->text);
        err_wrap(e, "pull %.300s", j->key);
        return;
    }
    shorten_addresses(message);
    known = known_words(message);
    j->failure = known->failure;
    err_set(e, known->code, "pull %.200s: %s", j->key, without_name(message));
}
