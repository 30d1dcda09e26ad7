/* Lets chosen calls fail on chosen files: preloaded into a program, which sets what is to fail by bad_calls(). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char mark[4096], call[32];
static long after, times = -1, seen;
static int code;

/* Calls of that name on paths with that mark fail with that errno: `after` so many that go well, and `times` times, -1 for ever. */
void bad_calls(const char *a_mark, const char *a_call, long an_after, long a_times, int a_code) {
    strncpy(mark, a_mark, sizeof mark - 1); strncpy(call, a_call, sizeof call - 1);
    after = an_after; times = a_times; code = a_code; seen = 0;
}

long bad_calls_seen(void) { return seen; }

static int bad(const char *name, const char *path) {
    if (!mark[0] || strcmp(name, call) || !path || !strstr(path, mark)) return 0;
    long number = __sync_fetch_and_add(&seen, 1);
    if (number < after || (times >= 0 && number >= after + times)) return 0;
    errno = code;
    return 1;
}

static int bad_file(const char *name, int file) {
    char link[64], path[4096];
    if (!mark[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return bad(name, path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *bytes, size_t count) { return bad_file("write", file) ? -1 : NEXT(write)(file, bytes, count); }
ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) { return bad_file("write", file) ? -1 : NEXT(pwrite)(file, bytes, count, at); }
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) { return bad_file("write", file) ? -1 : NEXT(pwrite64)(file, bytes, count, at); }
ssize_t read(int file, void *bytes, size_t count) { return bad_file("read", file) ? -1 : NEXT(read)(file, bytes, count); }
ssize_t pread64(int file, void *bytes, size_t count, off64_t at) { return bad_file("read", file) ? -1 : NEXT(pread64)(file, bytes, count, at); }
int fsync(int file) { return bad_file("fsync", file) ? -1 : NEXT(fsync)(file); }
int fdatasync(int file) { return bad_file("fsync", file) ? -1 : NEXT(fdatasync)(file); }
int link(const char *from, const char *to) { return bad("link", to) ? -1 : NEXT(link)(from, to); }
int rename(const char *from, const char *to) { return bad("rename", to) ? -1 : NEXT(rename)(from, to); }
int unlink(const char *path) { return bad("unlink", path) ? -1 : NEXT(unlink)(path); }
int mkdir(const char *path, mode_t mode) { return bad("mkdir", path) ? -1 : NEXT(mkdir)(path, mode); }

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, int);
    va_end(rest);
    return bad(flags & O_CREAT ? "create" : "open", path) ? -1 : NEXT(open64)(path, flags, mode);
}
