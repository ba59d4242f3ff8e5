/* base/fence.c -- see base/fence.h. */
#define _GNU_SOURCE
#include "base/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

bool opscope__fence_is_symmetric = true;

void opscope__fence_start(void)
{
#ifndef __SANITIZE_THREAD__
    /* Registration is inherited over fork and harmless to repeat. */
    opscope__fence_is_symmetric =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
#endif
}

void opscope__fence_heavy(void)
{
    if (!opscope__fence_is_symmetric) {
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    }
    opscope__fence_full();
}
