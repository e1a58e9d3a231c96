//! Placeholder for systems on which a process cannot be hidden from others of the same user.

/// Does nothing on this system.
///
/// # Errors
/// Never returns an error.
pub const fn forbid_inspection() -> std::io::Result<()> {
    Ok(())
}
