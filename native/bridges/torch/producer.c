/* torch_producer.c -- files that PyTorch adds to every TorchScript archive it saves.
 *
 * torch::jit::SetExportModuleExtraFilesHook takes a std::function that returns a std::unordered_map
 * of texts by name. Both are made by hand as libstdc++ has them: the map with one bucket, which is
 * how an empty one starts, and its nodes in a row. PyTorch goes through it, leaves out what the
 * caller of the save has given a file of the same name for, and destroys it, by operator delete.
 */
#define _GNU_SOURCE
#include "opscope/torch.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "bridges/torch_symbols.h"

enum { FILE_LIMIT = 16, LOCAL_BYTES = 16 };

struct string {
    char *text;
    size_t bytes;
    union {
        char local[LOCAL_BYTES];
        size_t capacity;
    } place;
};

struct node {
    struct node *next;
    struct string name;
    struct string content;
    size_t hash;
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
static void *(*operator_new)(size_t bytes);

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

static struct map *add_files(struct map *out, const void *function, const void *module)
{
    (void)function;
    (void)module;
    *out = (struct map){.buckets = &out->only_bucket, .bucket_count = 1, .max_load_factor = 1.0f};
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < file_count; i++) {
        struct node *node = operator_new(sizeof *node);
        memset(node, 0, sizeof *node);
        set_string(&node->name, files[i].name);
        set_string(&node->content, files[i].content);
        node->next = out->first;
        out->first = node;
        out->count++;
    }
    pthread_mutex_unlock(&lock);
    /* A bucket points to what stands before its first node: here that is the map's own `first`. */
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

static bool set_hook(void)
{
    void *library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) {
        return false;
    }
    void *found_hook = dlsym(
        library, "_ZN5torch3jit29SetExportModuleExtraFilesHookESt8functionIFSt13unordered_mapIN"
                 "St7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES8_St4hashIS8_ESt8equal_to"
                 "IS8_ESaISt4pairIKS8_S8_EEERKNS0_6ModuleEEE");
    void *found_new = dlsym(library, "_Znwm");
    void (*set)(struct function *by_value);
    memcpy(&set, &found_hook, sizeof set);
    memcpy(&operator_new, &found_new, sizeof operator_new);
    dlclose(library); /* PyTorch itself keeps it */
    if (found_hook == NULL || found_new == NULL ||
        pthread_atfork(fork_prepare, fork_done, fork_done) != 0) {
        return false;
    }
    struct function hook = {.manage = manage, .invoke = add_files};
    set(&hook);
    return true;
}

int opscope_torch_add_file(const char *version, const char *name, const char *content)
{
    struct opscope__torch_layout layout;
    static bool is_set; /* lock */
    if (!opscope__torch_layout_of(version, &layout)) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
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
