//! Tracks the user's position on the screen: row, filter and open pages. [`update_model`] applies a
//! key; reading keys is done by the terminal's code.

use super::{ScreenSize, WatchScene, page, tree};
use treebeam_core::id::{CodePlace, NodeId};

/// Maximum length of a filter.
const MAX_FILTER_CHARS: usize = 60;

/// The user's position on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenModel {
    /// Place whose row is selected in the tree.
    pub(super) cursor: CodePlace,
    /// Text that the shown rows contain.
    pub(super) filter: String,
    /// Pages over the tree, the visible one last.
    pub(super) pages: Vec<ScreenPage>,
}

/// A page over the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenPage {
    /// Input of the filter; the tree is visible.
    Filter,
    /// Record of a node or an eval, from this line on.
    Item { place: CodePlace, top: usize },
    /// File of a place: which of the available ones, and the position in it.
    Paper { place: CodePlace, which: usize, at: FilePosition },
    /// Help on keys, from this line on.
    Help { top: usize },
}

/// Position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilePosition {
    /// End of the file, also when it grows.
    End,
    /// First visible line.
    Line(usize),
}

/// A key press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenKey {
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home: the first line.
    Home,
    /// End: the last line.
    End,
    /// Enter or return.
    Enter,
    /// Escape key.
    Escape,
    /// Tab key.
    Tab,
    /// Backspace: deletes the character before the cursor.
    Backspace,
    /// A character.
    Char(char),
}

/// Result of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenUpdate {
    /// The screen stays open, with this model.
    Stay(ScreenModel),
    /// The user leaves the screen.
    Quit,
}

/// A file that the user wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedFile {
    /// Node or eval of the file.
    pub place: CodePlace,
    /// Number of the file among the available ones; it may exceed their count and wraps around.
    pub which: usize,
    /// Mode of following the end of the file.
    pub follow: FollowMode,
}

/// Following the end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowMode {
    /// Added text is shown.
    Yes,
    /// The visible text stays.
    No,
}

impl Default for ScreenModel {
    fn default() -> Self {
        Self { cursor: CodePlace::Node(NodeId::ROOT), filter: String::new(), pages: Vec::new() }
    }
}

impl ScreenModel {
    /// Returns the file to show, if any.
    #[must_use]
    pub fn wanted_file(&self) -> Option<WantedFile> {
        let papers = self.pages.iter().rev();
        let mut papers = papers.filter_map(|page| match *page {
            ScreenPage::Paper { place, which, at } => Some((place, which, at)),
            ScreenPage::Filter | ScreenPage::Item { .. } | ScreenPage::Help { .. } => None,
        });
        let (place, which, at) = papers.next()?;
        let follow = if at == FilePosition::End { FollowMode::Yes } else { FollowMode::No };
        Some(WantedFile { place, which, follow })
    }

    fn open_page(mut self, page: ScreenPage) -> Self {
        self.pages.push(page);
        self
    }

    fn close_page(mut self) -> Self {
        self.pages.pop();
        self
    }
}

/// Applies a key to the model, on a screen of this size.
#[must_use]
pub fn update_model(
    model: ScreenModel,
    key: ScreenKey,
    scene: &WatchScene<'_>,
    size: ScreenSize,
) -> ScreenUpdate {
    let top = model.pages.last().copied();
    if top == Some(ScreenPage::Filter) {
        return ScreenUpdate::Stay(type_filter(model, key));
    }
    ScreenUpdate::Stay(match (key, top) {
        (ScreenKey::Char('q'), _) => return ScreenUpdate::Quit,
        (
            ScreenKey::Escape | ScreenKey::Left | ScreenKey::Char('h') | ScreenKey::Backspace,
            Some(_),
        )
        | (ScreenKey::Char('?'), Some(ScreenPage::Help { .. })) => model.close_page(),
        (ScreenKey::Char('?'), _) => model.open_page(ScreenPage::Help { top: 0 }),
        (_, None) => update_tree(model, key, scene, size),
        (_, Some(page)) => update_page(model, page, key, scene, size),
    })
}

/// Applies a key while the filter is typed.
fn type_filter(mut model: ScreenModel, key: ScreenKey) -> ScreenModel {
    match key {
        ScreenKey::Enter | ScreenKey::Up | ScreenKey::Down => model.close_page(),
        ScreenKey::Escape => ScreenModel { filter: String::new(), ..model.close_page() },
        ScreenKey::Backspace => {
            model.filter.pop();
            model
        }
        ScreenKey::Char(c) => {
            let room = model.filter.chars().count() < MAX_FILTER_CHARS && !c.is_control();
            model.filter.extend(room.then_some(c));
            model
        }
        ScreenKey::Left
        | ScreenKey::Right
        | ScreenKey::PageUp
        | ScreenKey::PageDown
        | ScreenKey::Home
        | ScreenKey::End
        | ScreenKey::Tab => model,
    }
}

/// Applies a key to the selected row of the tree; without rows there is nothing to open.
fn update_tree(
    mut model: ScreenModel,
    key: ScreenKey,
    scene: &WatchScene<'_>,
    size: ScreenSize,
) -> ScreenModel {
    let rows = tree::tree_rows(scene.facts, &model.filter);
    let index = tree::cursor_row(&rows, model.cursor);
    let row = rows.get(index).map(|row| row.place);
    model.cursor = row.unwrap_or(model.cursor);
    match (key, row) {
        (ScreenKey::Char('/' | 'f'), _) => model.open_page(ScreenPage::Filter),
        (ScreenKey::Escape, _) => ScreenModel { filter: String::new(), ..model },
        (ScreenKey::Enter | ScreenKey::Right, Some(place)) => {
            model.open_page(ScreenPage::Item { place, top: 0 })
        }
        (ScreenKey::Char('l'), Some(place)) => {
            model.open_page(ScreenPage::Paper { place, which: 0, at: FilePosition::End })
        }
        (ScreenKey::Char('b'), _) => {
            let cursor = CodePlace::Node(scene.facts.best_node());
            ScreenModel { cursor, filter: String::new(), ..model }
        }
        _ => {
            let index = moved_line(index, key, rows.len(), super::tree_height(scene, size));
            let cursor = rows.get(index).map_or(model.cursor, |row| row.place);
            ScreenModel { cursor, ..model }
        }
    }
}

/// Returns the line after a movement key, given the number of all lines and of visible ones.
fn moved_line(line: usize, key: ScreenKey, all: usize, seen: usize) -> usize {
    let last = all.saturating_sub(1);
    let page = seen.saturating_sub(1).max(1);
    match key {
        ScreenKey::Up | ScreenKey::Char('k') => line.saturating_sub(1),
        ScreenKey::Down | ScreenKey::Char('j') => (line + 1).min(last),
        ScreenKey::PageUp => line.saturating_sub(page),
        ScreenKey::PageDown | ScreenKey::Char(' ') => (line + page).min(last),
        ScreenKey::Home | ScreenKey::Char('g') => 0,
        ScreenKey::End | ScreenKey::Char('G') => last,
        ScreenKey::Left
        | ScreenKey::Right
        | ScreenKey::Enter
        | ScreenKey::Escape
        | ScreenKey::Tab
        | ScreenKey::Backspace
        | ScreenKey::Char(_) => line,
    }
}

fn update_page(
    mut model: ScreenModel,
    page: ScreenPage,
    key: ScreenKey,
    scene: &WatchScene<'_>,
    size: ScreenSize,
) -> ScreenModel {
    if let (ScreenKey::Char('l'), ScreenPage::Item { place, .. }) = (key, page) {
        return model.open_page(ScreenPage::Paper { place, which: 0, at: FilePosition::End });
    }
    let all = page::page_content(scene, page, size).len();
    let seen = page::page_height(size);
    // Lines that can be at the top.
    let tops = all.saturating_sub(seen) + 1;
    let moved = |top: usize| moved_line(top.min(tops - 1), key, tops, seen);
    let new = match page {
        ScreenPage::Filter => page,
        ScreenPage::Item { place, top } => ScreenPage::Item { place, top: moved(top) },
        ScreenPage::Help { top } => ScreenPage::Help { top: moved(top) },
        ScreenPage::Paper { place, which, .. } if key == ScreenKey::Tab => {
            ScreenPage::Paper { place, which: which + 1, at: FilePosition::End }
        }
        ScreenPage::Paper { place, which, at } => {
            let top = moved(if let FilePosition::Line(top) = at { top } else { tops - 1 });
            let at = if top + 1 >= tops { FilePosition::End } else { FilePosition::Line(top) };
            ScreenPage::Paper { place, which, at }
        }
    };
    if let Some(last) = model.pages.last_mut() {
        *last = new;
    }
    model
}
