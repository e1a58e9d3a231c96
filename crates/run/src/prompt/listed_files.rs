//! Renders files that the user lists for the idea generator, for the context pack. Pure and
//! bounded; the program reads the files.

use crate::section::{bullet_list, plain_section, quoted_section};
use treebeam_core::id::Sha256;

/// Largest part of one file that is shown, in characters.
pub const MAX_LISTED_FILE_CHARS: usize = 16_000;
/// Largest part of all listed files together that is shown, in characters.
pub const MAX_LISTED_CHARS: usize = 64_000;

/// A file that the user lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Name of the file in the prompt.
    pub name: String,
    /// Content of the file.
    pub text: String,
}

impl ListedFile {
    /// Returns the name and the digest of the file, as they are recorded.
    #[must_use]
    pub fn digest_line(&self) -> String {
        format!("{} sha256 {}", self.name, Sha256::hash_bytes(self.text.as_bytes()))
    }
}

/// Renders the listed files in order: a line about each, and as much of its text as has room.
pub(crate) fn render_listed_files(files: &[ListedFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let (mut room, mut quoted, mut lines) = (MAX_LISTED_CHARS, String::new(), Vec::new());
    for file in files {
        let length = file.text.trim_end().chars().count();
        let shown = length.min(MAX_LISTED_FILE_CHARS).min(room);
        room -= shown;
        lines.push(match shown {
            _ if shown == length => file.digest_line(),
            0 => format!("{} (no room for it)", file.digest_line()),
            _ => format!("{} (its first {shown} characters)", file.digest_line()),
        });
        if shown > 0 {
            quoted.push_str(&format!(
                "\n{}",
                quoted_section(&format!("FILE {}", file.name), &file.text, shown)
            ));
        }
    }
    let head = "FILES THAT THE USER LISTS";
    format!("{quoted}\n{}", plain_section(head, &bullet_list(&lines), usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(name: &str, text: &str) -> ListedFile {
        ListedFile { name: name.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn each_is_told_with_its_digest() {
        assert_eq!(render_listed_files(&[]), "");
        let digest = Sha256::hash_bytes(b"Widen it.\n");
        assert_eq!(
            render_listed_files(&[file("notes/a.md", "Widen it.\n")]),
            format!(
                "\n=== FILE notes/a.md ===\n```\nWiden it.\n```\n\n=== FILES THAT THE USER LISTS ===\n- notes/a.md sha256 {digest}\n"
            )
        );
        let long = "ü".repeat(MAX_LISTED_FILE_CHARS + 1);
        let many: Vec<ListedFile> = ["a", "b", "c", "d", "e"].map(|name| file(name, &long)).into();
        let told = render_listed_files(&many);
        assert!(told.contains("(its first 16000 characters)\n- b sha256 "), "{told}");
        assert!(told.ends_with("(no room for it)\n") && !told.contains("=== FILE e ==="), "{told}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn whatever_is_listed_there_is_a_limit(line in "(a|ü|\n|`){1,80}", times in 1_usize..900, count in 0_usize..12) {
            let files: Vec<ListedFile> = (0..count).map(|n| file(&format!("{n}.md"), &line.repeat(times))).collect();
            let told = render_listed_files(&files);
            // Fences may be as long as the text in them.
            prop_assert!(told.chars().count() <= 3 * MAX_LISTED_CHARS + 300 * count + 100);
            prop_assert_eq!(files.iter().filter(|file| told.contains(&file.digest_line())).count(), count);
            prop_assert_eq!(&told, &render_listed_files(&files));
        }
    }
}
