/* tensor/python/dlpack_abi.h -- DLPack's structures, laid out as in github.com/dmlc/dlpack
 * (1.0). */
#ifndef OPSCOPE_TENSOR_PYTHON_DLPACK_ABI_H
#define OPSCOPE_TENSOR_PYTHON_DLPACK_ABI_H

#include <stdint.h>

enum { DLPACK_CPU = 1, DLPACK_MAJOR = 1, DLPACK_MINOR = 0 };
enum { DLPACK_INT = 0, DLPACK_UINT = 1, DLPACK_FLOAT = 2, DLPACK_BFLOAT = 4, DLPACK_BOOL = 6 };
enum { DLPACK_READ_ONLY = 1, DLPACK_COPIED = 2 };

struct dlpack_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t dims;
    uint8_t type_code;
    uint8_t type_bits;
    uint16_t type_lanes;
    int64_t *sizes;
    int64_t *strides; /* NULL: contiguous */
    uint64_t byte_offset;
};

/* In capsules named "dltensor". */
struct dlpack_managed {
    struct dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *self);
};

/* In capsules named "dltensor_versioned". */
struct dlpack_versioned {
    uint32_t major;
    uint32_t minor;
    void *context;
    void (*deleter)(struct dlpack_versioned *self);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

#endif
