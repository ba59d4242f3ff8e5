/* torch_labels.c -- debug info that goes where PyTorch takes a thread's state: into the tasks of
 * torch.jit.fork, to the threads of a backward.
 *
 * PyTorch carries a chain of its own, c10::ThreadLocalDebugInfo, to those threads. While a thread
 * has labels, a link of ours is in its chain, holding them; where a range starts on a thread whose
 * chain has a link that this thread did not put there, its labels are taken on. Links are found by
 * their kind, wherever they are, but whoever pops one must find it on top: a profiler, which may
 * start or stop within a block of labels. So ours is always the last, put in by making the chain
 * anew; what is in use of the old one (states taken before) stays as it was.
 *
 * C++ objects made by hand, as libstdc++ has them: a std::shared_ptr is the pointer and its control
 * block, a control block is a table of functions and two counts, one of which stands for all of the
 * first. A std::shared_ptr goes in by address and comes back empty. The trial says whether that
 * holds.
 */
#define _GNU_SOURCE
#include "bridges/torch_labels.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/atomics.h"
#include "bridges/torch_symbols.h"
#include "record/debug_info.h"

enum { LINK_LIMIT = 16 };

struct box;

struct control_type {
    void (*destroy_nothing)(struct box *box);
    void (*free_nothing)(struct box *box);
    void (*dispose)(struct box *box); /* the last shared_ptr is gone */
    void (*destroy)(struct box *box); /* the last of all is */
    void *(*get_deleter)(struct box *box, const void *type);
};

/* A control block, what it counts and what we keep. Of PyTorch's own, the first two fields. */
struct box {
    const struct control_type *control;
    int use_count; /* atomic, as PyTorch changes it */
    int weak_count;
    const void *const *info; /* c10::DebugInfoBase: a virtual destructor, never called */
    const opscope_debug_info *labels;
};

struct shared_ptr {
    void *object;
    struct box *control;
};

/* c10::ThreadLocalDebugInfo. Never written. */
struct link {
    struct shared_ptr info;
    uint64_t kind; /* or a byte of it */
    const struct link *parent;
};

static struct {
    void *(*get)(uint64_t kind);
    void (*current)(struct shared_ptr *out);
    void (*force)(struct shared_ptr *by_value);
    void (*push)(uint64_t kind, struct shared_ptr *by_value);
} torch;

/* A c10::DebugInfoKind is the address of a std::string_view with its name. */
static const struct {
    size_t bytes;
    const char *text;
} kind_name = {7, "opscope"};
static uint64_t our_kind;

static bool is_found;
/* Set once a thread has had labels, by any thread; relaxed: no other thread's depends on it before
 * PyTorch has carried them there, with order. */
bool opscope__torch_has_labels;

/* Owner: the thread. */
static _Thread_local struct box *own_box;      /* put into the chain for the labels in force here */
static _Thread_local struct box *own_followed; /* `followed` at that time; only to be compared */
static _Thread_local struct box *followed;     /* put there by others, in force here */
static _Thread_local const opscope_debug_info *laid_by; /* what was in force before */
static _Thread_local bool is_swapping;

/* ---- boxes ------------------------------------------------------------------------------------- */

static void do_nothing(struct box *box)
{
    (void)box;
}

static void dispose(struct box *box)
{
    opscope__debug_info_release(box->labels);
    box->labels = NULL;
}

static void destroy(struct box *box)
{
    free(box);
}

static void *get_deleter(struct box *box, const void *type)
{
    (void)box;
    (void)type;
    return NULL;
}

static const struct control_type control_type = {do_nothing, do_nothing, dispose, destroy,
                                                 get_deleter};
static const void *const no_functions[4]; /* of an info nobody destroys */

static struct box *retain(struct box *box)
{
    opscope__add_relaxed(&box->use_count, 1);
    return box;
}

static void release(struct box *box)
{
    /* No weak pointers are made: the last use is the end. Partner: PyTorch's own releases. */
    if (box != NULL && __atomic_fetch_sub(&box->use_count, 1, __ATOMIC_ACQ_REL) == 1) {
        dispose(box);
        destroy(box);
    }
}

static struct box *make_box(const opscope_debug_info *labels)
{
    struct box *box = malloc(sizeof *box);
    if (box != NULL) {
        *box = (struct box){.control = &control_type,
                            .use_count = 1,
                            .weak_count = 1,
                            .info = no_functions,
                            .labels = opscope__debug_info_retain(labels)};
    }
    return box;
}

static struct box *box_of(void *info)
{
    return (struct box *)(void *)((char *)info - offsetof(struct box, info));
}

/* ---- PyTorch's chain ---------------------------------------------------------------------------- */

/* The first link of this thread's chain, NULL where there is none; the thread's own till it
 * changes. */
static const struct link *first_link(void)
{
    struct shared_ptr current;
    torch.current(&current);
    const struct link *link = current.object;
    torch.force(&current); /* puts back what is there: our reference goes in, the one there goes */
    return link;
}

/* Makes this thread's chain anew: the links that are not ours in their order, and last, where it is
 * not NULL, one with `box`. False, and nothing done, where there are too many. */
static bool put_last(struct box *box)
{
    struct {
        uint64_t kind;
        struct shared_ptr info;
    } others[LINK_LIMIT];
    size_t count = 0;
    for (const struct link *link = first_link(); link != NULL; link = link->parent) {
        if (link->kind == our_kind) {
            continue;
        }
        if (count == LINK_LIMIT) {
            return false;
        }
        others[count].kind = link->kind;
        others[count++].info = link->info;
    }
    for (size_t i = 0; i < count; i++) {
        if (others[i].info.control != NULL) {
            retain(others[i].info.control);
        }
    }
    struct shared_ptr none = {NULL, NULL};
    torch.force(&none);
    if (box != NULL) {
        struct shared_ptr info = {&box->info, retain(box)};
        torch.push(our_kind, &info);
    }
    while (count-- > 0) {
        torch.push(others[count].kind, &others[count].info);
    }
    return true;
}

/* What the chain holds of ours, by this thread or another. */
static struct box *box_here(void)
{
    void *info = torch.get(our_kind);
    return info != NULL ? box_of(info) : NULL;
}

static void labels_changed(const opscope_debug_info *labels)
{
    if (is_swapping || !is_found) {
        return;
    }
    struct box *here = box_here();
    struct box *box = NULL;
    if (here != NULL && here->labels == labels) {
        box = retain(here);
    } else if (labels != NULL) {
        box = make_box(labels);
    }
    if (box != here && !put_last(box)) {
        release(box); /* then they are carried nowhere */
        box = NULL;
    }
    release(own_box);
    own_box = box;
    own_followed = followed;
    if (box != NULL) {
        opscope__store_relaxed(&opscope__torch_has_labels, true);
    }
}

/* ---- on another thread --------------------------------------------------------------------------- */

/* The box whose labels this thread is to have in place of its own; NULL: its own. */
static struct box *wanted_here(void)
{
    struct box *box = box_here();
    if (box != NULL && box == own_box) {
        return own_followed == followed ? followed : NULL; /* its own came last */
    }
    if (box != NULL && box->labels == opscope_debug_info_current()) {
        return followed; /* as it is already */
    }
    return box;
}

static void swap(const opscope_debug_info *labels)
{
    is_swapping = true;
    laid_by = opscope__debug_info_swap(labels);
    is_swapping = false;
}

void opscope__torch_follow_labels(void)
{
    struct box *wanted = wanted_here();
    if (wanted == followed) {
        return;
    }
    if (followed != NULL) {
        swap(laid_by);
        opscope__debug_info_release(laid_by);
        laid_by = NULL;
        release(followed);
        followed = NULL;
    }
    if (wanted != NULL) {
        swap(opscope__debug_info_retain(wanted->labels));
        followed = retain(wanted);
    }
}

/* What this thread has is about to change: that is to be what it has by now. */
static void labels_will_change(void)
{
    if (opscope__load_relaxed(&opscope__torch_has_labels)) {
        opscope__torch_follow_labels();
    }
}

void opscope__torch_forget_labels(void)
{
    opscope__debug_info_release(laid_by);
    laid_by = NULL;
    release(followed);
    followed = NULL;
    release(own_box);
    own_box = NULL;
    own_followed = NULL;
}

/* ---- trial --------------------------------------------------------------------------------------- */

static bool find(void *library, const char *name, void *function, size_t bytes)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, bytes);
    return found != NULL;
}

#define FIND(field, name)                                                                          \
    find(library, "_ZN3c1020ThreadLocalDebugInfo" name, &torch.field, sizeof torch.field)

static unsigned disposed_count;

static void count_dispose(struct box *box)
{
    (void)box;
    disposed_count++;
}

/* Whether links go in, are found, are where they are looked for, and are let go of. On a thread of
 * its own, whose chain is nobody's. */
static void *try_out(void *is_as_assumed)
{
    static const struct control_type counting = {do_nothing, do_nothing, count_dispose, do_nothing,
                                                 get_deleter};
    static struct box ours, other;
    const uint64_t other_kind = our_kind + 1;
    ours = other =
        (struct box){.control = &counting, .use_count = 1, .weak_count = 1, .info = no_functions};
    disposed_count = 0;
    struct shared_ptr info = {&other.info, &other};
    torch.push(other_kind, &info);
    bool is_sound = info.control == NULL && torch.get(other_kind) == &other.info;
    const struct link *first = first_link();
    is_sound = is_sound && first != NULL && first->info.object == &other.info &&
               first->info.control == &other && first->kind == other_kind &&
               first->parent == NULL && put_last(&ours);
    first = is_sound ? first_link() : NULL;
    is_sound = is_sound && first != NULL && first->info.object == &other.info &&
               first->parent != NULL && first->parent->info.object == &ours.info &&
               first->parent->parent == NULL && torch.get(our_kind) == &ours.info &&
               ours.use_count == 2 && disposed_count == 0;
    is_sound = is_sound && put_last(NULL) && torch.get(our_kind) == NULL && ours.use_count == 1 &&
               torch.get(other_kind) == &other.info && disposed_count == 0;
    struct shared_ptr none = {NULL, NULL};
    torch.force(&none);
    *(bool *)is_as_assumed = is_sound && disposed_count == 1 && first_link() == NULL;
    return NULL;
}

static bool holds_what_is_assumed(void)
{
    bool is_as_assumed = false;
    pthread_t thread;
    if (pthread_create(&thread, NULL, try_out, &is_as_assumed) != 0) {
        return false;
    }
    pthread_join(thread, NULL);
    return is_as_assumed;
}

void opscope__torch_carry_labels(void)
{
    void *library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    if (is_found || library == NULL || !FIND(get, "3getENS_13DebugInfoKindE") ||
        !FIND(current, "7currentEv") ||
        !FIND(force, "22_forceCurrentDebugInfoESt10shared_ptrIS0_E") ||
        !FIND(push, "5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE")) {
        return;
    }
    our_kind = (uint64_t)(uintptr_t)&kind_name;
    is_found = holds_what_is_assumed();
    if (is_found) {
        static const struct opscope__debug_info_listener listener = {labels_will_change,
                                                                     labels_changed};
        opscope__debug_info_listen(&listener);
        labels_changed(opscope_debug_info_current());
    }
}
