/* Devices that keep a copy of the host's memory and do not see what the host writes later. */

#define _GNU_SOURCE
#include "layer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096, ALIGNMENT = 4096 };

/* A copy of the first contents of memory. */
struct kept {
    const void *owner; /* the host's address, or the memory object */
    void *pointer;     /* of the current map */
    size_t size;       /* of the current map */
    void *copy;
    size_t copied;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct kept wrapped[MOST], mapped[MOST];

static struct kept *find(struct kept *all, const void *owner)
{
    struct kept *empty = NULL;
    for (struct kept *kept = all; kept < all + MOST; kept++) {
        if (kept->owner == owner)
            return kept;
        if (kept->owner == NULL && empty == NULL)
            empty = kept;
    }
    if (empty == NULL)
        abort();
    *empty = (struct kept){.owner = owner};
    return empty;
}

static void *copy_of(const void *bytes, size_t size)
{
    void *copy = NULL;
    if (posix_memalign(&copy, ALIGNMENT, size) != 0)
        abort();
    memcpy(copy, bytes, size);
    return copy;
}

void *stale_host(void *host, size_t size)
{
    unsigned long told;
    if (!lie("stale-wrapped", &told))
        return host;
    pthread_mutex_lock(&mutex);
    struct kept *kept = find(wrapped, host);
    if (kept->copied < size) {
        kept->copy = copy_of(host, size);
        kept->copied = size;
    }
    pthread_mutex_unlock(&mutex);
    return kept->copy;
}

void stale_mapped(cl_mem memory, void *pointer, size_t size)
{
    unsigned long told;
    if (!lie("stale-mapped", &told))
        return;
    pthread_mutex_lock(&mutex);
    struct kept *kept = find(mapped, memory);
    kept->pointer = pointer;
    kept->size = size;
    pthread_mutex_unlock(&mutex);
}

void stale_unmapped(cl_mem memory, void *pointer)
{
    unsigned long told;
    if (!lie("stale-mapped", &told))
        return;
    pthread_mutex_lock(&mutex);
    struct kept *kept = find(mapped, memory);
    if (kept->pointer == pointer && kept->copied == kept->size) {
        memcpy(pointer, kept->copy, kept->size);
    } else if (kept->pointer == pointer) {
        kept->copy = copy_of(pointer, kept->size);
        kept->copied = kept->size;
    }
    kept->pointer = NULL;
    pthread_mutex_unlock(&mutex);
}

void stale_released(cl_mem memory)
{
    pthread_mutex_lock(&mutex);
    for (struct kept *kept = mapped; kept < mapped + MOST; kept++)
        if (kept->owner == memory)
            *kept = (struct kept){0};
    pthread_mutex_unlock(&mutex);
}
