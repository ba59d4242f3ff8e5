/* torch/producer.c -- files that PyTorch adds to every TorchScript archive it saves.
 *
 * torch::jit::SetExportModuleExtraFilesHook takes a std::function that returns a std::unordered_map
 * of texts by name. This file builds both by hand, in libstdc++'s layout: the map with one bucket,
 * like a new empty map, and its nodes as a list. PyTorch iterates over the map, skips names for
 * which the caller of the save has given a file, and destroys the map with operator delete. The
 * function's name tells which of libstdc++'s two std::strings it takes: the old one is a pointer to
 * a text, after a head with length, capacity and the count of further users.
 */
#include "bridges/torch/producer.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "bridges/torch/symbols.h"
#include "private/torch.h"

enum { FILE_LIMIT = 16, LOCAL_BYTES = 16 };

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
    struct map *(*invoke)(struct map *out, const void *function, const void *module);
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char *name;
    char *content;
} files[FILE_LIMIT];      /* lock */
static size_t file_count; /* lock */
static bool is_set;       /* the hook is PyTorch's; lock */
/* Constant once the hook is set. */
static void *(*operator_new)(size_t bytes);
static bool has_old_strings;

static void set_string(struct string *string, const char *text)
{
    string->bytes = strlen(text);
    string->text = string->place.local;
    if (string->bytes >= LOCAL_BYTES) {
        string->text = operator_new(string->bytes + 1);
        string->place.capacity = string->bytes;
    }
    memcpy(string->text, text, string->bytes + 1);
}

static char *old_text(const char *text)
{
    const size_t bytes = strlen(text);
    struct old_string *made = operator_new(sizeof *made + bytes + 1);
    *made = (struct old_string){.bytes = bytes, .capacity = bytes};
    return memcpy(made->text, text, bytes + 1);
}

static struct node *make_node(const char *name, const char *content)
{
    const size_t bytes =
        sizeof(struct node) + sizeof(size_t) + 2 * opscope__torch_string_bytes(has_old_strings);
    struct node *node = operator_new(bytes);
    memset(node, 0, bytes);
    if (has_old_strings) {
        char *texts[] = {old_text(name), old_text(content)};
        memcpy(node + 1, texts, sizeof texts);
    } else {
        set_string(&node->strings[0], name);
        set_string(&node->strings[1], content);
    }
    return node;
}

static struct map *add_files(struct map *out, const void *function, const void *module)
{
    (void)function;
    (void)module;
    *out = (struct map){.buckets = &out->only_bucket, .bucket_count = 1, .max_load_factor = 1.0f};
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < file_count; i++) {
        struct node *node = make_node(files[i].name, files[i].content);
        node->next = out->first;
        out->first = node;
        out->count++;
    }
    pthread_mutex_unlock(&lock);
    /* A bucket points to the node before its first one: here that is the map's own `first`. */
    out->only_bucket = out->first != NULL ? (struct node *)(void *)&out->first : NULL;
    return out;
}

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
    struct function hook = {.manage = manage, .invoke = add_files};
    set(&hook);
    return true;
}

const char *opscope__torch_archives_fault(void)
{
    pthread_mutex_lock(&lock);
    const bool is_possible = is_set || find_hook() != NULL;
    pthread_mutex_unlock(&lock);
    return is_possible ? NULL : "libtorch_cpu does not export SetExportModuleExtraFilesHook";
}

int opscope_torch_add_file(const char *name, const char *content)
{
    char *name_copy = strdup(name);
    char *content_copy = strdup(content);
    int status = name_copy != NULL && content_copy != NULL ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < file_count && strcmp(files[i].name, name) != 0) {
        i++;
    }
    if (status == OPSCOPE_OK && i == FILE_LIMIT) {
        status = OPSCOPE_ERR_FULL;
    }
    if (status == OPSCOPE_OK && !is_set && !(is_set = set_hook())) {
        status = OPSCOPE_ERR_UNSUPPORTED;
    }
    if (status == OPSCOPE_OK) {
        free(files[i].name);
        free(files[i].content);
        files[i].name = name_copy;
        files[i].content = content_copy;
        file_count = i == file_count ? i + 1 : file_count;
        name_copy = content_copy = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(name_copy);
    free(content_copy);
    return status;
}

void opscope_torch_clear_files(void)
{
    pthread_mutex_lock(&lock);
    while (file_count > 0) {
        file_count--;
        free(files[file_count].name);
        free(files[file_count].content);
        files[file_count].name = files[file_count].content = NULL;
    }
    pthread_mutex_unlock(&lock);
}
