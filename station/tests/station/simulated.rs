//! aravis' simulated GigE Vision camera.

use std::{
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use clinspect_testkit::{
    camera::{self, CONTROL_PORT, Network, Simulated, visible},
    tools::{Sandbox, has_device},
};

use crate::process::{Station, program};

/// By which a station finds it.
pub const NAME: &str = "Aravis-Fake-GV01";
/// Mono8 in the pixel format naming convention.
const MONO8: u32 = 0x0108_0001;
/// Registers of the user output, of which the simulated camera knows nothing.
const USER_OUTPUT_SELECTOR: u32 = 0x8000;
const USER_OUTPUT_VALUE: u32 = 0x8004;
const TRIGGER_MODE: u32 = 0x300;
const TRIGGER_SOURCE: u32 = 0x304;

/// The table of the simulated camera in a station's file, with these keys.
pub fn gige_camera(name: &str, keys: &str) -> String {
    format!("[[camera]]\nname = \"{name}\"\naravis = \"{NAME}\"\n{keys}\n")
}

/// Starts a camera with these pixel formats, given with their code in the naming convention.
pub fn with_formats(sandbox: &Sandbox, formats: &[(&str, u32)]) -> Simulated {
    let description = sandbox.path().join("camera.xml");
    fs::write(&description, describe(formats)).unwrap();
    Simulated::start(&["-g", description.to_str().unwrap()])
}

/// Starts a camera with a user output, and with a trigger by software. It takes 25 frames a second without one.
pub fn with_output(sandbox: &Sandbox) -> Simulated {
    with_formats(sandbox, &[("Mono8", MONO8)])
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
        "TriggerMode",
        "TriggerSource",
        "TriggerSoftware",
        "UserOutputSelector",
        "UserOutputValue",
    ];
    let enumeration = |name: &str, entries: [&str; 2], address: u32| {
        let entries = entries.iter().enumerate();
        let entries = entries.map(|(value, name)| {
            format!("<EnumEntry Name=\"{name}\"><Value>{value}</Value></EnumEntry>")
        });
        format!(
            "<Enumeration Name=\"{name}\">{}<pValue>{name}Register</pValue></Enumeration>\n{}",
            entries.collect::<String>(),
            register(&format!("{name}Register"), address)
        )
    };
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
        enumeration("TriggerMode", ["Off", "On"], TRIGGER_MODE),
        enumeration("TriggerSource", ["Line0", "Software"], TRIGGER_SOURCE),
        "<Command Name=\"TriggerSoftware\"><pValue>Trigger</pValue><CommandValue>1</CommandValue></Command>\n"
            .to_owned(),
        register("Trigger", 0x30c),
        enumeration(
            "UserOutputSelector",
            ["UserOutput0", "UserOutput1"],
            USER_OUTPUT_SELECTOR,
        ),
        "<Boolean Name=\"UserOutputValue\"><pValue>UserOutput</pValue><OnValue>1</OnValue><OffValue>0</OffValue>\
         </Boolean>\n"
            .to_owned(),
        register("UserOutput", USER_OUTPUT_VALUE),
        "<IntSwissKnife Name=\"PayloadSize\"><pVariable Name=\"W\">Width</pVariable><pVariable Name=\"H\">Height\
         </pVariable><pVariable Name=\"F\">PixelFormat</pVariable><Formula>W * H * ((F &gt;&gt; 16) &amp; 0xff) / 8\
         </Formula></IntSwissKnife>\n<Port Name=\"Device\"/>\n</RegisterDescription>\n"
            .to_owned(),
    ]
    .concat()
}

/// The level of the camera's user output; `None` if the camera does not answer.
pub fn user_output() -> Option<bool> {
    read(USER_OUTPUT_VALUE).map(|value| value == 1)
}

/// `TriggerMode` and `TriggerSource` of the camera: 0 and 0 are Off and Line0, 1 and 1 On and Software.
pub fn trigger() -> [Option<u8>; 2] {
    [TRIGGER_MODE, TRIGGER_SOURCE].map(read)
}

/// Reads a register without the station, its last byte: a packet READREG of GigE Vision, and its answer.
fn read(register: u32) -> Option<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let limit = Some(Duration::from_millis(500));
    socket.set_read_timeout(limit).unwrap();
    // Key, flag of a command that wants an answer, READREG, length, number of the request.
    let mut packet = vec![0x42, 0x01, 0x00, 0x80, 0x00, 0x04, 0x00, 0x01];
    packet.extend(register.to_be_bytes());
    socket.send_to(&packet, ("127.0.0.1", CONTROL_PORT)).ok()?;
    let mut answer = [0; 64];
    let length = socket.recv(&mut answer).ok()?;
    // Status, READREG's answer, length, number of the request, value.
    assert_eq!(answer[..8], [0, 0, 0, 0x81, 0, 4, 0, 1], "{answer:?}");
    assert_eq!(length, 12);
    Some(answer[11])
}

/// A network for the simulated camera, and a device that inspects the frames; `None` as for [`camera::network`].
pub fn network_and_device() -> Option<Network> {
    if !has_device() {
        return None;
    }
    camera::network()
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
