/* torch/usage.c -- passes PyTorch's API-usage events to this library's log, and the metadata of
 * some uses to the metadata handler.
 *
 * c10::SetAPIUsageLogger takes a std::function<void(const std::string &)>. In libstdc++ that is an
 * object of four words: two for the callable, then the functions that manage and invoke it.
 * c10::SetAPIUsageMetadataLogger takes one with a second argument, a std::map<std::string,
 * std::string>. libc10 exports both, under names that tell which std::string they take. It needs
 * only the C and C++ libraries, so the bridge can load it, from the same file, shortly before
 * PyTorch does, and sees the events of `import torch` too.
 *
 * PyTorch reports an event during the initialization of a static variable, which other threads may
 * wait for while they hold the GIL. A handler may need the GIL, so the interpreter calls it later
 * (Py_AddPendingCall). The log itself takes no lock that is held for long.
 */
#define _GNU_SOURCE
#include "private/torch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/atomics.h"
#include "bridges/torch/symbols.h"
#include "record/usage.h"

typedef void usage_logger(const void *string);

struct map;

/* std::function<void(const std::string &)>; and <void(const std::string &, const std::map<...> &)>.
 */
struct function {
    usage_logger *target; /* the first of the callable's two words, if it is a pointer */
    void *unused;
    bool (*manage)(struct function *into, const struct function *from, int operation);
    union {
        void (*with_text)(const struct function *function, const void *string);
        void (*with_map)(const struct function *function, const void *string,
                         const struct map *map);
    } invoke;
};

enum { CLONE = 2 };

/* A function pointer is trivial: managing it means copying it. */
static bool manage(struct function *into, const struct function *from, int operation)
{
    if (operation == CLONE) {
        into->target = from->target;
    }
    return false;
}

/* PyTorch's own loggers are function pointers too. A thread that logs meanwhile may therefore
 * combine the target of one with the invoker of the other, without harm. */
static void invoke(const struct function *function, const void *string)
{
    function->target(string);
}

/* ---- telling handlers ------------------------------------------------------------------------- */

struct news {
    struct news *next;
    struct opscope__usage_listener listener; /* of a key; handler NULL: metadata */
    struct opscope__usage_metadata_listener metadata_listener;
    size_t text_count; /* one; or a context, then keys and values alternating */
    char texts[];      /* each with its NUL */
};

/* Latest first. Pushed by compare-and-swap and taken as a whole: there is no lock that a fork could
 * leave held. */
static struct news *untold;

static const char *next_text(const char *text)
{
    return text + strlen(text) + 1;
}

static void tell_one(const struct news *news)
{
    const char *text = news->texts;
    if (news->listener.handler != NULL) {
        news->listener.handler(text, news->listener.user);
        return;
    }
    const char *key = next_text(text);
    for (size_t i = 1; i + 1 < news->text_count; i += 2) {
        const char *value = next_text(key);
        news->metadata_listener.handler(text, key, value, news->metadata_listener.user);
        key = next_text(value);
    }
}

/* The interpreter calls it and holds the GIL: one call at a time, but a handler may be
 * interrupted. */
static int tell(void *unused)
{
    (void)unused;
    /* Partner: the release in tell_later. */
    struct news *taken = __atomic_exchange_n(&untold, NULL, __ATOMIC_ACQUIRE);
    struct news *earliest = NULL;
    while (taken != NULL) {
        struct news *next = taken->next;
        taken->next = earliest;
        earliest = taken;
        taken = next;
    }
    while (earliest != NULL) {
        struct news *next = earliest->next;
        tell_one(earliest);
        free(earliest);
        earliest = next;
    }
    return 0;
}

/* If the interpreter's queue of pending calls is full, the next call delivers this too. */
static void tell_later(struct news *news)
{
    int (*add_pending_call)(int (*)(void *), void *);
    void *found = dlsym(RTLD_DEFAULT, "Py_AddPendingCall");
    memcpy(&add_pending_call, &found, sizeof found);
    if (add_pending_call == NULL) {
        free(news); /* if it is a key, the log keeps it anyway */
        return;
    }
    news->next = __atomic_load_n(&untold, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&untold, &news->next, news, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    (void)add_pending_call(tell, NULL);
}

static struct news *make_news(size_t text_bytes)
{
    struct news *news = malloc(sizeof *news + text_bytes);
    if (news != NULL) {
        *news = (struct news){0};
    }
    return news;
}

static char *put_text(char *at, const char *text)
{
    return stpcpy(at, text) + 1;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void log_usage(const void *string)
{
    const char *key = opscope__torch_text(string);
    struct opscope__usage_listener listener = opscope__usage_log(key);
    struct news *news = listener.handler != NULL ? make_news(strlen(key) + 1) : NULL;
    if (news != NULL) {
        news->listener = listener;
        news->text_count = 1;
        put_text(news->texts, key);
        tell_later(news);
    }
}

/* Does what PyTorch's own logger, which it replaces, does if the environment requests it. */
static void log_usage_aloud(const void *string)
{
    dprintf(STDERR_FILENO, "PYTORCH_API_USAGE %s\n", opscope__torch_text(string));
    log_usage(string);
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* std::map<std::string, std::string>: a tree whose root is attached to a node without texts. */
struct map_node {
    int color;
    struct map_node *parent;
    struct map_node *left;
    struct map_node *right;
    char pair[]; /* two std::string: key and value */
};

struct map {
    uint64_t compare;
    struct {
        int color;
        const struct map_node *root;
        const struct map_node *first;
        const struct map_node *last;
    } header;
    uint64_t count;
};

static const struct map_node *next_node(const struct map_node *node)
{
    if (node->right != NULL) {
        for (node = node->right; node->left != NULL; node = node->left) {
        }
        return node;
    }
    while (node == node->parent->right) {
        node = node->parent;
    }
    return node->parent; /* never called for the last node */
}

/* Which std::string libc10 was built with; opscope__torch knows it only once PyTorch is attached.
 * Relaxed: written before PyTorch gets the logger. */
static bool has_old_strings;

/* The bytes of the texts; writes them to `at` unless it is NULL. */
static size_t put_map(char *at, const char *context, const struct map *map)
{
    char *end = at != NULL ? put_text(at, context) : NULL;
    size_t bytes = strlen(context) + 1;
    const size_t string_bytes =
        opscope__torch_string_bytes(opscope__load_relaxed(&has_old_strings));
    const struct map_node *node = map->header.first;
    for (uint64_t i = 0; i < map->count; i++) {
        const char *const pair[2] = {opscope__torch_text(node->pair),
                                     opscope__torch_text(node->pair + string_bytes)};
        for (int part = 0; part < 2; part++) {
            end = end != NULL ? put_text(end, pair[part]) : NULL;
            bytes += strlen(pair[part]) + 1;
        }
        node = i + 1 < map->count ? next_node(node) : NULL;
    }
    return bytes;
}

/* PyTorch's own metadata logger does nothing. This one, like it, keeps nothing and reads nothing
 * from its function object, because a thread that logs meanwhile may find half of it. */
static void log_metadata(const struct function *function, const void *context,
                         const struct map *map)
{
    (void)function;
    struct opscope__usage_metadata_listener listener = opscope__usage_metadata_listener();
    if (listener.handler == NULL) {
        return;
    }
    const char *text = opscope__torch_text(context);
    struct news *news = make_news(put_map(NULL, text, map));
    if (news != NULL) {
        news->metadata_listener = listener;
        news->text_count = 1 + 2 * map->count;
        (void)put_map(news->texts, text, map);
        tell_later(news);
    }
}

/* ---- taking PyTorch's loggers' places ---------------------------------------------------------- */

#define STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define LOGGER "_ZN3c1017SetAPIUsageLoggerESt8functionIFvRK"
#define METADATA_LOGGER "_ZN3c1025SetAPIUsageMetadataLoggerESt8functionIFvRK"

/* The same two functions, by the std::string that they take. */
static const struct {
    const char *logger;
    const char *metadata_logger;
} setters[] = {
    {LOGGER STRING "EE",
     METADATA_LOGGER STRING "RKSt3mapIS6_S6_St4lessIS6_ESaISt4pairIS7_S6_EEEEE"},
    {LOGGER "SsEE", METADATA_LOGGER "SsRKSt3mapISsSsSt4lessISsESaISt4pairIS1_SsEEEEE"},
};

static bool set_logger(void *library, const char *setter, const struct function *logger)
{
    void *found = dlsym(library, setter);
    if (found == NULL) {
        return false;
    }
    void (*set)(struct function *by_value);
    memcpy(&set, &found, sizeof found);
    struct function given = *logger;
    set(&given); /* an object with a destructor is passed by address */
    return true;
}

const char *opscope_torch_log_usage(const char *libc10)
{
    const char *asked = getenv("PYTORCH_API_USAGE_STDERR");
    const struct function logger = {
        .target = asked != NULL && asked[0] != '\0' ? log_usage_aloud : log_usage,
        .manage = manage,
        .invoke = {.with_text = invoke},
    };
    const struct function metadata_logger = {.manage = manage,
                                             .invoke = {.with_map = log_metadata}};
    void *library = dlopen(libc10, RTLD_LAZY | RTLD_NODELETE);
    if (library == NULL && (library = opscope__torch_library("libc10.so")) == NULL) {
        return "libc10 cannot be loaded";
    }
    const bool is_old = dlsym(library, setters[0].logger) == NULL;
    opscope__store_relaxed(&has_old_strings, is_old); /* partner: the load in put_map */
    if (!set_logger(library, setters[is_old].logger, &logger)) {
        return "libc10 does not export c10::SetAPIUsageLogger";
    }
    return set_logger(library, setters[is_old].metadata_logger, &metadata_logger)
               ? NULL
               : "libc10 does not export c10::SetAPIUsageMetadataLogger";
}
