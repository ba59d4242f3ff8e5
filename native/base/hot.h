/* base/hot.h -- marks the few functions that run at every recorded range.
 *
 * The linker places them together, apart from the cold ones. A program that spends most of its time
 * elsewhere then loads few cache lines for them.
 */
#ifndef OPSCOPE_BASE_HOT_H
#define OPSCOPE_BASE_HOT_H

#define OPSCOPE__HOT __attribute__((hot))
/* The rare cases that hot functions delegate. */
#define OPSCOPE__COLD __attribute__((noinline, cold))

/* A function that a program calls through a pointer which we replaced, and that jumps through the
 * pointer it replaces. All of it lies in one line of code: on a Zen 5, an indirect jump across two
 * lines takes 10 ns more. */
#define OPSCOPE__IN_ONE_LINE __attribute__((aligned(64)))

/* A variable for the files of this library only: its address is known at link time. */
#define OPSCOPE__INTERNAL __attribute__((visibility("hidden")))

#endif
