/* Lies about limits, and the refusals of a device that really has these limits. */

#include "layer.h"

#include <string.h>

/* Overwrites an answer of this type with the lie of this name. */
#define ANSWER(type, name) \
    do { \
        if (lie(name, &told) && size >= sizeof(type)) { \
            type answer = (type)told; \
            memcpy(value, &answer, sizeof answer); \
        } \
    } while (0)

void lie_about_platform(cl_platform_info what, size_t size, void *value)
{
    unsigned long told;
    static const char nvidia[] = "NVIDIA CUDA";
    if (what != CL_PLATFORM_NAME || !lie("platform", &told))
        return;
    /* In place, so that the length stays. */
    if (told == 2 && size >= sizeof nvidia)
        memcpy(value, nvidia, sizeof nvidia);
    else
        memset(value, 'X', size - 1);
}

void lie_about_device(cl_device_info what, size_t size, void *value)
{
    unsigned long told;
    switch (what) {
    case CL_DEVICE_TYPE:
        ANSWER(cl_device_type, "type");
        break;
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        ANSWER(size_t, "work-group");
        break;
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        if (lie("work-group", &told))
            for (size_t i = 0; i < size / sizeof(size_t); i++)
                ((size_t *)value)[i] = told;
        break;
    case CL_DEVICE_LOCAL_MEM_SIZE:
        ANSWER(cl_ulong, "local-memory");
        break;
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        ANSWER(cl_ulong, "allocation");
        break;
    case CL_DEVICE_IMAGE_SUPPORT:
        ANSWER(cl_bool, "images");
        break;
    case CL_DEVICE_IMAGE2D_MAX_WIDTH:
    case CL_DEVICE_IMAGE2D_MAX_HEIGHT:
        ANSWER(size_t, "image-size");
        break;
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        ANSWER(cl_bool, "unified");
        break;
    case CL_DEVICE_COMPILER_AVAILABLE:
        ANSWER(cl_bool, "compiler");
        break;
    case CL_DEVICE_AVAILABLE:
        ANSWER(cl_bool, "available");
        break;
    case CL_DEVICE_ENDIAN_LITTLE:
        ANSWER(cl_bool, "little-endian");
        break;
    case CL_DEVICE_ADDRESS_BITS:
        ANSWER(cl_uint, "address-bits");
        break;
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
        ANSWER(cl_uint, "alignment-bits");
        break;
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        ANSWER(cl_uint, "compute-units");
        break;
    default:
        break;
    }
}

void lie_about_kernel(cl_kernel_work_group_info what, size_t size, void *value)
{
    unsigned long told;
    if (what == CL_KERNEL_WORK_GROUP_SIZE) {
        ANSWER(size_t, "work-group");
        ANSWER(size_t, "kernel-work-group");
    }
}

cl_int limit_buffer(size_t size)
{
    unsigned long told;
    return lie("allocation", &told) && size > told ? CL_INVALID_BUFFER_SIZE : CL_SUCCESS;
}

cl_int limit_image(void)
{
    unsigned long told;
    return lie("images", &told) && told == 0 ? CL_INVALID_OPERATION : CL_SUCCESS;
}

cl_int limit_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                    const size_t *local)
{
    unsigned long told;
    size_t items = 1;
    for (cl_uint i = 0; local != NULL && i < dimensions; i++)
        items *= local[i];
    if (lie("work-group", &told) && items > told)
        return CL_INVALID_WORK_GROUP_SIZE;
    if (lie("kernel-work-group", &told) && items > told)
        return CL_INVALID_WORK_GROUP_SIZE;
    if (lie("local-memory", &told)) {
        cl_device_id device;
        cl_ulong needed;
        if (next->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL) ==
                CL_SUCCESS &&
            next->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE,
                                           sizeof needed, &needed, NULL) == CL_SUCCESS &&
            needed > told)
            return CL_OUT_OF_RESOURCES;
    }
    return CL_SUCCESS;
}
