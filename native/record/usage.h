/* record/usage.h -- the lock of the API-usage log, for record/process.c; and logging without
 * telling, for bridges. */
#ifndef OPSCOPE_RECORD_USAGE_H
#define OPSCOPE_RECORD_USAGE_H

#include "opscope/usage.h"

/* Who is to be told of a key; handler NULL: nobody, or it is not new. */
struct opscope__usage_listener {
    opscope_usage_handler handler;
    void *user;
};

/* All of opscope_log_api_usage_once but the call of the handler, which is left to the caller: for
 * one that is called within locks of others. */
OPSCOPE_API struct opscope__usage_listener opscope__usage_log(const char *key);

/* Who is to be told of metadata; handler NULL: nobody. */
struct opscope__usage_metadata_listener {
    opscope_usage_metadata_handler handler;
    void *user;
};
OPSCOPE_API struct opscope__usage_metadata_listener opscope__usage_metadata_listener(void);

void opscope__usage_lock(void);
void opscope__usage_unlock(void);

#endif
