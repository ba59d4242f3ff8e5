/* torch_cost.h -- what a range of PyTorch's costs beyond the recorder's own part: measured once,
 * while attaching. */
#ifndef OPSCOPE_BRIDGES_TORCH_COST_H
#define OPSCOPE_BRIDGES_TORCH_COST_H

#include <stdbool.h>

/* Ends the round that the caller has just run, if any, and begins the next; false where there is to
 * be none, as enough is known or it has taken its time. */
bool opscope__torch_cost_round(void);
/* After the rounds, on their thread, if any were run: PyTorch and the thread are as before. Where
 * the bridge is to be attached, the operators known and those to come have their cost from here on.
 */
void opscope__torch_cost_end(bool is_attached);

#endif
