/* tests/native/test_histogram.c -- the bucket of a duration, against exact arithmetic: bucket k of
 * octave o begins at the least integer v with v^8 >= 2^(8 o + k), computed in whole numbers. */
#include <math.h>

#include "check.h"
#include "segment/histogram.h"

enum { WORDS = 18 }; /* 8 times 64 bits, and some more */

struct big {
    uint32_t words[WORDS];
};

static struct big times(struct big a, uint64_t b)
{
    struct big product = {{0}};
    for (int half = 0; half < 2; half++) {
        uint64_t factor = half == 0 ? (uint32_t)b : b >> 32, carry = 0;
        for (int i = 0; i + half < WORDS; i++) {
            uint64_t sum = (uint64_t)a.words[i] * factor + product.words[i + half] + carry;
            product.words[i + half] = (uint32_t)sum;
            carry = sum >> 32;
        }
    }
    return product;
}

/* Whether v^8 >= 2^exponent. */
static bool reaches(uint64_t v, int exponent)
{
    struct big power = {{1}};
    for (int i = 0; i < 8; i++) {
        power = times(power, v);
    }
    for (int word = WORDS - 1; word * 32 + 31 >= exponent; word--) {
        int below = word * 32 >= exponent ? 0 : exponent % 32;
        uint32_t left = power.words[word] >> below;
        if (left != 0) {
            return true;
        }
    }
    return false;
}

/* The first integer of bucket k of octave o; more than 64 bits never happens for k < 8. */
static uint64_t border(int octave, int bucket)
{
    uint64_t low = (uint64_t)1 << octave;
    uint64_t high = octave == 63 ? UINT64_MAX : (low << 1) - 1;
    if (!reaches(high, 8 * octave + bucket)) {
        return 0; /* the octave has no integer in this bucket or a later one */
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (reaches(middle, 8 * octave + bucket)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static int place_of(uint64_t duration)
{
    uint64_t octave = 99, bucket = 99;
    opscope__bucket_of(duration, &octave, &bucket);
    CHECK(octave < 64 && bucket < 8);
    return (int)(octave * 8 + bucket);
}

/* Exact unless the top bit is the last: `duration | 1` changes only even numbers, by one. */
static int exact_place(uint64_t duration)
{
    int octave = 63 - __builtin_clzll(duration), bucket = 7;
    while (!reaches(duration, 8 * octave + bucket)) {
        bucket--;
    }
    return octave * 8 + bucket;
}

static void every_border_of_every_octave_is_where_arithmetic_puts_it(void)
{
    for (int octave = 0; octave < 64; octave++) {
        for (int bucket = 0; bucket < 8; bucket++) {
            uint64_t first = border(octave, bucket);
            if (first == 0) {
                continue;
            }
            CHECK_EQUAL(place_of(first | 1), exact_place(first | 1));
            CHECK_EQUAL(place_of(first), exact_place(first | 1));
            if (octave > 0 && first > 1) {
                CHECK_EQUAL(place_of(first - 1), exact_place((first - 1) | 1));
            }
            if (octave >= 20) {
                CHECK_EQUAL(place_of(first), octave * 8 + bucket);
                CHECK_EQUAL(place_of((first - 2) | 1), octave * 8 + bucket - 1);
            }
        }
    }
}

static void all_small_durations_are_right(void)
{
    for (uint64_t duration = 1; duration < 20000; duration++) {
        CHECK_EQUAL(place_of(duration), exact_place(duration | 1));
    }
    CHECK_EQUAL(place_of(0), 0);
    CHECK_EQUAL(place_of(UINT64_MAX), 511);
}

static void the_middle_of_its_bucket_is_within_four_and_a_half_percent(void)
{
    uint64_t state = 1;
    for (int i = 0; i < 200000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t duration = state >> (state >> 58); /* every magnitude */
        if (duration < 1000) {
            continue; /* a nanosecond: below, integers are coarser than buckets */
        }
        double middle = exp2((place_of(duration) + 0.5) / 8);
        CHECK(fabs(middle / (double)duration - 1) < 0.045);
    }
}

int main(void)
{
    RUN(every_border_of_every_octave_is_where_arithmetic_puts_it);
    RUN(all_small_durations_are_right);
    RUN(the_middle_of_its_bucket_is_within_four_and_a_half_percent);
    return 0;
}
