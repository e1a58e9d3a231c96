//! Where a process cannot be kept from being looked into by others of the same user.

/// Does nothing here.
///
/// # Errors
/// Never.
pub const fn forbid_inspection() -> std::io::Result<()> {
    Ok(())
}
