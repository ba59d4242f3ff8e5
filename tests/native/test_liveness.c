/* tests/native/test_liveness.c -- a segment is locked exactly as long as a process can still write
 * into it, as another process sees it: without the pid, and with no descriptor left open. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "ranges.h"
#include "read_segment.h"

static bool is_locked(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    bool is_held = flock(fd, LOCK_SH | LOCK_NB) != 0;
    CHECK(!is_held || errno == EWOULDBLOCK);
    close(fd);
    return is_held;
}

static void start_and_find(char *path, size_t capacity)
{
    start_recorder("");
    run_ranges(op_named("a"), 1);
    CHECK_EQUAL(list_directory(path, capacity), 1);
    CHECK(is_locked(path));
}

/* Starts the recorder in a child, which then waits to be killed (or runs `then`, if given), and
 * returns the path of its segment. */
static pid_t recording_child(char *path, size_t capacity, void (*then)(void))
{
    int ready[2], begin[2];
    char byte;
    CHECK(pipe(ready) == 0 && pipe(begin) == 0);
    empty_directory();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        start_recorder("");
        run_ranges(op_named("a"), 3);
        CHECK_EQUAL(write(ready[1], ".", 1), 1);
        CHECK_EQUAL(read(begin[0], &byte, 1), 1);
        if (then != NULL) {
            then();
        }
        for (;;) {
            pause();
        }
    }
    CHECK_EQUAL(read(ready[0], &byte, 1), 1);
    CHECK_EQUAL(list_directory(path, capacity), 1);
    CHECK_EQUAL(write(begin[1], ".", 1), 1);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(begin[i]);
    }
    return child;
}

static int go[2], said[2]; /* a child waits for the first, and writes the second */

static void make_pipes(void)
{
    CHECK_EQUAL(pipe(go), 0);
    CHECK_EQUAL(pipe(said), 0);
}

static void close_pipes(void)
{
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(said[i]);
    }
}

static void wait_until_said(void)
{
    char byte;
    CHECK_EQUAL(read(said[0], &byte, 1), 1);
}

static void a_running_recorder_holds_the_lock_and_no_descriptor(void)
{
    char path[512], link[64], target[512];
    start_and_find(path, sizeof path);
    struct segment *segment = segment_read(path);
    CHECK_EQUAL(segment->header->liveness, OPSCOPE_LIVENESS_LOCK);
    segment_free(segment);
    for (int fd = 0; fd < 256; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t bytes = readlink(link, target, sizeof target - 1);
        target[bytes > 0 ? bytes : 0] = '\0';
        CHECK(strcmp(target, path) != 0);
    }
    CHECK_EQUAL(opscope_recorder_stop(false), OPSCOPE_OK);
    CHECK(!is_locked(path));
}

static void a_killed_process_has_let_go_before_anybody_waits_for_it(void)
{
    char path[512];
    siginfo_t info;
    pid_t child = recording_child(path, sizeof path, NULL);
    CHECK(is_locked(path));
    CHECK_EQUAL(kill(child, SIGKILL), 0);
    CHECK_EQUAL(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    CHECK(!is_locked(path)); /* a zombie: /proc still has its pid */
    CHECK_EQUAL(waitpid(child, NULL, 0), child);
}

static void fork_one_that_stays(void)
{
    pid_t child = fork();
    if (child == 0) {
        char byte;
        run_ranges(op_named("b"), 1); /* makes its own segment */
        CHECK_EQUAL(write(said[1], ".", 1), 1);
        (void)!read(go[0], &byte, 1);
        _exit(0);
    }
}

static void a_forked_child_does_not_keep_its_parents_lock(void)
{
    char path[512];
    make_pipes();
    pid_t child = recording_child(path, sizeof path, fork_one_that_stays);
    wait_until_said();
    CHECK(is_locked(path));
    kill(child, SIGKILL);
    CHECK_EQUAL(waitpid(child, NULL, 0), child);
    CHECK(!is_locked(path));
    CHECK_EQUAL(write(go[1], ".", 1), 1);
    close_pipes();
}

static void become_another_program(void)
{
    dup2(go[0], 0);
    dup2(said[1], 1);
    execl("/bin/sh", "sh", "-c", "echo; read line", (char *)NULL);
    _exit(127);
}

static void exec_lets_go_while_the_pid_lives_on(void)
{
    char path[512];
    make_pipes();
    pid_t child = recording_child(path, sizeof path, become_another_program);
    wait_until_said();
    CHECK(!is_locked(path));
    CHECK_EQUAL(kill(child, 0), 0);
    kill(child, SIGKILL);
    CHECK_EQUAL(waitpid(child, NULL, 0), child);
    close_pipes();
}

static void clone_one_that_can_still_write(void)
{
    /* Like fork, but the C library does not know of it and runs no handlers. */
    if (syscall(SYS_clone, (unsigned long)SIGCHLD, 0UL, 0UL, 0UL, 0UL) == 0) {
        char byte;
        (void)!write(said[1], ".", 1);
        (void)!read(go[0], &byte, 1);
        _exit(0);
    }
}

static void a_raw_clone_could_write_and_keeps_the_lock_until_it_ends(void)
{
    char path[512];
    make_pipes();
    CHECK_EQUAL(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0); /* to wait for a grandchild */
    pid_t child = recording_child(path, sizeof path, clone_one_that_can_still_write);
    wait_until_said();
    kill(child, SIGKILL);
    CHECK_EQUAL(waitpid(child, NULL, 0), child);
    CHECK(is_locked(path));
    CHECK_EQUAL(write(go[1], ".", 1), 1);
    CHECK(wait(NULL) > 0);
    CHECK(!is_locked(path));
    close_pipes();
}

int main(void)
{
    make_directory();
    RUN(a_running_recorder_holds_the_lock_and_no_descriptor);
    RUN(a_killed_process_has_let_go_before_anybody_waits_for_it);
    RUN(a_forked_child_does_not_keep_its_parents_lock);
    RUN(exec_lets_go_while_the_pid_lives_on);
    RUN(a_raw_clone_could_write_and_keeps_the_lock_until_it_ends);
    remove_directory();
    return 0;
}
