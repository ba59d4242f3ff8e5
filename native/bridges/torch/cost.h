/* torch/cost.h -- the extra cost of a range of PyTorch beyond the recorder's own part, measured
 * once while attaching. */
#ifndef OPSCOPE_BRIDGES_TORCH_COST_H
#define OPSCOPE_BRIDGES_TORCH_COST_H

#include <stdbool.h>

/* Ends the caller's current round, if any, and begins the next; false if no further round is needed
 * or the time is up. */
bool opscope__torch_cost_round(void);
/* Call it after the rounds, on their thread: restores PyTorch and the thread. If the bridge is
 * attached, existing and future operators have their cost from here on. */
void opscope__torch_cost_end(bool is_attached);

#endif
