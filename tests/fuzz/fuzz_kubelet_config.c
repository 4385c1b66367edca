/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file: whatever its bytes, it is taken or refused with a text; what was taken is whole, can
 * be shown, and reads back from what is shown.
 */
#include "agent/config/internal.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(const struct config_warning *w, void *arg)
{
    assert(w->setting[0] != '\0' && w->value[0] != '\0' && w->from[0] != '\0' && w->why[0] != '\0');
    ++*(unsigned *)arg;
}

static enum err_code parse(struct agent_config *c, const void *text, size_t size, struct err *e)
{
    int fd = memfd_create("config", MFD_CLOEXEC);
    char path[64];
    char *argv[] = { (char *)"run", (char *)"--config", path };
    bool help = false;
    enum err_code code;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    assert(fd >= 0 && write(fd, text, size) == (ssize_t)size);
    code = config_parse(c, 3, argv, &help, e);
    close(fd);
    return code;
}

static void check_taken(const struct agent_config *c)
{
    struct agent_config again = { 0 };
    json_t *first = config_json(c), *second;
    buf_auto text = BUF_INIT(64u << 20);
    struct err e = { 0 };
    unsigned warnings = 0;

    config_warnings(c, count, &warnings);
    assert(first != NULL && json_array_size(json_object_get(first, "warnings")) == warnings);
    assert(c->manifests[0] == '/' && c->root_dir[0] == '/' && c->max_pods_n <= CONFIG_PODS_MAX &&
           c->socket[0] != '\0');
    assert(c->shutdown_critical_ms <= c->shutdown_grace_ms);
    config_yaml(first, &text);
    assert(!text.failed);
    if (json_object_get(json_object_get(first, "kubeletconfig"), "staticPodURLHeader") == NULL &&
        text.n < (1 << 20)) {
        enum err_code code = parse(&again, text.p, text.n, &e);
        assert(code == ERR_OK);
        second = config_json(&again);
        assert(json_equal(json_object_get(first, "kubeletconfig"), json_object_get(second, "kubeletconfig")));
        assert(json_equal(json_object_get(first, "coracleconfig"), json_object_get(second, "coracleconfig")));
        json_decref(second);
    }
    config_done(&again);
    json_decref(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agent_config c = { 0 };
    struct err e = { 0 };

    if (parse(&c, data, size, &e) == ERR_OK)
        check_taken(&c);
    else
        assert(e.text[0] != '\0');
    config_done(&c);
    return 0;
}
