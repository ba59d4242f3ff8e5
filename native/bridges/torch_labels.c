/* torch_labels.c -- debug info that goes where PyTorch takes a thread's state: into the tasks of
 * torch.jit.fork, to the threads of a backward.
 *
 * PyTorch carries a chain of its own, c10::ThreadLocalDebugInfo, to those threads. While a thread has
 * labels, a link of ours is the first of its chain, holding them; where a range starts on a thread
 * whose chain begins with the link of another thread, its labels are taken on. Whoever pops a link of
 * PyTorch's must find it on top, so ours is only put where there is none, and where somebody has put
 * his on top of it, it stays, said to be over.
 *
 * C++ objects made by hand, as libstdc++ has them: a std::shared_ptr is the pointer and its control
 * block, a control block is a table of functions and two counts, one of which stands for all of the
 * first. A std::shared_ptr goes in by address and comes back empty. The trial says whether that holds.
 */
#define _GNU_SOURCE
#include "bridges/torch_labels.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "base/atomics.h"
#include "bridges/torch_symbols.h"
#include "record/debug_info.h"

struct box;

struct control_type {
    void (*destroy_nothing)(struct box *box);
    void (*free_nothing)(struct box *box);
    void (*dispose)(struct box *box); /* the last shared_ptr is gone */
    void (*destroy)(struct box *box); /* the last of all is */
    void *(*get_deleter)(struct box *box, const void *type);
};

/* A control block, what it counts and what we keep. */
struct box {
    const struct control_type *control;
    int use_count; /* atomic, as PyTorch changes it */
    int weak_count;
    const void *const *info; /* c10::DebugInfoBase: a virtual destructor, never called */
    const opscope_debug_info *labels;
    uint64_t origin; /* the thread's id */
    bool is_over;    /* the origin stores, others load; relaxed: it may be late anyway */
};

struct shared_ptr {
    void *object;
    struct box *control;
};

static struct {
    void *(*get)(const void *kind);
    void (*current)(struct shared_ptr *out);
    void (*force)(struct shared_ptr *by_value);
    void (*push)(const void *kind, struct shared_ptr *by_value);
} torch;

/* A c10::DebugInfoKind is the address of a std::string_view with its name. */
static const struct {
    size_t bytes;
    const char *text;
} kind = {7, "opscope"};

static bool is_found;
/* Set once a thread has had labels, by any thread; relaxed: no other thread's depends on it before
 * PyTorch has carried them there, with order. */
bool opscope__torch_has_labels;

/* Owner: the thread. */
static _Thread_local void *own_link;    /* PyTorch's link of own_box; to be compared only */
static _Thread_local struct box *own_box;
static _Thread_local struct box *followed;                /* of another thread, in force here */
static _Thread_local const opscope_debug_info *laid_by;   /* what was in force before */
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
                            .labels = opscope__debug_info_retain(labels),
                            .origin = opscope_thread_id()};
    }
    return box;
}

static struct box *box_of(void *info)
{
    return (struct box *)(void *)((char *)info - offsetof(struct box, info));
}

/* ---- PyTorch's chain ---------------------------------------------------------------------------- */

/* The first link of this thread's chain, NULL where there is none; for comparing only. */
static void *first_link(void)
{
    struct shared_ptr current;
    torch.current(&current);
    void *link = current.object;
    torch.force(&current); /* puts back what is there: our reference goes in, the one there goes */
    return link;
}

static void set_chain(struct box *box)
{
    struct shared_ptr none = {NULL, NULL};
    torch.force(&none);
    if (box != NULL) {
        struct shared_ptr info = {&box->info, retain(box)};
        torch.push(&kind, &info);
    }
    own_link = box != NULL ? first_link() : NULL;
}

static void labels_changed(const opscope_debug_info *labels)
{
    if (is_swapping || !is_found || (labels == NULL && own_box == NULL)) {
        return;
    }
    void *first = first_link();
    const bool is_ours = first == NULL || first == own_link;
    struct box *box = labels != NULL && is_ours ? make_box(labels) : NULL;
    if (is_ours) {
        set_chain(box);
    } else if (own_box != NULL) {
        opscope__store_relaxed(&own_box->is_over, true); /* partner: the load in wanted_here */
    }
    release(own_box);
    own_box = box;
    if (box != NULL) {
        opscope__store_relaxed(&opscope__torch_has_labels, true);
    }
}

/* ---- on another thread --------------------------------------------------------------------------- */

/* The box whose labels this thread is to have in place of its own; NULL: its own. */
static struct box *wanted_here(void)
{
    void *info = torch.get(&kind);
    struct box *box = info != NULL ? box_of(info) : NULL;
    return box != NULL && box->origin != opscope_thread_id() &&
                   !opscope__load_relaxed(&box->is_over)
               ? box
               : NULL;
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

void opscope__torch_forget_labels(void)
{
    opscope__debug_info_release(laid_by);
    laid_by = NULL;
    release(followed);
    followed = NULL;
    release(own_box);
    own_box = NULL;
    own_link = NULL;
}

/* ---- trial --------------------------------------------------------------------------------------- */

static bool find(void *library, const char *name, void *function, size_t bytes)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, bytes);
    return found != NULL;
}

#define FIND(field, name) find(library, "_ZN3c1020ThreadLocalDebugInfo" name, &torch.field, \
                               sizeof torch.field)

static unsigned disposed_count;

static void count_dispose(struct box *box)
{
    (void)box;
    disposed_count++;
}

/* Whether a link goes in, is found, and is let go of where the chain is set to none. */
static bool holds_what_is_assumed(void)
{
    static const struct control_type counting = {do_nothing, do_nothing, count_dispose, do_nothing,
                                                 get_deleter};
    static struct box box = {.control = &counting, .info = no_functions};
    if (first_link() != NULL) {
        return false; /* somebody's: not to be touched */
    }
    box.use_count = 1;
    box.weak_count = 1;
    disposed_count = 0;
    struct shared_ptr info = {&box.info, &box};
    torch.push(&kind, &info);
    const bool is_in = info.control == NULL && first_link() != NULL && torch.get(&kind) == &box.info;
    struct shared_ptr none = {NULL, NULL};
    torch.force(&none);
    return is_in && disposed_count == 1 && torch.get(&kind) == NULL && first_link() == NULL;
}

void opscope__torch_carry_labels(void)
{
    void *library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    if (is_found || library == NULL || !FIND(get, "3getENS_13DebugInfoKindE") ||
        !FIND(current, "7currentEv") || !FIND(force, "22_forceCurrentDebugInfoESt10shared_ptrIS0_E") ||
        !FIND(push, "5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE")) {
        return;
    }
    is_found = holds_what_is_assumed();
    if (is_found) {
        opscope__debug_info_listen(labels_changed);
        labels_changed(opscope_debug_info_current());
    }
}
