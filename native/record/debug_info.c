/* record/debug_info.c -- debug info chains: push, pop, look up, and the chain inherited over exec.
 *
 * Reference counts are atomic, as chains are shared by captured states on any thread: a retain is
 * relaxed (the caller holds a reference already), a release orders everything before the free.
 */
#include "record/debug_info.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "record/recorder.h"
#include "record/thread.h"
#include "record/trace.h"

enum { TEXT_LIMIT = 65536 };

static pthread_once_t root_once = PTHREAD_ONCE_INIT;
static const opscope_debug_info *root;
/* Written once, by release; load_acquire by whoever calls it. */
static const struct opscope__debug_info_listener *listener;

static struct opscope__debug_info_node *node_of(const opscope_debug_info *link)
{
    return (struct opscope__debug_info_node *)(uintptr_t)link;
}

const opscope_debug_info *opscope__debug_info_retain(const opscope_debug_info *link)
{
    if (link != NULL) {
        opscope__add_relaxed(&node_of(link)->reference_count, 1);
    }
    return link;
}

void opscope__debug_info_release(const opscope_debug_info *link)
{
    while (link != NULL &&
           __atomic_fetch_sub(&node_of(link)->reference_count, 1, __ATOMIC_ACQ_REL) == 1) {
        const opscope_debug_info *parent = link->parent;
        free(node_of(link));
        link = parent;
    }
}

void opscope__debug_info_listen(const struct opscope__debug_info_listener *new_listener)
{
    opscope__store_release(&listener, new_listener);
}

void opscope__debug_info_changed(const struct opscope__thread *thread)
{
    opscope__recorder_labels_changed(thread);
    opscope__trace_labels_changed(thread);
    const struct opscope__debug_info_listener *known = opscope__load_acquire(&listener);
    if (known != NULL) {
        known->changed(thread->debug_info);
    }
}

static void will_change(void)
{
    const struct opscope__debug_info_listener *known = opscope__load_acquire(&listener);
    if (known != NULL) {
        known->will_change();
    }
}

const opscope_debug_info *opscope__debug_info_swap(const opscope_debug_info *chain)
{
    struct opscope__thread *thread = opscope__thread_self();
    if (thread == NULL) {
        return chain;
    }
    const opscope_debug_info *previous = thread->debug_info;
    thread->debug_info = chain;
    opscope__debug_info_changed(thread);
    return previous;
}

/* A link before `parent`, whose reference it takes over; the strings are given with their lengths.
 */
static const opscope_debug_info *make(const opscope_debug_info *parent, const char *key,
                                      size_t key_bytes, const char *value, size_t value_bytes)
{
    struct opscope__debug_info_node *node = malloc(sizeof *node + key_bytes + value_bytes + 2);
    if (node == NULL) {
        return NULL;
    }
    char *text = (char *)(node + 1);
    memcpy(text, key, key_bytes);
    text[key_bytes] = '\0';
    memcpy(text + key_bytes + 1, value, value_bytes);
    text[key_bytes + 1 + value_bytes] = '\0';
    node->link = (opscope_debug_info){parent, text, text + key_bytes + 1};
    node->reference_count = 1;
    node->label_set = 0;
    return &node->link;
}

/* OPSCOPE_DEBUG_INFO is key=value pairs, one a line: what the parent's guards held. */
static void read_root(void)
{
    const char *text = getenv("OPSCOPE_DEBUG_INFO");
    while (text != NULL && *text != '\0') {
        size_t bytes = strcspn(text, "\n");
        const char *equals = memchr(text, '=', bytes);
        if (equals != NULL && equals != text && bytes < TEXT_LIMIT) {
            size_t key_bytes = (size_t)(equals - text);
            const opscope_debug_info *link =
                make(root, text, key_bytes, equals + 1, bytes - key_bytes - 1);
            root = link != NULL ? link : root;
        }
        text += bytes + (text[bytes] == '\n');
    }
}

const opscope_debug_info *opscope__debug_info_root(void)
{
    pthread_once(&root_once, read_root);
    return opscope__debug_info_retain(root);
}

int opscope_debug_info_push(const char *key, const char *value, opscope_debug_info_guard *out)
{
    size_t key_bytes = strlen(key);
    size_t value_bytes = strlen(value);
    if (key_bytes == 0 || key_bytes >= TEXT_LIMIT || value_bytes >= TEXT_LIMIT) {
        return OPSCOPE_ERR_INVALID;
    }
    struct opscope__thread *thread = opscope__thread_self();
    if (thread == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    will_change();
    const opscope_debug_info *previous = opscope__debug_info_retain(thread->debug_info);
    const opscope_debug_info *pushed = make(previous, key, key_bytes, value, value_bytes);
    if (pushed == NULL) {
        opscope__debug_info_release(previous);
        return OPSCOPE_ERR_NO_MEMORY;
    }
    /* The guard takes over the thread's reference to `previous`; `pushed` holds the new one. */
    out->previous = previous;
    out->pushed = pushed;
    thread->debug_info = pushed;
    opscope__debug_info_changed(thread);
    return OPSCOPE_OK;
}

void opscope_debug_info_pop(opscope_debug_info_guard *guard)
{
    struct opscope__thread *thread = opscope__thread_self();
    if (thread == NULL) {
        return;
    }
    will_change();
    const opscope_debug_info *current = thread->debug_info;
    thread->debug_info = guard->previous;
    guard->previous = NULL;
    guard->pushed = NULL;
    opscope__debug_info_changed(thread);
    opscope__debug_info_release(current);
}

const opscope_debug_info *opscope_debug_info_current(void)
{
    const struct opscope__thread *thread = opscope__thread_self();
    return thread != NULL ? thread->debug_info : NULL;
}

const char *opscope_debug_info_get(const char *key)
{
    for (const opscope_debug_info *link = opscope_debug_info_current(); link; link = link->parent) {
        if (strcmp(link->key, key) == 0) {
            return link->value;
        }
    }
    return NULL;
}
