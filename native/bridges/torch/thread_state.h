/* torch/thread_state.h -- PyTorch's lists of callbacks, which it makes anew too often.
 *
 * Before and after each node of a backward, PyTorch sets the thread's state to that of the thread
 * which began the backward: also its callbacks (at::set_record_function_tls_). PyTorch then copies
 * all callbacks under a lock, and makes the thread's lists of them for each scope, though hardly
 * any program has callbacks of single threads, so nothing has changed. Measured with 2.13.0: 1,800
 * instructions a node without any callback, 2,800 with one that never fires. While windows are
 * open, that is most of what recording a backward costs.
 *
 * Therefore, while the bridge is attached, a function of ours does nothing if the thread's state
 * already is the one to set, and calls PyTorch's function otherwise. A thread still learns of new
 * callbacks: PyTorch compares their version at each range.
 */
#ifndef OPSCOPE_BRIDGES_TORCH_THREAD_STATE_H
#define OPSCOPE_BRIDGES_TORCH_THREAD_STATE_H

#include <stdbool.h>

/* Call it after operators ran. `is_declared`: PyTorch's header declares the state as this file
 * knows it. NULL, or a short reason why PyTorch's function stays. */
const char *opscope__torch_keep_states(bool is_declared);
void opscope__torch_leave_states(void);
bool opscope__torch_keeps_states(void);

#endif
