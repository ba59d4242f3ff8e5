/* tensor/autograd/locks.h -- the tape's locks, and their life across a fork of the process.
 *
 * | lock       | guards                              | held while                            |
 * |------------|-------------------------------------|---------------------------------------|
 * | tape       | hooks; a view's change of history   | pointers move and memory is allocated |
 * | sum        | a gradient that walks add to        | one addition, an operator, runs       |
 * | a crew's   | one parallel walk (crew.c)          | its lists change                      |
 *
 * A thread holds at most one of them, but for the crew's, which it takes alone. Nobody who holds
 * Python's GIL waits for the sum lock: walks run without it. The tape lock may be waited for with
 * the GIL, as its holder never needs the GIL.
 */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_LOCKS_H
#define OPSCOPE_TENSOR_AUTOGRAD_LOCKS_H

void opscope__tape_lock(void);
void opscope__tape_unlock(void);
/* The sum lock of `owner`, one of a few that owners share. An error where this thread holds one: a
 * callback of the addition walks backward itself. */
int opscope__sum_lock(const void *owner);
void opscope__sum_unlock(const void *owner);

#endif
