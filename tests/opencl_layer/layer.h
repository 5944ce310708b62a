/* Declarations that the parts of the layer share. README.md explains rules and report. */

#ifndef LAYER_H
#define LAYER_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_layer.h>

#include "functions.h"

enum function {
#define NUMBER(name) F_##name,
    HOOKED(NUMBER)
#undef NUMBER
    FUNCTION_COUNT
};

extern const char *const function_names[FUNCTION_COUNT];

/* Kinds of objects whose references are counted. */
enum kind { CONTEXT, QUEUE, MEMORY, PROGRAM, KERNEL, EVENT, KIND_COUNT };

extern const char *const kind_names[KIND_COUNT];

/* The driver, or the next layer. */
extern const cl_icd_dispatch *next;

/* The function table of this layer. */
void fill_hooks(cl_icd_dispatch *table);

/* Rules ---------------------------------------------------------------------------------- */

/* The effect of the rules on one call. */
struct verdict {
    cl_int fail; /* the call fails with this, or CL_SUCCESS */
    cl_int late; /* the command is accepted and fails afterwards, or CL_SUCCESS */
    cl_int lose; /* as `fail`, and so does every later call with its queue */
    long stall_ms;
    long hold_ms; /* the command does not begin before so many milliseconds have passed */
};

/* Counts the call, sleeps if a rule says so, and returns the other effects. */
struct verdict judge(enum function function);

/* The VALUE of a rule `lie NAME VALUE`. */
int lie(const char *name, unsigned long *value);

/* The texts of the next rule `edit FROM TO` after `previous`, or NULL. */
struct edit {
    char from[160];
    char to[160];
};
const struct edit *next_edit(const struct edit *previous);

/* Objects -------------------------------------------------------------------------------- */

/* Notes a new reference that the application owns. */
void object_created(enum kind kind, void *handle);

/* Notes a reference that the application released. */
void object_released(enum kind kind, void *handle);

/* Notes that a queue or event has failed. */
void object_fail(void *handle, cl_int code);

/* Notes that an event is that of the queue's latest command. */
void object_enqueued(void *event, void *queue);

/* Notes that a queue's commands so far are handed to the device. */
void object_flushed(void *queue);

/* Notes that the queue of an event is flushed. */
void object_flushed_by(void *event);

/* Reports a wait of a command in `queue` for one of another queue that was never flushed. */
void object_waited(void *event, void *queue);

/* The code given to object_fail, or CL_SUCCESS. */
cl_int object_failure(void *handle);

/* Report --------------------------------------------------------------------------------- */

void report_open(void);
void report_call(enum function function, int failed);
void report_object(enum kind kind, long created, long alive);
void report_stray(void);
void report_unflushed(void);
void report_rules(unsigned long generation);

/* Lies ----------------------------------------------------------------------------------- */

/* Changes a device's answer if a rule lies about it. */
void lie_about_device(cl_device_info what, size_t size, void *value);
void lie_about_kernel(cl_kernel_work_group_info what, size_t size, void *value);

/* Changes a platform's answer if a rule lies about it. */
void lie_about_platform(cl_platform_info what, size_t size, void *value);

/* The memory that a device uses instead of the host's: a copy of what it held first. */
void *stale_host(void *host, size_t size);

/* Notes a map for writing, and what to do before its unmap: the first contents come back. */
void stale_mapped(cl_mem memory, void *pointer, size_t size);
void stale_unmapped(cl_mem memory, void *pointer);
void stale_released(cl_mem memory);

/* The status with which a device of these limits would refuse a command, or CL_SUCCESS. */
cl_int limit_buffer(size_t size);
cl_int limit_image(void);
cl_int limit_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                    const size_t *local);

#endif
