/* tensor/autograd/locks.h -- the tape's locks, and their life across a fork of the process.
 *
 * | lock     | guards                            | held while                            |
 * |----------|-----------------------------------|---------------------------------------|
 * | tape     | hooks; a view's change of history | pointers move and memory is allocated |
 * | sum      | a gradient that walks add to      | one addition, an operator, runs       |
 * | parallel | one walk on several threads       | its lists change                      |
 *
 * A thread holds at most one of tape and sum; it takes parallel (parallel_backward.c) while it
 * holds neither. No thread waits for the sum lock while it holds Python's GIL: walks release the
 * GIL. A thread may wait for the tape lock with the GIL, because no holder of the tape lock needs
 * the GIL.
 */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_LOCKS_H
#define OPSCOPE_TENSOR_AUTOGRAD_LOCKS_H

void opscope__tape_lock(void);
void opscope__tape_unlock(void);
/* Takes the sum lock of `owner`, one of a few that all owners share. An error if this thread
 * already holds one: a callback of the addition is walking backward. */
int opscope__sum_lock(const void *owner);
void opscope__sum_unlock(const void *owner);

#endif
