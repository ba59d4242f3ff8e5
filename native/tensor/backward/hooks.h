/* tensor/backward/hooks.h -- showing a gradient on its way to those who asked for it. */
#ifndef OPSCOPE_TENSOR_BACKWARD_HOOKS_H
#define OPSCOPE_TENSOR_BACKWARD_HOOKS_H

#include "tensor/autograd/watch.h"

/* Shows what arrived to the hooks of that watch, each of which may replace it, then keeps it where
 * the watch retains. NULL for `watch` does nothing. */
int opscope__watch_show(struct opscope__watch *watch, opscope_tensor **gradient);

#endif
