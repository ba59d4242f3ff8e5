/* torch/count.h -- counts PyTorch's ranges while nobody wants them.
 *
 * Before windows, the recorder compares the program's speed with and without recording, and counts
 * ranges for it (recorder/cost_compare.h). To draw some of them by a callback has a cost of its
 * own: 5 µs for each in a program that leaves nothing of it in the caches. PyTorch asks for its
 * callbacks at every range, also if there are none: at::getStepCallbacksUnlessEmpty, which
 * libtorch_cpu calls through a slot (torch/replaced.h). While ranges are counted and in windows, it
 * calls a function of ours, which increments the thread's count and goes on to PyTorch's.
 *
 * So the count is exact, for one or two nanoseconds a range. It leaves out the few ranges that
 * other libraries open, with and without recording alike.
 */
#ifndef OPSCOPE_BRIDGES_TORCH_COUNT_H
#define OPSCOPE_BRIDGES_TORCH_COUNT_H

#include <stdbool.h>

/* NULL, or a short reason why ranges are not counted so. Call it after operators ran. */
const char *opscope__torch_find_count(void);
bool opscope__torch_counts(void);
/* Does nothing unless found. If the slot's page is read-only, ranges are counted all the time. */
void opscope__torch_want_count(bool is_wanted);
void opscope__torch_leave_count(void);

#endif
