/* tensor/ops/nn/copy_lines.h -- vectors, and copies of short lines with them.
 *
 * Included twice, as convolution_tiles.h is, before it.
 */
typedef REAL NAMED(vector)
    __attribute__((vector_size(OPSCOPE__VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

/* Half of one. */
typedef REAL NAMED(half)
    __attribute__((vector_size(OPSCOPE__VECTOR_BYTES / 2), aligned(sizeof(REAL)), may_alias));

/* Copies `count` elements: lines are too short for the C library. */
static inline void NAMED(copy)(REAL *to, const REAL *from, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        *(NAMED(vector) *)(void *)(to + i) = *(const NAMED(vector) *)(const void *)(from + i);
    }
    if (i < count && count >= LANES) { /* again, some elements of the last vector */
        i = count - LANES;
        *(NAMED(vector) *)(void *)(to + i) = *(const NAMED(vector) *)(const void *)(from + i);
        return;
    }
    if (i < count && count >= LANES / 2) {
        *(NAMED(half) *)(void *)to = *(const NAMED(half) *)(const void *)from;
        i = count - LANES / 2;
        *(NAMED(half) *)(void *)(to + i) = *(const NAMED(half) *)(const void *)(from + i);
        return;
    }
    for (; i < count; i++) {
        OPSCOPE__KEEP_LOOP();
        to[i] = from[i];
    }
}

static inline void NAMED(clear)(REAL *to, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        *(NAMED(vector) *)(void *)(to + i) = (NAMED(vector)){0};
    }
    for (; i < count; i++) {
        OPSCOPE__KEEP_LOOP();
        to[i] = 0;
    }
}

/* Copies every second element, `count` of them. */
static inline void NAMED(copy_halves)(REAL *to, const REAL *from, int64_t count)
{
    int64_t i = 0;
#if defined(OPSCOPE__HAS_SHUFFLES) && LANES > 2
    /* Two vectors that overlap, so that no element after the last one is read. */
    for (; i + LANES <= count || (i < count && count >= LANES); i += LANES) {
        i = i + LANES <= count ? i : count - LANES;
        NAMED(vector) low = *(const NAMED(vector) *)(const void *)(from + 2 * i);
        NAMED(vector) high = *(const NAMED(vector) *)(const void *)(from + 2 * i + LANES - 1);
        *(NAMED(vector) *)(void *)(to + i) = OPSCOPE__EVERY_SECOND(LANES, low, high);
    }
#if LANES > 4
    for (; i + LANES / 2 <= count || (i < count && count >= LANES / 2); i += LANES / 2) {
        i = i + LANES / 2 <= count ? i : count - LANES / 2;
        NAMED(half) low = *(const NAMED(half) *)(const void *)(from + 2 * i);
        NAMED(half) high = *(const NAMED(half) *)(const void *)(from + 2 * i + LANES / 2 - 1);
        *(NAMED(half) *)(void *)(to + i) = OPSCOPE__EVERY_SECOND(HALF, low, high);
    }
#endif
#endif
    for (; i < count; i++) {
        OPSCOPE__KEEP_LOOP();
        to[i] = from[2 * i];
    }
}

/* The same for some lines, which are a pitch apart. */
static inline void NAMED(copy_lines_halves)(REAL *to, int64_t pitch, const REAL *from,
                                            int64_t from_pitch, int64_t lines, int64_t count)
{
#if defined(OPSCOPE__HAS_SHUFFLES) && LANES > 2
    if (count == LANES) {
        for (; lines > 0; lines--, to += pitch, from += from_pitch) {
            *(NAMED(vector) *)(void *)to =
                OPSCOPE__EVERY_SECOND(LANES, *(const NAMED(vector) *)(const void *)from,
                                      *(const NAMED(vector) *)(const void *)(from + LANES - 1));
        }
        return;
    }
#endif
#if defined(OPSCOPE__HAS_SHUFFLES) && LANES > 4
    if (count >= LANES / 2 && count < LANES) { /* two half vectors each, which overlap */
        int64_t last = count - LANES / 2;
        for (; lines > 0; lines--, to += pitch, from += from_pitch) {
            const REAL *one = from, *other = from + 2 * last;
            *(NAMED(half) *)(void *)to =
                OPSCOPE__EVERY_SECOND(HALF, *(const NAMED(half) *)(const void *)one,
                                      *(const NAMED(half) *)(const void *)(one + LANES / 2 - 1));
            *(NAMED(half) *)(void *)(to + last) =
                OPSCOPE__EVERY_SECOND(HALF, *(const NAMED(half) *)(const void *)other,
                                      *(const NAMED(half) *)(const void *)(other + LANES / 2 - 1));
        }
        return;
    }
#endif
    for (; lines > 0; lines--, to += pitch, from += from_pitch) {
        NAMED(copy_halves)(to, from, count);
    }
}

#if defined(OPSCOPE__HAS_SHUFFLES) && LANES > 2
/* Separates 2 * LANES elements: the first, third and so on, and the others. */
static inline __attribute__((always_inline)) void NAMED(split_some)(REAL *evens, REAL *odds,
                                                                    const REAL *from)
{
    NAMED(vector) low = *(const NAMED(vector) *)(const void *)from;
    NAMED(vector) high = *(const NAMED(vector) *)(const void *)(from + LANES);
    *(NAMED(vector) *)(void *)evens = OPSCOPE__EVENS(LANES, low, high);
    *(NAMED(vector) *)(void *)odds = OPSCOPE__ODDS(LANES, low, high);
}
#endif

#if defined(OPSCOPE__HAS_SHUFFLES) && LANES > 4
/* The same for LANES elements. */
static inline __attribute__((always_inline)) void NAMED(split_few)(REAL *evens, REAL *odds,
                                                                   const REAL *from)
{
    NAMED(half) low = *(const NAMED(half) *)(const void *)from;
    NAMED(half) high = *(const NAMED(half) *)(const void *)(from + HALF);
    *(NAMED(half) *)(void *)evens = OPSCOPE__EVENS(HALF, low, high);
    *(NAMED(half) *)(void *)odds = OPSCOPE__ODDS(HALF, low, high);
}
#endif

/* Separates `pairs` pairs of elements of each of some lines, which are a pitch apart. */
static inline void NAMED(split_lines)(REAL *evens, REAL *odds, int64_t pitch, const REAL *from,
                                      int64_t from_pitch, int64_t lines, int64_t pairs)
{
    for (; lines > 0; lines--, evens += pitch, odds += pitch, from += from_pitch) {
        int64_t i = 0;
#if defined(OPSCOPE__HAS_SHUFFLES) && LANES > 2
        for (; i + LANES <= pairs; i += LANES) {
            NAMED(split_some)(evens + i, odds + i, from + 2 * i);
        }
        if (i < pairs && i > 0) { /* again, some elements of the last vectors */
            i = pairs - LANES;
            NAMED(split_some)(evens + i, odds + i, from + 2 * i);
            continue;
        }
#endif
#if defined(OPSCOPE__HAS_SHUFFLES) && LANES > 4
        if (i < pairs && pairs >= HALF) { /* two half vectors each, which overlap */
            i = pairs - HALF;
            NAMED(split_few)(evens, odds, from);
            NAMED(split_few)(evens + i, odds + i, from + 2 * i);
            continue;
        }
#endif
        for (; i < pairs; i++) {
            OPSCOPE__KEEP_LOOP();
            evens[i] = from[2 * i];
            odds[i] = from[2 * i + 1];
        }
    }
}
