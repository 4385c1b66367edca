/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write - writes of the local API: stores an object as a file of the manifest folder, one object in each
 * file, or removes its file. The answer is sent when the folder has read the file and the object is in
 * effect.
 *
 *     {"object": {...}, "mark": "...", "dryRun": true}                    PUT; no mark: it must be new
 *     {"object": {apiVersion, kind, metadata}, "mark", "dryRun", "graceSeconds"} DELETE
 *
 * The answer is {"object": {...}, "file": "pod-default-web.yaml"}. Nothing is written unless the object is
 * still what the client saw (its mark), and valid by the rules that read the folder. 409: it is another one
 * now; or (`reason` Forbidden, 403) its file cannot be rewritten: it has problems, is a symbolic link, or the
 * object is an item of a List in it. 422: `details.causes` has the fields. 507: the disk is full, and nothing
 * has changed.
 *
 * A file with several documents keeps the others byte for byte. A new file is "kind-namespace-name.yaml",
 * like one of `coracle apply`; a name that is taken gets a hash. Files of Secrets are 0600. Loop thread only.
 */
#ifndef AGENT_POD_SHOW_WRITE_H
#define AGENT_POD_SHOW_WRITE_H
#include "agent/pod/core/node.h"

json_t *provider_stored(void *arg, const char *api_version, const char *kind, const char *namespace_,
                        const char *name, struct err *e);
void provider_write(void *arg, json_t *request /* stolen */, bool remove, struct status_reply *r);
bool provider_writes_busy(const struct node *n);
#endif
