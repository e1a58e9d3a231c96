//! Keeps other processes of the same user from reading this one's memory and environment.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// From now on nobody but the administrator can look into this process, and it leaves no core file.
///
/// # Errors
/// When the system does not let us.
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
