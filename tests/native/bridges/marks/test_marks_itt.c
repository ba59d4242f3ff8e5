/* tests/native/bridges/marks/test_marks_itt.c -- tasks of a fake client of ITT. */
#include <dlfcn.h>
#include <pthread.h>

#include "bridges/marks/range.h"
#include "bridges/marks/receiver.h"
#include "marked.h"

static opscope__itt_function task_begin, task_end, counter, new_domain, new_string;
static opscope__itt_function begin_overlapped, end_overlapped, begin_overlapped_ex,
    end_overlapped_ex;

static void initial(void)
{
}

static void none(void)
{
}

static struct opscope__itt_api apis[] = {
    {"__itt_task_begin", &task_begin, initial, NULL, 1},
    {"__itt_task_end", &task_end, initial, NULL, 1},
    {"__itt_task_begin_overlapped", &begin_overlapped, initial, NULL, 1},
    {"__itt_task_end_overlapped", &end_overlapped, initial, NULL, 1},
    {"__itt_task_begin_overlapped_ex", &begin_overlapped_ex, initial, NULL, 1},
    {"__itt_task_end_overlapped_ex", &end_overlapped_ex, initial, NULL, 1},
    {"__itt_counter_inc", &counter, initial, none, 2},
    {"__itt_domain_create", &new_domain, initial, initial, 1},
    {"__itt_string_handle_create", &new_string, initial, initial, 1},
    {NULL, NULL, NULL, NULL, 0},
};

static void begin_itt(const unsigned char *magic)
{
    struct opscope__itt_global global = {.apis = apis};
    memcpy(global.magic, magic, sizeof global.magic);
    task_begin = task_end = counter = initial;
    begin_overlapped = end_overlapped = begin_overlapped_ex = end_overlapped_ex = initial;
    void *library = dlopen(OPSCOPE_TEST_MARKS, RTLD_LAZY);
    CHECK(library != NULL);
    void (*begin_it)(struct opscope__itt_global *, int) =
        (void (*)(struct opscope__itt_global *, int))dlsym(library, "__itt_api_init");
    begin_it(&global, 0x7fffffff);
}

static void without_the_bridge_no_function_of_itt_does_anything(void)
{
    begin_itt(opscope__itt_magic);
    CHECK(task_begin == NULL && task_end == NULL && counter == none);
    begin_itt((const unsigned char *)"another!");
    CHECK(task_begin == initial && task_end == initial && counter == initial);
}

static void tasks_are_ranges(void)
{
    const struct opscope__itt_string name = {.text = "task"}, unnamed = {.text = NULL};
    const struct opscope__itt_id no_id = {{0}};
    int place = 0;
    attach(OPSCOPE_MARKS_ITT);
    CHECK_TEXT(getenv("INTEL_LIBITTNOTIFY64"), OPSCOPE_TEST_MARKS);
    begin_itt(opscope__itt_magic);
    CHECK_EQUAL(opscope_marks_clients(OPSCOPE_MARKS_ITT), 1);
    CHECK(counter == none);
    typedef void begin_function(const void *, struct opscope__itt_id, struct opscope__itt_id,
                                const struct opscope__itt_string *);
    begin_function *begin_task = (begin_function *)task_begin;
    void (*end_task)(const void *) = (void (*)(const void *))task_end;
    observe();
    begin_task(&place, no_id, no_id, &name);
    begin_task(&place, no_id, no_id, &unnamed);
    opscope__marks_push(OPSCOPE_MARKS_NVTX, &place, "not followed");
    end_task(&place);
    end_task(&place);
    end_task(&place); /* of nothing */
    opscope__marks_pop(OPSCOPE_MARKS_NVTX, &place);
    CHECK_TEXT(journal, "+itt::task +itt::unnamed -itt::unnamed -itt::task ");
}

typedef struct opscope__itt_id itt_id;

static itt_id id_of(unsigned long long number)
{
    return (itt_id){{0x1000, number, 0}};
}

static void begin_one(const void *domain, itt_id id, const char *text)
{
    const struct opscope__itt_string name = {.text = text};
    CHECK(begin_overlapped != initial && begin_overlapped != NULL);
    ((void (*)(const void *, itt_id, itt_id, const void *))begin_overlapped)(domain, id, id_of(0),
                                                                             &name);
}

static void end_one(const void *domain, itt_id id)
{
    ((void (*)(const void *, itt_id))end_overlapped)(domain, id);
}

static void begin_one_ex(const void *domain, void *clock, unsigned long long time, itt_id id,
                         const char *text)
{
    const struct opscope__itt_string name = {.text = text};
    ((void (*)(const void *, void *, unsigned long long, itt_id, itt_id,
               const void *))begin_overlapped_ex)(domain, clock, time, id, id_of(0), &name);
}

static void end_one_ex(const void *domain, void *clock, unsigned long long time, itt_id id)
{
    ((void (*)(const void *, void *, unsigned long long, itt_id))end_overlapped_ex)(domain, clock,
                                                                                    time, id);
}

static void overlapped_tasks_are_ranges_by_their_ids(void)
{
    int one = 0, two = 0;
    observe();
    begin_one(&one, id_of(1), "a");
    begin_one(&one, id_of(2), "b");
    begin_one(&two, id_of(1), "c"); /* an id belongs to its domain */
    end_one(&one, id_of(1));
    end_one(&one, id_of(1)); /* no longer open */
    end_one(&one, id_of(3));
    end_one(&two, id_of(1));
    end_one(&one, id_of(2));
    begin_one(&one, id_of(1), NULL); /* again */
    end_one(&one, id_of(1));
    CHECK_TEXT(journal, "+itt::a +itt::b +itt::c -itt::a -itt::c -itt::b "
                        "+itt::unnamed -itt::unnamed ");
}

static void an_id_that_is_open_or_null_begins_nothing(void)
{
    int place = 0;
    observe();
    begin_one(&place, id_of(1), "first");
    begin_one(&place, id_of(1), "second");
    begin_one(&place, (itt_id){{0}}, "null");
    end_one(&place, (itt_id){{0}});
    end_one(&place, id_of(1));
    end_one(&place, id_of(1));
    CHECK_TEXT(journal, "+itt::first -itt::first ");
}

static void tasks_with_a_clock_of_their_own_are_left_out(void)
{
    int place = 0, clock = 0;
    observe();
    begin_one_ex(&place, NULL, 0, id_of(1), "now");
    begin_one_ex(&place, &clock, 5, id_of(2), "of a clock");
    begin_one_ex(&place, NULL, 5, id_of(3), "of a time");
    end_one_ex(&place, &clock, 6, id_of(2));
    end_one_ex(&place, NULL, 6, id_of(3));
    end_one_ex(&place, NULL, 0, id_of(1));
    begin_one_ex(&place, NULL, 0, id_of(1), "now");
    end_one_ex(&place, &clock, 6, id_of(1)); /* ends now all the same */
    CHECK_TEXT(journal, "+itt::now -itt::now +itt::now -itt::now ");
}

static void strings_and_domains_are_made_once_and_bounded(void)
{
    struct opscope__itt_domain *(*make_domain)(const char *) =
        (struct opscope__itt_domain * (*)(const char *)) new_domain;
    struct opscope__itt_string *(*make_string)(const char *) =
        (struct opscope__itt_string * (*)(const char *)) new_string;
    CHECK(make_domain(NULL) == NULL && make_string(NULL) == NULL);
    CHECK(make_domain("a") == make_domain("a") && make_domain("a") != make_domain("b"));
    CHECK(make_string("a") == make_string("a") && make_string("a") != make_string("b"));
    CHECK_EQUAL(make_domain("a")->is_on, 1);
    CHECK_TEXT(make_domain("a")->name, "a");
    CHECK_TEXT(make_string("b")->text, "b");
    char name[16];
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "%d", i);
        CHECK(make_domain(name)->is_on && make_string(name)->text != NULL);
    }
    CHECK_TEXT(make_domain("a further one")->name, "other");
    CHECK_TEXT(make_string("a further one")->text, "other");
    CHECK_TEXT(make_string("b")->text, "b");
}

static void *register_many(void *out)
{
    struct opscope__itt_string *(*make_string)(const char *) =
        (struct opscope__itt_string * (*)(const char *)) new_string;
    struct opscope__itt_string **made = out;
    char name[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "of threads %d", i);
        made[i] = make_string(name);
    }
    return out;
}

static void threads_get_the_same_string(void)
{
    static struct opscope__itt_string *made[4][1000];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, register_many, made[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
        CHECK_EQUAL(memcmp(made[i], made[0], sizeof made[0]), 0);
    }
    CHECK_TEXT(made[0][999]->text, "of threads 999");
}

int main(void)
{
    RUN(without_the_bridge_no_function_of_itt_does_anything);
    RUN(tasks_are_ranges);
    RUN(overlapped_tasks_are_ranges_by_their_ids);
    RUN(an_id_that_is_open_or_null_begins_nothing);
    RUN(tasks_with_a_clock_of_their_own_are_left_out);
    RUN(threads_get_the_same_string);
    RUN(strings_and_domains_are_made_once_and_bounded);
    return 0;
}
