/*
 * Gives a server another time: adds DELTABENCH_CLOCK_NS nanoseconds, which may be negative, to what gettimeofday(),
 * time() and clock_gettime() of the clock of the wall say. Needs no PostgreSQL headers.
 *
 * All other clocks stay: what measures how long something takes, and what waits, reads the monotonic one. The
 * kernel knows nothing of it, so times of files and CPU are those of the machine.
 *
 * The functions that answer are those of the C library, which read the clock without entering the kernel, so the
 * addition is all that it costs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#define SECOND_NS 1000000000LL

typedef int (*clock_function)(clockid_t, struct timespec *);

static clock_function next_clock;
static int64_t added_ns;

__attribute__((constructor)) static void prepare(void)
{
    const char *text = getenv("DELTABENCH_CLOCK_NS");
    char *end;

    if (text)
        added_ns = strtol(text, &end, 10);
    next_clock = (clock_function) dlsym(RTLD_NEXT, "clock_gettime");
}

static void add(struct timespec *when)
{
    int64_t seconds = when->tv_sec + added_ns / SECOND_NS;
    int64_t ns = when->tv_nsec + added_ns % SECOND_NS;

    if (ns < 0)
    {
        ns += SECOND_NS;
        seconds--;
    }
    else if (ns >= SECOND_NS)
    {
        ns -= SECOND_NS;
        seconds++;
    }
    when->tv_sec = seconds;
    when->tv_nsec = ns;
}

/* Before the constructor: somebody else's may ask for the time. */
static int ask(clockid_t clock, struct timespec *when)
{
    if (!next_clock)
        prepare();
    return next_clock(clock, when);
}

int clock_gettime(clockid_t clock, struct timespec *when)
{
    int result = ask(clock, when);

    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        add(when);
    return result;
}

int gettimeofday(struct timeval *restrict when, void *restrict zone)
{
    struct timespec now;

    if (zone)
    {
        /* As the C library says it: there is none. */
        ((struct timezone *) zone)->tz_minuteswest = 0;
        ((struct timezone *) zone)->tz_dsttime = 0;
    }
    if (ask(CLOCK_REALTIME, &now) != 0)
        return -1;
    add(&now);
    when->tv_sec = now.tv_sec;
    when->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *seconds)
{
    struct timespec now;

    if (ask(CLOCK_REALTIME, &now) != 0)
        return (time_t) -1;
    add(&now);
    if (seconds)
        *seconds = now.tv_sec;
    return now.tv_sec;
}
