/*
 * Marks around what is counted: under the program `steps` each pair of marks is a region whose
 * instructions are counted one by one. Without a tracer marks are left out (marks_on stays false),
 * since the signal would end the program.
 */
#ifndef SKEIN_TESTS_BENCH_MARKS_H
#define SKEIN_TESTS_BENCH_MARKS_H

#include <signal.h>
#include <stdbool.h>

extern bool marks_on;

static inline void mark(void)
{
    if (marks_on) {
        (void)raise(SIGUSR1);
    }
}

#endif
