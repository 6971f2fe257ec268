/* Fails the n-th operation that a process makes on files below one folder. Preloaded; armed by a call from Python. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long nth, seen;
static int error; /* 0: half of what is to be written is written */

long faults_seen(void) { return seen; }

void faults_arm(const char *below, long fail, int with) {
    strncpy(folder, below, sizeof folder - 1);
    seen = 0, nth = fail, error = with;
}

/* Whether this operation is the one to fail. */
static int hit(const char *path) {
    return folder[0] && path && !strncmp(path, folder, strlen(folder)) && ++seen == nth;
}

static int hit_file(int file) {
    char link[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return hit(path);
}

#define NEXT(name) __typeof__(name) *next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define FAIL return errno = error ? error : EIO, -1

#define OPEN(name)                                                              \
    int name(const char *path, int flags, ...) {                                \
        NEXT(name);                                                             \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                           \
        if (hit(path)) FAIL;                                                    \
        return next(path, flags, mode);                                         \
    }
#define WRITE(name, arguments, ...)                      \
    ssize_t name arguments {                             \
        NEXT(name);                                      \
        if (hit_file(file)) {                            \
            if (error || size < 2) FAIL;                 \
            size /= 2;                                   \
        }                                                \
        return next(__VA_ARGS__);                        \
    }
#define SYNC(name)                   \
    int name(int file) {             \
        NEXT(name);                  \
        if (hit_file(file)) FAIL;    \
        return next(file);           \
    }

OPEN(open)
OPEN(open64)
WRITE(write, (int file, const void *data, size_t size), file, data, size)
WRITE(pwrite, (int file, const void *data, size_t size, off_t at), file, data, size, at)
WRITE(pwrite64, (int file, const void *data, size_t size, off64_t at), file, data, size, at)
SYNC(fsync)
SYNC(fdatasync)

int rename(const char *from, const char *to) {
    NEXT(rename);
    if (hit(to)) FAIL;
    return next(from, to);
}
