/* base/hot.h -- marks the few functions that run at every recorded range.
 *
 * They come to lie together, apart from what is rare, so that a program that spends most of its
 * time elsewhere finds them in few cache lines.
 */
#ifndef OPSCOPE_BASE_HOT_H
#define OPSCOPE_BASE_HOT_H

#define OPSCOPE__HOT __attribute__((hot))
/* What the hot ones leave for others to do. */
#define OPSCOPE__SELDOM __attribute__((noinline, cold))

#endif
