"""CV-CUDA as a contestant of peers.py: frames are resident, times of the device come from CUDA events."""

import ctypes
import time

import numpy as np

try:
    import cvcuda
except ImportError:
    cvcuda = None

# Calls between two events. They are enqueued while the device is busy with something else, so that it never waits for
# Python between them.
BATCH = 8
# Memory that the device fills meanwhile, and how often for each call of a batch: 0.1 ms or more a fill.
BUSY_BYTES = 1 << 28
FILLS_PER_CALL = 2


class Driver:
    """The part of CUDA's driver interface that is needed, on the first device."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: CUDA error {code}")

    def event(self):
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event


class Memory:
    """Zeros on the device, seen as an array by `shape`, `strides` (bytes) and a first element `base` bytes in."""

    def __init__(self, driver, size, shape, strides, typestr="|u1", base=0):
        self.driver, self.size, self.base = driver, size, base
        self.pointer = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(self.pointer), ctypes.c_size_t(size))
        self.clear()
        self.__cuda_array_interface__ = {
            "version": 3, "shape": shape, "strides": strides, "typestr": typestr,
            "data": (self.pointer.value + base, False),
        }

    def __del__(self):
        self.driver.library.cuMemFree_v2(self.pointer)

    def clear(self):
        self.driver.call("cuMemsetD8_v2", self.pointer, ctypes.c_ubyte(0), ctypes.c_size_t(self.size))

    def write(self, array):
        array = np.ascontiguousarray(array)
        self.driver.call("cuMemcpyHtoD_v2", self.pointer, ctypes.c_void_p(array.ctypes.data),
                         ctypes.c_size_t(array.nbytes))

    def read(self):
        array = np.empty(self.size, np.uint8)
        self.driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), self.pointer,
                         ctypes.c_size_t(self.size))
        return array


class Timed:
    """A call that is timed on the device too."""

    def __init__(self, driver, stream, call):
        self.driver, self.call = driver, call
        self.handle = ctypes.c_void_p(stream.handle)
        self.busy = Memory(driver, BUSY_BYTES, (BUSY_BYTES,), (1,))
        self.events = driver.event(), driver.event()
        # The first call allocates.
        self.once()

    def once(self):
        self.call()
        self.driver.call("cuStreamSynchronize", self.handle)

    def measure(self, times):
        wall = []
        for _ in range(times):
            started = time.perf_counter_ns()
            self.once()
            wall.append(time.perf_counter_ns() - started)
        return {"wall": wall, "device": [self.on_device() for _ in range(max(times // BATCH, 1))]}

    def on_device(self):
        """Mean time of a call, ns."""
        driver, (start, stop) = self.driver, self.events
        for _ in range(FILLS_PER_CALL * BATCH):
            driver.call("cuMemsetD8Async", self.busy.pointer, ctypes.c_ubyte(0), ctypes.c_size_t(BUSY_BYTES),
                        self.handle)
        # The fills have evicted the frame from the caches; this call reads it again.
        self.call()
        driver.call("cuEventRecord", start, self.handle)
        for _ in range(BATCH):
            self.call()
        driver.call("cuEventRecord", stop, self.handle)
        driver.call("cuEventSynchronize", stop)
        milliseconds = ctypes.c_float()
        driver.call("cuEventElapsedTime", ctypes.byref(milliseconds), start, stop)
        return round(milliseconds.value * 1e6 / BATCH)


def opened():
    return Driver(), cvcuda.Stream()


def histogram(array, settings):
    """The counts of each channel. The library counts grey frames, so those of colour are given as planes."""
    x, y, width, height = settings.get("region", [0, 0, 0, 0])
    view = array if width == 0 else array[y : y + height, x : x + width]
    planes = np.ascontiguousarray(view[None] if view.ndim == 2 else view.transpose(2, 0, 1))
    count, height, width = planes.shape
    driver, stream = opened()
    memory = Memory(driver, planes.nbytes, (count, height, width, 1), (height * width, width, 1, 1))
    memory.write(planes)
    bins = Memory(driver, count * 1024, (count, 256, 1), (1024, 4, 4), "<i4")
    source, target = cvcuda.as_tensor(memory, "NHWC"), cvcuda.as_tensor(bins, "HWC")
    run = Timed(driver, stream, lambda: cvcuda.histogram_into(target, source, stream=stream))

    def result():
        # Some versions add to part of the bins of the call before.
        bins.clear()
        run.once()
        return bins.read().tobytes()

    return run, result


def gaussian(array, settings):
    taps, sigma = settings.get("kernel-size", 3), settings.get("sigma", 0)
    # cv2's rule; CV-CUDA has none.
    sigma = sigma or 0.3 * ((taps - 1) * 0.5 - 1) + 0.8
    height, width = array.shape[:2]
    channels = 1 if array.ndim == 2 else array.shape[2]
    stride, base = array.strides[0], array.ctypes.data % 4096
    driver, stream = opened()
    size, shape, strides = base + stride * height, (height, width, channels), (stride, channels, 1)
    source = Memory(driver, size, shape, strides, base=base)
    target = Memory(driver, size, shape, strides, base=base)
    rows = np.zeros((height, stride), np.uint8)
    rows[:, : width * channels] = array.reshape(height, -1)
    source.write(np.concatenate([np.zeros(base, np.uint8), rows.ravel()]))
    tensors = cvcuda.as_tensor(target, "HWC"), cvcuda.as_tensor(source, "HWC")
    run = Timed(driver, stream, lambda: cvcuda.gaussian_into(
        *tensors, (taps, taps), (sigma, sigma), cvcuda.Border.REPLICATE, stream=stream))

    def result():
        rows = target.read()[base:].reshape(height, stride)
        return np.ascontiguousarray(rows[:, : width * channels]).tobytes()

    return run, result


CONTESTANTS = {("cv-cuda", "histogram"): histogram, ("cv-cuda", "gaussian"): gaussian}
