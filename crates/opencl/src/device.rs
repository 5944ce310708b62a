//! The devices, and which one a user means.

use std::cmp::Reverse;

use opencl3::{
    device::{
        CL_DEVICE_AVAILABLE, CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV,
        CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, CL_DEVICE_ENDIAN_LITTLE, CL_DEVICE_EXTENSIONS,
        CL_DEVICE_HOST_UNIFIED_MEMORY, CL_DEVICE_IMAGE_SUPPORT, CL_DEVICE_IMAGE2D_MAX_HEIGHT,
        CL_DEVICE_IMAGE2D_MAX_WIDTH, CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_MAX_COMPUTE_UNITS,
        CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_MAX_WORK_ITEM_SIZES,
        CL_DEVICE_NAME, CL_DEVICE_SVM_CAPABILITIES, CL_DEVICE_SVM_FINE_GRAIN_BUFFER,
        CL_DEVICE_TYPE, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU,
        CL_DEVICE_VERSION, CL_DRIVER_VERSION, get_device_ids, get_device_info,
    },
    platform::platform::{
        CL_PLATFORM_NAME, CL_PLATFORM_VERSION, get_platform_ids, get_platform_info,
    },
    types::{cl_device_id, cl_device_info},
};

use super::{
    handle::{CAT, NO_LIBRARY, call_error},
    pocl,
    sync::{Guard, Lock, Rank},
};
use clinspect_core::ClError;
use clinspect_core::{device_caps::DeviceCaps, selector::DeviceSelector};

/// CL_PLATFORM_NOT_FOUND_KHR: a loader without any driver.
const NO_PLATFORM: i32 = -1001;
/// CL_DEVICE_NOT_FOUND: a platform without devices.
const NO_DEVICE: i32 = -1;

/// Part of the name of PoCL's platform.
const POCL: &str = "Portable Computing Language";
/// The name of the platform of NVIDIA's driver.
const NVIDIA: &str = "NVIDIA CUDA";

/// How names of PoCL's devices begin that run a command in the thread that enqueues it: PoCL 3.1 and PoCL 6.
const POCL_INLINE: [&str; 2] = ["basic", "cpu-minimal"];

const HOW_TO_GET_A_DEVICE: &str = "install your GPU's OpenCL driver, or the package \
     pocl-opencl-icd to use the CPU (clinfo lists the devices; PoCL has none unless it can \
     write to its cache folder: set POCL_CACHE_DIR to a writable folder)";

static DRIVER: Lock<()> = Lock::new(Rank::Driver, ());

/// Locks device enumeration, the creation of contexts and the build of programs: PoCL fails if
/// several threads initialise it at once, or if one initialises it while another compiles. A thread
/// that finds an existing context or program needs no lock and does not wait for a compiler.
pub(super) fn lock_driver() -> Guard<'static, ()> {
    DRIVER.lock()
}

/// A device and what it can do.
#[derive(Debug, Clone)]
pub struct DeviceInfo {
    pub(super) id: cl_device_id,
    /// The name that the driver reports.
    pub name: String,
    /// The device is a GPU.
    pub is_gpu: bool,
    /// The name of the platform, which is the driver's product.
    pub platform: String,
    /// The version of the platform.
    pub platform_version: String,
    /// The OpenCL version of the device and the driver's own text after it.
    pub version: String,
    /// The version of the driver.
    pub driver_version: String,
    /// The device's limits.
    pub caps: DeviceCaps,
    /// The driver is PoCL.
    pub(super) is_pocl: bool,
}

impl DeviceInfo {
    /// Whether the driver keeps compiled programs in files of its own.
    pub(super) fn keeps_programs(&self) -> bool {
        self.is_pocl || self.platform.starts_with(NVIDIA)
    }

    /// The device with all versions; compiled programs of one device are of no use to any other.
    pub(super) fn identity(&self) -> String {
        let Self {
            name,
            platform,
            platform_version,
            version,
            driver_version,
            ..
        } = self;
        format!("{platform}; {platform_version}; {name}; {version}; {driver_version}")
    }

    /// The device and its driver, for messages.
    pub(super) fn label(&self) -> String {
        let Self {
            name,
            platform,
            driver_version,
            ..
        } = self;
        format!("{name}, {platform} {driver_version}")
    }

    /// Whether a kernel that fails ends its context, so that every later command fails too. Then a command need not
    /// wait for one before it in its queue to fail with it, which on NVIDIA costs up to a fifth of a frame's calls.
    pub(super) fn fails_whole(&self) -> bool {
        self.platform.starts_with(NVIDIA)
    }

    /// Whether a command runs in the thread that enqueues it.
    pub(super) fn runs_inline(&self) -> bool {
        self.is_pocl && POCL_INLINE.iter().any(|kind| self.name.starts_with(kind))
    }

    /// Whether each processor of this process has a thread of PoCL for this device.
    pub(super) fn has_pinned_workers(&self) -> bool {
        self.is_pocl && !self.runs_inline() && pocl::has_pinned_threads()
    }
}

// SAFETY: a root device's id stays valid for the process and needs no release (OpenCL 1.2, 4.3).
unsafe impl Send for DeviceInfo {}
// SAFETY: as above; queries are thread-safe.
unsafe impl Sync for DeviceInfo {}

/// Every device of every platform: CPUs last, those with the most compute units first, otherwise in the loader's
/// order.
///
/// The caller holds [`lock_driver`].
///
/// # Errors
/// [`ClError::Unavailable`] with what to install if there is no device.
pub(super) fn enumerate() -> Result<Vec<DeviceInfo>, ClError> {
    let platforms = get_platform_ids().map_err(|code| match code {
        NO_LIBRARY => ClError::Unavailable(format!(
            "the OpenCL library libOpenCL.so.1 cannot be loaded: install the package \
             ocl-icd-libopencl1, and {HOW_TO_GET_A_DEVICE}"
        )),
        NO_PLATFORM => ClError::Unavailable(format!(
            "no OpenCL driver is installed: {HOW_TO_GET_A_DEVICE}"
        )),
        _ => call_error("clGetPlatformIDs", code, "the OpenCL loader"),
    })?;
    let mut found = Vec::new();
    let mut unusable = Vec::new();
    for platform in platforms {
        let get = |what| get_platform_info(platform, what).map(|info| text(&info.to_vec_uchar()));
        let platform_name = match get(CL_PLATFORM_NAME) {
            Ok(name) => name,
            Err(code) => {
                unusable.push(call_error("clGetPlatformInfo", code, "a platform").to_string());
                continue;
            }
        };
        let platform_version = get(CL_PLATFORM_VERSION).unwrap_or_default();
        let is_pocl = platform_name.contains(POCL);
        let get_ids = || get_device_ids(platform, CL_DEVICE_TYPE_ALL);
        let ids = if is_pocl {
            pocl::with_pinned_threads(get_ids)
        } else {
            get_ids()
        };
        let ids = match ids {
            Ok(ids) => ids,
            Err(NO_DEVICE) => continue,
            Err(code) => {
                unusable.push(call_error("clGetDeviceIDs", code, "a platform").to_string());
                continue;
            }
        };
        for id in ids {
            match describe(id, [&platform_name, &platform_version], is_pocl) {
                Ok(device) => found.push(device),
                Err(error) => unusable.push(error.to_string()),
            }
        }
    }
    for reason in &unusable {
        gst::warning!(CAT, "ignoring a device: {reason}");
    }
    if found.is_empty() {
        let reasons = if unusable.is_empty() {
            String::new()
        } else {
            format!(" ({})", unusable.join("; "))
        };
        return Err(ClError::Unavailable(format!(
            "no usable OpenCL device was found{reasons}: {HOW_TO_GET_A_DEVICE}"
        )));
    }
    // `auto` and `cpu` take the first one. PoCL may list its device of one thread before the one of all processors.
    found.sort_by_key(|device| match device.caps.is_cpu {
        false => (0, Reverse(0)),
        true => (1, Reverse(device.caps.compute_units)),
    });
    Ok(found)
}

/// A text of the driver.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_matches(['\0', ' ']).to_owned()
}

/// Reads a device's limits.
///
/// # Errors
/// [`ClError::Refused`] for a device that cannot run the kernels; the failing call.
fn describe(id: cl_device_id, platform: [&str; 2], is_pocl: bool) -> Result<DeviceInfo, ClError> {
    let get = |what: cl_device_info| {
        get_device_info(id, what).map_err(|code| call_error("clGetDeviceInfo", code, "a device"))
    };
    let name = text(&get(CL_DEVICE_NAME)?.to_vec_uchar());
    // The kernels read bytes and words of the same memory.
    for (trait_of_it, lacks) in [
        (CL_DEVICE_AVAILABLE, "is not available"),
        (CL_DEVICE_COMPILER_AVAILABLE, "has no compiler"),
        (CL_DEVICE_ENDIAN_LITTLE, "is big-endian"),
    ] {
        if get(trait_of_it)?.to_uint() == 0 {
            return Err(ClError::Refused(format!("{name} {lacks}")));
        }
    }
    let kind = get(CL_DEVICE_TYPE)?.to_ulong();
    let items = get(CL_DEVICE_MAX_WORK_ITEM_SIZES)?.to_vec_size();
    let item = |i: usize| items.get(i).copied().unwrap_or(1).max(1);
    let has_images = get(CL_DEVICE_IMAGE_SUPPORT)?.to_uint() != 0;
    let is_cpu = kind & CL_DEVICE_TYPE_CPU != 0;
    Ok(DeviceInfo {
        id,
        name,
        platform: platform[0].to_owned(),
        platform_version: platform[1].to_owned(),
        version: text(&get(CL_DEVICE_VERSION)?.to_vec_uchar()),
        driver_version: text(&get(CL_DRIVER_VERSION)?.to_vec_uchar()),
        is_pocl,
        is_gpu: kind & CL_DEVICE_TYPE_GPU != 0,
        caps: DeviceCaps {
            is_cpu,
            shares_host_memory: is_cpu || get(CL_DEVICE_HOST_UNIFIED_MEMORY)?.to_uint() != 0,
            shares_results: is_cpu && has_fine_grained_memory(id),
            compute_units: get(CL_DEVICE_MAX_COMPUTE_UNITS)?.to_uint().max(1) as usize,
            max_work_group: get(CL_DEVICE_MAX_WORK_GROUP_SIZE)?.to_size().max(1),
            max_work_item: [item(0), item(1), item(2)],
            local_memory: get(CL_DEVICE_LOCAL_MEM_SIZE)?.to_ulong(),
            max_allocation: get(CL_DEVICE_MAX_MEM_ALLOC_SIZE)?.to_ulong(),
            has_dot4: has_dot4(id),
            max_image: if has_images {
                [
                    get(CL_DEVICE_IMAGE2D_MAX_WIDTH)?.to_size(),
                    get(CL_DEVICE_IMAGE2D_MAX_HEIGHT)?.to_size(),
                ]
            } else {
                [0, 0]
            },
        },
    })
}

/// Whether host and device may use the same memory in turns, without a map. Drivers before OpenCL 2.0 do not know
/// the query.
fn has_fine_grained_memory(id: cl_device_id) -> bool {
    let capabilities = get_device_info(id, CL_DEVICE_SVM_CAPABILITIES);
    capabilities.is_ok_and(|info| info.to_ulong() & CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0)
}

/// An NVIDIA GPU of compute capability 6.1 or later.
fn has_dot4(id: cl_device_id) -> bool {
    let extensions = get_device_info(id, CL_DEVICE_EXTENSIONS).map(|info| info.to_vec_uchar());
    let extensions = extensions.unwrap_or_default();
    // Drivers of other vendors do not know these queries.
    if !String::from_utf8_lossy(&extensions).contains("cl_nv_device_attribute_query") {
        return false;
    }
    let number = |what| get_device_info(id, what).map(|info| info.to_uint()).ok();
    let version = (
        number(CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV),
        number(CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV),
    );
    matches!(version, (Some(major), Some(minor)) if (major, minor) >= (6, 1))
}

/// Every usable device, in the order that `gpu:N` and `cpu:N` count them.
///
/// # Errors
/// [`ClError::Unavailable`] with what to install if there is no device.
pub fn devices() -> Result<Vec<DeviceInfo>, ClError> {
    let _driver = lock_driver();
    enumerate()
}

/// The value of the property `device` that selects each device: gpu:N, cpu:N, or the name of a device
/// that is neither.
pub fn selectors(devices: &[DeviceInfo]) -> Vec<String> {
    let (mut gpus, mut cpus) = (0.., 0..);
    let mut number = |device: &DeviceInfo| match (device.is_gpu, device.caps.is_cpu) {
        (true, _) => gpus.next().map(|n| format!("gpu:{n}")),
        (_, true) => cpus.next().map(|n| format!("cpu:{n}")),
        _ => None,
    };
    let selector = |device: &DeviceInfo| number(device).unwrap_or_else(|| device.name.clone());
    devices.iter().map(selector).collect()
}

pub(super) fn choose(selector: &DeviceSelector, devices: &[DeviceInfo]) -> Option<usize> {
    let list: Vec<(String, bool, bool)> = devices
        .iter()
        .map(|d| (d.name.clone(), d.is_gpu, d.caps.is_cpu))
        .collect();
    selector.choose(&list)
}

/// The error of a device that cannot be opened. A PC without its GPU can inspect on the CPU.
pub(super) fn not_opened(error: ClError, device: &DeviceInfo, devices: &[DeviceInfo]) -> ClError {
    if device.caps.is_cpu {
        return error;
    }
    let instead = match devices.iter().find(|device| device.caps.is_cpu) {
        Some(cpu) => format!("set device=cpu to inspect on {}", cpu.name),
        None => {
            "install the package pocl-opencl-icd and set device=cpu to inspect on the CPU".into()
        }
    };
    ClError::Unavailable(format!(
        "{} cannot be opened ({error}): end other programs that use it, update its driver ({}), or {instead}",
        device.name, device.platform
    ))
}

pub(super) fn not_found(selector: &str, devices: &[DeviceInfo]) -> ClError {
    let listed = selectors(devices).into_iter().zip(devices);
    let names: Vec<String> = listed
        .map(|(selector, device)| format!("{selector} ({})", device.name))
        .collect();
    ClError::Unavailable(format!(
        "no OpenCL device matches device={selector}; available: {}. Set device (or CLINSPECT_DEVICE, \
         its default) to auto, to one of these or to part of a name; if a GPU is missing, install its \
         OpenCL driver",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, is_cpu: bool) -> DeviceInfo {
        DeviceInfo {
            id: std::ptr::null_mut(),
            name: name.into(),
            is_gpu: !is_cpu,
            platform: "Vendor's OpenCL".into(),
            platform_version: String::new(),
            version: String::new(),
            driver_version: String::new(),
            caps: DeviceCaps {
                is_cpu,
                shares_host_memory: is_cpu,
                shares_results: false,
                compute_units: 4,
                max_work_group: 256,
                max_work_item: [256; 3],
                local_memory: 1 << 15,
                max_allocation: 1 << 30,
                has_dot4: false,
                max_image: [0, 0],
            },
            is_pocl: is_cpu,
        }
    }

    #[test]
    fn gpu_that_cannot_be_opened_names_the_cpu() {
        let (gpu, cpu) = (device("a GPU", false), device("a CPU", true));
        let failed = || call_error("clCreateContext", -5, "a GPU");
        let text =
            |device, devices: &[DeviceInfo]| not_opened(failed(), device, devices).to_string();
        let beside_a_cpu = text(&gpu, &[gpu.clone(), cpu.clone()]);
        for part in [
            "a GPU cannot be opened (clCreateContext failed",
            "update its driver (Vendor's OpenCL)",
            "set device=cpu to inspect on a CPU",
        ] {
            assert!(beside_a_cpu.contains(part), "{beside_a_cpu}");
        }
        let alone = text(&gpu, std::slice::from_ref(&gpu));
        assert!(
            alone.contains("pocl-opencl-icd and set device=cpu"),
            "{alone}"
        );
        // A CPU is not its own way out.
        assert_eq!(not_opened(failed(), &cpu, &[gpu, cpu.clone()]), failed());
    }
}
