/* tests/native/model/test_archive.c -- archives without Python: written, opened, shared by threads,
 * and the files of the hook. */
#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opscope/archive.h"
#include "opscope/extra_files.h"

static char path[64];

static void write_one(const char *content)
{
    opscope_archive_writer *writer;
    CHECK(opscope_archive_writer_open(path, "model", &writer) == OPSCOPE_OK);
    const float numbers[] = {1, 2, 3};
    CHECK(opscope_archive_writer_add(writer, "tensors/0", numbers, sizeof numbers) == OPSCOPE_OK);
    CHECK(opscope_archive_writer_add(writer, "version", content, strlen(content)) == OPSCOPE_OK);
    CHECK(opscope_archive_writer_finish(writer) == OPSCOPE_OK);
}

static bool has_content(opscope_archive *archive, const char *name, const char *content)
{
    const void *data;
    size_t bytes;
    return opscope_archive_read(archive, name, &data, &bytes) == OPSCOPE_OK &&
           bytes == strlen(content) && memcmp(data, content, bytes) == 0;
}

static void what_is_written_is_read(void)
{
    write_one("1\n");
    opscope_archive *archive;
    CHECK(opscope_archive_open(path, &archive) == OPSCOPE_OK);
    CHECK(strcmp(opscope_archive_folder(archive), "model") == 0);
    CHECK(opscope_archive_count(archive) == 2);
    CHECK(has_content(archive, "version", "1\n"));
    opscope_tensor *tensor;
    CHECK(opscope_archive_tensor(archive, "tensors/0", OPSCOPE_FLOAT32, &tensor) == OPSCOPE_OK);
    opscope_archive_entry entry;
    size_t index;
    CHECK(opscope_archive_find(archive, "tensors/0", &index) == OPSCOPE_OK);
    CHECK(opscope_archive_entry_at(archive, index, &entry) == OPSCOPE_OK);
    CHECK(entry.offset % OPSCOPE_ARCHIVE_ALIGNMENT == 0);
    opscope_archive_close(archive);
    /* The mapping stays for the tensor. A write does not reach the file. */
    float *numbers = opscope_tensor_data(tensor);
    CHECK(opscope_tensor_count(tensor) == 3 && numbers[2] == 3);
    numbers[2] = 4;
    opscope_tensor_release(tensor);
    CHECK(opscope_archive_open(path, &archive) == OPSCOPE_OK);
    CHECK(opscope_archive_tensor(archive, "tensors/0", OPSCOPE_FLOAT32, &tensor) == OPSCOPE_OK);
    CHECK(((float *)opscope_tensor_data(tensor))[2] == 3);
    opscope_tensor_release(tensor);
    opscope_archive_close(archive);
}

static void an_old_file_stays_until_the_new_one_is_complete(void)
{
    write_one("old");
    opscope_archive_writer *writer;
    CHECK(opscope_archive_writer_open(path, "", &writer) == OPSCOPE_OK);
    CHECK(opscope_archive_writer_add(writer, "version", "new", 3) == OPSCOPE_OK);
    CHECK(opscope_archive_writer_add(writer, "version", "new", 3) == OPSCOPE_OK);
    CHECK(opscope_archive_writer_finish(writer) == OPSCOPE_ERR_INVALID);
    CHECK(strstr(opscope_tensor_error(), "version") != NULL);
    CHECK(opscope_archive_writer_open(path, "", &writer) == OPSCOPE_OK);
    opscope_archive_writer_cancel(writer);
    opscope_archive *archive;
    CHECK(opscope_archive_open(path, &archive) == OPSCOPE_OK);
    CHECK(has_content(archive, "version", "old"));
    opscope_archive_close(archive);
}

static void names_that_could_leave_the_folder_are_refused(void)
{
    static const char *const names[] = {"",     "/a",   "a/",   "../a", "a/../b", ".",
                                        "a//b", "a\\b", "a\nb", "a/.",  ".."};
    opscope_archive_writer *writer;
    CHECK(opscope_archive_writer_open(path, "", &writer) == OPSCOPE_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK(opscope_archive_writer_add(writer, names[i], "", 0) == OPSCOPE_ERR_INVALID);
    }
    CHECK(opscope_archive_writer_add(writer, "a/..b/.c", "", 0) == OPSCOPE_OK);
    opscope_archive_writer_cancel(writer);
    CHECK(opscope_archive_writer_open(path, "..", &writer) == OPSCOPE_ERR_INVALID);
}

static int add_two(opscope_extra_files *files, void *user)
{
    CHECK(opscope_extra_files_add(files, "job", "first", 5) == OPSCOPE_OK);
    CHECK(opscope_extra_files_add(files, "job", "second", 6) == OPSCOPE_OK);
    CHECK(opscope_extra_files_add(files, "../climbs", "", 0) == OPSCOPE_ERR_INVALID);
    CHECK(opscope_extra_files_add(files, "below/", "", 0) == OPSCOPE_ERR_INVALID);
    return *(int *)user;
}

static void the_hooks_files_are_in_every_archive(void)
{
    int status = OPSCOPE_OK;
    CHECK(opscope_set_export_extra_files_hook(add_two, &status) == OPSCOPE_OK);
    for (int turn = 0; turn < 2; turn++) { /* then with a hook that fails */
        write_one("1");
        opscope_archive *archive;
        CHECK(opscope_archive_open(path, &archive) == OPSCOPE_OK);
        CHECK(opscope_archive_count(archive) == 3);
        CHECK(has_content(archive, "extra/job", "second"));
        opscope_archive_close(archive);
        CHECK(opscope_extra_files_error_count() == (uint64_t)turn);
        status = OPSCOPE_ERR_CALLBACK;
    }
    CHECK(opscope_set_export_extra_files_hook(NULL, NULL) == OPSCOPE_OK);
    write_one("1");
    CHECK(opscope_extra_files_error_count() == 1);
}

static void *read_it(void *archive)
{
    for (int i = 0; i < 200; i++) {
        CHECK(has_content(archive, "version", "1\n"));
        opscope_tensor *tensor;
        CHECK(opscope_archive_tensor(archive, "tensors/0", OPSCOPE_FLOAT32, &tensor) == OPSCOPE_OK);
        opscope_tensor_release(tensor);
    }
    return NULL;
}

static void threads_share_an_archive(void)
{
    write_one("1\n");
    opscope_archive *archive;
    CHECK(opscope_archive_open(path, &archive) == OPSCOPE_OK);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, read_it, archive) == 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    opscope_archive_close(archive);
}

static void what_is_no_archive_is_refused_with_the_path(void)
{
    opscope_archive *archive;
    CHECK(opscope_archive_open("/nowhere/model", &archive) == OPSCOPE_ERR_NOT_FOUND);
    CHECK(strstr(opscope_tensor_error(), "/nowhere/model") != NULL);
    CHECK(opscope_archive_open("/tmp", &archive) == OPSCOPE_ERR_INVALID);
    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    CHECK(opscope_archive_open(path, &archive) == OPSCOPE_ERR_INVALID);
    CHECK(strstr(opscope_tensor_error(), "not a regular file") != NULL);
    opscope_archive_writer *writer;
    CHECK(opscope_archive_writer_open(path, "", &writer) == OPSCOPE_ERR_INVALID);
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/opscope-archive-%d", (int)getpid());
    what_is_written_is_read();
    an_old_file_stays_until_the_new_one_is_complete();
    names_that_could_leave_the_folder_are_refused();
    the_hooks_files_are_in_every_archive();
    threads_share_an_archive();
    what_is_no_archive_is_refused_with_the_path();
    CHECK(unlink(path) == 0);
    return 0;
}
