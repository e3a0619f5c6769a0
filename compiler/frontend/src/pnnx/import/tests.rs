//! Small models, written as `.param` text without weights.
