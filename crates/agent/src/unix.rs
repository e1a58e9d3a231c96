//! Keeps other processes of the same user from reading this one's memory and environment.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Makes this process unreadable for all but the administrator, without core files.
///
/// # Errors
/// When the system refuses.
pub fn forbid_inspection() -> std::io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_shielded_process_is_not_dumpable() {
        super::forbid_inspection().expect("to shield");
        let now = rustix::process::dumpable_behavior().expect("what it is");
        assert_eq!(now, rustix::process::DumpableBehavior::NotDumpable);
    }
}
