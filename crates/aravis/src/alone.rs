//! One lock for each camera, whoever opened it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use gst::{glib, prelude::*};

/// The lock that all users of this camera share.
pub fn of(object: &glib::Object) -> Arc<Mutex<()>> {
    static LOCKS: Mutex<BTreeMap<usize, Weak<Mutex<()>>>> = Mutex::new(BTreeMap::new());
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    locks.retain(|_, lock| lock.strong_count() > 0);
    // An address is used again only after the object is gone, and with it the users of its lock.
    let address = object.as_ptr() as usize;
    if let Some(lock) = locks.get(&address).and_then(Weak::upgrade) {
        return lock;
    }
    let lock = Arc::new(Mutex::new(()));
    locks.insert(address, Arc::downgrade(&lock));
    lock
}
