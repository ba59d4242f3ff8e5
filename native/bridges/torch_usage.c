/* torch_usage.c -- PyTorch's API-usage events into the log of this library.
 *
 * c10::SetAPIUsageLogger takes a std::function<void(const std::string &)>: an object of four words in
 * libstdc++, two of them the callable's own, then who manages and who invokes it. It is exported by
 * libc10, which needs only the C and C++ libraries: it may be loaded, from the same file, a little
 * before PyTorch does, so that the events of `import torch` are seen too.
 *
 * PyTorch says an event from within the initialization of a static variable, which other threads may
 * wait for while they hold the GIL. So a handler, which may want the GIL, is told by the interpreter
 * later (Py_AddPendingCall); the log itself takes no lock that anybody holds for long.
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

/* std::function<void(const std::string &)>. */
struct function {
    usage_logger *target; /* of the callable's two words the first, where it is a pointer */
    void *unused;
    bool (*manage)(struct function *into, const struct function *from, int operation);
    void (*invoke)(const struct function *function, const void *string);
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

struct news {
    struct opscope__usage_listener listener;
    char key[];
};

static int tell(void *arg)
{
    struct news *news = arg;
    news->listener.handler(news->key, news->listener.user);
    free(news);
    return 0;
}

static void tell_later(struct opscope__usage_listener listener, const char *key)
{
    int (*add_pending_call)(int (*)(void *), void *);
    void *found = dlsym(RTLD_DEFAULT, "Py_AddPendingCall");
    memcpy(&add_pending_call, &found, sizeof found);
    struct news *news = malloc(sizeof *news + strlen(key) + 1);
    if (news == NULL) {
        return;
    }
    news->listener = listener;
    strcpy(news->key, key);
    if (add_pending_call == NULL || add_pending_call(tell, news) != 0) {
        free(news); /* kept in the log all the same */
    }
}

static void log_usage(const void *string)
{
    const char *key = opscope__torch_text(string);
    struct opscope__usage_listener listener = opscope__usage_log(key);
    if (listener.handler != NULL) {
        tell_later(listener, key);
    }
}

/* What PyTorch's own logger does, whose place is taken, where its environment asks for it. */
static void log_usage_aloud(const void *string)
{
    dprintf(STDERR_FILENO, "PYTORCH_API_USAGE %s\n", opscope__torch_text(string));
    log_usage(string);
}

bool opscope_torch_log_usage(const char *version, const char *libc10)
{
    struct opscope__torch_layout layout;
    if (!opscope__torch_layout_of(version, &layout)) {
        return false;
    }
    const char *asked = getenv("PYTORCH_API_USAGE_STDERR");
    struct function logger = {
        .target = asked != NULL && asked[0] != '\0' ? log_usage_aloud : log_usage,
        .manage = manage,
        .invoke = invoke,
    };
    void *library = dlopen(libc10, RTLD_LAZY | RTLD_NODELETE);
    void *found =
        library != NULL
            ? dlsym(library, "_ZN3c1017SetAPIUsageLoggerESt8functionIFvRKNSt7__cxx1112basic_stringIc"
                             "St11char_traitsIcESaIcEEEEE")
            : NULL;
    if (found == NULL) {
        return false;
    }
    void (*set_logger)(struct function *by_value);
    memcpy(&set_logger, &found, sizeof found);
    set_logger(&logger); /* an object with a destructor goes by its address */
    return true;
}
