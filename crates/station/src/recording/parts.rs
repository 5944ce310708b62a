//! Names of files that are being written: `.FILE.TOKEN.part`. `ls *.png` and a web server skip them.

use std::{
    collections::{BTreeSet, hash_map::RandomState},
    hash::{BuildHasher, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

const START: &str = ".";
const END: &str = ".part";
/// Hexadecimal digits of a token.
const DIGITS: usize = 16;

/// The tokens of the writers of this process. Tokens are random, so none is that of a process before.
static IN_USE: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

fn in_use() -> MutexGuard<'static, BTreeSet<u64>> {
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The token of a writer, which makes its names its own.
pub(super) struct Token(u64);

impl Token {
    pub fn new() -> Self {
        // A new `RandomState` has new keys.
        let token = RandomState::new().build_hasher().finish();
        in_use().insert(token);
        Self(token)
    }

    /// Name of a file while it is written.
    pub fn name(&self, file: &str) -> String {
        name(file, self.0)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        in_use().remove(&self.0);
    }
}

fn name(file: &str, token: u64) -> String {
    format!("{START}{file}.{token:0DIGITS$x}{END}")
}

/// The names of a file while writers of this process write it.
pub(super) fn names_in_use(file: &str) -> Vec<String> {
    let tokens = in_use();
    tokens.iter().map(|token| name(file, *token)).collect()
}

/// The file that is being written under this name, and whether a writer of this process does;
/// `None` if the name has another form.
pub(super) fn parse(part: &str) -> Option<(&str, bool)> {
    let rest = part.strip_prefix(START)?.strip_suffix(END)?;
    let (file, token) = rest.rsplit_once('.')?;
    let is_token = token.len() == DIGITS && token.bytes().all(|b| b.is_ascii_hexdigit());
    let token = u64::from_str_radix(token, 16).ok().filter(|_| is_token)?;
    Some((file, in_use().contains(&token)))
}
