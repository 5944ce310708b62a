//! A Modbus client, byte by byte.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread::sleep,
    time::{Duration, Instant},
};

/// Longest wait for anything.
const LIMIT: Duration = Duration::from_secs(20);

/// A connection.
pub struct Client(pub TcpStream);

/// The input registers of a camera.
#[derive(Debug, Clone)]
pub struct Words(pub Vec<u16>);

impl Client {
    pub fn new(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Self(stream)
    }

    /// What is behind the header of the answer; an error if the connection was closed.
    pub fn try_ask(&mut self, request: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0x12, 0x34, 0, 0, 0, request.len() as u8 + 1, 0x55];
        bytes.extend(request);
        self.0.write_all(&bytes)?;
        let mut header = [0; 7];
        self.0.read_exact(&mut header)?;
        assert_eq!(header[..5], [0x12, 0x34, 0, 0, 0]);
        assert_eq!(header[6], 0x55);
        let mut answer = vec![0; usize::from(header[5]) - 1];
        self.0.read_exact(&mut answer)?;
        Ok(answer)
    }

    #[track_caller]
    pub fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.try_ask(request).unwrap()
    }

    /// The code of the exception with which a request is refused.
    #[track_caller]
    pub fn refused(&mut self, request: &[u8]) -> u8 {
        let answer = self.ask(request);
        assert_eq!(answer.len(), 2, "{request:?}: {answer:?}");
        assert_eq!(answer[0], request[0] | 0x80);
        answer[1]
    }

    #[track_caller]
    fn read(&mut self, function: u8, first: u16, count: u8) -> Vec<u16> {
        let [high, low] = first.to_be_bytes();
        words(&self.ask(&[function, high, low, 0, count]), function)
    }

    #[track_caller]
    pub fn inputs(&mut self, first: u16) -> Words {
        Words(self.read(4, first, 29))
    }

    #[track_caller]
    pub fn holding(&mut self, first: u16, count: u8) -> Vec<u16> {
        self.read(3, first, count)
    }

    #[track_caller]
    pub fn write(&mut self, first: u16, words: &[u16]) {
        let [high, low] = first.to_be_bytes();
        let count = words.len() as u8;
        let mut request = vec![16, high, low, 0, count, 2 * count];
        request.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        let answer = self.ask(&request);
        assert_eq!(answer, request[..5], "{request:?}");
    }

    /// Reads a camera until these bits are set, and those are not.
    #[track_caller]
    pub fn wait(&mut self, first: u16, set: u16, not: u16) -> Words {
        let until = Instant::now() + LIMIT;
        loop {
            let words = self.inputs(first);
            if words.bits() & set == set && words.bits() & not == 0 {
                return words;
            }
            assert!(Instant::now() < until, "{set:#x}, not {not:#x}: {words:?}");
            sleep(Duration::from_millis(1));
        }
    }
}

/// The words that an answer holds.
#[track_caller]
pub fn words(answer: &[u8], function: u8) -> Vec<u16> {
    assert_eq!(answer[0], function, "{answer:?}");
    assert_eq!(usize::from(answer[1]), answer.len() - 2);
    let pairs = answer[2..].chunks(2);
    pairs
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect()
}

impl Words {
    pub fn bits(&self) -> u16 {
        self.0[0]
    }

    pub fn has(&self, bit: u16) -> bool {
        self.bits() & bit != 0
    }

    pub fn long(&self, first: usize) -> u32 {
        u32::from(self.0[first]) << 16 | u32::from(self.0[first + 1])
    }

    /// Number of the trigger that was taken.
    pub fn trigger(&self) -> u32 {
        self.long(2)
    }

    /// Number of the result.
    pub fn result(&self) -> u32 {
        self.long(4)
    }

    pub fn epoch(&self) -> u32 {
        self.long(20)
    }

    pub fn error(&self) -> u16 {
        self.0[9]
    }

    pub fn missed(&self) -> u16 {
        self.0[11]
    }
}
