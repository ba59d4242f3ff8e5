/* record/pool.h -- the fork pool's lock and its life across a fork, for record/process.c. */
#ifndef OPSCOPE_RECORD_POOL_H
#define OPSCOPE_RECORD_POOL_H

void opscope__pool_lock(void);
void opscope__pool_unlock(void);
void opscope__pool_fork_child(void);

#endif
