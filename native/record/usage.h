/* record/usage.h -- logging API usage without calling the handlers, for bridges. */
#ifndef OPSCOPE_RECORD_USAGE_H
#define OPSCOPE_RECORD_USAGE_H

#include "opscope/usage.h"

/* The handler to call for a key; NULL if no handler is set or the key is not new. */
struct opscope__usage_listener {
    opscope_usage_handler handler;
    void *user;
};

/* Does everything that opscope_log_api_usage_once does except calling the handler, which is left to
 * the caller: for callers that run under locks of other libraries. */
OPSCOPE_API struct opscope__usage_listener opscope__usage_log(const char *key);

/* The handler to call for metadata; NULL if none is set. */
struct opscope__usage_metadata_listener {
    opscope_usage_metadata_handler handler;
    void *user;
};
OPSCOPE_API struct opscope__usage_metadata_listener opscope__usage_metadata_listener(void);

#endif
