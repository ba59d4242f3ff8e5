/* opscope/usage.h -- records which parts of an API a process uses, once for each part.
 *
 * The idea: a library reports a key at places of interest. The first report of a key in a process
 * goes to the handler and, with OPSCOPE_API_USAGE_STDERR=1, to standard error. The library also
 * keeps the key: a handler that is set later gets all earlier keys, and the recorder writes them
 * into its segment.
 *
 * Threads: any. Forks: the child has the parent's keys and does not report them again.
 *
 *     OPSCOPE_LOG_API_USAGE_ONCE("core.linalg");
 */
#ifndef OPSCOPE_USAGE_H
#define OPSCOPE_USAGE_H

#include <stddef.h>
#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

typedef void (*opscope_usage_handler)(const char *key, void *user);
typedef void (*opscope_usage_metadata_handler)(const char *context, const char *key,
                                               const char *value, void *user);

/* Reports `key`, at most once in the process. At most 4,096 keys; further ones are dropped. */
OPSCOPE_API void opscope_log_api_usage_once(const char *key);
/* Sets the handler, of which there is one; NULL removes it. Replays all earlier keys, in order. */
OPSCOPE_API void opscope_set_api_usage_handler(opscope_usage_handler handler, void *user);
/* Reports details of one use, without deduplication; dropped if no handler is set. */
OPSCOPE_API void opscope_log_api_usage_metadata(const char *context, const char *key,
                                                const char *value);
OPSCOPE_API void opscope_set_api_usage_metadata_handler(opscope_usage_metadata_handler handler,
                                                        void *user);
/* All keys so far, in order: the one at `index`, or NULL past the last. */
OPSCOPE_API const char *opscope_api_usage_key(size_t index);

#define OPSCOPE_LOG_API_USAGE_ONCE(key)                                                            \
    do {                                                                                           \
        static unsigned char opscope_said;                                                         \
        if (!__atomic_load_n(&opscope_said, __ATOMIC_RELAXED)) {                                   \
            __atomic_store_n(&opscope_said, 1, __ATOMIC_RELAXED);                                  \
            opscope_log_api_usage_once(key);                                                       \
        }                                                                                          \
    } while (0)

OPSCOPE_END_DECLS

#endif
