/* tensor/autograd/watch.c -- the life of watches, which hold the hooks of a tensor and the gradient
 * that it retains (retain_grad).
 *
 * The tape lock guards every list here. No thread holds it while a hook runs, while a function of
 * the caller frees memory, or while an operator runs.
 */
#include "tensor/autograd/watch.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "tensor/autograd/locks.h"

void opscope_hook_release(opscope_hook *hook)
{
    /* The last release sees all that other threads did with it. */
    if (opscope__drop_reference(&hook->reference_count) == 1) {
        if (hook->release != NULL) {
            hook->release(hook->user);
        }
        free(hook);
    }
}

void opscope_hook_remove(opscope_hook *hook)
{
    bool found = false;
    opscope__tape_lock();
    if (hook->watch != NULL) {
        opscope_hook **at = &hook->watch->hooks;
        while (*at != hook) {
            at = &(*at)->next;
        }
        *at = hook->next;
        hook->watch = NULL;
        found = true;
    }
    opscope__tape_unlock();
    if (found) {
        opscope_hook_release(hook);
    }
}

/* ---- watches -------------------------------------------------------------------------------- */

void opscope__watch_release(struct opscope__watch *watch)
{
    opscope__tape_lock();
    bool is_last = --watch->reference_count == 0;
    for (opscope_hook *hook = watch->hooks; hook != NULL && is_last; hook = hook->next) {
        hook->watch = NULL;
    }
    opscope__tape_unlock();
    if (!is_last) {
        return;
    }
    for (opscope_hook *hook = watch->hooks, *next; hook != NULL; hook = next) {
        next = hook->next;
        opscope_hook_release(hook);
    }
    opscope_tensor_release(watch->grad);
    free(watch);
}

opscope_tensor *opscope__watch_grad(struct opscope__watch *watch)
{
    return watch->retains ? watch->grad : NULL;
}

int opscope__watch_visit(const struct opscope__watch *watch, bool by_node, opscope__visit visit,
                         void *arg)
{
    int result = 0;
    opscope__tape_lock();
    bool is_alone = watch->reference_count == (by_node ? 2 : 1);
    for (const opscope_hook *hook = watch->hooks; hook != NULL && is_alone && result == 0;
         hook = hook->next) {
        if (hook->release != NULL) {
            result = visit(hook->release, hook->user, arg);
        }
    }
    opscope__tape_unlock();
    return result;
}
