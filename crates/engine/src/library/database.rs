//! An open database.

use super::interface::{
    RawDb, RawFamily, RawFlushOptions, RawIterator, RawPinned, RawReadOptions, RawWriteOptions,
};
use super::{Library, Options, c_string};
use libc::c_char;
use std::ffi::CString;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// How reads are done: checksums are verified.
pub struct ReadOptions {
    library: &'static Library,
    raw: *mut RawReadOptions,
}

// SAFETY: nothing changes them after they were made, and the library only reads them.
unsafe impl Send for ReadOptions {}
// SAFETY: as above.
unsafe impl Sync for ReadOptions {}

impl ReadOptions {
    /// Makes them.
    pub fn new(library: &'static Library) -> Self {
        // SAFETY: takes nothing; what it makes is ours until it is dropped.
        let raw = unsafe { (library.interface.readoptions_create)() };
        // SAFETY: made just now.
        unsafe { (library.interface.readoptions_set_verify_checksums)(raw, 1) };
        Self { library, raw }
    }
}

impl Drop for ReadOptions {
    fn drop(&mut self) {
        // SAFETY: ours, and given back once.
        unsafe { (self.library.interface.readoptions_destroy)(self.raw) };
    }
}

/// How writes are done: never waiting for the device, with a write-ahead log or without.
pub struct WriteOptions {
    library: &'static Library,
    raw: *mut RawWriteOptions,
}

// SAFETY: nothing changes them after they were made, and the library only reads them.
unsafe impl Send for WriteOptions {}
// SAFETY: as above.
unsafe impl Sync for WriteOptions {}

impl WriteOptions {
    /// Makes them.
    pub fn new(library: &'static Library, logged: bool) -> Self {
        // SAFETY: takes nothing; what it makes is ours until it is dropped.
        let raw = unsafe { (library.interface.writeoptions_create)() };
        // SAFETY: made just now.
        unsafe {
            (library.interface.writeoptions_set_sync)(raw, 0);
            (library.interface.writeoptions_disable_WAL)(raw, i32::from(!logged));
        }
        Self { library, raw }
    }
}

impl Drop for WriteOptions {
    fn drop(&mut self) {
        // SAFETY: ours, and given back once.
        unsafe { (self.library.interface.writeoptions_destroy)(self.raw) };
    }
}

/// A database, closed when it is dropped.
pub struct Database {
    library: &'static Library,
    raw: *mut RawDb,
    /// Its only column family, which look-ups of many keys ask for.
    family: *mut RawFamily,
}

// SAFETY: a database of RocksDB may be used by any thread.
unsafe impl Send for Database {}
// SAFETY: it may be used by many threads at once without a lock of ours; it is closed when no thread has it.
unsafe impl Sync for Database {}

impl Database {
    /// Opens one, or makes it.
    ///
    /// Errors: the library's words.
    pub fn open(
        library: &'static Library,
        options: &Options,
        directory: &Path,
    ) -> Result<Self, String> {
        let place = CString::new(directory.as_os_str().as_bytes())
            .map_err(|_| format!("{} contains a zero byte", directory.display()))?;
        let names = [c"default".as_ptr()];
        let of_each = [options.raw.cast_const()];
        let mut families: [*mut RawFamily; 1] = [ptr::null_mut()];
        let raw = library.checked(|error| {
            // SAFETY: one name, one set of options and one place for a family, all alive during the call.
            unsafe {
                (library.interface.open_column_families)(
                    options.raw,
                    place.as_ptr(),
                    1,
                    names.as_ptr(),
                    of_each.as_ptr(),
                    families.as_mut_ptr(),
                    error,
                )
            }
        })?;
        let [family] = families;
        Ok(Self {
            library,
            raw,
            family,
        })
    }

    /// Puts a value under a key.
    ///
    /// Errors: the library's words.
    #[inline]
    pub fn put(&self, options: &WriteOptions, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.library.checked(|error| {
            // SAFETY: database and options are alive; the library copies key and value during the call.
            unsafe {
                (self.library.interface.put)(
                    self.raw,
                    options.raw,
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_ptr().cast(),
                    value.len(),
                    error,
                );
            }
        })
    }

    /// Bytes of the value under a key, if there is one; the value is not copied.
    ///
    /// Errors: the library's words.
    #[inline]
    pub fn get(&self, options: &ReadOptions, key: &[u8]) -> Result<Option<usize>, String> {
        let interface = &self.library.interface;
        let pinned = self.library.checked(|error| {
            // SAFETY: database, options and key are alive during the call.
            unsafe {
                (interface.get_pinned)(self.raw, options.raw, key.as_ptr().cast(), key.len(), error)
            }
        })?;
        // SAFETY: made by the library just now, or null.
        Ok(unsafe { self.released(pinned) })
    }

    /// Bytes of a pinned value, which is given back.
    ///
    /// # Safety
    ///
    /// It is null, or the library made it and nobody has given it back.
    unsafe fn released(&self, pinned: *mut RawPinned) -> Option<usize> {
        if pinned.is_null() {
            return None;
        }
        let interface = &self.library.interface;
        let mut bytes = 0;
        // SAFETY: it is alive until it is given back in the last line.
        unsafe {
            let value = (interface.pinnableslice_value)(pinned, &raw mut bytes);
            std::hint::black_box(value);
            (interface.pinnableslice_destroy)(pinned);
        }
        Some(bytes)
    }

    /// Looks up all keys of a look-up at once, `batched` where the library can; how many were found.
    ///
    /// Errors: the library's words for the first key that it could not look up.
    pub fn multi_get(
        &self,
        options: &ReadOptions,
        lookup: &mut Lookup,
        batched: bool,
    ) -> Result<u64, String> {
        lookup.point();
        let batch = self.library.interface.batched_multi_get_cf;
        match batch.filter(|_| batched) {
            Some(batched) => {
                // SAFETY: all lists have as many places as there are keys; everything lives in the call.
                unsafe {
                    batched(
                        self.raw,
                        options.raw,
                        self.family,
                        lookup.pointers.len(),
                        lookup.pointers.as_ptr(),
                        lookup.lengths.as_ptr(),
                        lookup.pinned.as_mut_ptr(),
                        lookup.errors.as_mut_ptr(),
                        false,
                    );
                }
            }
            None => {
                // SAFETY: as above.
                unsafe {
                    (self.library.interface.multi_get)(
                        self.raw,
                        options.raw,
                        lookup.pointers.len(),
                        lookup.pointers.as_ptr(),
                        lookup.lengths.as_ptr(),
                        lookup.values.as_mut_ptr(),
                        lookup.value_lengths.as_mut_ptr(),
                        lookup.errors.as_mut_ptr(),
                    );
                }
            }
        }
        self.gathered(lookup)
    }

    /// Counts what a look-up found and gives its memory back.
    fn gathered(&self, lookup: &mut Lookup) -> Result<u64, String> {
        let mut found = 0;
        let mut refused = None;
        for pinned in &mut lookup.pinned {
            let pinned = std::mem::replace(pinned, ptr::null_mut());
            // SAFETY: null, or made by the library in this look-up.
            found += u64::from(unsafe { self.released(pinned) }.is_some());
        }
        for value in &mut lookup.values {
            let value = std::mem::replace(value, ptr::null_mut());
            if !value.is_null() {
                found += 1;
                // SAFETY: made by the library in this look-up, and not used from here on.
                unsafe { (self.library.interface.free)(value.cast()) };
            }
        }
        for error in &mut lookup.errors {
            let error = std::mem::replace(error, ptr::null_mut());
            if !error.is_null() {
                // SAFETY: a string of the library's from this look-up.
                refused.get_or_insert(unsafe { self.library.taken(error) });
            }
        }
        refused.map_or(Ok(found), Err)
    }

    /// A new cursor, which stands nowhere.
    #[inline]
    pub fn cursor<'a>(&'a self, options: &'a ReadOptions) -> Cursor<'a> {
        // SAFETY: database and options are alive, and outlive it by its type.
        let raw = unsafe { (self.library.interface.create_iterator)(self.raw, options.raw) };
        Cursor {
            library: self.library,
            raw,
            _of: PhantomData,
        }
    }

    /// Writes what is in memtables to files and waits for it.
    ///
    /// Errors: the library's words.
    pub fn flush(&self) -> Result<(), String> {
        let interface = &self.library.interface;
        // SAFETY: the options live from their making to their end in these lines.
        let options: *mut RawFlushOptions = unsafe {
            let options = (interface.flushoptions_create)();
            (interface.flushoptions_set_wait)(options, 1);
            options
        };
        let done = self.library.checked(|error| {
            // SAFETY: database and options are alive.
            unsafe { (interface.flush)(self.raw, options, error) };
        });
        // SAFETY: ours, and given back once.
        unsafe { (interface.flushoptions_destroy)(options) };
        done
    }

    /// Changes an option while the database is open.
    ///
    /// Errors: the library's words.
    pub fn set_option(&self, name: &str, value: &str) -> Result<(), String> {
        let (name, value) = (c_string(name)?, c_string(value)?);
        let (names, values) = ([name.as_ptr()], [value.as_ptr()]);
        self.library.checked(|error| {
            // SAFETY: one name and one value, alive during the call.
            unsafe {
                (self.library.interface.set_options)(
                    self.raw,
                    1,
                    names.as_ptr(),
                    values.as_ptr(),
                    error,
                );
            }
        })
    }

    /// What the database says of itself in words; absent if it does not know the property.
    pub fn property(&self, name: &str) -> Option<String> {
        let name = c_string(name).ok()?;
        // SAFETY: the database is alive and the name ends with zero.
        let text = unsafe { (self.library.interface.property_value)(self.raw, name.as_ptr()) };
        // SAFETY: a string of the library's own making, if there is one.
        (!text.is_null()).then(|| unsafe { self.library.taken(text) })
    }

    /// A number that the database says of itself; absent if it does not know the property.
    pub fn number(&self, name: &str) -> Option<u64> {
        let name = c_string(name).ok()?;
        let mut value = 0;
        // SAFETY: the database is alive, the name ends with zero, and the place for the number is ours.
        let known = unsafe {
            (self.library.interface.property_int)(self.raw, name.as_ptr(), &raw mut value)
        };
        (known == 0).then_some(value)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: no thread and no cursor has it any more; both are ours and given back once, the family
        // first.
        unsafe {
            (self.library.interface.column_family_handle_destroy)(self.family);
            (self.library.interface.close)(self.raw);
        }
    }
}

/// Keys to look up at once, with the room that the library needs for its answers.
pub struct Lookup {
    pub keys: Vec<Vec<u8>>,
    pointers: Vec<*const c_char>,
    lengths: Vec<usize>,
    pinned: Vec<*mut RawPinned>,
    values: Vec<*mut c_char>,
    value_lengths: Vec<usize>,
    errors: Vec<*mut c_char>,
}

// SAFETY: its pointers lead into its own keys, or to what the library made for it; they are used in one call
// at a time, by the thread that has it.
unsafe impl Send for Lookup {}

impl Lookup {
    /// Room for so many keys, which are empty.
    pub fn of(keys: usize) -> Self {
        Self {
            keys: vec![Vec::new(); keys],
            pointers: Vec::with_capacity(keys),
            lengths: Vec::with_capacity(keys),
            pinned: vec![ptr::null_mut(); keys],
            values: vec![ptr::null_mut(); keys],
            value_lengths: vec![0; keys],
            errors: vec![ptr::null_mut(); keys],
        }
    }

    /// Sets the lists to the keys as they are now.
    fn point(&mut self) {
        self.pointers.clear();
        self.lengths.clear();
        for key in &self.keys {
            self.pointers.push(key.as_ptr().cast());
            self.lengths.push(key.len());
        }
        let places = self.keys.len();
        self.pinned.resize(places, ptr::null_mut());
        self.values.resize(places, ptr::null_mut());
        self.value_lengths.resize(places, 0);
        self.errors.resize(places, ptr::null_mut());
    }
}

/// A place among the keys: an iterator of the library's.
pub struct Cursor<'a> {
    library: &'static Library,
    raw: *mut RawIterator,
    /// The database and the options must outlive it.
    _of: PhantomData<&'a Database>,
}

impl Cursor<'_> {
    /// Goes to the first key that is not before this one.
    #[inline]
    pub fn seek(&mut self, key: &[u8]) {
        // SAFETY: it is alive, and the library copies the key.
        unsafe { (self.library.interface.iter_seek)(self.raw, key.as_ptr().cast(), key.len()) };
    }

    /// Key and value where it stands; nothing if it ran off an end or failed.
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        let interface = &self.library.interface;
        let (mut key_bytes, mut value_bytes) = (0, 0);
        // SAFETY: it is alive and stands on an entry; both stay valid until it moves, which needs it alone.
        unsafe {
            if (interface.iter_valid)(self.raw) == 0 {
                return None;
            }
            let key = (interface.iter_key)(self.raw, &raw mut key_bytes);
            let value = (interface.iter_value)(self.raw, &raw mut value_bytes);
            Some((
                std::slice::from_raw_parts(key.cast(), key_bytes),
                std::slice::from_raw_parts(value.cast(), value_bytes),
            ))
        }
    }

    /// Goes one on. It stands on an entry.
    #[inline]
    pub fn forward(&mut self) {
        // SAFETY: it is alive.
        unsafe { (self.library.interface.iter_next)(self.raw) };
    }

    /// Goes one back. It stands on an entry.
    #[inline]
    pub fn backward(&mut self) {
        // SAFETY: it is alive.
        unsafe { (self.library.interface.iter_prev)(self.raw) };
    }

    /// Why it stands nowhere, if it failed.
    ///
    /// Errors: the library's words.
    pub fn status(&self) -> Result<(), String> {
        self.library.checked(|error| {
            // SAFETY: it is alive.
            unsafe { (self.library.interface.iter_get_error)(self.raw, error) };
        })
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, and given back once.
        unsafe { (self.library.interface.iter_destroy)(self.raw) };
    }
}
