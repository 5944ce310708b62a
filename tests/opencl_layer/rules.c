/* The rules file. It is read again whenever it is replaced, so that faults can begin while frames flow. */

#define _GNU_SOURCE
#include "layer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { MAX_RULES = 64, MAX_NAME = 48, MAX_EDITS = 8 };

struct rule {
    int function; /* FUNCTION_COUNT is any */
    long first;   /* the first call that it is about, from 1 */
    int onwards;  /* and all calls after that one */
    long seen;    /* calls since the rules were read */
    struct verdict verdict;
};

struct untruth {
    char name[MAX_NAME];
    unsigned long value;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct rule rules[MAX_RULES];
static struct untruth untruths[MAX_RULES];
static struct edit edits[MAX_EDITS];
static int rule_count, untruth_count, edit_count;
static struct stat last;
static unsigned long generation;

static void bad_line(const char *line)
{
    fprintf(stderr, "opencl_layer: no rule: %s\n", line);
    abort();
}

static int function_of(const char *name)
{
    if (strcmp(name, "*") == 0)
        return FUNCTION_COUNT;
    for (int i = 0; i < FUNCTION_COUNT; i++)
        if (strcmp(name, function_names[i]) == 0)
            return i;
    return -1;
}

static void read_line(const char *line)
{
    char name[MAX_NAME], which[MAX_NAME], action[MAX_NAME];
    long value;
    if (line[0] == '#' || line[0] == '\n')
        return;
    if (rule_count == MAX_RULES || untruth_count == MAX_RULES)
        bad_line(line);
    if (strncmp(line, "lie ", 4) == 0) {
        struct untruth *untruth = &untruths[untruth_count++];
        if (sscanf(line, "lie %47s %lu", untruth->name, &untruth->value) != 2)
            bad_line(line);
        return;
    }
    if (strncmp(line, "edit ", 5) == 0) {
        struct edit *edit = &edits[edit_count++];
        if (edit_count > MAX_EDITS || sscanf(line, "edit %159s %159s", edit->from, edit->to) != 2)
            bad_line(line);
        for (char *at = edit->from; *at != 0; at++)
            *at = *at == '~' ? ' ' : *at;
        for (char *at = edit->to; *at != 0; at++)
            *at = *at == '~' ? ' ' : *at;
        return;
    }
    if (sscanf(line, "%47s %47s %47s %ld", name, which, action, &value) != 4)
        bad_line(line);
    struct rule *rule = &rules[rule_count++];
    *rule = (struct rule){.function = function_of(name), .first = atol(which)};
    rule->onwards = strchr(which, '+') != NULL;
    if (rule->function < 0 || rule->first < 1)
        bad_line(line);
    if (strcmp(action, "fail") == 0)
        rule->verdict.fail = (cl_int)value;
    else if (strcmp(action, "late") == 0)
        rule->verdict.late = (cl_int)value;
    else if (strcmp(action, "lose") == 0)
        rule->verdict.lose = (cl_int)value;
    else if (strcmp(action, "stall") == 0)
        rule->verdict.stall_ms = value;
    else if (strcmp(action, "hold") == 0)
        rule->verdict.hold_ms = value;
    else
        bad_line(line);
}

/* Reads the file if it was replaced since the last time. */
static void refresh(void)
{
    const char *path = getenv("CLINSPECT_LAYER_RULES");
    struct stat now = {0};
    if (path == NULL)
        return;
    if (stat(path, &now) != 0)
        memset(&now, 0, sizeof now);
    if (now.st_ino == last.st_ino && now.st_mtim.tv_sec == last.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == last.st_mtim.tv_nsec)
        return;
    last = now;
    rule_count = untruth_count = edit_count = 0;
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        char line[512];
        while (fgets(line, sizeof line, file) != NULL)
            read_line(line);
        fclose(file);
    }
    report_rules(++generation);
}

struct verdict judge(enum function function)
{
    struct verdict verdict = {0};
    pthread_mutex_lock(&mutex);
    refresh();
    for (struct rule *rule = rules; rule < rules + rule_count; rule++) {
        if (rule->function != (int)function && rule->function != FUNCTION_COUNT)
            continue;
        rule->seen++;
        if (rule->seen == rule->first || (rule->onwards && rule->seen > rule->first)) {
            verdict = rule->verdict;
            if (verdict.lose != CL_SUCCESS)
                verdict.fail = verdict.lose;
        }
    }
    report_call(function, verdict.fail || verdict.late || verdict.stall_ms || verdict.hold_ms);
    pthread_mutex_unlock(&mutex);
    if (verdict.stall_ms > 0) {
        struct timespec time = {verdict.stall_ms / 1000, verdict.stall_ms % 1000 * 1000000};
        nanosleep(&time, NULL);
    }
    return verdict;
}

const struct edit *next_edit(const struct edit *previous)
{
    const struct edit *edit = previous == NULL ? edits : previous + 1;
    return edit < edits + edit_count ? edit : NULL;
}

int lie(const char *name, unsigned long *value)
{
    int found = 0;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < untruth_count; i++)
        if (strcmp(untruths[i].name, name) == 0) {
            *value = untruths[i].value;
            found = 1;
        }
    pthread_mutex_unlock(&mutex);
    return found;
}
