/* tensor/dispatch/library.c -- loads a shared library of operators (opscope/operator.h).
 *
 * Each operator that its entry point registers is checked at once. All of them join the table of
 * operators after the entry point has returned 0, so a library is loaded completely or not at all.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/core/call.h"

enum { OPERATOR_LIMIT = 128, NAME_BYTES = 96 };

/* An operator of a library: the core's spec, and the library's own. */
struct brought {
    struct opscope__operator_spec spec; /* first: a struct opscope__call points to it */
    opscope_operator_spec given;
};

struct library {
    struct library *next;
    void *handle;
    struct brought *brought[OPERATOR_LIMIT];
    const opscope_operator *operators[OPERATOR_LIMIT];
    size_t count;
};

typedef int entry_point(const opscope_core *core);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while a library loads */
static struct library *loaded;                           /* under `lock` */
static _Thread_local struct library
    *loading; /* the library whose entry point runs on this thread */

/* ---- the core's view ------------------------------------------------------------------------- */

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const opscope_operator *op = call->op;
    const struct brought *brought = (const void *)op->spec;
    int status = brought->given.forward(call, arguments, outputs);
    for (size_t i = 0; status == OPSCOPE_OK && i < op->schema.output_count; i++) {
        if (outputs[i] == NULL) {
            status = opscope_tensor_fail(
                OPSCOPE_ERROR_RUNTIME, "%s: its library returned 0 and no output %zu", op->name, i);
        }
    }
    return status;
}

/* ---- registration ---------------------------------------------------------------------------- */

/* "mine::scale" of "mine::scale(...)"; false if the schema has no such name. */
static bool read_name(const char *schema, char *name)
{
    size_t length = strcspn(schema, "("), at = 0;
    bool is_start = true, has_namespace = false;
    if (length == 0 || length >= NAME_BYTES) {
        return false;
    }
    for (; at < length; at++) {
        bool is_colons = !is_start && !has_namespace && strncmp(schema + at, "::", 2) == 0;
        if (is_colons) {
            has_namespace = is_start = true;
            at++;
            continue;
        }
        unsigned char letter = (unsigned char)schema[at];
        if (letter != '_' && !isalpha(letter) && (is_start || !isdigit(letter))) {
            return false;
        }
        is_start = false;
    }
    memcpy(name, schema, length);
    name[length] = '\0';
    return has_namespace && !is_start;
}

static int check_name(const struct library *library, const char *schema)
{
    char name[NAME_BYTES];
    if (schema == NULL || !read_name(schema, name)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE,
            "operator_register: a schema begins with a name, such as \"mine::scale(\", "
            "not as \"%.80s\"",
            schema != NULL ? schema : "");
    }
    if (strncmp(name, "core::", 6) == 0) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "operator_register: %s: the namespace core is reserved", name);
    }
    size_t length = strlen(name), tail = strlen(OPSCOPE__NODE_NAME_END);
    if (length > tail && strcmp(name + length - tail, OPSCOPE__NODE_NAME_END) == 0) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE,
            "operator_register: %s: a name that ends with " OPSCOPE__NODE_NAME_END
            " is reserved for nodes of backward; choose another",
            name);
    }
    bool is_taken = opscope_operator_find(name) != NULL;
    for (size_t i = 0; i < library->count; i++) {
        const char *other = library->brought[i]->given.schema;
        is_taken |= strncmp(other, name, strlen(name)) == 0 && other[strlen(name)] == '(';
    }
    if (is_taken) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "operator_register: the operator %s already exists", name);
    }
    return OPSCOPE_OK;
}

static int check_schema(const char *text)
{
    struct opscope__schema schema;
    int status = opscope__schema_parse(text, &schema);
    bool is_list = schema.output_is_list;
    if (status == OPSCOPE_OK) {
        free(schema.text);
    }
    if (status == OPSCOPE_ERR_FULL) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE, "operator_register: more than %d parameters or %d outputs: %.300s",
            OPSCOPE_ARGUMENT_LIMIT, OPSCOPE_OUTPUT_LIMIT, text);
    }
    if (status == OPSCOPE_OK && is_list) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE,
            "operator_register: an operator of a library returns tensors, not a list "
            "of them: %.300s",
            text);
    }
    if (status != OPSCOPE_OK) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "operator_register: not a valid schema: %.300s", text);
    }
    return OPSCOPE_OK;
}

static int register_operator(const opscope_operator_spec *spec)
{
    struct library *library = loading;
    if (library == NULL) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "operator_register: only while opscope_operators_init runs, on its "
            "thread");
    }
    if (spec->struct_bytes < offsetof(opscope_operator_spec, backward) || spec->forward == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "operator_register: struct_bytes must be "
                                   "sizeof(opscope_operator_spec), and there must be a forward");
    }
    int status = check_name(library, spec->schema);
    if (status == OPSCOPE_OK) {
        status = check_schema(spec->schema);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct brought *brought = library->count < OPERATOR_LIMIT ? calloc(1, sizeof *brought) : NULL;
    if (brought == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY,
                                   "operator_register: out of memory for %.80s", spec->schema);
    }
    size_t bytes = spec->struct_bytes;
    memcpy(&brought->given, spec, bytes < sizeof *spec ? bytes : sizeof *spec);
    const opscope_operator_spec *given = &brought->given;
    brought->spec = (struct opscope__operator_spec){.schema = given->schema,
                                                    .doc = given->doc,
                                                    .samples = given->samples,
                                                    .forward = forward,
                                                    .backward = given->backward,
                                                    .saves_inputs = given->saves_inputs,
                                                    .saves_outputs = given->saves_outputs,
                                                    .is_view = given->is_view,
                                                    .takes_numbers = given->takes_numbers};
    library->brought[library->count++] = brought;
    return OPSCOPE_OK;
}

static const opscope_core core = {
    .struct_bytes = sizeof core,
    .operator_register = register_operator,
    .allocator_register = opscope_allocator_register,
    .fail = opscope_tensor_fail,
    .call_name = opscope__call_name,
    .call_save = opscope__call_save,
    .operator_find = opscope_operator_find,
    .call = opscope_call,
    .tensor_empty = opscope_tensor_empty,
    .tensor_from_memory = opscope_tensor_from_memory,
    .tensor_as_strided = opscope_tensor_as_strided,
    .tensor_retain = opscope_tensor_retain,
    .tensor_release = opscope_tensor_release,
    .tensor_dims = opscope_tensor_dims,
    .tensor_sizes = opscope_tensor_sizes,
    .tensor_strides = opscope_tensor_strides,
    .tensor_offset = opscope_tensor_offset,
    .tensor_count = opscope_tensor_count,
    .tensor_dtype = opscope_tensor_dtype,
    .tensor_data = opscope_tensor_data,
    .tensor_is_contiguous = opscope_tensor_is_contiguous,
    .tensor_is_read_only = opscope_tensor_is_read_only,
    .dtype_name = opscope_dtype_name,
    .dtype_bytes = opscope_dtype_bytes,
    .dtype_is_floating = opscope_dtype_is_floating,
    .dtype_promote = opscope_dtype_promote,
};

/* ---- loading --------------------------------------------------------------------------------- */

static int find_entry(void *handle, const char *path, entry_point **out)
{
    const uint32_t *abi = dlsym(handle, "opscope_operators_abi");
    void *entry = dlsym(handle, "opscope_operators_init");
    if (abi == NULL || entry == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "load_library: %s has no entry point; define one with "
                                   "OPSCOPE_OPERATOR_LIBRARY (opscope/operator.h)",
                                   path);
    }
    if (*abi != OPSCOPE_OPERATOR_ABI) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "load_library: %s was compiled for version %u of opscope/operator.h, "
            "not %d; recompile it",
            path, *abi, OPSCOPE_OPERATOR_ABI);
    }
    memcpy(out, &entry, sizeof entry);
    return OPSCOPE_OK;
}

static int run_entry(struct library *library, entry_point *entry, const char *path)
{
    opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "load_library: the entry point of %s failed", path);
    struct library *outer = loading;
    loading = library;
    int status = entry(&core);
    loading = outer;
    return status == OPSCOPE_OK ? OPSCOPE_OK : OPSCOPE_ERR_INVALID;
}

/* Adds them to the table. The checks ran under the same lock, so the names are still free. */
static int add_operators(struct library *library, const char *path)
{
    for (size_t i = 0; i < library->count; i++) {
        library->operators[i] = opscope__registry_add(&library->brought[i]->spec);
        if (library->operators[i] == NULL) {
            library->count = i; /* the operators added so far stay */
            return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                       "load_library: out of memory for the operators of %s", path);
        }
    }
    return OPSCOPE_OK;
}

/* With the lock held; takes the handle. */
static int load(void *handle, const char *path, struct library **out)
{
    entry_point *entry = NULL;
    struct library *library = calloc(1, sizeof *library);
    int status = library != NULL
                     ? find_entry(handle, path, &entry)
                     : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "load_library: out of memory");
    if (status == OPSCOPE_OK) {
        status = run_entry(library, entry, path);
        /* The library stays loaded: it may have registered allocators, or left pointers to
         * itself. */
        handle = NULL;
    }
    if (status == OPSCOPE_OK) {
        status = add_operators(library, path);
        *out = library;
        return status;
    }
    for (size_t i = 0; library != NULL && i < library->count; i++) {
        free(library->brought[i]);
    }
    free(library);
    if (handle != NULL) {
        dlclose(handle);
    }
    return status;
}

int opscope_operators_load(const char *path, opscope_operator_library *out)
{
    if (loading != NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "load_library: not while another library's entry point runs");
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "load_library: %s", dlerror());
    }
    pthread_mutex_lock(&lock);
    struct library *library = loaded;
    while (library != NULL && library->handle != handle) {
        library = library->next;
    }
    int status = OPSCOPE_OK;
    if (library != NULL) {
        dlclose(handle); /* closes the extra reference of a library that is already loaded */
    } else {
        status = load(handle, path, &library);
        if (status == OPSCOPE_OK) {
            library->handle = handle;
            library->next = loaded;
            loaded = library;
        }
    }
    if (status == OPSCOPE_OK) {
        *out = (opscope_operator_library){library->operators, library->count};
    }
    pthread_mutex_unlock(&lock);
    return status;
}
