//! aravis' simulated GigE Vision camera.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use clinspect_testkit::tools::{Sandbox, exists, skip};

use crate::process::{Station, program};

const CAMERA: &str = "arv-fake-gv-camera-0.8";
/// UDP port of the GigE Vision control protocol.
const CONTROL_PORT: u16 = 3956;

/// The process of the simulated camera; ends with the test.
pub struct Simulated(Child);

impl Simulated {
    /// Starts the camera as it is.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a camera with these pixel formats, given with their code in the naming convention.
    pub fn with_formats(sandbox: &Sandbox, formats: &[(&str, u32)]) -> Self {
        let description = sandbox.path().join("camera.xml");
        fs::write(&description, describe(formats)).unwrap();
        Self::start_with(&["-g", description.to_str().unwrap()])
    }

    /// Starts a camera with these arguments.
    pub fn start_with(arguments: &[&str]) -> Self {
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", CAMERA, "-i", "127.0.0.1"])
            .args(arguments)
            // It complains of formats into which it draws nothing.
            .env_remove("G_DEBUG")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(process.unwrap())
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a camera says of itself: features at the registers of the simulated camera. Of formats that this camera does
/// not draw it sends frames of the right size with bytes that mean nothing.
fn describe(formats: &[(&str, u32)]) -> String {
    let entries = formats.iter().map(|(name, code)| {
        format!("<EnumEntry Name=\"{name}\"><Value>{code}</Value></EnumEntry>\n")
    });
    let register = |name: &str, address: u32| {
        format!(
            "<IntReg Name=\"{name}\"><Address>{address}</Address><Length>4</Length><AccessMode>RW</AccessMode>\
             <pPort>Device</pPort><Sign>Unsigned</Sign><Endianess>BigEndian</Endianess></IntReg>\n"
        )
    };
    let length = |name: &str, address: u32| {
        format!(
            "<Integer Name=\"{name}\"><pValue>{name}Register</pValue><Min>1</Min><Max>2048</Max></Integer>\n{}",
            register(&format!("{name}Register"), address)
        )
    };
    let command = |name: &str, value: u32| {
        format!(
            "<Command Name=\"{name}\"><pValue>Acquisition</pValue><CommandValue>{value}</CommandValue></Command>\n"
        )
    };
    let features = [
        "Width",
        "Height",
        "PixelFormat",
        "AcquisitionMode",
        "PayloadSize",
    ];
    let features = features.map(|name| format!("<pFeature>{name}</pFeature>"));
    [
        "<RegisterDescription ModelName=\"Fake\" VendorName=\"Aravis\" SchemaMajorVersion=\"1\" \
         SchemaMinorVersion=\"0\" SchemaSubMinorVersion=\"1\" MajorVersion=\"1\" MinorVersion=\"0\" \
         SubMinorVersion=\"0\" ProductGuid=\"0\" VersionGuid=\"0\" StandardNameSpace=\"GEV\" \
         xmlns=\"http://www.genicam.org/GenApi/Version_1_0\">\n"
            .to_owned(),
        format!("<Category Name=\"Root\">{}</Category>\n", features.concat()),
        length("Width", 0x100),
        length("Height", 0x104),
        format!(
            "<Enumeration Name=\"PixelFormat\">{}<pValue>Format</pValue></Enumeration>\n",
            entries.collect::<String>()
        ),
        register("Format", 0x128),
        "<Enumeration Name=\"AcquisitionMode\"><EnumEntry Name=\"Continuous\"><Value>1</Value></EnumEntry>\
         <pValue>Mode</pValue></Enumeration>\n"
            .to_owned(),
        register("Mode", 0x12c),
        command("AcquisitionStart", 1),
        command("AcquisitionStop", 0),
        register("Acquisition", 0x124),
        "<IntSwissKnife Name=\"PayloadSize\"><pVariable Name=\"W\">Width</pVariable><pVariable Name=\"H\">Height\
         </pVariable><pVariable Name=\"F\">PixelFormat</pVariable><Formula>W * H * ((F &gt;&gt; 16) &amp; 0xff) / 8\
         </Formula></IntSwissKnife>\n<Port Name=\"Device\"/>\n</RegisterDescription>\n"
            .to_owned(),
    ]
    .concat()
}

/// True if a socket on this machine is bound to the UDP port.
fn is_bound(port: u16) -> bool {
    let sockets = fs::read_to_string("/proc/net/udp").unwrap();
    sockets.contains(&format!(":{port:04X} "))
}

/// The right to use the simulated camera: one at a time, and tests/camera.rs takes the same lock. `None`, with a
/// reason, if a program is missing.
pub fn alone() -> Option<File> {
    for tool in [CAMERA, "capsh", "setpriv"] {
        if !exists(tool) {
            skip(&format!("{tool} is not installed"));
            return None;
        }
    }
    let lock = File::create(std::env::temp_dir().join("clinspect-camera.lock")).unwrap();
    lock.lock().unwrap();
    assert!(!is_bound(CONTROL_PORT), "another camera is running");
    Some(lock)
}

/// A station that can receive frames of the simulated camera.
pub fn station(sandbox: &Sandbox, cameras: &str) -> Station {
    let file: PathBuf = sandbox.path().join("station.toml");
    fs::write(&file, format!("listen = \"127.0.0.1:0\"\n{cameras}")).unwrap();
    Station::run(&mut command(&file), file)
}

fn command(file: &Path) -> Command {
    let mut command = Command::new("setpriv");
    visible(
        &mut command,
        &format!("exec {} {}", program(), file.display()),
    );
    command
}

/// Lets `setpriv` run a line of the shell that sees the simulated camera: aravis uses raw sockets if it may, and raw
/// sockets see no loopback traffic.
pub fn visible<'a>(command: &'a mut Command, line: &str) -> &'a mut Command {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    command.args(["--pdeathsig", "KILL"]);
    if is_root {
        command.args(["capsh", "--drop=cap_net_raw", "--"]);
    } else {
        command.arg("sh");
    }
    command.args(["-c", line])
}
