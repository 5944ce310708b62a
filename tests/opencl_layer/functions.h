/* The OpenCL functions that the layer knows. A function that is in neither list ends the process
 * with its name, so that a new call of the plugin cannot be forgotten. */

#ifndef FUNCTIONS_H
#define FUNCTIONS_H

/* Counted, and made to fail, stall or lie as the rules say; hooks.c. */
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
    X(clCreateProgramWithSource) \
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
    X(clEnqueueMapBuffer) \
    X(clEnqueueUnmapMemObject) \
    X(clFlush) \
    X(clWaitForEvents) \
    X(clGetEventInfo) \
    X(clGetEventProfilingInfo) \
    X(clReleaseEvent)

/* Go straight to the driver, each for a reason. */
#define PASSED(X) \
    X(clGetExtensionFunctionAddress) /* the loader asks drivers for it before any element does */

#endif
