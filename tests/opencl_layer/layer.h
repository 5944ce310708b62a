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
};

/* Counts the call, sleeps if a rule says so, and returns the other effects. */
struct verdict judge(enum function function);

/* The VALUE of a rule `lie NAME VALUE`. */
int lie(const char *name, unsigned long *value);

/* Objects -------------------------------------------------------------------------------- */

/* Notes a new reference that the application owns. */
void object_created(enum kind kind, void *handle);

/* Notes a reference that the application released. */
void object_released(enum kind kind, void *handle);

/* Notes that a queue or event has failed. */
void object_fail(void *handle, cl_int code);

/* The code given to object_fail, or CL_SUCCESS. */
cl_int object_failure(void *handle);

/* Report --------------------------------------------------------------------------------- */

void report_open(void);
void report_call(enum function function, int failed);
void report_object(enum kind kind, long created, long alive);
void report_stray(void);
void report_rules(unsigned long generation);

/* Lies ----------------------------------------------------------------------------------- */

/* Changes a device's answer if a rule lies about it. */
void lie_about_device(cl_device_info what, size_t size, void *value);
void lie_about_kernel(cl_kernel_work_group_info what, size_t size, void *value);

/* The status with which a device of these limits would refuse a command, or CL_SUCCESS. */
cl_int limit_buffer(size_t size);
cl_int limit_image(void);
cl_int limit_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                    const size_t *local);

#endif
