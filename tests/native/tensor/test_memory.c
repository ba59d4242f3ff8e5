/* tests/native/tensor/test_memory.c -- large blocks are complete, aligned, reused and bounded; they
 * and the caching allocator's blocks are safe with threads and across a fork. */
#include <pthread.h>
#include <sched.h>

#include "../check.h"
#include "opscope/tensor.h"
#include "tensor/memory/large.h"

enum { MIB = 1 << 20 };

static int64_t resident_bytes(void)
{
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm != NULL && fscanf(statm, "%*d %ld", &pages) == 1);
    fclose(statm);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void blocks_are_whole_and_aligned(void)
{
    static const size_t sizes[] = {OPSCOPE__LARGE_LEAST,
                                   OPSCOPE__LARGE_LEAST + 1,
                                   255 * 1024 + 3,
                                   MIB,
                                   4 * MIB - 1,
                                   4 * MIB,
                                   4 * MIB + 1,
                                   33 * MIB,
                                   65 * MIB};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    char *blocks[COUNT];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            blocks[i] = opscope__large_take(sizes[i]);
            CHECK(blocks[i] != NULL);
            CHECK_EQUAL((uintptr_t)blocks[i] % (sizes[i] < 4 * MIB ? 4096 : 2 * MIB), 0);
            memset(blocks[i], i + 1, sizes[i]);
        }
        for (int i = 0; i < COUNT; i++) {
            CHECK_EQUAL(blocks[i][0], i + 1);
            CHECK_EQUAL(blocks[i][sizes[i] / 2], i + 1);
            CHECK_EQUAL(blocks[i][sizes[i] - 1], i + 1);
            opscope__large_give(blocks[i], sizes[i]);
        }
    }
}

static void a_block_given_back_is_the_next_of_its_size(void)
{
    void *first = opscope__large_take(3 * MIB), *other = opscope__large_take(5 * MIB);
    opscope__large_give(first, 3 * MIB);
    opscope__large_give(other, 5 * MIB);
    CHECK(opscope__large_take(3 * MIB - 1000) == first);
    CHECK(opscope__large_take(5 * MIB + 1000) == other);
    opscope__large_give(first, 3 * MIB - 1000);
    opscope__large_give(other, 5 * MIB + 1000);
}

static void what_is_kept_is_bounded(void)
{
    enum { COUNT = 40 };
    int64_t before = resident_bytes();
    char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = opscope__large_take(6 * MIB);
        memset(blocks[i], 1, 6 * MIB);
    }
    CHECK(resident_bytes() - before > 150 * (int64_t)MIB);
    for (int i = 0; i < COUNT; i++) {
        opscope__large_give(blocks[i], 6 * MIB);
    }
    CHECK(resident_bytes() - before < 66 * (int64_t)MIB);
    for (int i = 0; i < 1000; i++) { /* changing sizes */
        size_t bytes = (size_t)(1 + i % 9) * 300 * 1024 + (size_t)i * 4096;
        blocks[0] = opscope__large_take(bytes);
        memset(blocks[0], 1, bytes);
        opscope__large_give(blocks[0], bytes);
    }
    CHECK(resident_bytes() - before < 66 * (int64_t)MIB);
}

static void more_than_there_can_be_is_refused(void)
{
    CHECK(opscope__large_take(SIZE_MAX) == NULL);
    CHECK(opscope__large_take(SIZE_MAX / 2) == NULL);
    CHECK(opscope__large_take((size_t)1 << 62) == NULL);
}

static int ended_count; /* atomic */

static void *take_and_give(void *number)
{
    for (int i = 0; i < 3000; i++) {
        size_t bytes = (size_t)(1 + i % 3) * 200000;
        int *block = opscope__large_take(bytes);
        block[0] = block[bytes / sizeof *block - 1] = *(int *)number;
        CHECK_EQUAL(block[0], *(int *)number);
        opscope__large_give(block, bytes);
    }
    __atomic_add_fetch(&ended_count, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void threads_share_blocks_and_forks_find_them_whole(void)
{
    int numbers[4] = {1, 2, 3, 4};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK_EQUAL(pthread_create(&thread, NULL, take_and_give, &numbers[i]), 0);
        CHECK_EQUAL(pthread_detach(thread), 0); /* a child has nothing to join */
    }
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            take_and_give(&numbers[3]);
            _exit(0);
        }
        CHECK(check_child(child));
    }
    while (__atomic_load_n(&ended_count, __ATOMIC_ACQUIRE) < 3) {
        sched_yield();
    }
}

static bool is_over; /* atomic */

static void *allocate_and_release(void *allocator)
{
    const opscope_allocator *caching = allocator;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        void *block = caching->allocate(caching->user, 64);
        CHECK(block != NULL);
        caching->release(caching->user, block, 64);
    }
    return NULL;
}

static void a_child_can_use_the_caching_allocator(void)
{
    const opscope_allocator *caching = opscope_allocator_caching();
    pthread_t threads[3];
    void *blocks[4];
    /* One block for each thread and one for the child are always kept: the child then calls no
     * malloc, whose locks the address sanitizer does not hold over a fork. */
    for (int i = 0; i < 4; i++) {
        blocks[i] = caching->allocate(caching->user, 64);
    }
    for (int i = 0; i < 4; i++) {
        caching->release(caching->user, blocks[i], 64);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(
            pthread_create(&threads[i], NULL, allocate_and_release, (void *)(uintptr_t)caching), 0);
    }
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        if (child == 0) {
            caching->release(caching->user, caching->allocate(caching->user, 64), 64);
            _exit(0);
        }
        CHECK(check_child(child));
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
}

int main(void)
{
    RUN(blocks_are_whole_and_aligned);
    RUN(a_block_given_back_is_the_next_of_its_size);
    RUN(what_is_kept_is_bounded);
    RUN(more_than_there_can_be_is_refused);
    RUN(threads_share_blocks_and_forks_find_them_whole);
    RUN(a_child_can_use_the_caching_allocator);
    return 0;
}
