/* torch_usage.c -- PyTorch's API-usage events into the log of this library, and the metadata that
 * it gives with some uses to the handler for metadata.
 *
 * c10::SetAPIUsageLogger takes a std::function<void(const std::string &)>: an object of four words
 * in libstdc++, two of them the callable's own, then who manages and who invokes it; and
 * c10::SetAPIUsageMetadataLogger one that is given a std::map<std::string, std::string> too. They
 * are exported by libc10, which needs only the C and C++ libraries: it may be loaded, from the same
 * file, a little before PyTorch does, so that the events of `import torch` are seen too.
 *
 * PyTorch says an event from within the initialization of a static variable, which other threads
 * may wait for while they hold the GIL. So a handler, which may want the GIL, is told by the
 * interpreter later (Py_AddPendingCall); the log itself takes no lock that anybody holds for long.
 */
#define _GNU_SOURCE
#include "opscope/torch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bridges/torch_symbols.h"
#include "record/usage.h"

typedef void usage_logger(const void *string);

struct map;

/* std::function<void(const std::string &)>; and <void(const std::string &, const std::map<...> &)>.
 */
struct function {
    usage_logger *target; /* of the callable's two words the first, where it is a pointer */
    void *unused;
    bool (*manage)(struct function *into, const struct function *from, int operation);
    union {
        void (*with_text)(const struct function *function, const void *string);
        void (*with_map)(const struct function *function, const void *string,
                         const struct map *map);
    } invoke;
};

enum { CLONE = 2 };

/* A pointer to a function is trivial: there is nothing to do but to copy it. */
static bool manage(struct function *into, const struct function *from, int operation)
{
    if (operation == CLONE) {
        into->target = from->target;
    }
    return false;
}

/* As PyTorch's own loggers are pointers to functions too, it does no harm when a thread that logs
 * meanwhile finds the target of one and the invoker of the other. */
static void invoke(const struct function *function, const void *string)
{
    function->target(string);
}

/* ---- telling handlers ------------------------------------------------------------------------- */

struct news {
    struct news *next;
    struct opscope__usage_listener listener; /* of a key; handler NULL: metadata */
    struct opscope__usage_metadata_listener metadata_listener;
    size_t text_count; /* one; or a context, then keys and values by turns */
    char texts[];      /* each with its NUL */
};

/* Latest first. Pushed by compare-and-swap, taken whole: no lock that a fork could find taken. */
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

/* Called by the interpreter, which holds the GIL: one at a time, but a handler may be interrupted.
 */
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

/* Where the interpreter has no room for one more call, the next one tells this too. */
static void tell_later(struct news *news)
{
    int (*add_pending_call)(int (*)(void *), void *);
    void *found = dlsym(RTLD_DEFAULT, "Py_AddPendingCall");
    memcpy(&add_pending_call, &found, sizeof found);
    if (add_pending_call == NULL) {
        free(news); /* kept in the log all the same, where it is a key */
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

/* What PyTorch's own logger does, whose place is taken, where its environment asks for it. */
static void log_usage_aloud(const void *string)
{
    dprintf(STDERR_FILENO, "PYTORCH_API_USAGE %s\n", opscope__torch_text(string));
    log_usage(string);
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* std::map<std::string, std::string>: a tree whose root hangs on a node without texts. */
struct map_node {
    int color;
    struct map_node *parent;
    struct map_node *left;
    struct map_node *right;
    uint64_t key[4]; /* std::string */
    uint64_t value[4];
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
    return node->parent; /* of the last one it is never asked for */
}

/* The bytes that the texts take, written to `at` where it is not NULL. */
static size_t put_map(char *at, const char *context, const struct map *map)
{
    char *end = at != NULL ? put_text(at, context) : NULL;
    size_t bytes = strlen(context) + 1;
    const struct map_node *node = map->header.first;
    for (uint64_t i = 0; i < map->count; i++) {
        const char *const pair[2] = {opscope__torch_text(node->key),
                                     opscope__torch_text(node->value)};
        for (int part = 0; part < 2; part++) {
            end = end != NULL ? put_text(end, pair[part]) : NULL;
            bytes += strlen(pair[part]) + 1;
        }
        node = i + 1 < map->count ? next_node(node) : NULL;
    }
    return bytes;
}

/* PyTorch's own logger of these does nothing. As it keeps nothing either, this one reads nothing of
 * its function: a thread that logs meanwhile may find half of it. */
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

static bool set_logger(void *library, const char *setter, const struct function *logger)
{
    void *found = dlsym(library, setter);
    if (found == NULL) {
        return false;
    }
    void (*set)(struct function *by_value);
    memcpy(&set, &found, sizeof found);
    struct function given = *logger;
    set(&given); /* an object with a destructor goes by its address */
    return true;
}

bool opscope_torch_log_usage(const char *version, const char *libc10)
{
    struct opscope__torch_layout layout;
    if (!opscope__torch_layout_of(version, &layout)) {
        return false;
    }
    const char *asked = getenv("PYTORCH_API_USAGE_STDERR");
    const struct function logger = {
        .target = asked != NULL && asked[0] != '\0' ? log_usage_aloud : log_usage,
        .manage = manage,
        .invoke = {.with_text = invoke},
    };
    const struct function metadata_logger = {.manage = manage,
                                             .invoke = {.with_map = log_metadata}};
    void *library = dlopen(libc10, RTLD_LAZY | RTLD_NODELETE);
    return library != NULL &&
           set_logger(library, "_ZN3c1017SetAPIUsageLoggerESt8functionIFvRK" STRING "EE",
                      &logger) &&
           set_logger(library,
                      "_ZN3c1025SetAPIUsageMetadataLoggerESt8functionIFvRK" STRING
                      "RKSt3mapIS6_S6_St4lessIS6_ESaISt4pairIS7_S6_EEEEE",
                      &metadata_logger);
}
