/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_glob - matches images with the keys of registry credentials, by kubelet's rules
 * (pkg/credentialprovider, URLsMatch()), for a Docker config's keys, and for matchImages and auth of image
 * credential providers. Pure.
 *
 * The parts of the host between dots are compared one by one, each as a glob: "*.io" does not match "a.b.io".
 * Ports must be equal or both missing. The rest must be a prefix of the repository's path: "r.io/te" matches
 * "r.io/team", too.
 */
#ifndef AGENT_IMAGE_PROVIDER_IMAGE_GLOB_H
#define AGENT_IMAGE_PROVIDER_IMAGE_GLOB_H
#include <stdbool.h>

/* `repository`: normalised, without tag and digest; `glob` without a scheme. */
bool image_glob_matches(const char *glob, const char *repository);
#endif
