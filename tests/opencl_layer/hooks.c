/* A hook per function: applies the rules, calls the driver, counts the objects. */

#define _GNU_SOURCE
#include "layer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A function that returns its status. */
#define STATUS(name, parameters, arguments) \
    static cl_int CL_API_CALL hook_##name parameters \
    { \
        cl_int failure = judge(F_##name).fail; \
        return failure != CL_SUCCESS ? failure : next->name arguments; \
    }

STATUS(clGetPlatformIDs, (cl_uint n, cl_platform_id *platforms, cl_uint *count),
       (n, platforms, count))
STATUS(clGetDeviceIDs,
       (cl_platform_id platform, cl_device_type type, cl_uint n, cl_device_id *devices,
        cl_uint *count),
       (platform, type, n, devices, count))
STATUS(clBuildProgram,
       (cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
        void(CL_CALLBACK *done)(cl_program, void *), void *data),
       (program, n, devices, options, done, data))
STATUS(clGetProgramBuildInfo,
       (cl_program program, cl_device_id device, cl_program_build_info what, size_t size,
        void *value, size_t *needed),
       (program, device, what, size, value, needed))
STATUS(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value),
       (kernel, index, size, value))

static cl_int CL_API_CALL hook_clGetPlatformInfo(cl_platform_id platform, cl_platform_info what,
                                                 size_t size, void *value, size_t *needed)
{
    cl_int code = judge(F_clGetPlatformInfo).fail;
    if (code == CL_SUCCESS)
        code = next->clGetPlatformInfo(platform, what, size, value, needed);
    if (code == CL_SUCCESS && value != NULL)
        lie_about_platform(what, size, value);
    return code;
}

static cl_int CL_API_CALL hook_clGetDeviceInfo(cl_device_id device, cl_device_info what,
                                               size_t size, void *value, size_t *needed)
{
    cl_int code = judge(F_clGetDeviceInfo).fail;
    if (code == CL_SUCCESS)
        code = next->clGetDeviceInfo(device, what, size, value, needed);
    if (code == CL_SUCCESS && value != NULL)
        lie_about_device(what, size, value);
    return code;
}

static cl_int CL_API_CALL hook_clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                                        cl_kernel_work_group_info what,
                                                        size_t size, void *value, size_t *needed)
{
    cl_int code = judge(F_clGetKernelWorkGroupInfo).fail;
    if (code == CL_SUCCESS)
        code = next->clGetKernelWorkGroupInfo(kernel, device, what, size, value, needed);
    if (code == CL_SUCCESS && value != NULL)
        lie_about_kernel(what, size, value);
    return code;
}

/* A function that returns a new object, or NULL and a status through `status`. */
#define CREATE(name, type, kind, limit, parameters, arguments) \
    static type CL_API_CALL hook_##name parameters \
    { \
        cl_int failure = judge(F_##name).fail; \
        if (failure == CL_SUCCESS) \
            failure = limit; \
        if (failure != CL_SUCCESS) { \
            if (status != NULL) \
                *status = failure; \
            return NULL; \
        } \
        type object = next->name arguments; \
        if (object != NULL) \
            object_created(kind, object); \
        return object; \
    }

CREATE(clCreateContext, cl_context, CONTEXT, CL_SUCCESS,
       (const cl_context_properties *properties, cl_uint n, const cl_device_id *devices,
        void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
        cl_int *status),
       (properties, n, devices, notify, data, status))
CREATE(clCreateCommandQueue, cl_command_queue, QUEUE, CL_SUCCESS,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties,
        cl_int *status),
       (context, device, properties, status))
CREATE(clCreateBuffer, cl_mem, MEMORY, limit_buffer(size),
       (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *status),
       (context, flags, size, flags & CL_MEM_USE_HOST_PTR ? stale_host(host, size) : host, status))
CREATE(clCreateImage, cl_mem, MEMORY, limit_image(),
       (cl_context context, cl_mem_flags flags, const cl_image_format *format,
        const cl_image_desc *description, void *host, cl_int *status),
       (context, flags, format, description, host, status))
CREATE(clCreateProgramWithBinary, cl_program, PROGRAM, CL_SUCCESS,
       (cl_context context, cl_uint n, const cl_device_id *devices, const size_t *lengths,
        const unsigned char **binaries, cl_int *each, cl_int *status),
       (context, n, devices, lengths, binaries, each, status))

/* The text with the rules' edits, to be freed. */
static char *edited(cl_uint n, const char **texts, const size_t *lengths)
{
    size_t size = 1;
    for (cl_uint i = 0; i < n; i++)
        size += lengths == NULL || lengths[i] == 0 ? strlen(texts[i]) : lengths[i];
    char *text = calloc(1, size);
    if (text == NULL)
        abort();
    for (cl_uint i = 0; i < n; i++)
        strncat(text, texts[i], lengths == NULL || lengths[i] == 0 ? strlen(texts[i]) : lengths[i]);
    for (const struct edit *edit = next_edit(NULL); edit != NULL; edit = next_edit(edit)) {
        char *at = strstr(text, edit->from);
        if (at == NULL)
            continue;
        char *longer = calloc(1, strlen(text) + strlen(edit->to) + 1);
        if (longer == NULL)
            abort();
        memcpy(longer, text, at - text);
        strcat(longer, edit->to);
        strcat(longer, at + strlen(edit->from));
        free(text);
        text = longer;
    }
    return text;
}

static cl_program CL_API_CALL hook_clCreateProgramWithSource(cl_context context, cl_uint n,
                                                             const char **texts,
                                                             const size_t *lengths,
                                                             cl_int *status)
{
    cl_int failure = judge(F_clCreateProgramWithSource).fail;
    if (failure != CL_SUCCESS) {
        if (status != NULL)
            *status = failure;
        return NULL;
    }
    char *text = edited(n, texts, lengths);
    cl_program program =
        next->clCreateProgramWithSource(context, 1, (const char **)&text, NULL, status);
    free(text);
    if (program != NULL)
        object_created(PROGRAM, program);
    return program;
}

CREATE(clCreateKernel, cl_kernel, KERNEL, CL_SUCCESS,
       (cl_program program, const char *name, cl_int *status), (program, name, status))

#define RELEASE(name, type, kind) \
    static cl_int CL_API_CALL hook_##name(type object) \
    { \
        cl_int code = judge(F_##name).fail; \
        if (code != CL_SUCCESS) \
            return code; \
        object_released(kind, object); \
        return next->name(object); \
    }

RELEASE(clReleaseContext, cl_context, CONTEXT)
RELEASE(clReleaseCommandQueue, cl_command_queue, QUEUE)
static cl_int CL_API_CALL hook_clReleaseMemObject(cl_mem memory)
{
    cl_int code = judge(F_clReleaseMemObject).fail;
    if (code != CL_SUCCESS)
        return code;
    stale_released(memory);
    object_released(MEMORY, memory);
    return next->clReleaseMemObject(memory);
}

RELEASE(clReleaseProgram, cl_program, PROGRAM)
RELEASE(clReleaseKernel, cl_kernel, KERNEL)
RELEASE(clReleaseEvent, cl_event, EVENT)

/* Memory that host and device share. The calls have no status: a failure is no memory. */
static void *CL_API_CALL hook_clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                                         cl_uint alignment)
{
    if (judge(F_clSVMAlloc).fail != CL_SUCCESS || limit_buffer(size) != CL_SUCCESS)
        return NULL;
    void *bytes = next->clSVMAlloc(context, flags, size, alignment);
    if (bytes != NULL)
        object_created(MEMORY, bytes);
    return bytes;
}

static void CL_API_CALL hook_clSVMFree(cl_context context, void *bytes)
{
    judge(F_clSVMFree);
    object_released(MEMORY, bytes);
    next->clSVMFree(context, bytes);
}

static cl_int failed_wait(cl_uint count, const cl_event *waits)
{
    for (cl_uint i = 0; i < count; i++)
        if (object_failure(waits[i]) != CL_SUCCESS)
            return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return CL_SUCCESS;
}

/* Applies the rules to a call with a queue; a lost queue stays lost. */
static struct verdict judge_queue(enum function function, cl_command_queue queue)
{
    struct verdict verdict = judge(function);
    cl_int lost = object_failure(queue);
    if (lost != CL_SUCCESS)
        verdict.fail = lost;
    if (verdict.lose != CL_SUCCESS)
        object_fail(queue, verdict.lose);
    return verdict;
}

/* Like judge_queue, for a command. If an event that it waits for has failed, a blocking command fails at
 * once, another one later. */
static struct verdict judge_command(enum function function, cl_command_queue queue,
                                    cl_bool blocking, cl_uint count, const cl_event *waits)
{
    struct verdict verdict = judge_queue(function, queue);
    for (cl_uint i = 0; i < count; i++)
        object_waited(waits[i], queue);
    if (blocking)
        object_flushed(queue);
    if (verdict.late == CL_SUCCESS)
        verdict.late = failed_wait(count, waits);
    if (blocking && verdict.fail == CL_SUCCESS)
        verdict.fail = verdict.late;
    return verdict;
}

/* Skips a command and returns a failed event for it. */
static cl_int fail_later(cl_command_queue queue, cl_int code, cl_event *event)
{
    cl_int marked = next->clEnqueueMarkerWithWaitList(queue, 0, NULL, event);
    if (marked == CL_SUCCESS && event != NULL) {
        object_created(EVENT, *event);
        object_enqueued(*event, queue);
        object_fail(*event, code);
    }
    return marked;
}

static cl_int created_event(cl_int code, cl_command_queue queue, cl_event *event)
{
    if (code == CL_SUCCESS && event != NULL) {
        object_created(EVENT, *event);
        object_enqueued(*event, queue);
    }
    return code;
}

struct hold {
    cl_event event;
    long ms;
};

static void *end_hold(void *data)
{
    struct hold *hold = data;
    struct timespec time = {hold->ms / 1000, hold->ms % 1000 * 1000000};
    nanosleep(&time, NULL);
    next->clSetUserEventStatus(hold->event, CL_COMPLETE);
    next->clReleaseEvent(hold->event);
    free(hold);
    return NULL;
}

/* Makes a command wait for an event of the layer, too. Returns the wait list, for `let_go` after the command was enqueued. */
static cl_event *hold_back(long ms, cl_command_queue queue, cl_uint *count, const cl_event **waits)
{
    cl_context context;
    cl_int code;
    pthread_t thread;
    if (ms == 0)
        return NULL;
    struct hold *hold = malloc(sizeof *hold);
    cl_event *longer = malloc((*count + 1) * sizeof *longer);
    if (hold == NULL || longer == NULL ||
        next->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL) !=
            CL_SUCCESS)
        abort();
    *hold = (struct hold){next->clCreateUserEvent(context, &code), ms};
    if (code != CL_SUCCESS)
        abort();
    if (*count > 0)
        memcpy(longer, *waits, *count * sizeof *longer);
    /* The thread may end before the command is enqueued. */
    if (next->clRetainEvent(hold->event) != CL_SUCCESS)
        abort();
    longer[(*count)++] = hold->event;
    *waits = longer;
    if (pthread_create(&thread, NULL, end_hold, hold) != 0)
        abort();
    pthread_detach(thread);
    return longer;
}

static void let_go(cl_event *held, cl_uint count)
{
    if (held == NULL)
        return;
    next->clReleaseEvent(held[count - 1]);
    free(held);
}

#define COMMAND(name, blocking, limit, parameters, arguments) \
    static cl_int CL_API_CALL hook_##name parameters \
    { \
        struct verdict verdict = judge_command(F_##name, queue, blocking, count, waits); \
        if (verdict.fail == CL_SUCCESS) \
            verdict.fail = limit; \
        if (verdict.fail != CL_SUCCESS) \
            return verdict.fail; \
        if (verdict.late != CL_SUCCESS) \
            return fail_later(queue, verdict.late, event); \
        cl_event *held = hold_back(verdict.hold_ms, queue, &count, &waits); \
        cl_int code = next->name arguments; \
        let_go(held, count); \
        return created_event(code, queue, event); \
    }

COMMAND(clEnqueueNDRangeKernel, CL_FALSE, limit_launch(queue, kernel, dimensions, local),
        (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
         const size_t *global, const size_t *local, cl_uint count, const cl_event *waits,
         cl_event *event),
        (queue, kernel, dimensions, offset, global, local, count, waits, event))
COMMAND(clEnqueueReadBuffer, blocking, CL_SUCCESS,
        (cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t size,
         void *target, cl_uint count, const cl_event *waits, cl_event *event),
        (queue, memory, blocking, offset, size, target, count, waits, event))
COMMAND(clEnqueueWriteBuffer, blocking, CL_SUCCESS,
        (cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t size,
         const void *source, cl_uint count, const cl_event *waits, cl_event *event),
        (queue, memory, blocking, offset, size, source, count, waits, event))
COMMAND(clEnqueueFillBuffer, CL_FALSE, CL_SUCCESS,
        (cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_size,
         size_t offset, size_t size, cl_uint count, const cl_event *waits, cl_event *event),
        (queue, memory, pattern, pattern_size, offset, size, count, waits, event))
COMMAND(clEnqueueCopyBuffer, CL_FALSE, CL_SUCCESS,
        (cl_command_queue queue, cl_mem source, cl_mem target, size_t source_offset,
         size_t target_offset, size_t size, cl_uint count, const cl_event *waits, cl_event *event),
        (queue, source, target, source_offset, target_offset, size, count, waits, event))
COMMAND(clEnqueueCopyBufferRect, CL_FALSE, CL_SUCCESS,
        (cl_command_queue queue, cl_mem source, cl_mem target, const size_t *source_origin,
         const size_t *target_origin, const size_t *region, size_t source_row_pitch,
         size_t source_slice_pitch, size_t target_row_pitch, size_t target_slice_pitch,
         cl_uint count, const cl_event *waits, cl_event *event),
        (queue, source, target, source_origin, target_origin, region, source_row_pitch,
         source_slice_pitch, target_row_pitch, target_slice_pitch, count, waits, event))

COMMAND(clEnqueueMarkerWithWaitList, CL_FALSE, CL_SUCCESS,
        (cl_command_queue queue, cl_uint count, const cl_event *waits, cl_event *event),
        (queue, count, waits, event))

static void *CL_API_CALL hook_clEnqueueMapBuffer(cl_command_queue queue, cl_mem memory,
                                                 cl_bool blocking, cl_map_flags flags,
                                                 size_t offset, size_t size, cl_uint count,
                                                 const cl_event *waits, cl_event *event,
                                                 cl_int *status)
{
    struct verdict verdict =
        judge_command(F_clEnqueueMapBuffer, queue, blocking, count, waits);
    cl_int code = verdict.fail;
    if (code != CL_SUCCESS) {
        if (status != NULL)
            *status = code;
        return NULL;
    }
    void *pointer = next->clEnqueueMapBuffer(queue, memory, blocking, flags, offset, size, count,
                                             waits, event, &code);
    created_event(code, queue, event);
    if (code == CL_SUCCESS && verdict.late != CL_SUCCESS && event != NULL)
        object_fail(*event, verdict.late);
    if (code == CL_SUCCESS && flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION))
        stale_mapped(memory, pointer, size);
    if (status != NULL)
        *status = code;
    return pointer;
}

static cl_int CL_API_CALL hook_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory,
                                                       void *pointer, cl_uint count,
                                                       const cl_event *waits, cl_event *event)
{
    struct verdict verdict =
        judge_command(F_clEnqueueUnmapMemObject, queue, CL_FALSE, count, waits);
    if (verdict.fail != CL_SUCCESS)
        return verdict.fail;
    stale_unmapped(memory, pointer);
    /* The call succeeds in any case; a late failure concerns the transfer. */
    cl_int code = next->clEnqueueUnmapMemObject(queue, memory, pointer, count, waits, event);
    created_event(code, queue, event);
    if (code == CL_SUCCESS && verdict.late != CL_SUCCESS && event != NULL)
        object_fail(*event, verdict.late);
    return code;
}

static cl_int CL_API_CALL hook_clFlush(cl_command_queue queue)
{
    cl_int failure = judge_queue(F_clFlush, queue).fail;
    object_flushed(queue);
    return failure != CL_SUCCESS ? failure : next->clFlush(queue);
}

static cl_int CL_API_CALL hook_clWaitForEvents(cl_uint count, const cl_event *events)
{
    cl_int failure = judge(F_clWaitForEvents).fail;
    for (cl_uint i = 0; i < count; i++)
        object_flushed_by(events[i]);
    if (failure == CL_SUCCESS)
        failure = failed_wait(count, events);
    return failure != CL_SUCCESS ? failure : next->clWaitForEvents(count, events);
}

static cl_int CL_API_CALL hook_clGetEventInfo(cl_event event, cl_event_info what, size_t size,
                                              void *value, size_t *needed)
{
    cl_int failure = judge(F_clGetEventInfo).fail;
    if (failure != CL_SUCCESS)
        return failure;
    cl_int code = next->clGetEventInfo(event, what, size, value, needed);
    cl_int failed = object_failure(event);
    if (code == CL_SUCCESS && failed != CL_SUCCESS && value != NULL &&
        what == CL_EVENT_COMMAND_EXECUTION_STATUS && size >= sizeof(cl_int))
        *(cl_int *)value = failed;
    return code;
}

static cl_int CL_API_CALL hook_clGetEventProfilingInfo(cl_event event, cl_profiling_info what,
                                                       size_t size, void *value, size_t *needed)
{
    cl_int failure = judge(F_clGetEventProfilingInfo).fail;
    if (failure == CL_SUCCESS && object_failure(event) != CL_SUCCESS)
        failure = CL_PROFILING_INFO_NOT_AVAILABLE;
    return failure != CL_SUCCESS
               ? failure
               : next->clGetEventProfilingInfo(event, what, size, value, needed);
}

void fill_hooks(cl_icd_dispatch *table)
{
#define HOOK(name) table->name = hook_##name;
    HOOKED(HOOK)
#undef HOOK
}
