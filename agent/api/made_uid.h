/* SPDX-License-Identifier: Apache-2.0 */
/* made_uid - the uid of an object whose manifest has none: derived from its kind, namespace and name, so that
 * it is the same at each start. Pure; any thread. */
#ifndef AGENT_API_MADE_UID_H
#define AGENT_API_MADE_UID_H

#define API_UID_SIZE 37

/* namespace_ NULL: it has none. */
void api_made_uid(const char *kind, const char *namespace_, const char *name, char ret[API_UID_SIZE]);
#endif
