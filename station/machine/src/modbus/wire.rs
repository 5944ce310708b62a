//! Requests and answers as bytes, after the Modbus Application Protocol 1.1b3 and Modbus on TCP/IP 1.0b.
//!
//! Our own code, because the decoder of tokio-modbus 0.17 panics on a function 15 whose coils are missing, and closes the
//! connection where the protocol wants an exception.

/// Bytes before the function of a request.
pub const HEADER: usize = 7;
/// Longest request or answer behind the header, bytes.
pub const MOST_BYTES: usize = 253;
/// Most words that one request reads.
const MOST_READ: u16 = 125;
/// Most words that one request writes.
const MOST_WRITTEN: u16 = 123;
/// Most words that one request writes which reads too.
const MOST_WRITTEN_AND_READ: u16 = 121;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exception {
    /// The server does not have the function.
    Function = 1,
    /// An address is no register.
    Address = 2,
    /// The request contradicts itself.
    Value = 3,
}

/// The kind of registers that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Holding registers.
    Holding,
    /// Input registers.
    Input,
}

/// Registers that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterRange {
    /// Their kind.
    pub kind: Kind,
    /// The address of the first one.
    pub first: u16,
    /// How many, 1 to 125.
    pub count: u16,
}

/// Holding registers that are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// These words, from an address on.
    Words(u16, Vec<u16>),
    /// One register becomes (register and `and`) or (`or` and not `and`).
    Mask {
        /// Its address.
        address: u16,
        /// Bits that stay.
        and: u16,
        /// Values of the others.
        or: u16,
    },
}

/// A request. The write comes before the read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What is written.
    pub write: Option<Write>,
    /// What is read.
    pub read: Option<RegisterRange>,
}

/// The header of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The client's number of the request, and the unit: both are sent back.
    transaction: [u8; 2],
    unit: u8,
    /// Bytes that follow the header, 1 to [`MOST_BYTES`].
    pub len: usize,
}

impl Header {
    /// `None` if these bytes are no header: nobody knows where the next one begins.
    pub fn of(bytes: [u8; HEADER]) -> Option<Self> {
        let [a, b, 0, 0, high, low, unit] = bytes else {
            return None;
        };
        // The unit counts.
        let len = usize::from(word(high, low)).checked_sub(1)?;
        let transaction = [a, b];
        (1..=MOST_BYTES).contains(&len).then_some(Self {
            transaction,
            unit,
            len,
        })
    }

    /// The answer to a request: the words that were read, nothing else after a write.
    pub fn answer(&self, request: &[u8], result: &Result<Vec<u16>, Exception>) -> Vec<u8> {
        let function = request.first().copied().unwrap_or_default();
        let mut body = Vec::new();
        match result {
            Err(exception) => body.extend([function | 0x80, *exception as u8]),
            // Echoes of the written addresses: of the value or the number of words, and of both masks.
            Ok(_) if matches!(function, 6 | 16) => body.extend(request.iter().take(5)),
            Ok(_) if function == 22 => body.extend(request),
            Ok(words) => {
                // At most 125 words.
                body.extend([function, (2 * words.len()) as u8]);
                body.extend(words.iter().flat_map(|word| word.to_be_bytes()));
            }
        }
        let mut answer = Vec::with_capacity(HEADER + body.len());
        answer.extend(self.transaction);
        answer.extend([0, 0]);
        answer.extend((body.len() as u16 + 1).to_be_bytes());
        answer.push(self.unit);
        answer.extend(body);
        answer
    }
}

/// Reads the bytes behind a header.
///
/// # Errors
/// The request has a function that the server does not have, or contradicts itself.
pub fn request(bytes: &[u8]) -> Result<Request, Exception> {
    let read = |kind, first, count| {
        let is_good = (1..=MOST_READ).contains(&count);
        let read = RegisterRange { kind, first, count };
        is_good.then_some(read).ok_or(Exception::Value)
    };
    let words = |count, most, len, data: &[u8]| {
        let is_good = (1..=most).contains(&count)
            && u16::from(len) == 2 * count
            && data.len() == usize::from(len);
        let pairs = data.as_chunks().0.iter();
        let words = || pairs.map(|pair| u16::from_be_bytes(*pair)).collect();
        is_good.then(words).ok_or(Exception::Value)
    };
    match *bytes {
        [function @ (3 | 4), a, b, c, d] => {
            let kind = [Kind::Holding, Kind::Input][usize::from(function == 4)];
            Ok(Request {
                write: None,
                read: Some(read(kind, word(a, b), word(c, d))?),
            })
        }
        [6, a, b, c, d] => Ok(Request {
            write: Some(Write::Words(word(a, b), vec![word(c, d)])),
            read: None,
        }),
        [16, a, b, c, d, len, ref data @ ..] => {
            let words = words(word(c, d), MOST_WRITTEN, len, data)?;
            Ok(Request {
                write: Some(Write::Words(word(a, b), words)),
                read: None,
            })
        }
        [22, a, b, c, d, e, f] => Ok(Request {
            write: Some(Write::Mask {
                address: word(a, b),
                and: word(c, d),
                or: word(e, f),
            }),
            read: None,
        }),
        [23, a, b, c, d, e, f, g, h, len, ref data @ ..] => {
            let words = words(word(g, h), MOST_WRITTEN_AND_READ, len, data)?;
            Ok(Request {
                write: Some(Write::Words(word(e, f), words)),
                read: Some(read(Kind::Holding, word(a, b), word(c, d))?),
            })
        }
        [3 | 4 | 6 | 16 | 22 | 23, ..] => Err(Exception::Value),
        _ => Err(Exception::Function),
    }
}

fn word(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high, low])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_the_specification_are_read_and_answered() {
        // Sections 6.3, 6.4, 6.6, 6.12, 6.16 and 6.17 of the protocol.
        let header = |len: u8| Header::of([0x15, 1, 0, 0, 0, len + 1, 0xff]).unwrap();
        let read = |bytes: &[u8]| request(bytes).unwrap().read.unwrap();
        let holding = read(&[3, 0, 0x6b, 0, 3]);
        assert_eq!(
            (holding.kind, holding.first, holding.count),
            (Kind::Holding, 107, 3)
        );
        let answer = header(5).answer(&[3, 0, 0x6b, 0, 3], &Ok(vec![0x022b, 0, 0x0064]));
        assert_eq!(answer[..7], [0x15, 1, 0, 0, 0, 9, 0xff]);
        assert_eq!(answer[7..], [3, 6, 2, 0x2b, 0, 0, 0, 0x64]);
        let input = read(&[4, 0, 8, 0, 1]);
        assert_eq!((input.kind, input.first, input.count), (Kind::Input, 8, 1));
        let single = [6, 0, 1, 0, 3];
        let written = Some(Write::Words(1, vec![3]));
        assert_eq!(request(&single).unwrap().write, written);
        assert_eq!(header(5).answer(&single, &Ok(vec![]))[7..], single);
        let multiple = [16, 0, 1, 0, 2, 4, 0, 0x0a, 1, 2];
        let written = Some(Write::Words(1, vec![0x0a, 0x0102]));
        assert_eq!(request(&multiple).unwrap().write, written);
        assert_eq!(
            header(10).answer(&multiple, &Ok(vec![]))[7..],
            multiple[..5]
        );
        let mask = [0x16, 0, 4, 0, 0xf2, 0, 0x25];
        let (address, and, or) = (4, 0xf2, 0x25);
        let written = Some(Write::Mask { address, and, or });
        assert_eq!(request(&mask).unwrap().write, written);
        assert_eq!(header(7).answer(&mask, &Ok(vec![]))[7..], mask);
        let both = [
            0x17, 0, 3, 0, 6, 0, 0x0e, 0, 3, 6, 0, 0xff, 0, 0xff, 0, 0xff,
        ];
        let both = request(&both).unwrap();
        assert_eq!(both.write, Some(Write::Words(14, vec![0xff; 3])));
        let (kind, first, count) = (Kind::Holding, 3, 6);
        assert_eq!(both.read, Some(RegisterRange { kind, first, count }));
        let refused = header(5).answer(&[1, 4, 0xa1, 0, 1], &Err(Exception::Address));
        assert_eq!(refused[4..], [0, 3, 0xff, 0x81, 2]);
    }

    #[test]
    fn requests_that_contradict_themselves_are_refused() {
        for bytes in [
            &[3, 0, 0, 0, 0][..],
            &[4, 0, 0, 0, 126],
            &[4, 0, 0, 0],
            &[6, 0, 0, 0, 0, 0],
            &[16, 0, 0, 0, 0, 0],
            &[16, 0, 0, 0, 2, 4, 0, 0, 0],
            &[16, 0, 0, 0x80, 0, 0],
            &[16, 0, 0, 0, 1, 3, 0, 0, 0],
            &[22, 0],
            &[23, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0],
        ] {
            assert_eq!(request(bytes), Err(Exception::Value), "{bytes:?}");
        }
        for bytes in [
            &[1, 0, 0, 0, 1][..],
            &[15, 0, 0, 0, 8, 0],
            &[0x2b],
            &[0x84],
            &[],
        ] {
            assert_eq!(request(bytes), Err(Exception::Function), "{bytes:?}");
        }
        for header in [
            [0, 0, 0, 1, 0, 6, 0],
            [0, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 1, 0],
            [0, 0, 0, 0, 0, 255, 0],
            [0, 0, 0, 0, 255, 255, 0],
        ] {
            assert_eq!(Header::of(header), None, "{header:?}");
        }
        assert_eq!(
            Header::of([0, 0, 0, 0, 0, 254, 0]).map(|of| of.len),
            Some(253)
        );
    }
}
