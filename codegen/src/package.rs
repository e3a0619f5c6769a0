//! The Model Library Format archive of a module.
