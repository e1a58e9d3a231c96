//! What the user of the screen is at: the row, the filter, the pages that are open.
//! [`update_model`] says what a key makes of it; what a key was on which keyboard is the terminal's
//! business.

use super::{ScreenSize, WatchScene, page, tree};
use treebeam_core::id::{CodePlace, NodeId};

/// The longest filter.
const MAX_FILTER_CHARS: usize = 60;

/// What the user is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenModel {
    /// The row of the tree.
    pub(super) cursor: CodePlace,
    /// What the rows of the tree have to contain.
    pub(super) filter: String,
    /// The pages that lie over the tree, the one that is seen last.
    pub(super) pages: Vec<ScreenPage>,
}

/// Something that lies over the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenPage {
    /// The filter is being typed; the tree is seen.
    Filter,
    /// All that is on record about a node or an eval, from this line on.
    Item { place: CodePlace, top: usize },
    /// A file of it: which of those that are there, and where in it.
    Paper { place: CodePlace, which: usize, at: FilePosition },
    /// The keys, from this line on.
    Help { top: usize },
}

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilePosition {
    /// At its end, also when that moves on.
    End,
    /// From this line on.
    Line(usize),
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenKey {
    /// One line up.
    Up,
    /// One line down.
    Down,
    /// To the left.
    Left,
    /// To the right.
    Right,
    /// One screen up.
    PageUp,
    /// One screen down.
    PageDown,
    /// To the first line.
    Home,
    /// To the last line.
    End,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Tab.
    Tab,
    /// The character before the cursor goes.
    Backspace,
    /// A character.
    Char(char),
}

/// What a key leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenUpdate {
    /// The screen stays.
    Stay(ScreenModel),
    /// The user has seen enough.
    Quit,
}

/// A file that the user wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedFile {
    /// Whose.
    pub place: CodePlace,
    /// Which of those that are there; counted on beyond the last one.
    pub which: usize,
    /// Whether its end is to be followed.
    pub follow: FollowMode,
}

/// Whether the end of a file is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowMode {
    /// What is added is shown.
    Yes,
    /// What is seen stays where it is.
    No,
}

impl Default for ScreenModel {
    fn default() -> Self {
        Self { cursor: CodePlace::Node(NodeId::ROOT), filter: String::new(), pages: Vec::new() }
    }
}

impl ScreenModel {
    /// The file that is to be seen, if one is.
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

/// What a key makes of it, on a screen of this size.
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

/// While the filter is typed.
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

/// What a key does to the row that is shown as the cursor's; where no row is shown, there is nothing to be opened.
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

/// A line after a key, of so many, of which so many are seen.
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
    // The first line that can stand on top.
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
