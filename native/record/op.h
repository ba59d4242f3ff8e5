/* record/op.h -- the lock of the operator registry, for record/process.c. */
#ifndef OPSCOPE_RECORD_OP_H
#define OPSCOPE_RECORD_OP_H

#include "opscope/record.h"

void opscope__ops_lock(void);
void opscope__ops_unlock(void);

#endif
