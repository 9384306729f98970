//! The functions of `rocksdb/c.h` that are used, found by name in a library.

use libc::{c_char, c_int, c_uchar, c_void, size_t};

macro_rules! opaque {
    ($($name:ident)*) => {
        $(
            /// A thing of the library's, seen only through pointers to it.
            #[repr(C)]
            pub struct $name {
                _nothing: [u8; 0],
            }
        )*
    };
}

opaque! {
    RawDb RawFamily RawOptions RawTableOptions RawCache RawClockOptions RawReadOptions RawWriteOptions
    RawFlushOptions RawIterator RawPinned RawContext
}

/// Where the library puts its words about a failure; memory of `rocksdb_free`.
pub type ErrorPlace = *mut *mut c_char;

macro_rules! interface {
    (
        required { $($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)* }
        optional { $($extra:ident: fn($($extra_argument:ty),*) $(-> $extra_result:ty)?;)* }
    ) => {
        /// Functions of one library, by the names that they have in it without `rocksdb_`.
        #[allow(non_snake_case, reason = "the library's own names")]
        pub struct Interface {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            $(pub $extra: Option<unsafe extern "C" fn($($extra_argument),*) $(-> $extra_result)?>,)*
        }

        impl Interface {
            /// Finds all functions.
            ///
            /// Errors: the words of the loader for the first one that every version must have and this
            ///         library lacks.
            pub fn of(library: &libloading::Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    $(
                        // SAFETY: the type is that of the declaration in `rocksdb/c.h`, the same in all
                        // versions from 6.0 on; the library is never unloaded, so the pointer stays valid.
                        $name: *unsafe {
                            library.get(concat!("rocksdb_", stringify!($name), "\0").as_bytes())
                        }?,
                    )*
                    $(
                        // SAFETY: as above, for the versions that have it.
                        $extra: unsafe {
                            library.get(concat!("rocksdb_", stringify!($extra), "\0").as_bytes())
                        }
                        .ok()
                        .map(|found| *found),
                    )*
                })
            }
        }
    };
}

interface! {
    required {
        free: fn(*mut c_void);
        open_column_families: fn(
            *const RawOptions, *const c_char, c_int, *const *const c_char, *const *const RawOptions,
            *mut *mut RawFamily, ErrorPlace
        ) -> *mut RawDb;
        column_family_handle_destroy: fn(*mut RawFamily);
        close: fn(*mut RawDb);
        put: fn(
            *mut RawDb, *const RawWriteOptions, *const c_char, size_t, *const c_char, size_t, ErrorPlace
        );
        get_pinned: fn(
            *mut RawDb, *const RawReadOptions, *const c_char, size_t, ErrorPlace
        ) -> *mut RawPinned;
        pinnableslice_value: fn(*const RawPinned, *mut size_t) -> *const c_char;
        pinnableslice_destroy: fn(*mut RawPinned);
        multi_get: fn(
            *mut RawDb, *const RawReadOptions, size_t, *const *const c_char, *const size_t,
            *mut *mut c_char, *mut size_t, *mut *mut c_char
        );
        create_iterator: fn(*mut RawDb, *const RawReadOptions) -> *mut RawIterator;
        iter_destroy: fn(*mut RawIterator);
        iter_seek: fn(*mut RawIterator, *const c_char, size_t);
        iter_valid: fn(*const RawIterator) -> c_uchar;
        iter_next: fn(*mut RawIterator);
        iter_prev: fn(*mut RawIterator);
        iter_key: fn(*const RawIterator, *mut size_t) -> *const c_char;
        iter_value: fn(*const RawIterator, *mut size_t) -> *const c_char;
        iter_get_error: fn(*const RawIterator, ErrorPlace);
        flush: fn(*mut RawDb, *const RawFlushOptions, ErrorPlace);
        set_options: fn(*mut RawDb, c_int, *const *const c_char, *const *const c_char, ErrorPlace);
        property_value: fn(*mut RawDb, *const c_char) -> *mut c_char;
        property_int: fn(*mut RawDb, *const c_char, *mut u64) -> c_int;
        options_create: fn() -> *mut RawOptions;
        options_destroy: fn(*mut RawOptions);
        options_set_create_if_missing: fn(*mut RawOptions, c_uchar);
        options_set_memtable_vector_rep: fn(*mut RawOptions);
        options_set_block_based_table_factory: fn(*mut RawOptions, *mut RawTableOptions);
        get_options_from_string: fn(*const RawOptions, *const c_char, *mut RawOptions, ErrorPlace);
        block_based_options_create: fn() -> *mut RawTableOptions;
        block_based_options_destroy: fn(*mut RawTableOptions);
        block_based_options_set_block_cache: fn(*mut RawTableOptions, *mut RawCache);
        cache_destroy: fn(*mut RawCache);
        readoptions_create: fn() -> *mut RawReadOptions;
        readoptions_destroy: fn(*mut RawReadOptions);
        readoptions_set_verify_checksums: fn(*mut RawReadOptions, c_uchar);
        writeoptions_create: fn() -> *mut RawWriteOptions;
        writeoptions_destroy: fn(*mut RawWriteOptions);
        writeoptions_set_sync: fn(*mut RawWriteOptions, c_uchar);
        writeoptions_disable_WAL: fn(*mut RawWriteOptions, c_int);
        flushoptions_create: fn() -> *mut RawFlushOptions;
        flushoptions_destroy: fn(*mut RawFlushOptions);
        flushoptions_set_wait: fn(*mut RawFlushOptions, c_uchar);
        set_perf_level: fn(c_int);
        perfcontext_create: fn() -> *mut RawContext;
        perfcontext_reset: fn(*mut RawContext);
        perfcontext_report: fn(*mut RawContext, c_uchar) -> *mut c_char;
        perfcontext_metric: fn(*mut RawContext, c_int) -> u64;
        perfcontext_destroy: fn(*mut RawContext);
    }
    optional {
        batched_multi_get_cf: fn(
            *mut RawDb, *const RawReadOptions, *mut RawFamily, size_t, *const *const c_char,
            *const size_t, *mut *mut RawPinned, *mut *mut c_char, bool
        );
        hyper_clock_cache_options_create: fn(size_t, size_t) -> *mut RawClockOptions;
        hyper_clock_cache_options_destroy: fn(*mut RawClockOptions);
        hyper_clock_cache_options_set_num_shard_bits: fn(*mut RawClockOptions, c_int);
        cache_create_hyper_clock_opts: fn(*const RawClockOptions) -> *mut RawCache;
    }
}
