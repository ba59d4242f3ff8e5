/* record/usage.h -- the lock of the API-usage log, for record/process.c. */
#ifndef OPSCOPE_RECORD_USAGE_H
#define OPSCOPE_RECORD_USAGE_H

#include "opscope/usage.h"

void opscope__usage_lock(void);
void opscope__usage_unlock(void);

#endif
