//! Detects files of compiled code that are truncated after a power cut or on a full disk.

use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of an ELF-64 header.
const ELF_HEADER: usize = 64;
/// First bytes of LLVM bitcode.
const BITCODE_MAGIC: [u8; 4] = *b"BC\xc0\xde";
/// The abbreviation id ENTER_SUBBLOCK; ids have two bits at the top level.
const ENTER_SUBBLOCK: u32 = 1;

fn length(file: &mut impl Seek) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

/// The bytes at `offset`; `None` if the file ends before that.
fn read_at<const N: usize>(
    file: &mut (impl Read + Seek),
    offset: u64,
) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    file.seek(SeekFrom::Start(offset))?;
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a little-endian 64-bit ELF file is complete up to the end of its section headers;
/// linkers write those last.
///
/// # Errors
/// The file cannot be read.
///
/// # Source
/// System V ABI, chapter 4: `e_shoff` at byte 40, `e_shentsize` at 58, `e_shnum` at 60.
pub fn is_whole_elf(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    let Some(header) = read_at::<ELF_HEADER>(file, 0)? else {
        return Ok(false);
    };
    let half = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let mut word = [0; 8];
    word.copy_from_slice(&header[40..48]);
    let end = u64::from_le_bytes(word).saturating_add(half(58) * half(60));
    Ok(header.starts_with(b"\x7fELF") && end <= length(file)?)
}

/// Whether the top-level blocks of LLVM bitcode fill the file.
///
/// # Errors
/// The file cannot be read.
///
/// # Source
/// LLVM Bitcode File Format, "Blocks": \[1, vbr8 block id, vbr4 width, align, 32-bit word count\];
/// the ids in use at the top level take one byte.
pub fn is_whole_bitcode(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    if read_at(file, 0)? != Some(BITCODE_MAGIC) {
        return Ok(false);
    }
    let end = length(file)?;
    let mut at = BITCODE_MAGIC.len() as u64;
    while at < end {
        let Some([a, b, c, d, words @ ..]) = read_at::<8>(file, at)? else {
            return Ok(false);
        };
        if u32::from_le_bytes([a, b, c, d]) & 3 != ENTER_SUBBLOCK {
            return Ok(false);
        }
        at += 8 + 4 * u64::from(u32::from_le_bytes(words));
    }
    // A file with only the magic is not a module.
    Ok(at == end && at > BITCODE_MAGIC.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// An ELF file of a header, `padding` bytes and two section headers of 64 bytes.
    fn elf(padding: usize) -> Vec<u8> {
        let mut file = vec![0; ELF_HEADER + padding + 128];
        file[..4].copy_from_slice(b"\x7fELF");
        file[40..48].copy_from_slice(&((ELF_HEADER + padding) as u64).to_le_bytes());
        file[58..60].copy_from_slice(&64_u16.to_le_bytes());
        file[60..62].copy_from_slice(&2_u16.to_le_bytes());
        file
    }

    /// Bitcode with one block per entry, of that many words.
    fn bitcode(blocks: &[u32]) -> Vec<u8> {
        let mut file = BITCODE_MAGIC.to_vec();
        for &words in blocks {
            file.extend([0x35, 0x14, 0, 0]);
            file.extend(words.to_le_bytes());
            file.extend(vec![0xff; 4 * words as usize]);
        }
        file
    }

    #[test]
    fn whole_files_are_whole_and_every_cut_is_seen() {
        let elf = elf(100);
        assert!(is_whole_elf(&mut Cursor::new(&elf)).is_ok_and(|whole| whole));
        for len in 0..elf.len() {
            assert!(is_whole_elf(&mut Cursor::new(&elf[..len])).is_ok_and(|whole| !whole));
        }
        let bitcode = bitcode(&[3, 0, 17]);
        // A file that ends after a whole block is a complete, shorter file.
        let ends = [4 + 8 + 12, 4 + 8 + 12 + 8];
        assert!(is_whole_bitcode(&mut Cursor::new(&bitcode)).is_ok_and(|whole| whole));
        for len in (0..bitcode.len()).filter(|len| !ends.contains(len)) {
            assert!(is_whole_bitcode(&mut Cursor::new(&bitcode[..len])).is_ok_and(|whole| !whole));
        }
    }

    #[test]
    fn hostile_lengths_are_cut_files() {
        let mut elf = elf(0);
        elf[40..48].fill(0xff);
        assert!(is_whole_elf(&mut Cursor::new(&elf)).is_ok_and(|whole| !whole));
        let mut bitcode = bitcode(&[1]);
        bitcode[8..12].fill(0xff);
        assert!(is_whole_bitcode(&mut Cursor::new(&bitcode)).is_ok_and(|whole| !whole));
    }
}
