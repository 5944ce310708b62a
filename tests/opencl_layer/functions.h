/* The OpenCL functions that the layer knows. A call of a function in neither list ends the process and
 * prints its name, so that a new call of the plugin is not overlooked. */

#ifndef FUNCTIONS_H
#define FUNCTIONS_H

/* Hooked in hooks.c: counted, and made to fail, stall or lie by the rules. */
#define HOOKED(X) \
    X(clGetPlatformIDs) \
    X(clGetPlatformInfo) \
    X(clGetDeviceIDs) \
    X(clGetDeviceInfo) \
    X(clCreateContext) \
    X(clReleaseContext) \
    X(clCreateCommandQueue) \
    X(clReleaseCommandQueue) \
    X(clCreateBuffer) \
    X(clCreateImage) \
    X(clReleaseMemObject) \
    X(clSVMAlloc) \
    X(clSVMFree) \
    X(clCreateProgramWithSource) \
    X(clCreateProgramWithBinary) \
    X(clBuildProgram) \
    X(clGetProgramBuildInfo) \
    X(clReleaseProgram) \
    X(clCreateKernel) \
    X(clSetKernelArg) \
    X(clGetKernelWorkGroupInfo) \
    X(clReleaseKernel) \
    X(clEnqueueNDRangeKernel) \
    X(clEnqueueReadBuffer) \
    X(clEnqueueWriteBuffer) \
    X(clEnqueueFillBuffer) \
    X(clEnqueueCopyBuffer) \
    X(clEnqueueCopyBufferRect) \
    X(clEnqueueMapBuffer) \
    X(clEnqueueUnmapMemObject) \
    X(clEnqueueMarkerWithWaitList) \
    X(clFlush) \
    X(clWaitForEvents) \
    X(clGetEventInfo) \
    X(clGetEventProfilingInfo) \
    X(clReleaseEvent)

/* Passed to the driver, each with the reason. */
#define PASSED(X) \
    X(clGetExtensionFunctionAddress) /* the loader asks drivers for it before any element does */ \
    X(clGetProgramInfo) /* a compiled program that is not kept costs time only */

#endif
