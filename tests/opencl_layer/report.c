/* The report: a line per function and per kind of object. The file is mapped, so it is always up to date
 * and survives a crash. */

#define _GNU_SOURCE
#include "layer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 64, LINES = FUNCTION_COUNT + KIND_COUNT + 2 };

static char *text;
static long calls[FUNCTION_COUNT], faults[FUNCTION_COUNT], stray;

static void put(int line, const char *name, long first, long second)
{
    char formatted[LINE + 1];
    if (text == NULL)
        return;
    snprintf(formatted, sizeof formatted, "%-39s %11ld %11ld\n", name, first, second);
    memcpy(text + line * LINE, formatted, LINE);
}

void report_open(void)
{
    const char *path = getenv("CLINSPECT_LAYER_REPORT");
    if (path == NULL)
        return;
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, LINES * LINE) != 0) {
        perror("opencl_layer: CLINSPECT_LAYER_REPORT");
        abort();
    }
    void *mapped = mmap(NULL, LINES * LINE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        abort();
    text = mapped;
    for (int i = 0; i < FUNCTION_COUNT; i++)
        put(i, function_names[i], 0, 0);
    for (int i = 0; i < KIND_COUNT; i++)
        put(FUNCTION_COUNT + i, kind_names[i], 0, 0);
    put(FUNCTION_COUNT + KIND_COUNT, "rules", 0, 0);
    put(FUNCTION_COUNT + KIND_COUNT + 1, "stray", 0, 0);
}

/* Under the lock of the rules. */
void report_call(enum function function, int failed)
{
    calls[function]++;
    faults[function] += failed;
    put(function, function_names[function], calls[function], faults[function]);
}

/* Under the lock of the objects. */
void report_object(enum kind kind, long created, long alive)
{
    put(FUNCTION_COUNT + kind, kind_names[kind], created, alive);
}

/* Under the lock of the objects. */
void report_stray(void)
{
    put(FUNCTION_COUNT + KIND_COUNT + 1, "stray", ++stray, 0);
}

/* Under the lock of the rules. */
void report_rules(unsigned long generation)
{
    put(FUNCTION_COUNT + KIND_COUNT, "rules", (long)generation, 0);
}
