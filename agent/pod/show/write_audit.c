/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/write_audit.h"

#include "agent/api/schema/kinds.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <stdio.h>

void write_audit(const struct write_said *s)
{
    const json_t *object = json_object_get(s->request, "object"), *meta = json_object_get(object, "metadata");
    const char *version = json_str(object, "apiVersion"), *kind = json_str(object, "kind"),
               *namespace_ = json_str(meta, "namespace"), *name = json_str(meta, "name");
    const struct api_kind_row *row =
        version != NULL && kind != NULL ? api_kind_of_object(version, kind) : NULL;
    char resource[200], of[330];

    if (json_flag(s->request, "audited"))
        return;
    snprintf(resource, sizeof(resource), "%s%s%s", row != NULL ? row->plural : "",
             row != NULL && row->group[0] != '\0' ? "." : "", row != NULL ? row->group : "");
    snprintf(of, sizeof(of), "%.63s%s%.253s", namespace_ != NULL ? namespace_ : "",
             namespace_ != NULL ? "/" : "", name != NULL ? name : "");
    log_info(json_flag(s->request, "dryRun") ? "local API dry run" : "local API write", F_STR("user", "root"),
             F_STR("verb", s->remove   ? "delete"
                           : s->create ? "create"
                                       : "update"),
             F_STR("resource", resource), F_STR("object", of), F_STR("file", s->file != NULL ? s->file : ""),
             F_I64("code", s->code));
}
