//! The token that requests must carry, and the cookie that a browser gets in exchange.
//!
//! The token is compared as SHA-256 digests in constant time. The cookie is the time when it expires and an HMAC of that time,
//! keyed with the token. So a new token ends all sessions, and a restart of the station ends none.

use std::{
    fmt, fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Context, anyhow, ensure};
use clinspect_results::text;
use machine::{clock, locks::Mutex};
use ring::{digest, hmac};
use subtle::ConstantTimeEq;

/// Shortest token, characters. Guessing a random one of this length is hopeless.
const MIN_TOKEN: usize = 16;
/// Longest token, characters.
const MAX_TOKEN: usize = 256;
/// A file with a token is no longer than this, bytes: blanks, or UTF-16, which is refused with a reason.
const MOST_BYTES: u64 = 1024;
/// The station's token, which a reload may replace.
pub struct Token(Mutex<Secret>);

#[derive(Clone)]
struct Secret {
    digest: digest::Digest,
    key: hmac::Key,
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(..)")
    }
}

impl Token {
    /// Reads the token from a file with one line.
    ///
    /// # Errors
    /// The file cannot be read, every user of the PC can read it, or it does not hold one line of
    /// 16 to 256 printable ASCII characters without a blank.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let metadata = fs::metadata(path).with_context(|| format!("cannot read {name}"))?;
        ensure!(
            metadata.is_file(),
            "{name} is not a file; name the file with the token"
        );
        ensure!(
            metadata.permissions().mode() & 0o007 == 0,
            "every user can read {name}; run: chmod o= {name}"
        );
        let text = text::read(path, MOST_BYTES)
            .map_err(|why| anyhow!("cannot read the token in {name}: {why}"))?;
        Self::new(text.trim_ascii_end().as_bytes()).with_context(|| {
            format!("{name} holds no token; run: head -c 24 /dev/urandom | base64 > {name}")
        })
    }

    /// A token.
    ///
    /// # Errors
    /// It does not have 16 to 256 printable ASCII characters without a blank.
    pub fn new(text: &[u8]) -> anyhow::Result<Self> {
        ensure!(
            (MIN_TOKEN..=MAX_TOKEN).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic),
            "a token has {MIN_TOKEN} to {MAX_TOKEN} letters, digits and signs in one line, no blanks"
        );
        Ok(Self(Mutex::new(Secret {
            digest: digest::digest(&digest::SHA256, text),
            key: hmac::Key::new(hmac::HMAC_SHA256, text),
        })))
    }

    /// Takes the token that the file has now. All sessions end if it is another one.
    ///
    /// # Errors
    /// See [`Self::read`]; the token stays as it was.
    pub fn read_again(&self, path: &Path) -> anyhow::Result<()> {
        let secret = Self::read(path)?.secret();
        *self.0.lock() = secret;
        Ok(())
    }

    fn secret(&self) -> Secret {
        self.0.lock().clone()
    }

    /// Whether the text is the token.
    pub fn is(&self, text: &[u8]) -> bool {
        let digest = digest::digest(&digest::SHA256, text);
        self.secret().digest.as_ref().ct_eq(digest.as_ref()).into()
    }

    /// The value of a cookie that is valid for so long.
    pub fn new_cookie(&self, lasts: Duration) -> String {
        self.cookie(now() + lasts.as_secs())
    }

    /// The value of a cookie that is valid until then, seconds since 1970.
    pub fn cookie(&self, expires: u64) -> String {
        let expires = format!("{expires:x}");
        let tag = hmac::sign(&self.secret().key, expires.as_bytes());
        let tag: String = tag
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{expires}.{tag}")
    }

    /// Whether the value is a cookie of this token, and has not expired.
    pub fn is_cookie(&self, value: &str) -> bool {
        let expires = value.split('.').next().unwrap_or_default();
        let Ok(expires) = u64::from_str_radix(expires, 16) else {
            return false;
        };
        let is_ours: bool = self
            .cookie(expires)
            .as_bytes()
            .ct_eq(value.as_bytes())
            .into();
        is_ours && now() < expires
    }
}

/// Seconds since 1970. A clock that is set logs nobody out, and keeps nobody logged in for longer.
fn now() -> u64 {
    let since = clock::even().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
