/* record/debug_info.c -- debug info chains: push, pop, look-up, and the chain inherited over exec.
 *
 * Captured states share chains between threads, so reference counts are atomic. A retain is
 * relaxed, because the caller already holds a reference; a release orders everything before the
 * free.
 */
#include "record/debug_info.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "record/observer.h"
#include "record/thread.h"

enum { LISTENER_LIMIT = 4 };

static pthread_once_t root_once = PTHREAD_ONCE_INIT;
static const opscope_debug_info *root;
/* Each slot is written once, with release, in order; callers read with load_acquire. */
static const struct opscope__debug_info_listener *listeners[LISTENER_LIMIT];

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
    while (link != NULL && opscope__drop_reference(&node_of(link)->reference_count) == 1) {
        const opscope_debug_info *parent = link->parent;
        free(node_of(link));
        link = parent;
    }
}

void opscope__debug_info_listen(const struct opscope__debug_info_listener *new_listener)
{
    for (int i = 0; i < LISTENER_LIMIT; i++) {
        const struct opscope__debug_info_listener *none = NULL;
        if (opscope__replace_release(&listeners[i], &none, new_listener) || none == new_listener) {
            return;
        }
    }
}

static const struct opscope__debug_info_listener *listener(int index)
{
    return index < LISTENER_LIMIT ? opscope__load_acquire(&listeners[index]) : NULL;
}

void opscope__debug_info_changed(const struct opscope__thread *thread)
{
    const struct opscope__debug_info_listener *known;
    for (int i = 0; (known = listener(i)) != NULL; i++) {
        known->changed(thread->debug_info);
    }
}

static void will_change(void)
{
    const struct opscope__debug_info_listener *known;
    for (int i = 0; (known = listener(i)) != NULL; i++) {
        if (known->will_change != NULL) {
            known->will_change();
        }
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

/* Makes a link in front of `parent` and takes over the caller's reference to it. The strings come
 * with their lengths; `value` may be NULL. */
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
    node->link = (opscope_debug_info){parent, text, NULL};
    if (value != NULL) {
        memcpy(text + key_bytes + 1, value, value_bytes);
        text[key_bytes + 1 + value_bytes] = '\0';
        node->link.value = text + key_bytes + 1;
    }
    node->reference_count = 1;
    node->label_set = 0;
    return &node->link;
}

const opscope_debug_info *opscope__debug_info_parse(const char *text)
{
    const opscope_debug_info *chain = NULL;
    while (*text != '\0') {
        size_t bytes = strcspn(text, "\n");
        const char *equals = memchr(text, '=', bytes);
        if (equals != NULL && equals != text && bytes < OPSCOPE__DEBUG_INFO_BYTES) {
            size_t key_bytes = (size_t)(equals - text);
            const opscope_debug_info *link =
                make(chain, text, key_bytes, equals + 1, bytes - key_bytes - 1);
            chain = link != NULL ? link : chain;
        }
        text += bytes + (text[bytes] == '\n');
    }
    return chain;
}

/* OPSCOPE_DEBUG_INFO: the labels in force when the parent started this process. */
static void read_root(void)
{
    const char *text = getenv("OPSCOPE_DEBUG_INFO");
    root = text != NULL ? opscope__debug_info_parse(text) : NULL;
}

/* A thread starts with the labels that the process inherited. */
static void begin_thread(struct opscope__thread *thread)
{
    pthread_once(&root_once, read_root);
    thread->debug_info = opscope__debug_info_retain(root);
}

static void free_chain(struct opscope__thread *thread)
{
    opscope__debug_info_release(thread->debug_info);
}

static const struct opscope__observer observer = {.thread_begins = begin_thread,
                                                  .thread_freed = free_chain};

static void __attribute__((constructor)) load(void)
{
    opscope__observe(OPSCOPE__PLACE_DEBUG_INFO, &observer);
}

int opscope_debug_info_push(const char *key, const char *value, opscope_debug_info_guard *out)
{
    size_t key_bytes = strlen(key);
    size_t value_bytes = value != NULL ? strlen(value) : 0;
    if (key_bytes == 0 || key_bytes >= OPSCOPE__DEBUG_INFO_BYTES ||
        value_bytes >= OPSCOPE__DEBUG_INFO_BYTES) {
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

const opscope_debug_info *opscope_debug_info_hold(void)
{
    return opscope__debug_info_retain(opscope_debug_info_current());
}

void opscope_debug_info_release(const opscope_debug_info *chain)
{
    opscope__debug_info_release(chain);
}

void opscope_debug_info_switch(const opscope_debug_info *chain)
{
    if (opscope__thread_self() != NULL) {
        will_change();
        opscope__debug_info_release(opscope__debug_info_swap(opscope__debug_info_retain(chain)));
    }
}
