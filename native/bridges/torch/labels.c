/* torch/labels.c -- carries debug info wherever PyTorch carries a thread's state: into the tasks of
 * torch.jit.fork, to the threads of a backward.
 *
 * PyTorch carries a chain of its own, c10::ThreadLocalDebugInfo, to those threads. While a thread
 * has labels, its chain contains a link of ours that holds them. When a range starts on a thread
 * whose chain contains a link that another thread put there, the thread takes on that link's
 * labels. PyTorch finds links by their kind anywhere in the chain, but a pop requires its link on
 * top: a profiler may start or stop inside a block of labels. Our link is therefore always the last
 * one: the bridge inserts it by building the chain anew. Parts of the old chain that are still in
 * use (states captured before) stay unchanged.
 *
 * The C++ objects are built by hand, in libstdc++'s layout. A std::shared_ptr is the pointer and
 * its control block. A control block is a table of functions and two counts; all shared_ptrs
 * together hold one reference of the second. A std::shared_ptr argument is passed by address and
 * comes back empty. The trial verifies all this.
 */
#include "bridges/torch/labels.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/atomics.h"
#include "bridges/torch/abi.h"
#include "bridges/torch/symbols.h"
#include "record/debug_info.h"

enum { LINK_LIMIT = 16 };

struct box;

struct control_type {
    void (*destroy_nothing)(struct box *box);
    void (*free_nothing)(struct box *box);
    void (*dispose)(struct box *box); /* called when the last shared_ptr is gone */
    void (*destroy)(struct box *box); /* called when the last reference of any kind is gone */
    void *(*get_deleter)(struct box *box, const void *type);
};

/* A control block, the object it counts, and our own fields. For a control block of PyTorch's, only
 * the first two fields are valid. */
struct box {
    const struct control_type *control;
    int use_count; /* atomic, as PyTorch changes it */
    int weak_count;
    const void *const *info; /* c10::DebugInfoBase: its virtual destructor is never called */
    const opscope_debug_info *labels;
};

struct shared_ptr {
    void *object;
    struct box *control;
};

/* One that a C++ function returns, in its memory. */
struct returned {
    struct shared_ptr value;
    void *beyond;
};
_Static_assert(sizeof(struct returned) > OPSCOPE__CXX_REGISTER_BYTES, "returned through memory");

/* c10::ThreadLocalDebugInfo. Never written. */
struct link {
    struct shared_ptr info;
    uint64_t kind; /* only its first byte before 2.13 */
    const struct link *parent;
};

static struct {
    void *(*get)(uint64_t kind);
    struct returned (*current)(void);
    void (*force)(struct shared_ptr *by_value);
    void (*push)(uint64_t kind, struct shared_ptr *by_value);
} torch;

/* A c10::DebugInfoKind is the address of a std::string_view with its name. Before 2.13 it is a
 * byte: PyTorch's own are small numbers. */
static const struct {
    size_t bytes;
    const char *text;
} kind_name = {7, "opscope"};
enum { OUR_BYTE = 0xd6 };
static uint64_t our_kind;
static uint64_t kind_mask = UINT64_MAX; /* the bits of a link's kind that count */

static bool is_found;
/* Set once a thread has labels, by any thread. Relaxed: another thread depends on it only after
 * PyTorch has carried labels there, which orders the two. */
bool opscope__torch_has_labels;

/* Owner: the thread. */
static _Thread_local struct box *own_box; /* our link in the chain for this thread's own labels */
static _Thread_local struct box *own_followed; /* `followed` at that time; only for comparison */
static _Thread_local struct box *followed;     /* a link from another thread, in force here */
static _Thread_local const opscope_debug_info *laid_by; /* the labels in force before */
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
static const void *const no_functions[4]; /* of an info that is never destroyed */

static struct box *retain(struct box *box)
{
    opscope__add_relaxed(&box->use_count, 1);
    return box;
}

static void release(struct box *box)
{
    /* There are no weak pointers: the last use is the end. Partner: PyTorch's own releases. */
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

static uint64_t kind_of(const struct link *link)
{
    return link->kind & kind_mask;
}

/* The first link of this thread's chain, NULL if the chain is empty. The link is valid until the
 * chain changes. */
static const struct link *first_link(void)
{
    struct returned current = torch.current();
    const struct link *link = current.value.object;
    /* Restores the chain: our reference goes in, the chain's own comes out. */
    torch.force(&current.value);
    return link;
}

/* Builds this thread's chain anew: the links that are not ours in their order, then, if `box` is
 * not NULL, a link with it. Returns false, and changes nothing, if there are too many links. */
static bool put_last(struct box *box)
{
    struct {
        uint64_t kind;
        struct shared_ptr info;
    } others[LINK_LIMIT];
    size_t count = 0;
    for (const struct link *link = first_link(); link != NULL; link = link->parent) {
        if (kind_of(link) == our_kind) {
            continue;
        }
        if (count == LINK_LIMIT) {
            return false;
        }
        others[count].kind = kind_of(link);
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

/* Our box in the chain, put there by this thread or another. */
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
        release(box); /* the labels then stay on this thread */
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

/* The box whose labels replace this thread's own; NULL: its own are in force. */
static struct box *wanted_here(void)
{
    struct box *box = box_here();
    if (box != NULL && box == own_box) {
        return own_followed == followed ? followed : NULL; /* its own came last */
    }
    if (box != NULL && box->labels == opscope_debug_info_current()) {
        return followed; /* already in force */
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

/* This thread's labels are about to change: first takes on carried ones, so that the change applies
 * to them. */
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

#define FIND(field, name)                                                                          \
    opscope__torch_symbol(library, "_ZN3c1020ThreadLocalDebugInfo" name, &torch.field,             \
                          sizeof torch.field)

static unsigned disposed_count;

static void count_dispose(struct box *box)
{
    (void)box;
    disposed_count++;
}

enum outcome { SOUND, UNSOUND, SHORT_KINDS };

/* Verifies that links can be inserted, found at the expected place, and released. SHORT_KINDS: all
 * is as expected but the kind, of which PyTorch has kept the first byte. */
static enum outcome try_links(void)
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
               first->info.control == &other && first->parent == NULL;
    const bool has_short_kind =
        is_sound && kind_of(first) != other_kind && (uint8_t)first->kind == (uint8_t)other_kind;
    is_sound = is_sound && kind_of(first) == other_kind && put_last(&ours);
    first = is_sound ? first_link() : NULL;
    is_sound = is_sound && first != NULL && first->info.object == &other.info &&
               first->parent != NULL && first->parent->info.object == &ours.info &&
               first->parent->parent == NULL && torch.get(our_kind) == &ours.info &&
               ours.use_count == 2 && disposed_count == 0;
    is_sound = is_sound && put_last(NULL) && torch.get(our_kind) == NULL && ours.use_count == 1 &&
               torch.get(other_kind) == &other.info && disposed_count == 0;
    struct shared_ptr none = {NULL, NULL};
    torch.force(&none);
    const bool is_released = disposed_count == 1 && first_link() == NULL;
    return !is_released ? UNSOUND : is_sound ? SOUND : has_short_kind ? SHORT_KINDS : UNSOUND;
}

/* A byte is tried only where PyTorch has been seen to keep a byte: a later one would take it for an
 * address. Runs on its own thread, whose chain is otherwise unused. */
static void *try_out(void *is_as_assumed)
{
    our_kind = (uint64_t)(uintptr_t)&kind_name;
    kind_mask = UINT64_MAX;
    enum outcome outcome = try_links();
    if (outcome == SHORT_KINDS) {
        our_kind = OUR_BYTE;
        kind_mask = UINT8_MAX;
        outcome = try_links();
    }
    *(bool *)is_as_assumed = outcome == SOUND;
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

const char *opscope__torch_carry_labels(void)
{
    if (is_found) {
        return NULL;
    }
    void *library = opscope__torch_library("libc10.so");
    if (library == NULL || !FIND(get, "3getENS_13DebugInfoKindE") || !FIND(current, "7currentEv") ||
        !FIND(force, "22_forceCurrentDebugInfoESt10shared_ptrIS0_E") ||
        !FIND(push, "5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE")) {
        return "libc10 does not export c10::ThreadLocalDebugInfo";
    }
    is_found = holds_what_is_assumed();
    if (!is_found) {
        return "PyTorch's debug info has an unknown layout";
    }
    static const struct opscope__debug_info_listener listener = {labels_will_change,
                                                                 labels_changed};
    opscope__debug_info_listen(&listener);
    labels_changed(opscope_debug_info_current());
    return NULL;
}
