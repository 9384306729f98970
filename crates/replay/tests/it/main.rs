//! Dumps of real servers, loaded into real servers.

mod loading;
