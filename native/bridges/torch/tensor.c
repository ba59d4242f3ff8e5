/* torch/tensor.c -- see torch/tensor.h. The functions are called aoti_torch_*; they return 0 on
 * success.
 *
 * Before 2.13 they print the exception of a tensor without sizes (a nested one, or one of Python's
 * with symbolic sizes) to standard error. There, such tensors are not asked. PyTorch's TensorImpl
 * has a flag for them, which sends the question to a virtual function. The flag is found by asking
 * a made-up TensorImpl, with functions of our own, with each of its bits set in turn.
 */
#include "bridges/torch/tensor.h"

#include <dlfcn.h>

#include "bridges/torch/symbols.h"
#include "private/torch.h"
#include "record/shape.h"

enum { IMPL_BYTES = 256, FUNCTIONS = 64, BITS = 8 };

struct impl {
    void *(*const *functions)(void);
    uint8_t fields[IMPL_BYTES - sizeof(void *)];
};

/* Written before PyTorch gets a callback; constant afterwards. */
static struct {
    int32_t (*is_defined)(const void *tensor, bool *out);
    int32_t (*dim)(const void *tensor, int64_t *out);
    int32_t (*sizes)(const void *tensor, const int64_t **out);
    int32_t (*dtype)(const void *tensor, int32_t *out);
    int32_t (*device_type)(const void *tensor, int32_t *out);
    const void *undefined; /* the impl of tensors that are not defined, before is_defined (2.9) */
    size_t flag_byte;      /* of struct impl; 0: every tensor is asked */
    uint8_t flag;
    bool is_known;
} torch;

/* ---- tensors without sizes ---------------------------------------------------------------------- */

/* Any virtual function of the made-up impl: only the comparison below uses the result. */
static void *answer(void)
{
    static int64_t sizes;
    return &sizes;
}

static bool is_asked(const struct impl *impl)
{
    const int64_t *sizes = NULL;
    return torch.sizes(&impl, &sizes) == 0 && sizes == answer();
}

static bool find_flag(void)
{
    void *(*functions[FUNCTIONS])(void);
    for (size_t i = 0; i < FUNCTIONS; i++) {
        functions[i] = answer;
    }
    struct impl impl = {.functions = functions};
    unsigned found = 0;
    for (size_t bit = 0; !is_asked(&impl) && bit < sizeof impl.fields * BITS; bit++) {
        const uint8_t mask = (uint8_t)(1u << bit % BITS);
        impl.fields[bit / BITS] = mask;
        if (is_asked(&impl)) {
            torch.flag_byte = offsetof(struct impl, fields) + bit / BITS;
            torch.flag = mask;
            found++;
        }
        impl.fields[bit / BITS] = 0;
    }
    return found == 1;
}

static bool has_sizes(const void *impl)
{
    return (((const uint8_t *)impl)[torch.flag_byte] & torch.flag) == 0;
}

/* ---- all of it ------------------------------------------------------------------------------------ */

#define FIND(field, name) opscope__torch_symbol(library, name, &torch.field, sizeof torch.field)

static const char *find_all(void *library)
{
    if (!FIND(dim, "aoti_torch_get_dim") || !FIND(sizes, "aoti_torch_get_sizes") ||
        !FIND(dtype, "aoti_torch_get_dtype") || !FIND(device_type, "aoti_torch_get_device_type")) {
        return "libtorch_cpu does not export aoti_torch_get_sizes and related functions";
    }
    if (!FIND(is_defined, "aoti_torch_is_defined") &&
        !FIND(undefined, "_ZN3c1019UndefinedTensorImpl10_singletonE")) {
        return "undefined tensors cannot be recognized";
    }
    /* It came with the version that no longer prints. */
    const bool is_quiet = dlsym(library, "torch_exception_get_what") != NULL;
    return is_quiet || find_flag() ? NULL : "tensors without sizes cannot be recognized";
}

const char *opscope__torch_find_tensors(void)
{
    void *library = opscope__torch_library("libtorch_cpu.so");
    if (library == NULL) {
        return "libtorch_cpu is not loaded";
    }
    const char *reason = find_all(library);
    dlclose(library); /* the bridge has it too, for good */
    torch.is_known = reason == NULL;
    return reason;
}

/* `tensor` is an at::Tensor: the address of its impl. */
static bool is_defined(const void *tensor, bool *out)
{
    if (torch.is_defined != NULL) {
        return torch.is_defined(tensor, out) == 0;
    }
    *out = *(const void *const *)tensor != torch.undefined;
    return true;
}

int opscope_torch_tensor_read(const void *tensor, opscope_torch_tensor *out)
{
    opscope_torch_tensor found = {0};
    bool defined = false;
    if (!torch.is_known || !is_defined(tensor, &defined)) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    if (!defined) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    if (!has_sizes(*(const void *const *)tensor) || torch.dtype(tensor, &found.dtype) != 0 ||
        torch.device_type(tensor, &found.device_type) != 0 || torch.dim(tensor, &found.dim) != 0 ||
        torch.sizes(tensor, &found.sizes) != 0) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    *out = found;
    return OPSCOPE_OK;
}

static int shape_of(const void *object, int64_t *sizes)
{
    opscope_torch_tensor tensor;
    if (opscope_torch_tensor_read(object, &tensor) != OPSCOPE_OK) {
        return -1;
    }
    for (int64_t i = 0; i < tensor.dim && i < OPSCOPE__RANK_LIMIT; i++) {
        sizes[i] = tensor.sizes[i];
    }
    return (int)tensor.dim;
}

void opscope__torch_register_shapes(void)
{
    (void)opscope__shape_register("torch.tensor", shape_of);
}
