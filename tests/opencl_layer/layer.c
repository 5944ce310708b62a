/* An OpenCL layer that makes calls fail, stall or lie by the rules of a file, and counts calls and
 * objects. OPENCL_LAYERS=<path> loads it (ocl-icd 2.3 or newer).
 *
 *   CLINSPECT_LAYER_RULES   the rules file, read again whenever it is replaced
 *   CLINSPECT_LAYER_REPORT  the report file, with the current counts of calls and objects
 *
 * README.md describes both formats. */

#define _GNU_SOURCE
#include "layer.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = sizeof(cl_icd_dispatch) / sizeof(void (*)(void)) };

/* Functions in no list of functions.h: one stub per slot, which knows its slot. */
static void unlisted(int slot);

#define STUB(n) \
    static void unlisted_##n(void) { unlisted(n); }
#define SIXTEEN(h, X) \
    X(h##0) X(h##1) X(h##2) X(h##3) X(h##4) X(h##5) X(h##6) X(h##7) \
    X(h##8) X(h##9) X(h##A) X(h##B) X(h##C) X(h##D) X(h##E) X(h##F)
#define ALL_SLOTS(X) \
    SIXTEEN(0x0, X) SIXTEEN(0x1, X) SIXTEEN(0x2, X) SIXTEEN(0x3, X) SIXTEEN(0x4, X) \
    SIXTEEN(0x5, X) SIXTEEN(0x6, X) SIXTEEN(0x7, X) SIXTEEN(0x8, X) SIXTEEN(0x9, X) \
    SIXTEEN(0xA, X) SIXTEEN(0xB, X)
ALL_SLOTS(STUB)

#define STUB_NAME(n) unlisted_##n,
static void (*const stubs[])(void) = {ALL_SLOTS(STUB_NAME)};
_Static_assert(SLOTS <= sizeof stubs / sizeof *stubs, "a stub for every slot");

const char *const function_names[FUNCTION_COUNT] = {
#define NAME(name) #name,
    HOOKED(NAME)
#undef NAME
};

const cl_icd_dispatch *next;
static cl_icd_dispatch table;

static void unlisted(int slot)
{
    void *function;
    Dl_info info = {0};
    memcpy(&function, (const char *)next + slot * sizeof function, sizeof function);
    dladdr(function, &info);
    fprintf(stderr,
            "opencl_layer: a function is called that functions.h does not list: slot %d of "
            "cl_icd_dispatch, %s in the driver\n",
            slot, info.dli_sname != NULL ? info.dli_sname : "without a name");
    abort();
}

/* All other names are hidden, so they cannot clash with names of the process. */
#define EXPORTED __attribute__((visibility("default")))

EXPORTED CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value,
                                               size_t *needed)
{
    static const char name[] = "gst-plugin-clinspect faults";
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *answer = what == CL_LAYER_API_VERSION ? (const void *)&version : name;
    size_t length = what == CL_LAYER_API_VERSION ? sizeof version : sizeof name;
    if (what != CL_LAYER_API_VERSION && what != CL_LAYER_NAME)
        return CL_INVALID_VALUE;
    if (value != NULL && size < length)
        return CL_INVALID_VALUE;
    if (value != NULL)
        memcpy(value, answer, length);
    if (needed != NULL)
        *needed = length;
    return CL_SUCCESS;
}

EXPORTED CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target,
                                            cl_uint *entries_ret, const cl_icd_dispatch **result)
{
    if (target == NULL || entries_ret == NULL || result == NULL)
        return CL_INVALID_VALUE;
    next = target;
    memcpy(&table, stubs, sizeof table);
    fill_hooks(&table);
#define PASS(name) table.name = target->name;
    PASSED(PASS)
#undef PASS
    report_open();
    *result = &table;
    *entries_ret = entries < SLOTS ? entries : SLOTS;
    return CL_SUCCESS;
}
