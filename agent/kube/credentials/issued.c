/* SPDX-License-Identifier: Apache-2.0 */
/* issued - certificates that were issued are written, and the credentials loaded again. */
#include "agent/kube/credentials/credentials.h"

#include "agent/kube/credentials/internal.h"
#include "agent/kube/credentials/pki.h"
#include "base/codec/json.h"

#include <stdlib.h>
#include <string.h>

struct cred_issued {
    struct work work;
    struct kube_credentials *c;
    char *usage, *certificate, *key;
    bool write_kubeconfig;
    void (*done)(const struct err *result, void *arg);
    void *arg;
};

static enum err_code issued_run(void *arg, struct err *e)
{
    struct cred_issued *i = arg;

    if (pki_write(i->c->cert_dir, i->usage, i->certificate, i->key, e) == ERR_OK && i->write_kubeconfig)
        ERR_IGNORE(cred_write_kubeconfig(&i->c->names, e));
    return e->code;
}

static void on_issued(struct op *op, const struct err *result)
{
    struct cred_issued *i = op->owner;
    struct kube_credentials *c = i->c;

    c->writes--;
    if (!c->closed) {
        if (result->code == ERR_OK && str_eq(i->usage, "client")) {
            /* The message also contains a key that waits for its certificate, for a restarted
             * coracle-kube. */
            c->want_bootstrap = c->want_bootstrap && i->certificate == NULL;
            cred_due_in(c, 0);
        }
        if (i->done != NULL)
            i->done(result, i->arg);
    }
    free(i->usage);
    free(i->certificate);
    str_wipe(i->key);
    free(i);
    cred_free_if_over(c);
}

static char *copy_of(const json_t *message, const char *member)
{
    const char *text = json_str(message, member);

    return text != NULL && text[0] != '\0' ? strdup(text) : NULL;
}

void kube_credentials_issued(struct kube_credentials *c, const json_t *certificate,
                             void (*done)(const struct err *result, void *arg), void *arg)
{
    struct cred_issued *i = calloc(1, sizeof(*i));
    struct err e = { 0 };

    if (i == NULL) {
        err_nomem(&e);
        if (done != NULL)
            done(&e, arg);
        return;
    }
    *i = (struct cred_issued){ .c = c, .done = done, .arg = arg };
    i->usage = copy_of(certificate, "usage");
    i->certificate = copy_of(certificate, "certificate");
    i->key = copy_of(certificate, "key");
    i->write_kubeconfig =
        c->bootstrap != NULL && c->is_bootstrap && i->certificate != NULL && str_eq(i->usage, "client");
    c->writes++;
    work_start(&i->work, "write certificate", i->usage, issued_run, i, c->o.loop, on_issued, i);
}
