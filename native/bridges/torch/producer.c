/* torch/producer.c -- brings PyTorch to add the process's extra files (opscope/extra_files.h) to
 * every TorchScript archive that it saves.
 *
 * PyTorch has one hook for this, which a program may use itself, so the bridge sets it only once
 * there is something to add. torch::jit::SetExportModuleExtraFilesHook takes a std::function that
 * returns a std::unordered_map of texts by name. This file builds both by hand, in libstdc++'s
 * layout: the map with one bucket, like a new empty map, and its nodes as a list. PyTorch iterates
 * over the map, skips names for which the caller of the save has given a file, and destroys the map
 * with operator delete. The function's name tells which of libstdc++'s two std::strings it takes:
 * the old one is a pointer to a text, after a head with length, capacity and the count of further
 * users.
 */
#include "bridges/torch/producer.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "base/atomics.h"
#include "bridges/torch/abi.h"
#include "bridges/torch/symbols.h"
#include "record/extra_files.h"

enum { LOCAL_BYTES = 16 };

struct string {
    char *text;
    size_t bytes;
    union {
        char local[LOCAL_BYTES];
        size_t capacity;
    } place;
};

struct old_string {
    size_t bytes;
    size_t capacity;
    size_t more_users;
    char text[];
};

/* Followed by two strings, name and content, and the name's hash. */
struct node {
    struct node *next;
    struct string strings[];
};

struct map {
    struct node **buckets;
    size_t bucket_count;
    struct node *first;
    size_t count;
    float max_load_factor;
    size_t next_resize;
    struct node *only_bucket;
};

struct function {
    void *unused[2];
    bool (*manage)(void *into, const void *from, int operation);
    opscope__cxx_entry invoke; /* of add_files */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_set;       /* the hook is PyTorch's; lock */
static bool is_listening; /* lock */
static bool is_followed;  /* the bridge is attached; written with the lock, relaxed */
/* Constant once the hook is set. */
static void *(*operator_new)(size_t bytes);
static bool has_old_strings;

/* In memory that is zero: the text ends in a zero. */
static void set_string(struct string *string, const void *text, size_t bytes)
{
    string->bytes = bytes;
    string->text = string->place.local;
    if (bytes >= LOCAL_BYTES) {
        string->text = operator_new(bytes + 1);
        string->place.capacity = bytes;
        string->text[bytes] = '\0';
    }
    memcpy(string->text, text, bytes);
}

static char *old_text(const void *text, size_t bytes)
{
    struct old_string *made = operator_new(sizeof *made + bytes + 1);
    *made = (struct old_string){.bytes = bytes, .capacity = bytes};
    made->text[bytes] = '\0';
    return memcpy(made->text, text, bytes);
}

static struct node *make_node(opscope_extra_file file)
{
    const size_t name_bytes = strlen(file.name);
    const size_t bytes =
        sizeof(struct node) + sizeof(size_t) + 2 * opscope__torch_string_bytes(has_old_strings);
    struct node *node = operator_new(bytes);
    memset(node, 0, bytes);
    if (has_old_strings) {
        char *texts[] = {old_text(file.name, name_bytes), old_text(file.data, file.bytes)};
        memcpy(node + 1, texts, sizeof texts);
    } else {
        set_string(&node->strings[0], file.name, name_bytes);
        set_string(&node->strings[1], file.data, file.bytes);
    }
    return node;
}

static struct map *add_files(struct map *out, const void *function, const void *module)
{
    (void)function;
    (void)module;
    *out = (struct map){.buckets = &out->only_bucket, .bucket_count = 1, .max_load_factor = 1.0f};
    opscope_extra_files *files =
        opscope__load_relaxed(&is_followed) ? opscope_extra_files_collect() : NULL;
    for (size_t i = 0; i < opscope_extra_files_count(files); i++) {
        struct node *node = make_node(opscope_extra_files_at(files, i));
        node->next = out->first;
        out->first = node;
        out->count++;
    }
    opscope_extra_files_free(files);
    /* A bucket points to the node before its first one: here that is the map's own `first`. */
    out->only_bucket = out->first != NULL ? (struct node *)(void *)&out->first : NULL;
    return out;
}
OPSCOPE__CXX_ENTRY(add_files);

static bool manage(void *into, const void *from, int operation)
{
    (void)into;
    (void)from;
    (void)operation;
    return false; /* it holds nothing */
}

static void fork_prepare(void)
{
    pthread_mutex_lock(&lock);
}

static void fork_done(void)
{
    pthread_mutex_unlock(&lock);
}

#define HOOK "_ZN5torch3jit29SetExportModuleExtraFilesHookESt8functionIFSt13unordered_mapI"
#define STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

/* The same function, by the std::string that it takes. */
static const char *const setters[] = {
    HOOK STRING "S8_St4hashIS8_ESt8equal_toIS8_ESaISt4pairIKS8_S8_EEERKNS0_6ModuleEEE",
    HOOK "SsSsSt4hashISsESt8equal_toISsESaISt4pairIKSsSsEEERKNS0_6ModuleEEE",
};

typedef void set_hook_function(struct function *by_value);

/* Fills in what making strings needs; NULL if this PyTorch has no hook of a known kind. */
static set_hook_function *find_hook(void)
{
    set_hook_function *set = NULL;
    void *library = opscope__torch_library("libtorch_cpu.so");
    if (library == NULL ||
        !opscope__torch_symbol(library, "_Znwm", &operator_new, sizeof operator_new)) {
        return NULL;
    }
    const bool is_new = opscope__torch_symbol(library, setters[0], &set, sizeof set);
    if (!is_new && opscope__torch_symbol(library, setters[1], &set, sizeof set)) {
        has_old_strings = true;
    }
    dlclose(library); /* PyTorch itself keeps it loaded */
    return set;
}

static bool set_hook(void)
{
    set_hook_function *set = find_hook();
    if (set == NULL || pthread_atfork(fork_prepare, fork_done, fork_done) != 0) {
        return false;
    }
    struct function hook = {.manage = manage, .invoke = OPSCOPE__CXX_ENTRY_OF(add_files)};
    set(&hook);
    return true;
}

static void follow_hook(void)
{
    pthread_mutex_lock(&lock);
    if (is_followed && !is_set && opscope__extra_files_are_hooked()) {
        is_set = set_hook();
    }
    pthread_mutex_unlock(&lock);
}

const char *opscope__torch_archives_fault(void)
{
    pthread_mutex_lock(&lock);
    const bool is_possible = is_set || find_hook() != NULL;
    pthread_mutex_unlock(&lock);
    return is_possible ? NULL : "libtorch_cpu does not export SetExportModuleExtraFilesHook";
}

void opscope__torch_follow_archives(bool is_attached)
{
    pthread_mutex_lock(&lock);
    opscope__store_relaxed(&is_followed, is_attached); /* partner: the load of a save */
    const bool is_first = !is_listening;
    is_listening = true;
    pthread_mutex_unlock(&lock);
    if (is_first) {
        opscope__extra_files_listen(follow_hook);
    }
    follow_hook();
}
