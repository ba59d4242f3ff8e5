/* tensor/kernels/stream.c -- results written past the caches: small parts of them are computed in
 * the first-level cache, and copied from there. */
#include "tensor/kernels/stream.h"

#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>

#include "base/atomics.h"

enum {
    LINE = 64,
    /* Bytes of a result at a time: few, so that the CPU reads the operands of the next ones while
     * it still writes these. */
    PART_BYTES = 4096, /* of a result at a time */
    PAGE = 4096,
    /* Functions take longer with it: the CPU does not compute while it waits for the stores. */
    COST_LIMIT = 3,
    /* Servers have 1 to 4 MiB of the last cache for each processor, and virtual machines report
     * that of the whole host. At operands and results of 30 MB together, streaming is faster on a
     * Xeon with 260 MB, even if the next operator reads the result. */
    CACHE_LIMIT = 24 << 20,
    /* Virtual machines of AMD report the cache of a few cores, not that of the host. */
    FAST_CACHE_LIMIT = 96 << 20
};

/* On a Zen 5 with 32 MB, an operand and a result of 16 MB each stay in the last cache: streaming
 * takes a third longer. On a Zen 3 with as much it is a quarter faster. */
static bool has_fast_cache(void)
{
    return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512f");
}

static int64_t cache_bytes(void)
{
    static int64_t known; /* atomic, relaxed: every thread finds the same number */
    int64_t bytes = opscope__load_relaxed(&known);
    if (bytes == 0) {
        long last = -1;
#if defined(_SC_LEVEL3_CACHE_SIZE)
        last = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
        const int64_t limit = has_fast_cache() ? FAST_CACHE_LIMIT : CACHE_LIMIT;
        bytes = last > 0 && last < limit ? last : limit;
        opscope__store_relaxed(&known, bytes);
    }
    return bytes;
}

/* The bytes of an operand that are read or written. */
static int64_t bytes_of(const struct opscope__iterator *it, int operand)
{
    int64_t bytes = it->item[operand];
    for (int i = 0; i < it->dims; i++) {
        bytes *= it->strides[i][operand] != 0 ? it->sizes[i] : 1;
    }
    return bytes;
}

static bool is_first_with_its_memory(const struct opscope__iterator *it, int operand)
{
    for (int i = 0; i < operand; i++) {
        if (it->data[i] == it->data[operand]) {
            return false;
        }
    }
    return true;
}

bool opscope__stream_pays(const struct opscope__iterator *it, int64_t cost)
{
    if (cost > COST_LIMIT || it->count * it->item[0] < CACHE_LIMIT / OPSCOPE__OPERAND_LIMIT) {
        return false; /* decides most calls at once */
    }
    if (it->strides[it->dims - 1][0] != it->item[0] || !__builtin_cpu_supports("avx")) {
        return false;
    }
    int64_t bytes = 0;
    for (int i = 0; i < it->operands; i++) {
        if (is_first_with_its_memory(it, i)) {
            bytes += bytes_of(it, i);
        } else if (it->data[i] == it->data[0]) {
            return false;
        }
    }
    return bytes >= cache_bytes();
}

/* The operands of the next part. */
struct ahead {
    int count;
    uintptr_t at[OPSCOPE__OPERAND_LIMIT]; /* their end may come sooner; reading ahead is harmless */
    uintptr_t step[OPSCOPE__OPERAND_LIMIT]; /* bytes of each for a line of the result */
};

/* Copies whole lines, and has the CPU read the next part's operands meanwhile: by itself it begins
 * to read them only when the loop does. (16 bytes at a time are too slow for this to pay.) */
__attribute__((target("avx"))) static void copy_lines(char *to, const char *from, int64_t bytes,
                                                      struct ahead *ahead)
{
    for (int64_t i = 0; i < bytes; i += LINE) {
        for (int k = 0; k < ahead->count; k++) {
            __builtin_prefetch((const void *)ahead->at[k]);
            ahead->at[k] += ahead->step[k];
        }
        for (int64_t part = i; part < i + LINE; part += (int64_t)sizeof(__m256i)) {
            _mm256_stream_si256((__m256i *)(void *)(to + part),
                                _mm256_load_si256((const __m256i *)(const void *)(from + part)));
        }
    }
}

void opscope__stream(opscope__loop loop, int operands, char *const *data, const int64_t *strides,
                     int64_t count, void *user)
{
    /* A load waits for earlier stores with the same last 12 bits in their addresses. So the part
     * begins at the same ones as the first operand, whose loads are then ahead of the stores. */
    _Alignas(PAGE) char room[PAGE + PART_BYTES];
    char *part = room + (uintptr_t)data[operands > 1] % PAGE / LINE * LINE;
    /* Whole vectors, so that an element's place in a vector, and its bits, stay as without parts.
     * A piece of work begins in the middle of a line only where a row does. */
    const int64_t step = PART_BYTES / strides[0];
    char *at[OPSCOPE__OPERAND_LIMIT];
    memcpy(at, data, (size_t)operands * sizeof *at);
    if ((uintptr_t)at[0] % LINE != 0) {
        loop(at, strides, count, user);
        return;
    }
    for (; count > 0; count -= step) {
        const int64_t some = count < step ? count : step;
        const int64_t bytes = some * strides[0], lines = bytes - bytes % LINE;
        char *out = at[0];
        at[0] = part;
        loop(at, strides, some, user);
        struct ahead ahead = {.count = 0};
        for (int i = 1; i < operands; i++) {
            at[i] += some * strides[i];
            if (strides[i] != 0 && count > step) {
                ahead.at[ahead.count] = (uintptr_t)at[i];
                ahead.step[ahead.count++] = (uintptr_t)(LINE / strides[0] * strides[i]);
            }
        }
        copy_lines(out, part, lines, &ahead);
        memcpy(out + lines, part + lines, (size_t)(bytes - lines));
        at[0] = out + bytes;
    }
    _mm_sfence(); /* a thread that sees what this one writes next also sees the result */
}

#else

/* No store of C goes past the caches on other processors. */
bool opscope__stream_pays(const struct opscope__iterator *it, int64_t cost)
{
    (void)it, (void)cost;
    return false;
}

void opscope__stream(opscope__loop loop, int operands, char *const *data, const int64_t *strides,
                     int64_t count, void *user)
{
    (void)operands;
    loop(data, strides, count, user);
}

#endif
