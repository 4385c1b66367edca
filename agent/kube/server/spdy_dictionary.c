/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionary of SPDY/3's header compression (SPDY Protocol, draft 3, 2.6.10.1): words with their lengths
 * in four bytes, then text. */
#include "agent/kube/server/spdy_internal.h"

const unsigned char spdy_dictionary[SPDY_DICTIONARY_SIZE] =
    "\000\000\000\007options\000\000\000\004head\000\000\000\004post\000\000\000\003put"
    "\000\000\000\006delete\000\000\000\005trace\000\000\000\006accept\000\000\000\016accept-charset"
    "\000\000\000\017accept-encoding\000\000\000\017accept-language\000\000\000\015accept-ranges"
    "\000\000\000\003age\000\000\000\005allow\000\000\000\015authorization"
    "\000\000\000\015cache-control\000\000\000\012connection\000\000\000\014content-base"
    "\000\000\000\020content-encoding\000\000\000\020content-language\000\000\000\016content-length"
    "\000\000\000\020content-location\000\000\000\013content-md5\000\000\000\015content-range"
    "\000\000\000\014content-type\000\000\000\004date\000\000\000\004etag\000\000\000\006expect"
    "\000\000\000\007expires\000\000\000\004from\000\000\000\004host\000\000\000\010if-match"
    "\000\000\000\021if-modified-since\000\000\000\015if-none-match\000\000\000\010if-range"
    "\000\000\000\023if-unmodified-since\000\000\000\015last-modified\000\000\000\010location"
    "\000\000\000\014max-forwards\000\000\000\006pragma\000\000\000\022proxy-authenticate"
    "\000\000\000\023proxy-authorization\000\000\000\005range\000\000\000\007referer"
    "\000\000\000\013retry-after\000\000\000\006server\000\000\000\002te\000\000\000\007trailer"
    "\000\000\000\021transfer-encoding\000\000\000\007upgrade\000\000\000\012user-agent"
    "\000\000\000\004vary\000\000\000\003via\000\000\000\007warning\000\000\000\020www-authenticate"
    "\000\000\000\006method\000\000\000\003get\000\000\000\006status\000\000\000\006200 OK"
    "\000\000\000\007version\000\000\000\010HTTP/1.1\000\000\000\003url\000\000\000\006public"
    "\000\000\000\012set-cookie\000\000\000\012keep-alive\000\000\000\006origin"
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 No"
    "n-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403"
    " Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Fe"
    "b Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunke"
    "d,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/"
    "javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
