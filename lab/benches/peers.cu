// CUB and NPP as contestants; answers the same requests as benches/worker.
//
//   nvcc -O3 -std=c++17 -arch=native benches/peers.cu -lnppif -lnppicc -lnppc -o peers-cuda
//
// A request is a line of JSON on stdin, its answer a line of JSON on stdout. Frames are resident.
// `device` times come from CUDA events; `wall` is from the call until the stream is done.

#include <cub/cub.cuh>
#include <cuda/std/array>
#include <nppcore.h>
#include <nppi_color_conversion.h>
#include <nppi_filtering_functions.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// A contestant that cannot take part here; not a failure.
struct Skip : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void check(cudaError_t code, const char *call)
{
    if (code != cudaSuccess)
        throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(code));
}

void check(NppStatus code, const char *call)
{
    // Positive codes are warnings, such as a region cut to the image.
    if (code != NPP_SUCCESS)
        throw std::runtime_error(std::string(call) + ": NppStatus " + std::to_string(int(code)));
}

#define CHECK(call) check((call), #call)

// A minimal reader suffices: requests hold each key once and no escapes.
std::string after(const std::string &line, const std::string &key)
{
    const size_t at = line.find("\"" + key + "\":");
    if (at == std::string::npos)
        return "";
    const size_t start = line.find_first_not_of(' ', at + key.size() + 3);
    return start == std::string::npos ? "" : line.substr(start);
}

std::string text(const std::string &line, const std::string &key)
{
    const std::string rest = after(line, key);
    return rest.empty() || rest[0] != '"' ? "" : rest.substr(1, rest.find('"', 1) - 1);
}

double number(const std::string &line, const std::string &key, double otherwise)
{
    const std::string rest = after(line, key);
    return rest.empty() ? otherwise : std::strtod(rest.c_str(), nullptr);
}

std::vector<int> numbers(const std::string &line, const std::string &key)
{
    std::vector<int> values;
    const std::string rest = after(line, key);
    if (rest.empty() || rest[0] != '[')
        return values;
    const char *at = rest.c_str() + 1;
    while (*at && *at != ']') {
        char *end;
        values.push_back(int(std::strtol(at, &end, 10)));
        if (end == at)
            throw std::runtime_error("a list of numbers was expected at " + key);
        at = end;
        while (*at == ',' || *at == ' ')
            at++;
    }
    return values;
}

class DeviceMemory {
  public:
    explicit DeviceMemory(size_t bytes) { CHECK(cudaMalloc(&memory, bytes ? bytes : 1)); }
    ~DeviceMemory() { cudaFree(memory); }
    DeviceMemory(const DeviceMemory &) = delete;
    DeviceMemory &operator=(const DeviceMemory &) = delete;
    uint8_t *get() const { return static_cast<uint8_t *>(memory); }

  private:
    void *memory = nullptr;
};

struct Frame {
    int width, height, channels;
    size_t stride, base;
    std::shared_ptr<DeviceMemory> memory;

    explicit Frame(const std::string &line)
        : width(int(number(line, "width", 0))), height(int(number(line, "height", 0))),
          channels(int(number(line, "channels", 1))), stride(size_t(number(line, "stride", 0))),
          base(size_t(number(line, "base", 0)))
    {
        const size_t row = size_t(width) * channels;
        std::vector<uint8_t> packed(row * height);
        std::unique_ptr<FILE, int (*)(FILE *)> file(fopen(text(line, "path").c_str(), "rb"), fclose);
        if (!file || fread(packed.data(), 1, packed.size(), file.get()) != packed.size())
            throw std::runtime_error("the picture cannot be read");
        memory = std::make_shared<DeviceMemory>(stride * height + base);
        CHECK(cudaMemcpy2D(first(), stride, packed.data(), row, row, height,
                           cudaMemcpyHostToDevice));
    }

    uint8_t *first() const { return memory->get() + base; }
};

struct Contestant {
    std::function<void()> run;
    std::function<std::vector<uint8_t>()> result;
};

// CUB takes cuda::std::array since 3.0 and took C arrays before; this calls whichever compiles.
template <class Pointers, class Numbers>
auto multi_histogram(int, void *temporary, size_t &bytes, const uint8_t *samples, Pointers counters,
                     Numbers levels, Numbers lower, Numbers upper, int pixels, int rows,
                     size_t stride)
    -> decltype(cub::DeviceHistogram::MultiHistogramEven<3, 3>(temporary, bytes, samples, counters,
                                                               levels, lower, upper, pixels, rows,
                                                               stride))
{
    return cub::DeviceHistogram::MultiHistogramEven<3, 3>(temporary, bytes, samples, counters,
                                                          levels, lower, upper, pixels, rows,
                                                          stride);
}

template <class Pointers, class Numbers>
cudaError_t multi_histogram(long, void *temporary, size_t &bytes, const uint8_t *samples,
                            Pointers counters, Numbers levels, Numbers lower, Numbers upper,
                            int pixels, int rows, size_t stride)
{
    return cub::DeviceHistogram::MultiHistogramEven<3, 3>(
        temporary, bytes, samples, counters.data(), levels.data(), lower.data(), upper.data(),
        pixels, rows, stride);
}

Contestant histogram(const std::string &line)
{
    const Frame frame(line);
    int x = 0, y = 0, width = frame.width, height = frame.height;
    const std::vector<int> region = numbers(line, "region");
    if (region.size() == 4 && region[2] > 0) {
        x = region[0];
        y = region[1];
        width = region[2];
        height = region[3];
    }
    const int bins = 256;
    auto counters = std::make_shared<DeviceMemory>(frame.channels * bins * sizeof(unsigned));
    const uint8_t *samples = frame.first() + y * frame.stride + x * frame.channels;
    auto count = [=](void *temporary, size_t &bytes) -> cudaError_t {
        auto *out = reinterpret_cast<unsigned *>(counters->get());
        if (frame.channels == 1)
            return cub::DeviceHistogram::HistogramEven(temporary, bytes, samples, out, bins + 1, 0,
                                                       bins, width, height, frame.stride);
        const cuda::std::array<unsigned *, 3> each = {out, out + bins, out + 2 * bins};
        const cuda::std::array<int, 3> levels = {bins + 1, bins + 1, bins + 1};
        const cuda::std::array<int, 3> lower = {0, 0, 0}, upper = {bins, bins, bins};
        return multi_histogram(0, temporary, bytes, samples, each, levels, lower, upper, width,
                               height, frame.stride);
    };
    size_t bytes = 0;
    CHECK(count(nullptr, bytes));
    auto temporary = std::make_shared<DeviceMemory>(bytes);
    return {[=] {
                size_t size = bytes;
                CHECK(count(temporary->get(), size));
            },
            [=] {
                std::vector<uint8_t> out(frame.channels * bins * sizeof(unsigned));
                CHECK(cudaMemcpy(out.data(), counters->get(), out.size(), cudaMemcpyDeviceToHost));
                return out;
            }};
}

NppStreamContext npp_context()
{
    NppStreamContext context = {};
    int device = 0;
    CHECK(cudaGetDevice(&device));
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, device));
    context.hStream = 0;
    context.nCudaDeviceId = device;
    context.nMultiProcessorCount = properties.multiProcessorCount;
    context.nMaxThreadsPerMultiProcessor = properties.maxThreadsPerMultiProcessor;
    context.nMaxThreadsPerBlock = properties.maxThreadsPerBlock;
    context.nSharedMemPerBlock = properties.sharedMemPerBlock;
    context.nCudaDevAttrComputeCapabilityMajor = properties.major;
    context.nCudaDevAttrComputeCapabilityMinor = properties.minor;
    context.nStreamFlags = 0;
    return context;
}

Contestant gaussian(const std::string &line)
{
    const int taps = int(number(line, "kernel-size", 3));
    if (taps != 3 && taps != 5)
        throw Skip("NPP is measured at 3x3 and 5x5");
    if (number(line, "sigma", 0) > 0)
        throw Skip("NPP derives sigma from the size");
    const Frame frame(line);
    auto out = std::make_shared<DeviceMemory>(frame.stride * frame.height);
    const NppStreamContext context = npp_context();
    const NppiMaskSize mask = taps == 3 ? NPP_MASK_SIZE_3_X_3 : NPP_MASK_SIZE_5_X_5;
    const NppiSize size = {frame.width, frame.height};
    const NppiPoint origin = {0, 0};
    return {[=] {
                auto filter = frame.channels == 1 ? nppiFilterGaussBorder_8u_C1R_Ctx
                                                  : nppiFilterGaussBorder_8u_C3R_Ctx;
                CHECK(filter(frame.first(), int(frame.stride), size, origin, out->get(),
                             int(frame.stride), size, mask, NPP_BORDER_REPLICATE, context));
            },
            [=] {
                const size_t row = size_t(frame.width) * frame.channels;
                std::vector<uint8_t> samples(row * frame.height);
                CHECK(cudaMemcpy2D(samples.data(), row, out->get(), frame.stride, row,
                                   frame.height, cudaMemcpyDeviceToHost));
                return samples;
            }};
}

Contestant unpack(const std::string &line)
{
    if (text(line, "packing") != "rggb" || text(line, "demosaic") == "gradient")
        throw Skip("NPP's Bayer filter is measured on rggb, bilinear");
    const Frame frame(line);
    const int row = 3 * frame.width;
    auto out = std::make_shared<DeviceMemory>(size_t(row) * frame.height);
    const NppStreamContext context = npp_context();
    const NppiSize size = {frame.width, frame.height};
    const NppiRect all = {0, 0, frame.width, frame.height};
    return {[=] {
                CHECK(nppiCFAToRGB_8u_C1C3R_Ctx(frame.first(), int(frame.stride), size, all, out->get(), row,
                                                NPPI_BAYER_RGGB, NPPI_INTER_UNDEFINED, context));
            },
            [=] {
                std::vector<uint8_t> samples(size_t(row) * frame.height);
                CHECK(cudaMemcpy(samples.data(), out->get(), samples.size(), cudaMemcpyDeviceToHost));
                return samples;
            }};
}

Contestant prepare(const std::string &line)
{
    const std::string who = text(line, "who"), task = text(line, "task");
    if (who == "cub" && task == "histogram")
        return histogram(line);
    if (who == "npp" && task == "gaussian")
        return gaussian(line);
    if (who == "npp" && task == "unpack")
        return unpack(line);
    throw Skip(who + " has no " + task);
}

std::string list(const std::vector<uint64_t> &values)
{
    std::string out = "[";
    for (uint64_t value : values)
        out += (out.size() > 1 ? "," : "") + std::to_string(value);
    return out + "]";
}

/// Keeps the device busy for so many cycles.
__global__ void busy(long long cycles)
{
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

/// Some 50 µs: until then a call is enqueued, so that the time between the events is that of the kernels alone.
const long long BUSY_CYCLES = 100000;

std::string measure(const Contestant &contestant, int times)
{
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    std::vector<uint64_t> wall, device;
    for (int i = 0; i < times; i++) {
        CHECK(cudaDeviceSynchronize());
        const auto started = std::chrono::steady_clock::now();
        contestant.run();
        CHECK(cudaDeviceSynchronize());
        const auto elapsed = std::chrono::steady_clock::now() - started;
        wall.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count());
        busy<<<1, 1>>>(BUSY_CYCLES);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(start));
        contestant.run();
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop));
        float milliseconds = 0;
        CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
        device.push_back(uint64_t(milliseconds * 1e6));
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    return "{\"wall\":" + list(wall) + ",\"device\":" + list(device) + "}";
}

std::string version(int packed)
{
    return std::to_string(packed / 1000) + "." + std::to_string(packed % 1000 / 10);
}

std::string hello()
{
    int runtime = 0, driver = 0;
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cudaDriverGetVersion(&driver));
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    const NppLibraryVersion *npp = nppGetLibVersion();
    return "{\"about\":{\"versions\":{\"CUDA\":\"" + version(runtime) + "\",\"CUDA driver\":\"" +
           version(driver) + "\",\"CUB\":\"" + std::to_string(CUB_MAJOR_VERSION) + "." +
           std::to_string(CUB_MINOR_VERSION) + "\",\"NPP\":\"" + std::to_string(npp->major) + "." +
           std::to_string(npp->minor) + "\"},\"cuda-device\":\"" + properties.name + "\"}}";
}

std::string quoted(std::string why)
{
    for (char &c : why)
        if (c == '"' || c == '\\' || uint8_t(c) < ' ')
            c = '\'';
    return "\"" + why + "\"";
}

std::string answer(const std::string &line, std::map<int, Contestant> &slots)
{
    const std::string operation = text(line, "op");
    const int slot = int(number(line, "slot", -1));
    if (operation == "hello")
        return hello();
    if (operation == "prepare") {
        slots[slot] = prepare(line);
    } else if (operation == "run") {
        return measure(slots.at(slot), int(number(line, "times", 1)));
    } else if (operation == "result") {
        const std::vector<uint8_t> bytes = slots.at(slot).result();
        std::unique_ptr<FILE, int (*)(FILE *)> file(fopen(text(line, "path").c_str(), "wb"), fclose);
        if (!file || fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size())
            throw std::runtime_error("the result cannot be written");
    } else if (operation == "drop") {
        slots.erase(slot);
    } else {
        throw std::runtime_error("what is " + operation + "?");
    }
    return "{}";
}

} // namespace

int main()
{
    std::map<int, Contestant> slots;
    std::string line;
    while (std::getline(std::cin, line)) {
        std::string reply;
        try {
            reply = answer(line, slots);
        } catch (const Skip &why) {
            reply = "{\"skip\":" + quoted(why.what()) + "}";
        } catch (const std::exception &why) {
            reply = "{\"error\":" + quoted(why.what()) + "}";
        }
        std::cout << reply << std::endl;
    }
}
