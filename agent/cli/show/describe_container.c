/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/show/internal.h"

#include "agent/api/quantity.h"
#include "base/codec/json.h"

#include <string.h>
#include <strings.h>

/* ---- resources ---- */

static int describe_container_by_key(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_quantities(const char *title, const json_t *list, const char *indent, struct buf *out)
{
    mem_auto const char **keys = calloc(json_object_size(list) + 1, sizeof(*keys));
    const char *key;
    json_t *value;
    size_t n = 0;

    if (keys == NULL || json_object_size(list) == 0)
        return;
    json_object_foreach ((json_t *)(uintptr_t)list, key, value)
        keys[n++] = key;
    qsort(keys, n, sizeof(*keys), describe_container_by_key);
    buf_addf(out, "%s%s:\n", indent, title);
    for (size_t i = 0; i < n; i++) {
        const char *text = json_str(list, keys[i]);
        char canonical[QUANTITY_TEXT_SIZE];
        struct quantity q;

        if (text != NULL && quantity_parse(text, &q, ERR_IGNORED) == ERR_OK) {
            quantity_format(&q, canonical);
            text = canonical;
        }
        buf_addf(out, "%s  %s:\t%s\n", indent, keys[i], text != NULL ? text : "");
    }
}

void cli_describe_resources(const json_t *resources, const char *indent, struct buf *out)
{
    add_quantities("Limits", cli_at(resources, "limits"), indent, out);
    add_quantities("Requests", cli_at(resources, "requests"), indent, out);
}

/* ---- specification ---- */

static void describe_container_add_ports(const json_t *ports, const char *member, const char *title,
                                         struct buf *out)
{
    const json_t *p;
    size_t i;

    buf_addf(out, "    %s%s:\t", title, json_array_size(ports) > 1 ? "s" : "");
    json_array_foreach (ports, i, p) {
        const char *protocol = cli_text(p, "protocol");

        buf_addf(out, "%s%lld/%s", i > 0 ? ", " : "", (long long)cli_number(p, member),
                 protocol[0] != '\0' ? protocol : "TCP");
    }
    buf_adds(out, json_array_size(ports) == 0 ? "<none>\n" : "\n");
}

static void add_words(const char *title, const json_t *words, struct buf *out)
{
    const json_t *word;
    size_t i;

    if (json_array_size(words) == 0)
        return;
    buf_addf(out, "    %s:\n", title);
    json_array_foreach (words, i, word) {
        str_auto copy = strdup(json_is_string(word) ? json_string_value(word) : "");
        char *next;

        for (char *line = copy; line != NULL; line = next) {
            next = strchr(line, '\n');
            if (next != NULL)
                *next++ = '\0';
            buf_adds(out, "      ");
            cli_add_clean(out, line);
            buf_addc(out, '\n');
        }
    }
}

static void add_basics(const json_t *container, const json_t *status, struct buf *out)
{
    buf_addf(out, "  %s:\n", cli_text(container, "name"));
    if (status != NULL)
        buf_addf(out, "    Container ID:\t%s\n", cli_text(status, "containerID"));
    buf_addf(out, "    Image:\t%s\n", cli_text(container, "image"));
    if (status != NULL)
        buf_addf(out, "    Image ID:\t%s\n", cli_text(status, "imageID"));
    describe_container_add_ports(cli_at(container, "ports"), "containerPort", "Port", out);
    describe_container_add_ports(cli_at(container, "ports"), "hostPort", "Host Port", out);
    if (cli_text(container, "securityContext.seccompProfile.type")[0] != '\0')
        buf_addf(out, "    SeccompProfile:\t%s\n",
                 cli_text(container, "securityContext.seccompProfile.type"));
    if (cli_text(container, "securityContext.seccompProfile.localhostProfile")[0] != '\0')
        buf_addf(out, "      LocalhostProfile:\t%s\n",
                 cli_text(container, "securityContext.seccompProfile.localhostProfile"));
    add_words("Command", cli_at(container, "command"), out);
    add_words("Args", cli_at(container, "args"), out);
}

/* ---- status ---- */

static void add_reason(const json_t *state, struct buf *out)
{
    static const char *const members[] = { "reason", "message" };
    static const char *const titles[] = { "Reason", "Message" };

    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (cli_text(state, members[i])[0] == '\0')
            continue;
        buf_addf(out, "      %s:\t", titles[i]);
        cli_add_clean(out, cli_text(state, members[i]));
        buf_addc(out, '\n');
    }
}

static void add_state(const char *title, const json_t *state, struct buf *out)
{
    const json_t *running = cli_at(state, "running"), *ended = cli_at(state, "terminated");
    char started[CLI_TIME_SIZE], finished[CLI_TIME_SIZE];

    if (running != NULL) {
        cli_time(cli_text(running, "startedAt"), started);
        buf_addf(out, "    %s:\tRunning\n      Started:\t%s\n", title, started);
    } else if (cli_at(state, "waiting") != NULL || ended == NULL) {
        const char *reason = cli_text(state, "waiting.reason");

        buf_addf(out, "    %s:\tWaiting\n", title);
        if (reason[0] != '\0')
            buf_addf(out, "      Reason:\t%s\n", reason);
    } else {
        buf_addf(out, "    %s:\tTerminated\n", title);
        add_reason(ended, out);
        buf_addf(out, "      Exit Code:\t%lld\n", (long long)cli_number(ended, "exitCode"));
        if (cli_number(ended, "signal") > 0)
            buf_addf(out, "      Signal:\t%lld\n", (long long)cli_number(ended, "signal"));
        cli_time(cli_text(ended, "startedAt"), started);
        cli_time(cli_text(ended, "finishedAt"), finished);
        buf_addf(out, "      Started:\t%s\n      Finished:\t%s\n", started, finished);
    }
}

/* "dev-0 (Healthy)" for each device of an extended resource that the container holds. */
static void describe_container_add_devices(const json_t *resources, struct buf *out)
{
    const json_t *resource, *device;
    size_t i, k;

    if (json_array_size(resources) > 0)
        buf_adds(out, "    Devices:\n");
    json_array_foreach (resources, i, resource) {
        buf_addf(out, "      %s:\t", cli_text(resource, "name"));
        json_array_foreach (cli_at(resource, "resources"), k, device) {
            const char *health = cli_text(device, "health");

            buf_adds(out, k > 0 ? ", " : "");
            cli_add_clean(out, cli_text(device, "resourceID"));
            buf_addf(out, " (%s)", health[0] != '\0' ? health : "Unknown");
        }
        buf_addc(out, '\n');
    }
}

static void describe_container_add_status(const json_t *status, struct buf *out)
{
    if (status == NULL)
        return;
    add_state("State", cli_at(status, "state"), out);
    if (cli_at(status, "lastState.terminated") != NULL)
        add_state("Last State", cli_at(status, "lastState"), out);
    buf_addf(out, "    Ready:\t%s\n    Restart Count:\t%lld\n", cli_true(status, "ready") ? "True" : "False",
             (long long)cli_number(status, "restartCount"));
}

static int64_t number_or(const json_t *object, const char *path, int64_t otherwise)
{
    return json_is_integer(cli_at(object, path)) ? cli_number(object, path) : otherwise;
}

/* A port is a number or a name. */
static void add_port(const json_t *port, struct buf *out)
{
    if (json_is_integer(port))
        buf_addf(out, "%lld", (long long)json_integer_value(port));
    else if (json_is_string(port))
        cli_add_clean(out, json_string_value(port));
}

static void describe_container_add_probe(const char *title, const json_t *probe, struct buf *out)
{
    const json_t *http = cli_at(probe, "httpGet"), *tcp = cli_at(probe, "tcpSocket"),
                 *grpc = cli_at(probe, "grpc"), *word;
    size_t i;

    if (probe == NULL)
        return;
    buf_addf(out, "    %s:\t", title);
    if (cli_at(probe, "exec") != NULL) {
        buf_adds(out, "exec [");
        json_array_foreach (cli_at(probe, "exec.command"), i, word) {
            buf_adds(out, i > 0 ? " " : "");
            cli_add_clean(out, json_is_string(word) ? json_string_value(word) : "");
        }
        buf_addc(out, ']');
    } else if (http != NULL) {
        const char *path = cli_text(http, "path");

        buf_addf(out,
                 "http-get %s://%s:", strcasecmp(cli_text(http, "scheme"), "HTTPS") == 0 ? "https" : "http",
                 cli_text(http, "host"));
        add_port(cli_at(http, "port"), out);
        buf_adds(out, path[0] != '/' && path[0] != '\0' ? "/" : "");
        cli_add_clean(out, path);
    } else if (tcp != NULL) {
        buf_addf(out, "tcp-socket %s:", cli_text(tcp, "host"));
        add_port(cli_at(tcp, "port"), out);
    } else if (grpc != NULL) {
        buf_adds(out, "grpc <pod>:");
        add_port(cli_at(grpc, "port"), out);
        buf_addf(out, " %s", cli_text(grpc, "service"));
    } else {
        buf_adds(out, "unknown");
    }
    buf_addf(
        out, " delay=%llds timeout=%llds period=%llds #success=%lld #failure=%lld\n",
        (long long)cli_number(probe, "initialDelaySeconds"), (long long)number_or(probe, "timeoutSeconds", 1),
        (long long)number_or(probe, "periodSeconds", 10), (long long)number_or(probe, "successThreshold", 1),
        (long long)number_or(probe, "failureThreshold", 3));
}

/* ---- environment and mounts ---- */

/* metadata.*, also labels['key']; fields known only to the node stay empty, as in kubectl. */
static const char *field_value(const json_t *pod, const char *path)
{
    static const char *const plain[] = { "metadata.name", "metadata.namespace", "metadata.uid" };
    static const char *const maps[] = { "metadata.labels", "metadata.annotations" };
    size_t n = strlen(path);
    char key[320];

    for (size_t i = 0; i < ARRAY_LEN(plain); i++)
        if (strcmp(path, plain[i]) == 0)
            return cli_text(pod, path);
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        size_t m = strlen(maps[i]);

        if (n > m + 4 && strncmp(path, maps[i], m) == 0 && strncmp(path + m, "['", 2) == 0 &&
            strcmp(path + n - 2, "']") == 0 && n - m - 4 < sizeof(key)) {
            const char *value;

            memcpy(key, path + m + 2, n - m - 4);
            key[n - m - 4] = '\0';
            value = json_str(cli_at(pod, maps[i]), key);
            return value != NULL ? value : "";
        }
    }
    return "";
}

/* limits.cpu etc., divided and rounded up; "node allocatable" if no limit is set. */
static void add_resource_value(const json_t *container, const json_t *ref, struct buf *out)
{
    const char *resource = cli_text(ref, "resource"), *dot = strchr(resource, '.');
    const char *divisor = cli_text(ref, "divisor");
    struct quantity amount = { 0 }, by = { 0 };
    bool cpu = str_ends(resource, ".cpu");
    const char *text = NULL;
    char list[16];
    int64_t whole = 0;

    if (dot != NULL && (size_t)(dot - resource) < sizeof(list)) {
        memcpy(list, resource, (size_t)(dot - resource));
        list[dot - resource] = '\0';
        text = json_str(json_object_get(cli_at(container, "resources"), list), dot + 1);
    }
    if (text != NULL && quantity_parse(text, &amount, ERR_IGNORED) == ERR_OK) {
        if (divisor[0] == '\0' || quantity_parse(divisor, &by, ERR_IGNORED) != ERR_OK ||
            quantity_is_zero(&by))
            by = quantity_from_int(1, QUANTITY_DECIMAL_SI);
        if (cpu)
            whole = (quantity_milli(&amount) + quantity_milli(&by) - 1) / quantity_milli(&by);
        else
            whole = (quantity_value(&amount) + quantity_value(&by) - 1) / quantity_value(&by);
    }
    if (whole == 0 && (strcmp(resource, "limits.cpu") == 0 || strcmp(resource, "limits.memory") == 0))
        buf_adds(out, "node allocatable");
    else
        buf_addf(out, "%lld", (long long)whole);
    buf_addf(out, " (%s)\n", resource);
}

static void add_env_from(const json_t *env_from, struct buf *out)
{
    const json_t *e;
    size_t i;

    if (json_array_size(env_from) == 0)
        return;
    buf_adds(out, "    Environment Variables from:\n");
    json_array_foreach (env_from, i, e) {
        const json_t *map = cli_at(e, "configMapRef"), *ref = map != NULL ? map : cli_at(e, "secretRef");
        const char *prefix = cli_text(e, "prefix");

        buf_addf(out, "      %s\t%s", cli_text(ref, "name"), map != NULL ? "ConfigMap" : "Secret");
        if (prefix[0] != '\0')
            buf_addf(out, " with prefix '%s'", prefix);
        buf_addf(out, "\tOptional: %s\n", cli_true(ref, "optional") ? "true" : "false");
    }
}

static void add_variable(const json_t *pod, const json_t *container, const json_t *variable, struct buf *out)
{
    const char *name = cli_text(variable, "name");
    const json_t *from = cli_at(variable, "valueFrom");
    const json_t *field = cli_at(from, "fieldRef"), *resource = cli_at(from, "resourceFieldRef");
    const json_t *secret = cli_at(from, "secretKeyRef"), *config = cli_at(from, "configMapKeyRef");
    const json_t *ref = secret != NULL ? secret : config;

    buf_addf(out, "      %s:\t", name);
    if (from == NULL) {
        for (const char *p = cli_text(variable, "value");; p++) {
            size_t n = strcspn(p, "\n");
            str_auto line = strndup(p, n);

            cli_add_clean(out, line != NULL ? line : "");
            buf_addc(out, '\n');
            p += n;
            if (*p == '\0')
                return;
            buf_adds(out, "      \t");
        }
    } else if (field != NULL) {
        const char *version = cli_text(field, "apiVersion");

        cli_add_clean(out, field_value(pod, cli_text(field, "fieldPath")));
        buf_addf(out, " (%s:%s)\n", version[0] != '\0' ? version : "v1", cli_text(field, "fieldPath"));
    } else if (resource != NULL) {
        add_resource_value(container, resource, out);
    } else {
        buf_addf(out, "<set to the key '%s' %s '%s'>\tOptional: %s\n", cli_text(ref, "key"),
                 secret != NULL ? "in secret" : "of config map", cli_text(ref, "name"),
                 cli_true(ref, "optional") ? "true" : "false");
    }
}

static int by_mount_path(const void *a, const void *b)
{
    return strcmp(cli_text(*(json_t *const *)a, "mountPath"), cli_text(*(json_t *const *)b, "mountPath"));
}

static void describe_container_add_mounts(const json_t *mounts, struct buf *out)
{
    size_t n = json_array_size(mounts), i;
    mem_auto json_t **v = calloc(n + 1, sizeof(*v));
    json_t *m;

    buf_addf(out, "    Mounts:%s\n", n == 0 ? "\t<none>" : "");
    if (v == NULL)
        return;
    json_array_foreach (mounts, i, m)
        v[i] = m;
    qsort(v, n, sizeof(*v), by_mount_path);
    for (i = 0; i < n; i++) {
        buf_adds(out, "      ");
        cli_add_clean(out, cli_text(v[i], "mountPath"));
        buf_addf(out, " from %s (%s", cli_text(v[i], "name"), cli_true(v[i], "readOnly") ? "ro" : "rw");
        if (cli_text(v[i], "subPath")[0] != '\0') {
            buf_adds(out, ",path=\"");
            cli_add_clean(out, cli_text(v[i], "subPath"));
            buf_addc(out, '"');
        }
        buf_adds(out, ")\n");
    }
}

/* ---- all containers ---- */

void cli_describe_containers(const char *label, const json_t *pod, const json_t *containers,
                             const json_t *statuses, struct buf *out)
{
    const json_t *c, *variable;
    size_t i, k;

    buf_addf(out, "%s:%s\n", label, json_array_size(containers) == 0 ? " <none>" : "");
    json_array_foreach (containers, i, c) {
        const json_t *status = cli_find(statuses, "name", cli_text(c, "name"));

        add_basics(c, status, out);
        describe_container_add_status(status, out);
        cli_describe_resources(cli_at(c, "resources"), "    ", out);
        describe_container_add_devices(cli_at(status, "allocatedResourcesStatus"), out);
        describe_container_add_probe("Liveness", cli_at(c, "livenessProbe"), out);
        describe_container_add_probe("Readiness", cli_at(c, "readinessProbe"), out);
        describe_container_add_probe("Startup", cli_at(c, "startupProbe"), out);
        add_env_from(cli_at(c, "envFrom"), out);
        buf_addf(out, "    Environment:%s\n", json_array_size(cli_at(c, "env")) == 0 ? "\t<none>" : "");
        json_array_foreach (cli_at(c, "env"), k, variable)
            add_variable(pod, c, variable, out);
        describe_container_add_mounts(cli_at(c, "volumeMounts"), out);
    }
}
