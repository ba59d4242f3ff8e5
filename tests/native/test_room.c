/* tests/native/test_room.c -- how much room Opscope's files may take together, and which files are
 * removed if there is too little; how it is allocated where pages are large. */
#define _GNU_SOURCE
#include "segment/own_files.h"
#include "segment/reclaim.h"
#include "segment/room.h"

#include <dlfcn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ranges.h"
#include "read_segment.h"
#include "segment/identity.h"

enum { KIB = 1 << 10, MIB = 1 << 20, SEGMENT = 128 << 10, GROWTH = 16 << 20 };

/* ---- pages ---------------------------------------------------------------------------------------- */

/* What madvise was called for; it does nothing while a test watches. */
static bool is_watched;
static char *populated;
static size_t populated_bytes;

int madvise(void *start, size_t bytes, int advice)
{
    if (!is_watched) {
        int (*real)(void *, size_t, int);
        *(void **)&real = dlsym(RTLD_NEXT, "madvise");
        return real(start, bytes, advice);
    }
    populated = start;
    populated_bytes = bytes;
    return 0;
}

/* The kernel refuses a start within a page. Parts of a file are 16 KiB, pages up to 64. */
static void a_part_of_a_page_is_allocated_with_its_page(void)
{
    static char memory[256 * KIB] __attribute__((aligned(64 * KIB)));
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), within = page / 4;
    is_watched = true;
    CHECK_EQUAL(opscope__room_populate(memory + page + within, 16 * KIB), OPSCOPE_OK);
    CHECK(populated == memory + page);
    CHECK_EQUAL(populated_bytes, within + 16 * KIB);
    CHECK_EQUAL(opscope__room_populate(memory + page, 16 * KIB), OPSCOPE_OK);
    CHECK(populated == memory + page);
    CHECK_EQUAL(populated_bytes, 16 * KIB);
    is_watched = false;
}

/* ---- numbers -------------------------------------------------------------------------------------- */

/* A container's /dev/shm: other files use `others` bytes and segments hold `held`. */
static struct opscope__room docker(uint64_t others, uint64_t held)
{
    const uint64_t size = 64 * MIB;
    return (struct opscope__room){
        .size_bytes = size, .free_bytes = size - others - held, .held_bytes = held};
}

static void segments_hold_at_most_a_quarter(void)
{
    struct opscope__room room = docker(0, 16 * MIB - SEGMENT);
    CHECK_EQUAL(opscope__room_excess(&room, SEGMENT), 0);
    CHECK_EQUAL(opscope__room_excess(&room, 3 * SEGMENT), 2 * SEGMENT);
}

static void segments_hold_at_most_half_of_what_others_leave(void)
{
    struct opscope__room room = docker(60 * MIB, 2 * MIB - SEGMENT);
    CHECK_EQUAL(opscope__room_excess(&room, SEGMENT), 0);
    room = docker(60 * MIB, 2 * MIB);
    CHECK_EQUAL(opscope__room_excess(&room, SEGMENT), SEGMENT);
}

static void all_growth_that_is_promised_is_an_eighth(void)
{
    struct opscope__room room = docker(0, 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t growth = opscope__room_growth(&room, GROWTH);
        CHECK(i > 0 || growth == MIB); /* the first may be the only one */
        room.growth_bytes += growth;
    }
    CHECK(room.growth_bytes <= 8 * MIB);
}

static void a_large_file_system_lets_hundreds_grow_to_the_full(void)
{
    const uint64_t size = (uint64_t)64 << 30;
    struct opscope__room room = {.size_bytes = size, .free_bytes = size};
    for (int i = 0; i < 400; i++) {
        uint64_t growth = opscope__room_growth(&room, GROWTH);
        CHECK_EQUAL(growth, GROWTH);
        room.growth_bytes += growth;
    }
}

static void all_traces_and_segments_together_are_at_most_half(void)
{
    struct opscope__room room = docker(0, MIB);
    room.growth_bytes = 2 * MIB;
    for (int i = 0; i < 100; i++) {
        uint64_t bytes = opscope__room_trace(&room, 64 * MIB);
        CHECK(i > 0 || bytes == (32 - 1 - 2) * MIB / 2);
        room.trace_bytes += bytes;
        CHECK(opscope__room_holds(&room));
    }
    room.trace_bytes += MIB;
    CHECK(!opscope__room_holds(&room));
}

/* ---- files ---------------------------------------------------------------------------------------- */

static int directory_fd = -1;

static void open_it(void)
{
    empty_directory();
    directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(directory_fd >= 0);
}

static void close_it(void)
{
    close(directory_fd);
    empty_directory();
}

static bool is_there(const char *name)
{
    struct stat info;
    return fstatat(directory_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make(const char *name, const opscope_segment_header *header, int64_t age_s)
{
    static const char block[SEGMENT];
    int fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct timespec times[2] = {{.tv_sec = time(NULL) - age_s}, {.tv_sec = time(NULL) - age_s}};
    CHECK(fd >= 0);
    CHECK_EQUAL(write(fd, block, sizeof block), sizeof block);
    if (header != NULL) {
        CHECK_EQUAL(pwrite(fd, header, sizeof *header, 0), sizeof *header);
    }
    CHECK_EQUAL(futimens(fd, times), 0);
    close(fd);
}

static opscope_segment_header live_header(void)
{
    opscope_segment_header header = {.magic = "OPSCOPE",
                                     .version = OPSCOPE_SEGMENT_VERSION,
                                     .state = OPSCOPE_SEGMENT_LIVE,
                                     .liveness = OPSCOPE_LIVENESS_LOCK};
    return header;
}

static void what_is_held_and_promised_is_told_apart(void)
{
    struct opscope__room room;
    open_it();
    make("1-1-0000000000000001.seg", NULL, 0);
    make("1-1-0000000000000001.seg.trace", NULL, 0);
    make("agent.state", NULL, 0);
    CHECK_EQUAL(symlinkat("x", directory_fd, "2-1-0000000000000001.seg"), 0);
    int fd = openat(directory_fd, ".3-1-0000000000000003.seg", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && ftruncate(fd, MIB) == 0);
    close(fd);
    fd = openat(directory_fd, "1-1-0000000000000001.seg.trace", O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, SEGMENT + 5 * MIB) == 0);
    close(fd);
    CHECK_EQUAL(opscope__room_read(directory_fd, &room), OPSCOPE_OK);
    CHECK_EQUAL(room.held_bytes, 2 * SEGMENT);
    CHECK_EQUAL(room.growth_bytes, MIB);
    CHECK_EQUAL(room.trace_bytes, 5 * MIB);
    CHECK(!room.is_cut);
    CHECK_EQUAL(unlinkat(directory_fd, "agent.state", 0), 0);
    close_it();
}

static void the_oldest_of_ended_processes_go_and_no_more_than_needed(void)
{
    opscope_segment_header header = live_header();
    uint64_t discarded = 0;
    open_it();
    make("1-1-0000000000000001.seg", &header, 10);
    make("2-1-0000000000000001.seg", &header, 30);
    header.discarded_count = 5; /* it had removed these, and no agent has read it */
    make("3-1-0000000000000001.seg", &header, 20);
    CHECK(opscope__reclaim(directory_fd, SEGMENT + 1, &discarded));
    CHECK(is_there("1-1-0000000000000001.seg"));
    CHECK(!is_there("2-1-0000000000000001.seg"));
    CHECK(!is_there("3-1-0000000000000001.seg"));
    CHECK_EQUAL(discarded, 2 + 5);
    close_it();
}

static void nothing_goes_where_it_would_not_be_enough(void)
{
    opscope_segment_header header = live_header();
    uint64_t discarded = 0;
    open_it();
    make("1-1-0000000000000001.seg", &header, 10);
    CHECK(!opscope__reclaim(directory_fd, 2 * SEGMENT, &discarded));
    CHECK(is_there("1-1-0000000000000001.seg"));
    CHECK_EQUAL(discarded, 0);
    close_it();
}

static void what_anybody_holds_or_may_still_write_stays(void)
{
    opscope_segment_header header = live_header();
    opscope__identity self;
    uint64_t discarded = 0;
    opscope__identity_read(&self);
    open_it();
    make("1-1-0000000000000001.seg", &header, 100);
    int held = openat(directory_fd, "1-1-0000000000000001.seg", O_RDONLY | O_CLOEXEC);
    CHECK(held >= 0 && flock(held, LOCK_SH) == 0); /* like an agent that reads it */
    header.liveness = OPSCOPE_LIVENESS_PID;
    header.pid_namespace = self.pid_namespace;
    header.pid = self.pid;
    memcpy(header.boot_id, self.boot_id, sizeof header.boot_id);
    make("2-1-0000000000000001.seg", &header, 100);   /* alive, without a lock */
    make(".3-1-0000000000000001.seg", NULL, 10);      /* is being made */
    make("3-1-0000000000000001.seg.trace", NULL, 10); /* is being read */
    CHECK(!opscope__reclaim(directory_fd, 1, &discarded));
    CHECK_EQUAL(discarded, 0);
    close(held);
    close_it();
}

static void files_that_no_process_can_write_are_removed(void)
{
    opscope_segment_header header = live_header();
    opscope__identity self;
    uint64_t discarded = 0;
    opscope__identity_read(&self);
    pid_t gone = fork();
    if (gone == 0) {
        _exit(0);
    }
    CHECK_EQUAL(waitpid(gone, NULL, 0), gone);
    open_it();
    header.liveness = OPSCOPE_LIVENESS_PID;
    header.pid_namespace = self.pid_namespace;
    header.pid = (uint64_t)gone;
    memcpy(header.boot_id, self.boot_id, sizeof header.boot_id);
    make("1-1-0000000000000001.seg", &header, 0);
    header.pid = self.pid;
    header.boot_id[0] ^= 1; /* of an earlier boot */
    make("2-1-0000000000000001.seg", &header, 0);
    header = live_header();
    header.liveness = OPSCOPE_LIVENESS_PID;
    header.state = OPSCOPE_SEGMENT_CLOSED;
    make("3-1-0000000000000001.seg", &header, 0);
    make(".4-1-0000000000000001.seg", NULL, 100); /* was being made */
    make("5-1-0000000000000001.seg.trace", NULL, 100);
    CHECK(opscope__reclaim(directory_fd, 5 * SEGMENT, &discarded));
    CHECK_EQUAL(discarded, 3); /* the others have no counts */
    close_it();
}

int main(void)
{
    make_directory();
    RUN(a_part_of_a_page_is_allocated_with_its_page);
    RUN(segments_hold_at_most_a_quarter);
    RUN(segments_hold_at_most_half_of_what_others_leave);
    RUN(all_growth_that_is_promised_is_an_eighth);
    RUN(a_large_file_system_lets_hundreds_grow_to_the_full);
    RUN(all_traces_and_segments_together_are_at_most_half);
    RUN(what_is_held_and_promised_is_told_apart);
    RUN(the_oldest_of_ended_processes_go_and_no_more_than_needed);
    RUN(nothing_goes_where_it_would_not_be_enough);
    RUN(what_anybody_holds_or_may_still_write_stays);
    RUN(files_that_no_process_can_write_are_removed);
    remove_directory();
    return 0;
}
