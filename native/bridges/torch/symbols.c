/* torch/symbols.c -- finds PyTorch's libraries and exported functions in the process.
 *
 * The names are C++ names, which contain the types of the arguments: a function that exists under
 * its name takes what the bridge gives it. All releases from 2.4 to 2.15 export the required ones
 * under the same names. The name of c10::SetAPIUsageLogger also tells which std::string PyTorch was
 * built with; it does not follow from the version.
 *
 * Two things have no name: offsets of fields (torch/layout.c) and the lock of PyTorch's callbacks
 * (torch/registry.c).
 */
#define _GNU_SOURCE
#include "bridges/torch/symbols.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <sys/random.h>

struct opscope__torch opscope__torch;

/* ---- libraries ------------------------------------------------------------------------------ */

struct wanted_library {
    const char *name;
    char *path;
};

/* Copies the path. It calls no dlopen: that takes the loader's locks in another order. */
static int find_path(struct dl_phdr_info *info, size_t bytes, void *data)
{
    struct wanted_library *wanted = data;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *file = slash != NULL ? slash + 1 : info->dlpi_name;
    const size_t length = strlen(wanted->name);
    (void)bytes;
    if (strncmp(file, wanted->name, length) != 0 || (file[length] != '\0' && file[length] != '.')) {
        return 0;
    }
    wanted->path = strdup(info->dlpi_name);
    return 1;
}

void *opscope__torch_library(const char *name)
{
    struct wanted_library wanted = {.name = name};
    (void)dl_iterate_phdr(find_path, &wanted);
    void *library = wanted.path != NULL ? dlopen(wanted.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    free(wanted.path);
    return library;
}

/* ---- functions ------------------------------------------------------------------------------ */

/* dlsym returns functions as data pointers. */
bool opscope__torch_symbol(void *library, const char *name, void *function, size_t bytes)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, bytes);
    return found != NULL;
}

#define FIND(field, name)                                                                          \
    opscope__torch_symbol(library, name, &opscope__torch.field, sizeof opscope__torch.field)

/* The first that is missing, by a name that a person understands; NULL: none. */
static const char *missing_function(void *library)
{
    if (!FIND(add_global_callback, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE")) {
        return "libtorch_cpu does not export at::addGlobalCallback";
    }
    if (!FIND(remove_callback, "_ZN2at14removeCallbackEm")) {
        return "libtorch_cpu does not export at::removeCallback";
    }
    if (!FIND(has_global_callbacks, "_ZN2at18hasGlobalCallbacksEv")) {
        return "libtorch_cpu does not export at::hasGlobalCallbacks";
    }
    if (!FIND(name, "_ZNK2at14RecordFunction4nameEv")) {
        return "libtorch_cpu does not export at::RecordFunction::name";
    }
    if (!FIND(thread_id, "_ZN2at14RecordFunction15currentThreadIdEv")) {
        return "libtorch_cpu does not export at::RecordFunction::currentThreadId";
    }
    if (!FIND(is_async, "_ZNK2at14RecordFunction7isAsyncEv")) {
        return "libtorch_cpu does not export at::RecordFunction::isAsync";
    }
    if (!FIND(seed_sampling, "_ZN2at36set_record_function_seed_for_testingEj")) {
        return "libtorch_cpu does not export at::set_record_function_seed_for_testing";
    }
    /* In libtorch_cpu's own libstdc++. */
    return FIND(exceptions, "__cxa_get_globals") ? NULL : "its C++ runtime library was not found";
}

#define OLD_LOGGER "_ZN3c1017SetAPIUsageLoggerESt8functionIFvRKSsEE"

const char *opscope__torch_find(void)
{
#if !(defined(__x86_64__) || defined(__aarch64__)) || !defined(__GLIBC__)
    return "only x86-64 and aarch64 with glibc are supported";
#endif
    void *library = opscope__torch_library("libtorch_cpu.so");
    if (library == NULL) {
        return "libtorch_cpu is not loaded";
    }
    const char *reason = missing_function(library);
    if (reason != NULL) {
        dlclose(library); /* otherwise it stays: the bridge calls it as long as the process lives */
        return reason;
    }
    (void)FIND(overload_name, "_ZNK2at14RecordFunction13overload_nameEv");
    (void)FIND(num_inputs, "_ZNK2at14RecordFunction10num_inputsEv");
    (void)FIND(num_outputs, "_ZNK2at14RecordFunction11num_outputsEv");
    (void)FIND(graph_task_id, "_ZN5torch8autograd25get_current_graph_task_idEv");
    opscope__torch.has_old_strings = dlsym(library, OLD_LOGGER) != NULL;
    return NULL;
}

void opscope__torch_seed_sampling(void)
{
    uint32_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed) {
        opscope__torch.seed_sampling(seed);
    }
}
