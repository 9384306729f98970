/*
 * Makes a server slower by a known amount: burns DELTABENCH_BURN_NS nanoseconds of CPU after every
 * successful recv() on a stream socket.
 *
 * A backend reads its client's messages with recv(), at most 8 KiB at a time, and sees EAGAIN before it
 * waits. So a statement whose messages are sent together (Parse, Bind, Execute, Sync in one packet, or a
 * simple query) costs one successful recv() and one burn, whatever the version. Needs no PostgreSQL
 * headers.
 *
 * Why a spin on the monotonic clock: CLOCK_THREAD_CPUTIME_ID would be CPU time by definition, but each look
 * is a system call of some 250 ns that takes the run queue's lock; a counted loop changes its length with
 * the core's frequency. The monotonic clock is read without entering the kernel in about 25 ns. It runs on
 * while this process is off its core, so a gap that is too long for anything but a context switch moves the
 * end by the same length. The looks before the start and after the end cost two of them; that is taken off.
 *
 * Measured with a socket pair in real-time priority: 0.5 to 20 us are met to 0.05 us before and to about
 * 0.01 us after taking these looks off (medians).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

/* Interrupts take less and are billed to the process; a turn of another process takes more. */
#define OFF_CORE_NS 10000

typedef ssize_t (*recv_function)(int, void *, size_t, int);

static recv_function next_recv;
static int64_t burn_ns;
/* The last socket asked about: a backend has one. */
static int known_socket = -1;
static int known_is_stream;

static int64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t) time.tv_sec * 1000000000 + time.tv_nsec;
}

/* What a look at the clock costs: the fastest of some batches. */
static int64_t look_ns(void)
{
    int64_t best = INT64_MAX;

    for (int batch = 0; batch < 20; batch++)
    {
        int64_t start = now_ns();
        int64_t taken;

        for (int look = 0; look < 99; look++)
            now_ns();
        taken = now_ns() - start;
        if (taken < best)
            best = taken;
    }
    return best / 100;
}

__attribute__((constructor)) static void prepare(void)
{
    const char *text = getenv("DELTABENCH_BURN_NS");
    int64_t asked = text ? strtoll(text, NULL, 10) : 0;

    /* Looked at even where nothing is burnt: processes on both sides start alike. */
    burn_ns = asked - 2 * look_ns();
    if (burn_ns < 0)
        burn_ns = 0;
    next_recv = (recv_function) dlsym(RTLD_NEXT, "recv");
}

static void burn(void)
{
    int64_t last = now_ns();
    int64_t end = last + burn_ns;

    while (last < end)
    {
        int64_t now = now_ns();

        if (now - last > OFF_CORE_NS)
            end += now - last;
        last = now;
    }
}

/* Statistics of servers before 15 come by datagrams: they are no statements. */
static int is_stream(int socket)
{
    if (socket != known_socket)
    {
        int type = 0;
        socklen_t length = sizeof type;

        known_is_stream = getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
        known_socket = socket;
    }
    return known_is_stream;
}

ssize_t recv(int socket, void *buffer, size_t length, int flags)
{
    ssize_t received = next_recv(socket, buffer, length, flags);

    if (received > 0 && !(flags & MSG_PEEK))
    {
        int saved = errno;

        if (is_stream(socket) && burn_ns > 0)
            burn();
        errno = saved;
    }
    return received;
}
