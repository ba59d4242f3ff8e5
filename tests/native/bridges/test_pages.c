/* tests/native/bridges/test_pages.c -- the access rights are the kernel's, both with queries about
 * single addresses and with the whole list. */
#define _GNU_SOURCE
#include "bridges/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "opscope/status.h"

enum { PAGES = 200, PAGE = 4096 };

static const int accesses[] = {PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC, PROT_NONE};

static int open_files(void)
{
    int next = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    close(next);
    return next;
}

/* Adjacent pages with different rights, more than the bridge keeps. */
static void each_page_is_told_as_it_is(void)
{
    char *base = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(base != MAP_FAILED);
    for (int i = 0; i < PAGES; i++) {
        CHECK_EQUAL(mprotect(base + i * PAGE, PAGE, accesses[i % 4]), 0);
    }
    int files = open_files();
    struct opscope__pages pages;
    CHECK_EQUAL(opscope__pages_read(&pages), OPSCOPE_OK);
    for (int turn = 0; turn < 2; turn++) {
        for (int k = 0; k < PAGES; k++) {
            int i = k * 77 % PAGES; /* in no order */
            int has = accesses[i % 4];
            for (int wanted = 1; wanted < 8; wanted++) {
                CHECK_EQUAL(opscope__pages_grant(&pages, base + i * PAGE + 8, 16, wanted),
                            (has & wanted) == wanted);
            }
            bool readable = (has & PROT_READ) != 0;
            CHECK_EQUAL(opscope__pages_grant(&pages, base + i * PAGE, PAGE, PROT_READ), readable);
            CHECK(!opscope__pages_grant(&pages, base + i * PAGE + 1, PAGE, PROT_READ));
        }
    }
    CHECK(!opscope__pages_grant(&pages, NULL, 1, PROT_READ));
    CHECK(!opscope__pages_grant(&pages, (const void *)8, 1, PROT_READ));
    CHECK(!opscope__pages_grant(&pages, (const void *)(UINTPTR_MAX - 64), 1, PROT_READ));
    opscope__pages_release(&pages);
    CHECK_EQUAL(open_files(), files);
    munmap(base, PAGES * PAGE);
}

/* As before Linux 6.11. */
static void forbid_ioctl(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    CHECK_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQUAL(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

int main(void)
{
    RUN(each_page_is_told_as_it_is);
    RUN(forbid_ioctl);
    RUN(each_page_is_told_as_it_is);
    return 0;
}
