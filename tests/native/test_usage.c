/* tests/native/test_usage.c -- the API-usage log: each key once, to a handler set at any time. */
#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "opscope/usage.h"

enum { KEYS = 100, THREADS = 4 };

/* How often a handler got each key "k0" to "k99", and others. */
struct heard {
    int keys[KEYS];
    int others;
    char order[256];
};

static void hear(const char *key, void *user)
{
    struct heard *heard = user;
    if (key[0] == 'k') {
        __atomic_fetch_add(&heard->keys[atoi(key + 1)], 1, __ATOMIC_RELAXED);
        return;
    }
    __atomic_fetch_add(&heard->others, 1, __ATOMIC_RELAXED);
    strncat(heard->order, key, sizeof heard->order - strlen(heard->order) - 1);
}

static void a_key_is_said_once(void)
{
    struct heard heard = {0};
    opscope_set_api_usage_handler(hear, &heard);
    for (int i = 0; i < 3; i++) {
        char key[] = "first ";
        opscope_log_api_usage_once(key);
    }
    CHECK_TEXT(heard.order, "first ");
    opscope_log_api_usage_once("second ");
    CHECK_TEXT(heard.order, "first second ");
    opscope_set_api_usage_handler(NULL, NULL);
}

static void earlier_keys_are_replayed_in_order_to_a_late_handler(void)
{
    struct heard heard = {0};
    opscope_log_api_usage_once("third ");
    opscope_log_api_usage_once("fourth ");
    opscope_set_api_usage_handler(hear, &heard);
    CHECK_TEXT(heard.order, "first second third fourth ");
    opscope_set_api_usage_handler(NULL, NULL);
    CHECK_TEXT(opscope_api_usage_key(0), "first ");
    CHECK_TEXT(opscope_api_usage_key(3), "fourth ");
    CHECK(opscope_api_usage_key(4) == NULL);
    CHECK(opscope_api_usage_key(SIZE_MAX) == NULL);
}

static void one_call_site_says_its_key_once(void)
{
    size_t before = 0;
    while (opscope_api_usage_key(before) != NULL) {
        before++;
    }
    for (int i = 0; i < 10; i++) {
        OPSCOPE_LOG_API_USAGE_ONCE("macro ");
    }
    CHECK_TEXT(opscope_api_usage_key(before), "macro ");
    CHECK(opscope_api_usage_key(before + 1) == NULL);
}

static pthread_barrier_t barrier;

static void *say_all(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < KEYS; i++) {
        char key[32];
        snprintf(key, sizeof key, "k%d", i);
        opscope_log_api_usage_once(key);
    }
    return NULL;
}

static void a_handler_set_while_threads_say_keys_gets_each_exactly_once(void)
{
    struct heard heard = {0};
    pthread_t threads[THREADS];
    CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, say_all, NULL), 0);
    }
    pthread_barrier_wait(&barrier);
    opscope_set_api_usage_handler(hear, &heard);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    opscope_set_api_usage_handler(NULL, NULL);
    for (int i = 0; i < KEYS; i++) {
        CHECK_EQUAL(heard.keys[i], 1);
    }
    pthread_barrier_destroy(&barrier);
}

static void say_more(const char *key, void *user)
{
    (void)key;
    (void)user;
    opscope_log_api_usage_once("from a handler ");
}

static void a_handler_may_say_a_key_itself(void)
{
    opscope_set_api_usage_handler(say_more, NULL);
    opscope_set_api_usage_handler(NULL, NULL);
}

static char details[64];

static void hear_details(const char *context, const char *key, const char *value, void *user)
{
    CHECK(user == details);
    snprintf(details, sizeof details, "%s %s=%s", context, key, value);
}

static void metadata_reaches_its_handler_each_time_and_no_one_else(void)
{
    opscope_log_api_usage_metadata("save", "model", "dropped");
    opscope_set_api_usage_metadata_handler(hear_details, details);
    CHECK_TEXT(details, "");
    for (int i = 0; i < 2; i++) {
        details[0] = '\0';
        opscope_log_api_usage_metadata("save", "model", "resnet");
        CHECK_TEXT(details, "save model=resnet");
    }
    opscope_set_api_usage_metadata_handler(NULL, NULL);
}

static void a_forked_child_does_not_say_the_parents_keys_again(void)
{
    pid_t child = fork();
    if (child == 0) {
        struct heard heard = {0};
        opscope_set_api_usage_handler(hear, &heard);
        int replayed = heard.others;
        opscope_log_api_usage_once("first ");
        CHECK_EQUAL(heard.others, replayed);
        opscope_log_api_usage_once("child's ");
        CHECK_EQUAL(heard.others, replayed + 1);
        _exit(0);
    }
    CHECK(check_child(child));
}

static void said_to_standard_error_where_the_environment_asks(void)
{
    static const struct {
        const char *value, *wanted;
    } cases[] = {{"1", "OPSCOPE_API_USAGE stderr::key\n"}, {"0", ""}, {"yes", ""}, {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int ends[2];
        char said[128] = "";
        CHECK_EQUAL(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            setenv("OPSCOPE_API_USAGE_STDERR", cases[i].value, 1);
            dup2(ends[1], STDERR_FILENO);
            opscope_log_api_usage_once("stderr::key");
            opscope_log_api_usage_once("stderr::key");
            _exit(0);
        }
        close(ends[1]);
        CHECK(check_child(child));
        ssize_t bytes = read(ends[0], said, sizeof said - 1);
        CHECK(bytes >= 0);
        CHECK_TEXT(said, cases[i].wanted);
        close(ends[0]);
    }
}

static void there_are_4096_keys_and_more_are_dropped(void)
{
    for (int i = 0; i < 5000; i++) {
        char key[32];
        snprintf(key, sizeof key, "more %d", i);
        opscope_log_api_usage_once(key);
    }
    CHECK(opscope_api_usage_key(4095) != NULL);
    CHECK(opscope_api_usage_key(4096) == NULL);
    struct heard heard = {0};
    opscope_set_api_usage_handler(hear, &heard);
    opscope_log_api_usage_once("one more ");
    opscope_set_api_usage_handler(NULL, NULL);
    CHECK(strstr(heard.order, "one more") == NULL);
}

int main(void)
{
    unsetenv("OPSCOPE_API_USAGE_STDERR");
    RUN(a_key_is_said_once);
    RUN(earlier_keys_are_replayed_in_order_to_a_late_handler);
    RUN(one_call_site_says_its_key_once);
    RUN(a_handler_set_while_threads_say_keys_gets_each_exactly_once);
    RUN(a_handler_may_say_a_key_itself);
    RUN(metadata_reaches_its_handler_each_time_and_no_one_else);
    RUN(a_forked_child_does_not_say_the_parents_keys_again);
    RUN(said_to_standard_error_where_the_environment_asks);
    RUN(there_are_4096_keys_and_more_are_dropped);
    return 0;
}
