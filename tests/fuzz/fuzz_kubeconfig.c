/* SPDX-License-Identifier: Apache-2.0 */
/* A kubeconfig file: what is accepted can be chosen from, shown, and written as a node's own file, which then
 * reads as the same cluster. No file that it names is read. */
#include "agent/kube/config/internal.h"
#include "agent/kube/config/message.h"
#include "agent/kube/config/proxy_env.h"
#include "agent/kube/config/write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool names_files(const struct kube_choice *c)
{
    return kube_has(c, KUBE_CLUSTER, "certificate-authority") ||
           kube_has(c, KUBE_USER, "client-certificate") || kube_has(c, KUBE_USER, "client-key") ||
           kube_has(c, KUBE_USER, "tokenFile");
}

static void check_written(const struct kube_choice *c)
{
    char *text = kube_config_written(c, "/pki/kubelet-client-current.pem");
    struct kube_config all = { 0 };
    struct kube_choice again = { 0 };
    struct kube_flags none = { 0 };
    struct err e = { 0 };

    assert(text != NULL);
    assert(kube_config_add(&all, "/k", text, strlen(text), &e) == ERR_OK);
    assert(kube_config_choose(&again, &all, &none, &e) == ERR_OK);
    assert(c->server == NULL || strcmp(again.server, c->server) == 0);
    assert(c->tls == again.tls);
    kube_choice_done(&again);
    kube_config_done(&all);
    free(text);
}

static void check_choice(const struct kube_choice *c, const struct kube_config *all)
{
    static const char *const env[] = { "HTTPS_PROXY=http://p.test", "NO_PROXY=a.test,10.0.0.0/8,[::1]:1",
                                       NULL };
    json_t *shown = kube_config_show(c, all);
    struct kube_message m = { 0 };
    struct err e = { 0 };

    assert(shown != NULL);
    json_decref(shown);
    check_written(c);
    if (c->server != NULL)
        free(kube_proxy_of(env, c->server));
    if (names_files(c))
        return;
    if (kube_config_check(c, all, &e) == ERR_OK && kube_message_make(&m, c, env, &e) == ERR_OK)
        assert(m.json != NULL && json_object_get(m.json, "server") != NULL);
    else
        assert(e.text[0] != '\0');
    kube_message_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kube_config all = { 0 };
    struct kube_choice c = { 0 };
    struct kube_flags none = { 0 };
    struct err e = { 0 };

    if (kube_config_add(&all, "/folder/kubeconfig", (const char *)data, size, &e) == ERR_OK) {
        assert(kube_config_choose(&c, &all, &none, &e) == ERR_OK);
        check_choice(&c, &all);
    } else {
        assert(e.code == ERR_INVALID && e.text[0] != '\0');
    }
    kube_choice_done(&c);
    kube_config_done(&all);
    return 0;
}
