/* model/file/tensors.c -- the tensors of an archive, over its mapping.
 *
 * Those that share a storage share its memory, as long as their dtypes are equal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/file/document.h"
#include "opscope/status.h"

struct making {
    const opscope_model *model;
    size_t count;
    opscope_tensor *(*bases)[OPSCOPE_DTYPE_COUNT]; /* by storage and dtype; owned */
};

static int fail(const struct making *making, size_t number, const char *reason)
{
    return opscope__model_fail(making->model, OPSCOPE__MODEL_DOCUMENT, "tensor %zu: %s", number,
                               reason);
}

static bool read_integers(const struct opscope__item *list, int64_t *out)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->as.items[i]->kind != OPSCOPE__ITEM_INT) {
            return false;
        }
        out[i] = list->as.items[i]->as.integer;
    }
    return true;
}

static int dtype_of(const char *name)
{
    int dtype = 0;
    while (dtype < OPSCOPE_DTYPE_COUNT &&
           strcmp(name, opscope_dtype_name((opscope_dtype)dtype)) != 0) {
        dtype++;
    }
    return dtype;
}

static int find_base(const struct making *making, int64_t storage, opscope_dtype dtype,
                     opscope_tensor **out)
{
    char entry[48];
    opscope_tensor **base = &making->bases[storage][dtype];
    if (*base == NULL) {
        snprintf(entry, sizeof entry, "tensors/%lld", (long long)storage);
        int status = opscope_archive_tensor(making->model->archive, entry, dtype, base);
        if (status != OPSCOPE_OK) {
            return status;
        }
    }
    *out = *base;
    return OPSCOPE_OK;
}

static int make(const struct making *making, const struct opscope__item *about, size_t number,
                opscope_tensor **out)
{
    const opscope_model *model = making->model;
    if (about->kind != OPSCOPE__ITEM_MAP) {
        return fail(making, number, "it is not described by an object");
    }
    const struct opscope__item *storage, *dtype, *sizes, *strides, *offset;
    if ((storage = opscope__field(model, about, "storage", OPSCOPE__ITEM_INT)) == NULL ||
        (dtype = opscope__field(model, about, "dtype", OPSCOPE__ITEM_TEXT)) == NULL ||
        (sizes = opscope__field(model, about, "sizes", OPSCOPE__ITEM_LIST)) == NULL ||
        (strides = opscope__field(model, about, "strides", OPSCOPE__ITEM_LIST)) == NULL ||
        (offset = opscope__field(model, about, "offset", OPSCOPE__ITEM_INT)) == NULL) {
        return OPSCOPE_ERR_INVALID;
    }
    int64_t size_at[OPSCOPE_DIM_LIMIT], stride_at[OPSCOPE_DIM_LIMIT];
    int of = dtype_of(dtype->as.text);
    if (of == OPSCOPE_DTYPE_COUNT) {
        return fail(making, number, "an unknown dtype");
    }
    if (storage->as.integer < 0 || (uint64_t)storage->as.integer >= making->count) {
        return fail(making, number, "its storage is out of range");
    }
    if (sizes->count > OPSCOPE_DIM_LIMIT || sizes->count != strides->count ||
        !read_integers(sizes, size_at) || !read_integers(strides, stride_at)) {
        return fail(making, number, "sizes and strides are not lists of as many integers");
    }
    opscope_tensor *base;
    int status = find_base(making, storage->as.integer, (opscope_dtype)of, &base);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope_tensor_as_strided(base, (int)sizes->count, size_at, stride_at,
                                       offset->as.integer, out);
    return status == OPSCOPE_OK ? status : fail(making, number, opscope_tensor_error());
}

void opscope__file_tensors_release(opscope_tensor **tensors, size_t count)
{
    for (size_t i = 0; tensors != NULL && i < count; i++) {
        opscope_tensor_release(tensors[i]);
    }
    free(tensors);
}

int opscope__file_tensors(const opscope_model *model, const struct opscope__item *described,
                          opscope_tensor ***out)
{
    size_t count = described->count;
    struct making making = {model, count, calloc(count + 1, sizeof *making.bases)};
    opscope_tensor **tensors = calloc(count + 1, sizeof *tensors);
    int status = making.bases != NULL && tensors != NULL
                     ? OPSCOPE_OK
                     : opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    for (size_t i = 0; status == OPSCOPE_OK && i < count; i++) {
        status = make(&making, described->as.items[i], i, &tensors[i]);
    }
    for (size_t i = 0; making.bases != NULL && i < count; i++) {
        for (int dtype = 0; dtype < OPSCOPE_DTYPE_COUNT; dtype++) {
            opscope_tensor_release(making.bases[i][dtype]);
        }
    }
    free(making.bases);
    if (status != OPSCOPE_OK) {
        opscope__file_tensors_release(tensors, count);
        return status;
    }
    *out = tensors;
    return OPSCOPE_OK;
}
