/* References that the application holds, and queues and events that have failed. */

#include "layer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct object {
    void *handle;
    enum kind kind;
    long references;
    cl_int failure;
};

const char *const kind_names[KIND_COUNT] = {"context", "queue",  "memory",
                                            "program", "kernel", "event"};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* A few dozen objects at a time; a search from the newest is fast enough. */
static struct object *objects;
static size_t count, capacity;
static long created[KIND_COUNT], alive[KIND_COUNT];

static struct object *find(void *handle)
{
    for (size_t i = count; i > 0; i--)
        if (objects[i - 1].handle == handle)
            return &objects[i - 1];
    return NULL;
}

void object_created(enum kind kind, void *handle)
{
    pthread_mutex_lock(&mutex);
    struct object *object = find(handle);
    if (object == NULL) {
        if (count == capacity) {
            capacity = capacity == 0 ? 256 : 2 * capacity;
            objects = realloc(objects, capacity * sizeof *objects);
            if (objects == NULL)
                abort();
        }
        object = &objects[count++];
        *object = (struct object){.handle = handle, .kind = kind};
    }
    object->references++;
    report_object(kind, ++created[kind], ++alive[kind]);
    pthread_mutex_unlock(&mutex);
}

void object_released(enum kind kind, void *handle)
{
    pthread_mutex_lock(&mutex);
    struct object *object = find(handle);
    if (object == NULL || object->kind != kind) {
        fprintf(stderr, "opencl_layer: a %s is released that nobody owns\n", kind_names[kind]);
        report_stray();
    } else {
        if (--object->references == 0)
            *object = objects[--count];
        report_object(kind, created[kind], --alive[kind]);
    }
    pthread_mutex_unlock(&mutex);
}

void object_fail(void *handle, cl_int code)
{
    pthread_mutex_lock(&mutex);
    struct object *object = find(handle);
    if (object != NULL)
        object->failure = code;
    pthread_mutex_unlock(&mutex);
}

cl_int object_failure(void *handle)
{
    pthread_mutex_lock(&mutex);
    struct object *object = find(handle);
    cl_int failure = object == NULL ? CL_SUCCESS : object->failure;
    pthread_mutex_unlock(&mutex);
    return failure;
}
