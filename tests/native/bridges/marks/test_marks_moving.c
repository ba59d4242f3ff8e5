/* tests/native/bridges/marks/test_marks_moving.c -- the table of ranges that may end on any thread:
 * ids, threads, forks, and a full table. */
#include <pthread.h>

#include "bridges/marks/moving.h"
#include "bridges/marks/range.h"
#include "marked.h"
#include "read_segment.h"

enum { THREADS = 4, ROUNDS = 3000, LIMIT = OPSCOPE__MARKS_MOVING_LIMIT };

static uint64_t start(const char *name)
{
    return opscope__marks_start(OPSCOPE_MARKS_NVTX, name);
}

static const char domain;

static struct opscope__itt_id id_of(uint64_t number)
{
    return (struct opscope__itt_id){{number, 1, 0}};
}

static void begin_task(uint64_t number, const char *name)
{
    const struct opscope__itt_id id = id_of(number);
    opscope__marks_begin_task(&domain, &id, name);
}

static void end_task(uint64_t number)
{
    const struct opscope__itt_id id = id_of(number);
    opscope__marks_end_task(&domain, &id);
}

static struct calls calls;

static void count_calls(void)
{
    begin();
    calls = (struct calls){0};
    add_global(counting(&calls));
}

static void *on_new_thread(void *(*function)(void *), void *arg)
{
    pthread_t thread;
    void *result;
    CHECK_EQUAL(pthread_create(&thread, NULL, function, arg), 0);
    CHECK_EQUAL(pthread_join(thread, &result), 0);
    return result;
}

static void on_threads(void *(*function)(void *))
{
    static const int numbers[THREADS] = {0, 1, 2, 3};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, function, (void *)(uintptr_t)&numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
}

/* ---- one at a time ------------------------------------------------------------------------------ */

static void *start_one(void *out)
{
    *(uint64_t *)out = start("one");
    return NULL;
}

static void *end_one(void *id)
{
    opscope__marks_end(*(const uint64_t *)id);
    return NULL;
}

static void a_range_ends_on_any_thread_also_after_the_end_of_its_own(void)
{
    uint64_t id;
    observe();
    id = start("mine");
    on_new_thread(end_one, &id);
    on_new_thread(start_one, &id);
    CHECK_TEXT(journal, "+nvtx::mine -nvtx::mine +nvtx::one ");
    end_one(&id);
    on_new_thread(start_one, &id);
    on_new_thread(end_one, &id);
    CHECK_TEXT(journal, "+nvtx::mine -nvtx::mine +nvtx::one -nvtx::one +nvtx::one -nvtx::one ");
}

static void a_range_that_nobody_observes_has_no_id(void)
{
    begin();
    CHECK_EQUAL(start("unobserved"), 0);
    opscope__marks_end(0);
    observe();
    opscope__marks_follow(OPSCOPE_MARKS_NVTX, false);
    CHECK_EQUAL(start("not followed"), 0);
    opscope__marks_follow(OPSCOPE_MARKS_NVTX, true);
    const uint64_t id = start("followed");
    opscope__marks_follow(OPSCOPE_MARKS_NVTX, false);
    opscope__marks_end(id);
    opscope__marks_follow(OPSCOPE_MARKS_NVTX, true);
    CHECK_TEXT(journal, "+nvtx::followed -nvtx::followed ");
}

static void an_id_that_is_not_open_ends_nothing(void)
{
    observe();
    const uint64_t id = start("a");
    opscope__marks_end(id - 1);
    opscope__marks_end(id + 1);
    opscope__marks_end(id + LIMIT);
    opscope__marks_end(id - LIMIT);
    opscope__marks_end(UINT64_MAX);
    CHECK_TEXT(journal, "+nvtx::a ");
    opscope__marks_end(id);
    opscope__marks_end(id);
    const uint64_t again = start("b");
    CHECK(again != id && again != 0);
    opscope__marks_end(id); /* the same place, but another range */
    CHECK_TEXT(journal, "+nvtx::a -nvtx::a +nvtx::b ");
    opscope__marks_end(again);
}

static void mark_own(void)
{
    opscope__marks_end(start("own"));
    begin_task(1, "own");
    end_task(1);
}

static void callbacks_may_mark_such_ranges_themselves(void)
{
    observe();
    mark = mark_own;
    const uint64_t id = start("a");
    begin_task(1, "b");
    opscope__marks_end(id);
    mark = NULL;
    end_task(1);
    CHECK_TEXT(journal, "+nvtx::a +itt::b -nvtx::a -itt::b ");
}

/* ---- a full table -------------------------------------------------------------------------------- */

static uint64_t ids[LIMIT];

static void refused_tasks_are_among_the_dropped_ranges(void)
{
    const struct opscope__itt_id null_id = {{0}};
    begin();
    start_recorder("");
    begin_task(1, "task");
    begin_task(1, "is open");
    opscope__marks_begin_task(&domain, &null_id, "null");
    end_task(2);
    end_task(1);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "itt::task").samples, 1);
    CHECK_EQUAL(segment->header->dropped_count, 2);
    segment_free(segment);
}

static void a_range_that_outlasts_its_recorder_counts_nowhere(void)
{
    begin();
    start_recorder("");
    const uint64_t id = start("outlasts");
    segment_free(stop_and_read());
    start_recorder("");
    opscope__marks_end(id);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 0);
    segment_free(segment);
}

static void a_full_table_refuses_and_counts(void)
{
    begin();
    start_recorder("");
    for (int i = 0; i < LIMIT; i++) {
        ids[i] = start("many");
        CHECK(ids[i] != 0);
    }
    CHECK_EQUAL(start("one too many"), 0);
    begin_task(1, "one too many");
    end_task(1);
    opscope__marks_end(ids[0]);
    ids[0] = start("many");
    CHECK(ids[0] != 0);
    CHECK_EQUAL(start("one too many"), 0);
    for (int i = 0; i < LIMIT; i++) {
        opscope__marks_end(ids[i]);
    }
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "nvtx::many").samples, LIMIT + 1);
    CHECK_EQUAL(segment_sum_of(segment, "nvtx::one too many").samples, 0);
    CHECK_EQUAL(segment->header->dropped_count, 3);
    segment_free(segment);
}

static void tasks_fill_the_table_too(void)
{
    count_calls();
    for (uint64_t i = 0; i < 2 * LIMIT; i++) {
        begin_task(i, "many");
    }
    CHECK(calls.starts > LIMIT / 10 * 9 && calls.starts <= LIMIT); /* by chance, not quite all */
    for (uint64_t i = 0; i < 2 * LIMIT; i++) {
        end_task(i);
        end_task(i);
    }
    CHECK_EQUAL(calls.ends, calls.starts);
    for (uint64_t i = 0; i < 10 * LIMIT; i++) {
        begin_task(i, "many");
        end_task(i);
    }
    CHECK_EQUAL(calls.starts - 10 * LIMIT, calls.ends - 10 * LIMIT);
    CHECK(calls.starts > 10 * LIMIT);
}

/* ---- threads ------------------------------------------------------------------------------------- */

enum { EXCHANGES = 64 };
static uint64_t exchange[EXCHANGES]; /* ids that any thread may end */

static void *pass_on(void *number)
{
    uint32_t random = *(const uint32_t *)number + 1;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525u + 1013904223u;
        const uint64_t id = start("passed on"); /* 0, if no callback draws it */
        opscope__marks_end(__atomic_exchange_n(&exchange[random >> 26], id, __ATOMIC_RELAXED));
    }
    return NULL;
}

static void threads_start_and_end_the_ranges_of_each_other(void)
{
    count_calls();
    on_threads(pass_on);
    for (int i = 0; i < EXCHANGES; i++) {
        opscope__marks_end(exchange[i]);
    }
    CHECK_EQUAL(calls.starts, THREADS * ROUNDS);
    CHECK_EQUAL(calls.ends, THREADS * ROUNDS);
}

static void the_same_with_sampling_and_a_recorder(void)
{
    begin();
    calls = (struct calls){0};
    start_recorder("");
    CHECK_EQUAL(opscope_recorder_set_sampling(0.5, 0, 0), OPSCOPE_OK);
    opscope_callback sampled = counting(&calls);
    sampled.sampling_prob = 0.3;
    add_global(sampled);
    on_threads(pass_on);
    for (int i = 0; i < EXCHANGES; i++) {
        opscope__marks_end(exchange[i]);
    }
    struct segment *segment = stop_and_read();
    CHECK(calls.starts > 0 && calls.starts < THREADS * ROUNDS);
    CHECK_EQUAL(calls.starts, calls.ends);
    CHECK_EQUAL(segment_sum_of(segment, "nvtx::passed on").samples, THREADS * ROUNDS);
    segment_free(segment);
}

static void *end_all(void *unused)
{
    for (int i = 0; i < LIMIT; i++) {
        opscope__marks_end(ids[i]);
    }
    return unused;
}

static void of_threads_that_end_the_same_range_one_does(void)
{
    count_calls();
    for (int i = 0; i < LIMIT; i++) {
        ids[i] = start("contended");
    }
    on_threads(end_all);
    CHECK_EQUAL(calls.starts, LIMIT);
    CHECK_EQUAL(calls.ends, LIMIT);
}

/* All threads begin and end tasks of few ids, so most begin while another one is open. */
static void *contend(void *number)
{
    uint32_t random = *(const uint32_t *)number + 1;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525u + 1013904223u;
        if ((random >> 25 & 1) != 0) {
            begin_task(random >> 26 & 7, "contended");
        } else {
            end_task(random >> 26 & 7);
        }
    }
    return NULL;
}

static void *begin_and_end(void *number)
{
    const uint64_t base = (uint64_t)*(const int *)number * ROUNDS;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        begin_task(base + i, "own id");
        if (i >= 10) {
            end_task(base + i - 10);
        }
    }
    for (uint64_t i = ROUNDS - 10; i < ROUNDS; i++) {
        end_task(base + i);
    }
    return NULL;
}

static void threads_begin_and_end_tasks(void)
{
    count_calls();
    on_threads(begin_and_end);
    CHECK_EQUAL(calls.starts, THREADS * ROUNDS);
    CHECK_EQUAL(calls.ends, THREADS * ROUNDS);
    on_threads(contend);
    for (uint64_t i = 0; i < 8; i++) {
        for (int j = 0; j < THREADS; j++) { /* threads that begin one at once may open it twice */
            end_task(i);
        }
    }
    CHECK_EQUAL(calls.starts, calls.ends);
}

/* ---- forks --------------------------------------------------------------------------------------- */

static void a_child_ends_what_it_finds_open_and_starts_more(void)
{
    uint64_t mine, of_another;
    count_calls();
    on_new_thread(start_one, &of_another);
    mine = start("mine");
    begin_task(1, "task");
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 2; i++) {
            opscope__marks_end(of_another);
            opscope__marks_end(mine);
            end_task(1);
        }
        CHECK_EQUAL(calls.ends, 3);
        on_threads(begin_and_end);
        CHECK_EQUAL(calls.starts - 3, THREADS * ROUNDS);
        _exit(0);
    }
    CHECK(check_child(child));
    opscope__marks_end(of_another);
    opscope__marks_end(mine);
    end_task(1);
    CHECK_EQUAL(calls.starts, 3);
    CHECK_EQUAL(calls.ends, 3);
}

static uint32_t is_over; /* relaxed */

static void *pass_on_until_over(void *number)
{
    while (__atomic_load_n(&is_over, __ATOMIC_RELAXED) == 0) {
        pass_on(number);
        begin_and_end(number);
    }
    return NULL;
}

static void a_child_of_a_busy_process_has_a_table_that_works(void)
{
    static const int numbers[2] = {0, 1};
    pthread_t threads[2];
    count_calls();
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(
            pthread_create(&threads[i], NULL, pass_on_until_over, (void *)(uintptr_t)&numbers[i]),
            0);
    }
    for (int i = 0; i < 20; i++) {
        const pid_t child = fork();
        if (child == 0) {
            for (int j = 0; j < EXCHANGES; j++) {
                opscope__marks_end(exchange[j]);
            }
            for (int j = 0; j < 2 * LIMIT; j++) {
                const uint64_t id = start("in the child");
                CHECK(id != 0);
                opscope__marks_end(id);
            }
            _exit(0);
        }
        CHECK(check_child(child));
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    for (int i = 0; i < EXCHANGES; i++) {
        opscope__marks_end(exchange[i]);
    }
    CHECK_EQUAL(calls.starts, calls.ends);
}

int main(void)
{
    make_directory();
    opscope__marks_follow(OPSCOPE_MARKS_NVTX, true);
    opscope__marks_follow(OPSCOPE_MARKS_ITT, true);
    RUN(a_range_ends_on_any_thread_also_after_the_end_of_its_own);
    RUN(a_range_that_nobody_observes_has_no_id);
    RUN(an_id_that_is_not_open_ends_nothing);
    RUN(callbacks_may_mark_such_ranges_themselves);
    RUN(threads_start_and_end_the_ranges_of_each_other);
    RUN(the_same_with_sampling_and_a_recorder);
    RUN(of_threads_that_end_the_same_range_one_does);
    RUN(threads_begin_and_end_tasks);
    RUN(a_child_ends_what_it_finds_open_and_starts_more);
    RUN(a_child_of_a_busy_process_has_a_table_that_works);
    RUN(refused_tasks_are_among_the_dropped_ranges);
    RUN(a_range_that_outlasts_its_recorder_counts_nowhere);
    RUN(a_full_table_refuses_and_counts);
    RUN(tasks_fill_the_table_too);
    remove_directory();
    (void)start("open at the exit");
    return 0;
}
