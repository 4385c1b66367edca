/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/kube.h"

#include "agent/kube/apiserver/api.h"
#include "agent/kube/client/client.h"
#include "agent/kube/internal.h"
#include "agent/kube/server/caller.h"
#include "agent/kube/server/server.h"
#include "agent/kube/sync/sync.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/scope.h"
#include "base/trimmer.h"

#include <stdlib.h>
#include <string.h>

struct kube {
    uv_loop_t *loop;
    struct trimmer trimmer;
    struct kube_link *link;
    struct kube_client *client;
    struct kube_sync *sync;
    struct kube_server *server;
    struct kube_api *api;
    void (*on_end)(const struct err *why, void *arg);
    void *arg;
    bool ended, closed;
    bool lost; /* the apiserver does not answer, since then: */
    char lost_since[CLOCK_RFC3339_SIZE];
};

static void kube_end(struct kube *k, const struct err *why)
{
    if (k->ended)
        return;
    k->ended = true;
    k->on_end(why, k->arg);
}

/* ---- to the daemon ---- */

static void kube_tell(struct kube *k, json_t *message)
{
    struct err e = { 0 };

    if (message == NULL)
        return;
    /* Without the link there is no receiver, and on_lost ends the process. */
    if (kube_link_send(k->link, message, -1, &e) != ERR_OK && e.code != ERR_UNAVAILABLE)
        kube_end(k, &e);
}

static void on_unauthorized(bool expired, void *arg)
{
    kube_tell(arg, json_pack("{s:s,s:s}", "type", "anew", "why", expired ? "expired" : "unauthorized"));
}

static void on_reachable(bool reachable, const char *why, void *arg)
{
    struct kube *k = arg;
    char now[CLOCK_RFC3339_SIZE];

    clock_format_us(clock_wall_ns(), now);
    if (!reachable && !k->lost)
        snprintf(k->lost_since, sizeof(k->lost_since), "%s", now);
    k->lost = !reachable;
    if (reachable)
        log_info("the apiserver answers");
    else
        log_warn("the apiserver does not answer", F_STR("err", why));
    kube_tell(k, json_pack("{s:s,s:b,s:s,s:o}", "type", "state", "connected", reachable, "since",
                           reachable ? now : k->lost_since, "error", json_string_of(why)));
}

/* ---- from the daemon ---- */

static void kube_credentials(struct kube *k, const json_t *message)
{
    struct err e = { 0 };

    if (kube_client_credentials(k->client, message, &e) == ERR_OK)
        return;
    log_error("cannot use the credentials", F_ERR(&e));
    kube_tell(k,
              json_pack("{s:s,s:b,s:o}", "type", "state", "connected", 0, "error", json_string_of(e.text)));
}

static void on_message(json_t *message, int fd, void *arg)
{
    struct kube *k = arg;
    const char *type = json_str(message, "type");

    trimmer_later(&k->trimmer);

    if (strcmp(type, "stop") == 0) {
        if (fd >= 0)
            close(fd);
        kube_end(k, &(struct err){ 0 });
        return;
    }
    if (strcmp(type, "config") == 0)
        kube_client_pace(k->client, json_int(message, "apiRate", 0), json_int(message, "apiBurst", 0));
    if (strcmp(type, "credentials") == 0)
        kube_credentials(k, message);
    if (json_object_get(message, "localPKI") == NULL) /* of a lone node: there is nothing to be kept equal */
        kube_sync_message(k->sync, type, message);
    kube_server_message(k->server, type, message, fd);
    kube_api_message(k->api, type, message);
}

static void on_local(struct caller *c)
{
    struct kube *k = caller_local(c);

    kube_api_request(k->api, c);
}

static void on_scraped(void *arg)
{
    struct kube *k = arg;

    kube_sync_report(k->sync);
}

static void on_lost(const struct err *why, void *arg)
{
    kube_log_to(NULL);
    kube_end(arg, why);
}

/* ---- opening and closing ---- */

void kube_close(struct kube *k)
{
    if (k == NULL || k->closed)
        return;
    k->closed = k->ended = true;
    kube_log_to(NULL);
    trimmer_close(&k->trimmer);
    kube_server_close(k->server);
    kube_api_close(k->api);
    kube_sync_close(k->sync);
    kube_client_close(k->client);
    kube_link_close(k->link);
}

void kube_free(struct kube *k)
{
    free(k);
}

enum err_code kube_open(struct kube **ret, uv_loop_t *loop, int fd,
                        void (*on_end)(const struct err *why, void *arg), void *arg, struct err *e)
{
    struct kube *k = calloc(1, sizeof(*k));
    const struct kube_link_options link = {
        .loop = loop, .fd = fd, .on_message = on_message, .on_lost = on_lost, .arg = k
    };
    const struct kube_client_options client = { .loop = loop,
                                                .user_agent = "coracle/" CORACLE_VERSION,
                                                .on_unauthorized = on_unauthorized,
                                                .on_reachable = on_reachable,
                                                .arg = k };

    if (k == NULL) {
        close(fd);
        return err_nomem(e);
    }
    k->loop = loop;
    k->on_end = on_end;
    k->arg = arg;
    trimmer_open(&k->trimmer, loop);
    *ret = k; /* also on failure: the caller closes the parts that were opened */
    if (kube_link_open(&k->link, &link, e) != ERR_OK)
        return err_wrap(e, "the link to the daemon");
    kube_log_to(k->link);
    if (kube_client_open(&k->client, &client, e) != ERR_OK)
        return err_wrap(e, "the client");
    if (kube_sync_open(&k->sync, &(struct kube_sync_options){ loop, k->client, k->link }, e) != ERR_OK)
        return e->code;
    const struct kube_server_options server = { .loop = loop,
                                                .client = k->client,
                                                .link = k->link,
                                                .local = on_local,
                                                .local_arg = k,
                                                .scraped = on_scraped,
                                                .scraped_arg = k };
    if (kube_server_open(&k->server, &server, e) != ERR_OK)
        return e->code;
    return kube_api_open(&k->api, &(struct kube_api_options){ loop, k->link, k->server }, e);
}
