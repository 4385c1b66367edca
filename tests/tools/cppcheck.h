/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cppcheck reads no system headers and would not understand uthash's macros, so tests/tools/analyze includes
 * this instead.
 */
#define HASH_ITER(hh, head, el, tmp) for ((el) = (tmp) = (head); (el) != 0; (el) = (tmp) = (el)->hh.next)
